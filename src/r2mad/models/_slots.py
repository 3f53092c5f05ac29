"""The calls that an endpoint may have in flight, given to those who wait in order of their debate's place.

Older debates go first. A debate that is under way then ends soon, its conversation is still read on the server when its
next round comes, and at a run's end no late starter holds its rounds one after another on an idle endpoint.
"""

from __future__ import annotations

import asyncio
import heapq
from contextvars import ContextVar
from types import TracebackType

place: ContextVar[int] = ContextVar("place", default=0)
"""Place in the queue of whatever is called from this context; lower goes first. A runner sets it, a debate a number."""


class Slots:
    """A semaphore whose waiters are served by `place`, and those of one place in order of arrival."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._arrivals = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    async def __aenter__(self) -> None:
        if self._free > 0:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrivals += 1
        heapq.heappush(self._waiting, (place.get(), self._arrivals, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on()  # the slot had just been handed over
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
