"""The cache of vectors: nothing is embedded twice, nothing is kept for ever, nobody's error or haste hurts others."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2mad.embed.cached import OVERHEAD, CachedEmbedder
from r2mad.errors import ServerFaultError
from r2mad.protocols import Embedder

if TYPE_CHECKING:
    from r2mad.experience import Vectors

ENTRY = 3 * 4 + OVERHEAD


class Slow:
    """Embeds a text as its length, when told to go on."""

    name = "slow/3"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.go = asyncio.Event()
        self.go.set()
        self.error: Exception | None = None
        self.closed = 0
        self.cancelled = 0

    async def dimension(self) -> int:
        return 3

    async def embed(self, texts: Sequence[str]) -> "Vectors":
        self.asked.append(list(texts))
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error:
            raise self.error
        return np.array([[len(text), 1, 0] for text in texts], np.float32)

    async def aclose(self) -> None:
        self.closed += 1


async def test_it_does_what_an_embedder_must() -> None:
    slow = Slow()
    cached = CachedEmbedder(slow)
    assert isinstance(cached, Embedder)
    assert (cached.name, await cached.dimension()) == ("slow/3", 3)
    assert (await cached.embed([])).shape == (0, 3)
    assert slow.asked == []
    await cached.aclose()
    assert slow.closed == 1


async def test_a_text_is_embedded_once() -> None:
    slow = Slow()
    cached = CachedEmbedder(slow)
    first = await cached.embed(["a", "bb", "a"])
    assert first[:, 0].tolist() == [1, 2, 1]
    assert (await cached.embed(["ccc", "bb"]))[:, 0].tolist() == [3, 2]
    assert slow.asked == [["a", "bb"], ["ccc"]]
    assert (cached.hits, cached.misses) == (2, 3)


async def test_what_comes_back_is_the_callers_to_change() -> None:
    cached = CachedEmbedder(Slow())
    for _ in range(2):
        vectors = await cached.embed(["a"])
        assert vectors.tolist() == [[1, 1, 0]]
        vectors += 7


async def test_a_kept_vector_does_not_keep_the_others_of_its_call() -> None:
    cached = CachedEmbedder(Slow())
    await cached.embed(["a", "bb"])
    assert all(vector.base is None for vector in cached._kept.values())


async def test_texts_on_their_way_are_shared() -> None:
    slow = Slow()
    slow.go.clear()
    cached = CachedEmbedder(slow)
    one = asyncio.create_task(cached.embed(["a", "bb"]))
    two = asyncio.create_task(cached.embed(["ccc", "bb", "a"]))
    await asyncio.sleep(0.01)
    slow.go.set()
    assert (await one)[:, 0].tolist() == [1, 2]
    assert (await two)[:, 0].tolist() == [3, 2, 1]
    assert slow.asked == [["a", "bb"], ["ccc"]]
    assert (cached.hits, cached.misses) == (2, 3)


async def test_an_error_goes_to_all_who_wait_and_is_not_kept() -> None:
    slow = Slow()
    slow.go.clear()
    slow.error = ServerFaultError("no")
    cached = CachedEmbedder(slow)
    waiting = [asyncio.create_task(cached.embed(["a"])) for _ in range(3)]
    await asyncio.sleep(0.01)
    slow.go.set()
    assert [type(one) for one in await asyncio.gather(*waiting, return_exceptions=True)] == [ServerFaultError] * 3
    slow.error = None
    assert (await cached.embed(["a"]))[0, 0] == 1
    assert slow.asked == [["a"], ["a"]]


async def test_whoever_is_cancelled_leaves_the_work_to_the_others() -> None:
    slow = Slow()
    slow.go.clear()
    cached = CachedEmbedder(slow)
    hasty = asyncio.create_task(cached.embed(["a"]))
    patient = asyncio.create_task(cached.embed(["a"]))
    await asyncio.sleep(0.01)
    hasty.cancel()
    await asyncio.sleep(0.01)
    assert slow.cancelled == 0
    slow.go.set()
    assert (await patient)[0, 0] == 1
    assert len(slow.asked) == 1
    with pytest.raises(asyncio.CancelledError):
        await hasty


async def test_work_that_nobody_waits_for_ends_and_can_be_asked_for_again() -> None:
    slow = Slow()
    slow.go.clear()
    cached = CachedEmbedder(slow)
    hasty = [asyncio.create_task(cached.embed(["a"])) for _ in range(2)]
    await asyncio.sleep(0.01)
    for task in hasty:
        task.cancel()
    again = asyncio.create_task(cached.embed(["a"]))
    await asyncio.gather(*hasty, return_exceptions=True)
    await asyncio.sleep(0.01)
    assert not again.done()
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)
    await asyncio.sleep(0.01)
    assert len(slow.asked) == slow.cancelled >= 1
    slow.go.set()
    assert (await cached.embed(["a"]))[0, 0] == 1


async def test_the_least_recently_used_goes_first() -> None:
    slow = Slow()
    cached = CachedEmbedder(slow, room=2 * ENTRY)
    await cached.embed(["a", "bb"])
    await cached.embed(["a"])
    await cached.embed(["ccc"])  # bb has to go
    slow.asked.clear()
    await cached.embed(["a", "ccc"])
    assert slow.asked == []
    await cached.embed(["bb"])
    assert slow.asked == [["bb"]]


@given(st.lists(st.lists(st.sampled_from("abcdefghij"), max_size=6), max_size=25), st.integers(0, 6))
def test_it_is_bounded_and_right_whatever_is_asked(calls: list[list[str]], entries: int) -> None:
    async def run() -> None:
        slow = Slow()
        cached = CachedEmbedder(slow, room=entries * ENTRY)
        for texts in calls:
            sized = [text * (ord(text) - 96) for text in texts]
            vectors = await cached.embed(sized)
            assert vectors[:, 0].tolist() == [len(text) for text in sized]
            assert cached.held == len(cached._kept) * ENTRY <= cached.room
            assert not cached._flights
        assert cached.misses == sum(map(len, slow.asked))
        assert cached.hits + cached.misses == sum(map(len, calls))

    asyncio.run(run())
