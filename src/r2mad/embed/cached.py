"""A cache of vectors by what the text says, and the sharing of texts that are being embedded."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from r2mad.protocols import Embedder

if TYPE_CHECKING:
    from r2mad.experience import Vectors

ROOM = 64 << 20
"""Bytes of vectors that are kept: 65,000 of the embedded embedder, 16,000 of one with 1,024 numbers."""
OVERHEAD = 200
"""Bytes that an entry costs besides its numbers: the digest, the array's head, a place in the table."""


@dataclass(slots=True, eq=False)
class _Flight:
    """Texts that are being embedded together, and how many calls wait for them."""

    task: asyncio.Task[Vectors]
    keys: list[bytes]
    waiting: int = 0


class CachedEmbedder:
    """An embedder that embeds no text twice, as long as its vector is kept.

    A text that another call is having embedded is waited for, and one that stands twice in a call is embedded once. An
    error goes to everyone who waits for the same texts, and is not kept. One object serves one event loop at a time.

    Args:
        embedder: where vectors come from; closing this closes it.
        room: bytes of vectors that are kept. Those that were used least recently go first.
    """

    def __init__(self, embedder: Embedder, room: int = ROOM) -> None:
        self.uncached = embedder
        """The embedder itself."""
        self.room = room
        self.hits = 0
        """Texts whose vector was there, was on its way, or was asked for twice in one call."""
        self.misses = 0
        """Texts that were embedded."""
        self.held = 0
        """Bytes that are kept now."""
        self._kept: OrderedDict[bytes, Vectors] = OrderedDict()
        self._flights: dict[bytes, _Flight] = {}

    @property
    def name(self) -> str:
        """The embedder's name."""
        return self.uncached.name

    async def dimension(self) -> int:
        """d, as the embedder says."""
        return await self.uncached.dimension()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of `texts`, shape [len(texts), d]; see `Embedder.embed`.

        Raises:
            ModelError: what the embedder raised.
        """
        if not texts:
            return np.zeros((0, await self.dimension()), np.float32)
        keys = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        found: dict[bytes, Vectors] = {}
        awaited: dict[_Flight, None] = {}  # in order, each once
        new: dict[bytes, str] = {}
        for key, text in zip(keys, texts, strict=True):
            if key in self._kept:
                self._kept.move_to_end(key)
                found[key] = self._kept[key]
            elif key in self._flights:
                awaited[self._flights[key]] = None
            else:
                new[key] = text
        self.misses += len(new)
        self.hits += len(texts) - len(new)
        if new:
            awaited[self._start(new)] = None
        await self._wait(list(awaited))
        for flight in awaited:
            found.update(zip(flight.keys, flight.task.result(), strict=True))
        return np.stack([found[key] for key in keys])

    async def aclose(self) -> None:
        """Close the embedder; what is kept stays. Safe to call twice."""
        await self.uncached.aclose()

    def _start(self, new: dict[bytes, str]) -> _Flight:
        task = asyncio.get_running_loop().create_task(self.uncached.embed(list(new.values())))
        flight = _Flight(task, list(new))
        for key in new:
            self._flights[key] = flight
        task.add_done_callback(lambda _: self._land(flight))
        return flight

    async def _wait(self, flights: list[_Flight]) -> None:
        """Wait for all of them. Whoever is cancelled leaves them to the others; where there are none, they end."""
        for flight in flights:
            flight.waiting += 1
        try:
            if flights:
                await asyncio.wait([flight.task for flight in flights])
        finally:
            for flight in flights:
                flight.waiting -= 1
                if not flight.waiting and not flight.task.done():
                    self._forget(flight)  # who asks from now on has it embedded anew
                    flight.task.cancel()

    def _land(self, flight: _Flight) -> None:
        self._forget(flight)
        if flight.task.cancelled() or flight.task.exception():
            return
        for key, vector in zip(flight.keys, flight.task.result(), strict=True):
            self._keep(key, vector.copy())  # a row alone would hold the whole matrix

    def _forget(self, flight: _Flight) -> None:
        for key in flight.keys:
            if self._flights.get(key) is flight:
                del self._flights[key]

    def _keep(self, key: bytes, vector: Vectors) -> None:
        if key not in self._kept:
            self.held += vector.nbytes + OVERHEAD
        self._kept[key] = vector
        while self.held > self.room:
            _, gone = self._kept.popitem(last=False)
            self.held -= gone.nbytes + OVERHEAD
