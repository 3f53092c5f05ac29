"""A cache of calls, and the sharing of calls in flight.

What decides a reply is in the key: model and address, messages, all sampling parameters, seed, agent and sample. What
a call is for (`kind`) is not. Two debates that ask the same thing at the same time make one call.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

from r2mad.errors import StoreError, UsageError
from r2mad.models._cache_file import CacheFile, decode, encode
from r2mad.protocols import ChatModel
from r2mad.types import Completion, Request, Suggestions, digest

__all__ = ["CachedModel", "CallCache", "call_key"]

log = logging.getLogger(__name__)

Call = Callable[[], Coroutine[Any, Any, Completion]]


def call_key(identity: str, request: Request) -> str:
    """The digest under which a call is stored.

    Raises:
        UsageError: `extra_body` is not JSON.
    """
    sampling = request.sampling
    parts = [
        identity,
        [[message.role, message.content] for message in request.messages],
        # as floats: a temperature of 1 and of 1.0 is one temperature, and their JSON differs
        [float(sampling.temperature), float(sampling.top_p), sampling.max_tokens, sampling.logprobs],
        sampling.extra_body,
        [request.seed, request.agent, request.sample],
    ]
    try:
        return digest(parts, size=16)
    except (TypeError, ValueError) as error:
        raise UsageError(f"extra_body is not JSON: {error}") from error


@dataclass(slots=True)
class _Flight:
    """A call under way, and how many wait for it."""

    task: asyncio.Task[Completion]
    waiting: int = 0


class CallCache:
    """Replies of earlier calls, in a SQLite file or in memory, for any number of models.

    Several processes may use one file at once. One object serves one event loop at a time.

    Args:
        path: the file; its directory is made if need be. None keeps replies in memory only.
        read_older: whether entries that other `CallCache` objects wrote are read (`--no-cache` turns it off). Calls
            are shared inside this one either way, and written either way.

    Raises:
        StoreError: the file is damaged, is not a cache, was written by a newer version, or cannot be written.
    """

    def __init__(self, path: str | PathLike[str] | None = None, read_older: bool = True) -> None:
        self.read_older = read_older
        self.run = secrets.token_hex(8)
        """Marks this object's entries in the file."""
        self.hits = 0
        """Replies that came from an entry or from a call in flight."""
        self.misses = 0
        """Calls that were made."""
        self._file = CacheFile(Path(path) if path is not None else None, self.run)
        self._flights: dict[str, _Flight] = {}
        self._unwritten: dict[str, str] = {}

    async def complete(self, model: ChatModel, request: Request) -> Completion:
        """The stored reply, or the model's.

        An error is raised to everyone who waits for the same call and is not stored. A waiter that is cancelled
        leaves the call to the others; if there are none, the call is cancelled.

        Raises:
            ModelError: what the model raised.
            StoreError: the file became unreadable.
            UsageError: `extra_body` is not JSON.
        """
        key = call_key(model.identity, request)
        flight = self._flights.get(key)
        if flight is None:
            stored = self._get(key)
            if stored is not None:
                self.hits += 1
                return stored
            self.misses += 1
            return await self._join(key, self._start(key, model, request))
        self.hits += 1
        return replace(await self._join(key, flight), cached=True)

    def _start(self, key: str, model: ChatModel, request: Request) -> _Flight:
        task = asyncio.get_running_loop().create_task(self._call(key, model, request))
        flight = self._flights[key] = _Flight(task)

        def over(task: asyncio.Task[Completion]) -> None:
            if self._flights.get(key) is flight:
                del self._flights[key]
            if not task.cancelled():
                task.exception()  # seen: with every waiter cancelled nobody else would ask for it

        task.add_done_callback(over)
        return flight

    async def _join(self, key: str, flight: _Flight) -> Completion:
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():  # we were cancelled, and nobody else wants it
                if self._flights.get(key) is flight:
                    del self._flights[key]  # who asks from now on makes a call of its own
                flight.task.cancel()

    async def _call(self, key: str, model: ChatModel, request: Request) -> Completion:
        completion = await model.complete(request)
        if completion.text or completion.finish_reason:  # neither: a broken reply, which a later call may mend
            self._put(key, model, request, completion)
        return completion

    def _get(self, key: str) -> Completion | None:
        text = self._unwritten.get(key) or self._file.get(key, self.read_older)
        if text is None:
            return None
        try:
            return decode(text)
        except ValueError:
            log.warning("an entry of the call cache %s is damaged; the call is made again", self._file.path)
            return None

    def _put(self, key: str, model: ChatModel, request: Request, completion: Completion) -> None:
        text = encode(completion)
        messages = digest([[message.role, message.content] for message in request.messages])
        try:
            self._file.put(key, model.identity, messages, request, text)
        except StoreError as error:  # a full disk: the reply is paid for, so it is used, and kept for this run
            if not self._unwritten:
                log.warning("%s; replies are kept in memory for this run", error)
            self._unwritten[key] = text

    def __len__(self) -> int:
        """Entries in the file, those of other runs included."""
        return self._file.count() + len(self._unwritten)

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class CachedModel:
    """A model whose calls go through a `CallCache`.

    Closing it closes the model; the cache, which others share, is closed by whoever opened it.
    """

    def __init__(self, model: ChatModel, cache: CallCache) -> None:
        self.uncached = model
        """The model itself."""
        self.cache = cache

    @property
    def name(self) -> str:
        """The model's name."""
        return self.uncached.name

    @property
    def identity(self) -> str:
        """The model's identity."""
        return self.uncached.identity

    @property
    def suggestions(self) -> Suggestions | None:
        """What the model suggests, if it suggests anything."""
        return getattr(self.uncached, "suggestions", None)

    async def complete(self, request: Request) -> Completion:
        """Answer from the cache, from a call in flight, or by a call; see `CallCache.complete`."""
        return await self.cache.complete(self.uncached, request)

    async def aclose(self) -> None:
        """Close the model. Safe to call twice."""
        await self.uncached.aclose()
