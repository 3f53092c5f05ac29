"""Embedders by name, and what `doctor` says of them."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from r2mad import embed
from r2mad.cli.main import main
from r2mad.embed import DEFAULT, CachedEmbedder, open_embedder
from r2mad.errors import UnknownNameError, UsageError
from r2mad.models import ModelOptions
from r2mad.models._fake_replies import embeddings
from r2mad.models._refusals import refuse
from r2mad.models.fake_server import FakeServer, Settings

if TYPE_CHECKING:
    from r2mad.experience import Vectors


async def test_the_default_is_the_embedded_one() -> None:
    one = open_embedder()
    assert isinstance(one, CachedEmbedder)
    assert one.name == f"{DEFAULT}/256"
    await one.embed(["a", "a"])
    assert (one.hits, one.misses) == (1, 1)
    await one.aclose()


@pytest.mark.parametrize("name", ["nothing", "nothing/x", "wordllama/x", "", "/", "openai"])
def test_an_unknown_name_shows_the_known_ones(name: str) -> None:
    with pytest.raises(UnknownNameError, match="wordllama, openai/NAME, gguf/NAME"):
        open_embedder(name)


def test_a_provider_needs_a_name() -> None:
    with pytest.raises(UnknownNameError, match="write openai/NAME"):
        open_embedder("openai/ ")


def test_an_option_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="base URL"):
        open_embedder("openai/x", ModelOptions(base_url="no url"))


def test_what_is_exported_is_there() -> None:
    for name in embed.__all__:
        assert getattr(embed, name)
    with pytest.raises(AttributeError):
        _ = embed.nothing


def test_importing_it_imports_no_client() -> None:
    code = "import sys, r2mad.embed; print([m for m in ('aiohttp', 'wordllama', 'xllamacpp') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_fake_server_refuses_long_texts_in_words_that_are_understood() -> None:
    settings = Settings(embed_context=4)
    assert embeddings(settings, {"input": ["a b c d", "a"]})[0] == 200
    status, said = embeddings(settings, {"input": ["a", "a b c d e"]})
    refused = refuse(status, {}, json.dumps(said).encode(), "there").error
    assert (refused.kind, getattr(refused, "limit", None)) == ("context-overflow", 4)
    assert embeddings(Settings(), {"input": ["a " * 100_000]})[0] == 200


Doctor = Callable[..., tuple[int, dict[str, dict[str, str]]]]


@pytest.fixture
def doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Doctor:
    monkeypatch.setenv("R2MAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("R2MAD_LOG_DIR", str(tmp_path / "logs"))

    def run(*arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
        code = main(["doctor", "--json", *arguments])
        return code, {finding["what"]: finding for finding in json.loads(capsys.readouterr().out)}

    return run


def test_doctor_finds_the_embedded_embedder_good(doctor: Doctor) -> None:
    code, found = doctor()
    assert code == 0
    assert found["embedder wordllama"]["state"] == "good"
    assert "256 numbers" in found["embedder wordllama"]["detail"]
    assert "ms" in found["embedder wordllama"]["detail"]


def test_doctor_misses_the_embedded_embedder_and_says_how_to_get_it(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "wordllama" else real(name))
    code, found = doctor()
    assert code == 0
    assert found["embedder wordllama"]["state"] == "missing"
    assert "pip install 'r2mad[local]'" in found["embedder wordllama"]["advice"]


def test_doctor_tries_the_embedder_that_is_named(doctor: Doctor) -> None:
    with FakeServer.spawn() as server:
        code, found = doctor("--embedder", "openai/fake", "--embedder-base-url", server.base_url)
    assert code == 0
    assert "64 numbers" in found["embedder openai/fake"]["detail"]
    assert "embedder wordllama" not in found


def test_doctor_and_an_embedder_that_is_not_there(doctor: Doctor) -> None:
    code, found = doctor("--embedder", "openai/fake", "--base-url", "http://127.0.0.1:9/v1")
    assert code == 1
    assert found["embedder openai/fake"]["state"] == "broken"
    assert "start the server" in found["embedder openai/fake"]["advice"]


def test_doctor_says_so_when_vectors_tell_nothing(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    async def same(self: CachedEmbedder, texts: list[str]) -> "Vectors":
        return np.full((len(texts), 4), 0.5, np.float32)

    monkeypatch.setattr(CachedEmbedder, "embed", same)
    code, found = doctor("--embedder", "wordllama")
    assert code == 1
    assert "trained for embeddings" in found["embedder wordllama"]["advice"]
