"""Texts longer than a server takes, or reads: cut, never cut short, and the same however they were asked for."""

import asyncio
import logging
from typing import Any

import numpy as np
import pytest

from r2mad.embed import OpenAIEmbedder
from r2mad.embed.openai import PIECE, SURE
from r2mad.errors import ModelError
from r2mad.models import Endpoint
from r2mad.models._fake_replies import embed
from r2mad.models.fake_server import FakeServer, Settings
from tests.embed.conftest import Canned, refuse, reply

STORY = "Three agents talk about a spider and its legs, and each of them gives another number. "


def embedder(url: str, **how: Any) -> OpenAIEmbedder:
    return OpenAIEmbedder("fake", Endpoint(url, max_retries=2, timeout=10), **how)


def _endings(text: str) -> list[str]:
    return [f"{text}green", f"{text}blue"]


async def test_a_long_text_is_cut_and_nothing_of_it_is_lost(fake: FakeServer, caplog: pytest.LogCaptureFixture) -> None:
    one = embedder(fake.base_url)
    long = STORY * 400  # 34,000 bytes
    with caplog.at_level(logging.WARNING):
        vectors = await one.embed(_endings(long))
        await one.embed(_endings(long + "and "))
    assert not np.array_equal(vectors[0], vectors[1])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-6)
    sent = [text for entry in fake.log[1:] for text in entry.body["input"]]  # the first is the probe
    assert max(map(len, sent)) <= PIECE
    assert " ".join(sent[:8]).split() == f"{long}green".split()
    (said,) = caplog.records
    assert "cut into 8 pieces" in said.getMessage()
    await one.aclose()


@pytest.mark.parametrize("limit", [400, 100, 30, 9])
async def test_a_server_with_a_short_context_gets_pieces_that_it_takes(fake: FakeServer, limit: int) -> None:
    fake.settings = Settings(embed_context=limit)
    one = embedder(fake.base_url)
    for long in (STORY * 3, STORY * 40):
        vectors = await one.embed([*_endings(long), "short"])
        assert not np.array_equal(vectors[0], vectors[1])
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-6)
    await one.aclose()


async def test_what_a_server_takes_is_learnt_once(fake: FakeServer) -> None:
    fake.settings = Settings(embed_context=800)
    one = embedder(fake.base_url)
    await one.embed([STORY * 40])
    assert one._limit == 1500  # 750 digits; 1,500 digits are refused
    fake.reset()
    await one.embed([STORY * 41])
    assert [(entry.status, len(entry.body["input"])) for entry in fake.log] == [(200, 4)]
    await one.aclose()


async def test_texts_that_any_server_reads_need_no_probe(fake: FakeServer) -> None:
    one = embedder(fake.base_url)
    await one.embed(["x" * SURE])
    assert len(fake.log) == 1
    await one.embed(["x" * (SURE + 1)])
    assert len(fake.log) == 3
    await one.aclose()


async def test_many_long_texts_at_once_make_one_probe(fake: FakeServer) -> None:
    one = embedder(fake.base_url)
    await asyncio.gather(*(one.embed([f"{STORY * 10} {number}"]) for number in range(5)))
    assert [len(entry.body["input"]) for entry in fake.log] == [2, 5]
    await one.aclose()


@pytest.mark.parametrize("read", [250, 600, 2600])
async def test_a_server_that_reads_the_beginning_only_is_found_out(canned: Canned, read: int) -> None:
    """Ollama, and TEI with auto-truncate, embed the first so many tokens and say nothing."""
    canned.answer = lambda texts: reply([embed(" ".join(text.split()[:read]), 64) for text in texts])
    one = embedder(canned.url)
    vectors = await one.embed(_endings(STORY * 200))
    assert not np.array_equal(vectors[0], vectors[1])
    assert all(len(text.split()) <= read for text in canned.asked[-1])
    await one.aclose()


@pytest.mark.parametrize(
    "refusal",
    [
        (413, "Payload too large"),
        (413, "Input validation error: `inputs` must have less than 512 tokens. Given: 600"),
        (422, "Input validation error: `inputs` must have less than 512 tokens. Given: 600"),
        (500, "input (600 tokens) is too large to process. increase the physical batch size"),
        (400, "This model's maximum context length is 512 tokens, however you requested 600 tokens"),
    ],
)
async def test_every_way_to_say_too_long_is_understood(canned: Canned, refusal: tuple[int, str]) -> None:
    canned.answer = lambda texts: (
        refuse(*refusal) if max(map(len, texts)) > 100 else reply([[len(text), 1] for text in texts])
    )
    one = embedder(canned.url, honest=True)
    assert (await one.embed(["word " * 60])).any()
    assert [text for texts in canned.asked for text in texts if len(text) <= 100] == ["word " * 14 + "word"] * 4
    await one.aclose()


async def test_a_refused_text_changes_nothing_for_others(canned: Canned, caplog: pytest.LogCaptureFixture) -> None:
    """A vector must not depend on what was asked before it: another memory would come of another order."""
    canned.answer = lambda texts: (
        refuse(400, "input is too long") if any("漢" in text and len(text) > 100 for text in texts) else
        reply([[len(text), 1] for text in texts])
    )  # fmt: skip
    one, two = embedder(canned.url, honest=True), embedder(canned.url, honest=True)
    plain = STORY * 20
    with caplog.at_level(logging.WARNING):
        before = await one.embed([plain])
        await one.embed(["漢 " * 300])
        await two.embed(["漢 " * 300])
    assert np.array_equal(before, await one.embed([plain]))
    assert np.array_equal(before, await two.embed([plain]))
    assert [record.getMessage().count("refused as too long") for record in caplog.records] == [1, 1]
    await one.aclose()
    await two.aclose()


async def test_a_server_that_refuses_everything_as_too_long(canned: Canned) -> None:
    canned.answer = lambda texts: refuse(400, "input is too long")
    one = embedder(canned.url)
    with pytest.raises(ModelError, match="too long"):
        await one.embed([STORY * 10])
    asked = len(canned.bodies)
    await asyncio.sleep(0.05)
    assert len(canned.bodies) == asked  # nothing goes on once the error is there
    assert not one._requests
    await one.aclose()
