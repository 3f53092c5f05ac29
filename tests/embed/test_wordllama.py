"""The embedded embedder, for real."""

import asyncio
import subprocess
import sys
import time

import numpy as np
import pytest

from r2mad.embed import WordLlamaEmbedder, open_embedder
from r2mad.embed import wordllama as module
from r2mad.errors import UsageError
from r2mad.protocols import Embedder

TEXT = "Three agents debate how many legs a spider has, and the third is not sure of its answer. " * 12


@pytest.fixture
def embedder() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


async def test_it_does_what_an_embedder_must(embedder: WordLlamaEmbedder) -> None:
    assert isinstance(embedder, Embedder)
    assert embedder.name == "wordllama/256"
    assert await embedder.dimension() == 256
    vectors = await embedder.embed(["How many legs has a spider?", TEXT, "x"])
    assert vectors.shape == (3, 256)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-6)
    assert (await embedder.embed([])).shape == (0, 256)
    await embedder.aclose()
    await embedder.aclose()
    assert np.array_equal(await embedder.embed(["x"]), vectors[2:])


async def test_like_texts_are_closer(embedder: WordLlamaEmbedder) -> None:
    one, two, other = await embedder.embed(
        [
            "How many legs does a spider have?",
            "What is the number of legs of a spider?",
            "Share prices fell in October.",
        ]
    )
    assert one @ two > one @ other + 0.3


async def test_it_agrees_with_the_package_itself(embedder: WordLlamaEmbedder) -> None:
    """Its own mean, but for padding: so a slip in tokens or rows would show."""
    texts = ["How many legs does a spider have?", TEXT]
    vectors = await embedder.embed(texts)
    tokenizer, table = module._load()
    for text, vector in zip(texts, vectors, strict=True):
        rows = table[tokenizer.encode(text, add_special_tokens=False).ids].astype(np.float64)
        assert vector == pytest.approx(rows.mean(0) / np.linalg.norm(rows.mean(0)), abs=1e-6)


async def test_a_vector_does_not_depend_on_its_neighbours(embedder: WordLlamaEmbedder) -> None:
    (alone,) = await embedder.embed(["legs of a spider"])
    for others in (["a"], [TEXT * 20], [f"text number {number}" for number in range(200)]):
        vectors = await embedder.embed([*others, "legs of a spider", *others])
        assert np.array_equal(vectors[len(others)], alone)


@pytest.mark.parametrize("blank", ["", " ", "\n\t ", "\u2003"])
async def test_a_text_without_content_is_zeros(embedder: WordLlamaEmbedder, blank: str) -> None:
    vectors = await embedder.embed(["a", blank])
    assert not vectors[1].any()
    assert vectors[0].any()


async def test_the_last_words_of_a_long_text_count(embedder: WordLlamaEmbedder) -> None:
    long = TEXT * 300  # 80,000 tokens: several blocks of rows
    vectors = await embedder.embed([long + "green", long + "blue"])
    assert not np.array_equal(vectors[0], vectors[1])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-6)


async def test_text_that_looks_like_a_special_token_is_text(embedder: WordLlamaEmbedder) -> None:
    vectors = await embedder.embed(["</s>", "<s>", "[PAD]", "a lone half \ud800 of a pair"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-6)
    tokenizer, _ = module._load()
    assert 2 not in tokenizer.encode("a </s> b", add_special_tokens=False).ids


async def test_a_large_batch_does_not_hold_the_loop(embedder: WordLlamaEmbedder) -> None:
    await embedder.embed(["load it"])
    work = asyncio.create_task(embedder.embed([f"{TEXT} {number}" for number in range(800)]))
    turns = 0
    while not work.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 10
    assert (await work).shape == (800, 256)


async def test_it_is_quick(embedder: WordLlamaEmbedder) -> None:
    texts = [f"{TEXT} {number}" for number in range(150)]  # 250 tokens each
    await embedder.embed(texts)
    start = time.perf_counter()
    await embedder.embed(texts)
    assert (time.perf_counter() - start) / len(texts) < 0.003  # 0.0002; CI's cores are shared


async def test_many_first_calls_load_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_loaded", [])
    await asyncio.gather(*(WordLlamaEmbedder().embed(["a"]) for _ in range(8)))
    assert len(module._loaded) == 1


def test_opening_it_loads_nothing_and_logging_stays_as_it_was() -> None:
    code = """
import asyncio, logging, sys
from r2mad.embed import open_embedder
embedder = open_embedder("wordllama")
assert "wordllama" not in sys.modules
asyncio.run(embedder.embed(["a"]))
assert "wordllama" in sys.modules
assert logging.getLogger().level == logging.WARNING, logging.getLogger().level
assert logging.getLogger().handlers == [], logging.getLogger().handlers
logging.getLogger("someone").info("not to be seen")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_handlers_of_others_stay() -> None:
    import logging

    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    intruder = logging.NullHandler()
    with module._root_logger_untouched():
        root.addHandler(intruder)
        root.setLevel(5)
    assert (root.handlers, root.level) == (before, level)


def test_a_missing_package_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'r2mad\[local\]'"):
        open_embedder("wordllama")


async def test_a_package_that_breaks_on_import_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(module, "_loaded", [])
    monkeypatch.setattr(module, "import_module", broken)
    with pytest.raises(UsageError, match="pip install"):
        await WordLlamaEmbedder().embed(["a"])
