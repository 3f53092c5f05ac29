"""A GGUF file as an embedder, for real: the small chat model's states, averaged. It is pulled if it is not there."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from r2mad.embed import GgufEmbedder, open_embedder
from r2mad.embed.gguf import CONTEXT
from r2mad.errors import StoreError, UnknownNameError, UsageError
from r2mad.models import local
from r2mad.models.catalogue import DEFAULT, hash_of, pull
from r2mad.protocols import Embedder

if TYPE_CHECKING:
    from r2mad.experience import Vectors


@pytest.fixture(scope="module")
def path() -> Iterator[Path]:
    """The file; its server runs for all tests of this module, so that each need not load it."""
    found = pull(DEFAULT)
    serving = local.Serving(str(found.resolve()), CONTEXT, embeddings=True)
    local.start(serving)
    yield found
    local.stop(serving)


@pytest.fixture
async def embedder(path: Path) -> AsyncIterator[GgufEmbedder]:
    one = GgufEmbedder(path)
    yield one
    await one.aclose()


async def test_it_does_what_an_embedder_must(embedder: GgufEmbedder, path: Path) -> None:
    with pytest.raises(UsageError, match="await dimension"):
        _ = embedder.name
    assert await embedder.dimension() == 576
    assert isinstance(embedder, Embedder)
    assert embedder.name == f"gguf/{path.stem}:{hash_of(path)[:12]}/576"
    vectors = await embedder.embed(["How many legs has a spider?", "What number of legs has a spider?", "Oil", " "])
    assert vectors.shape == (4, 576)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors[:3], axis=1) == pytest.approx(1.0, abs=1e-6)
    assert not vectors[3].any()
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
    assert (await embedder.embed([])).shape == (0, 576)


async def test_a_vector_does_not_depend_on_its_neighbours(embedder: GgufEmbedder) -> None:
    (alone,) = await embedder.embed(["legs of a spider"])
    batch = await embedder.embed(["another text that is longer than the first", "legs of a spider", "x"])
    assert np.array_equal(batch[1], alone)
    assert np.array_equal((await embedder.embed(["legs of a spider"]))[0], alone)


async def test_the_last_words_of_a_long_text_count(path: Path) -> None:
    one = GgufEmbedder(path, piece=120)
    story = "A spider has eight legs and an ant has six. " * 8
    vectors = await one.embed([f"{story}green", f"{story}blue"])
    assert not np.array_equal(vectors[0], vectors[1])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-6)
    await one.aclose()


async def test_a_piece_over_the_context_is_halved(path: Path) -> None:
    """3,000 tokens in 3,000 bytes; nothing is embedded at full length, since the server refuses at once."""
    one = GgufEmbedder(path, piece=100_000)
    asked: list[int] = []
    inner = await one._open()
    await inner.dimension()
    request = inner._request

    async def spy(texts: list[str]) -> "Vectors":
        asked.append(max(map(len, texts)))
        if max(map(len, texts)) > 2500:
            return await request(texts)
        return np.full((len(texts), 576), 1 / 24, np.float32)  # spares seconds of work

    inner._request = spy  # type: ignore[method-assign]
    assert (await one.embed(["7" * 3000])).any()
    assert asked == [3000, 1500]
    await one.aclose()


async def test_embedders_share_one_server_beside_the_chat_models(path: Path) -> None:
    servers = len(local._running)
    one, two = GgufEmbedder(path), GgufEmbedder(path)
    vectors = await asyncio.gather(one.embed(["a"]), two.embed(["a"]))
    assert np.array_equal(*vectors)
    assert len(local._running) == servers
    await one.aclose()
    assert np.array_equal(await two.embed(["a"]), vectors[0])
    await two.aclose()
    await two.aclose()
    assert len(local._running) == servers


async def test_it_is_opened_by_name_and_by_path(path: Path) -> None:
    for name in (f"gguf/{DEFAULT}", f"gguf/{path}"):
        one = open_embedder(name)
        assert await one.dimension() == 576
        await one.aclose()
    with pytest.raises(UnknownNameError):
        open_embedder("gguf/no-such-model")
    with pytest.raises(UnknownNameError):
        open_embedder("gguf//no/such/file.gguf")


async def test_a_file_that_does_not_load_is_one_clear_error(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF" + b"\xff" * 5000)
    one = open_embedder(f"gguf/{damaged}")
    with pytest.raises(UsageError, match="cannot load"):
        await one.dimension()
    await one.aclose()


async def test_a_file_that_changed_since_it_was_fetched_has_no_name(
    embedder: GgufEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(path: Path) -> str:
        raise StoreError(f"{path} is damaged")

    monkeypatch.setattr("r2mad.embed.gguf.verify", damaged)
    with pytest.raises(StoreError, match="damaged"):
        await embedder.dimension()
    with pytest.raises(UsageError):
        _ = embedder.name
