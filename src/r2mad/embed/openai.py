"""Embedders behind any OpenAI-compatible URL: POST /v1/embeddings at vLLM, TEI, Ollama, llama.cpp or a provider.

What several debates ask for at the same moment goes out together. No text is cut short: a long one is cut into pieces,
and its vector is the mean of theirs. Some servers refuse what is too long for their model (vLLM, llama.cpp, providers).
Others embed its beginning and say nothing: Ollama unless told not to, TEI with auto-truncate. So how much a server
takes is found out before the first long text is sent, by two texts that differ at their ends: where the end does not
move the vector, it was not read.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from r2mad.embed._pieces import LEAST, blend, cut, halve, size
from r2mad.embed._reply import read_vectors
from r2mad.errors import (
    BadResponseError,
    ContextOverflowError,
    ModelError,
    RequestRejectedError,
    ServerFaultError,
    UsageError,
)
from r2mad.models._endpoint import Endpoint
from r2mad.models._slots import place
from r2mad.models.openai import shared_endpoint
from r2mad.types import clean

if TYPE_CHECKING:
    from r2mad.experience import Vectors
    from r2mad.models import ModelOptions

log = logging.getLogger(__name__)

T = TypeVar("T")

BATCH = 32
"""Texts of one request: TEI refuses more unless it is told otherwise, and servers split larger ones anyway."""
LARGEST = 100_000
"""Bytes of the texts of one request; providers refuse more than some 300,000 tokens, and proxies bodies of 1 MB."""
PIECE = 6000
"""Most bytes that are embedded as one text: about 1,500 tokens of English. Larger pieces would not do better: one
vector says less and less of a longer text, and few embedders were trained on so much."""
SURE = 400
"""Bytes that every server is taken to read whole: 100 to 200 tokens, and the shortest contexts have 256."""
END = 0.1
"""Part of a probing text in which it differs from the other one. Digits make more tokens a byte than nearly all text
does, so a server that reads nine tenths of them reads all of a piece."""
MOVED = 1e-4
"""Distance (1 - cosine) that the end of a text moves its vector by, if it is read; rounding alone, in half precision,
moves it by a tenth of that."""

_TOO_LONG = re.compile(r"^413 |too large to process|too long|must have less than \d+ tokens", re.IGNORECASE)


@dataclass(slots=True)
class _Asked:
    """A piece that waits for its vector, and the debate's place of whoever asked."""

    text: str
    place: int
    answer: asyncio.Future[Vectors]


class OpenAIEmbedder:
    """One embedding model at an `Endpoint`.

    Args:
        model: the model's name as the server knows it, such as `BAAI/bge-m3`.
        endpoint: where it is; chat models and other embedders may share it.
        piece: most bytes that are sent as one text.
        honest: whether the server is known to refuse what it cannot read whole. If not, that is found out when the
            first text over `SURE` bytes comes: one request more, and one for each halving.
    """

    def __init__(self, model: str, endpoint: Endpoint, *, piece: int = PIECE, honest: bool = False) -> None:
        self.model = model
        self.endpoint = endpoint
        self.piece = piece
        self._limit = piece if honest else None
        self._dimension: int | None = None
        self._warned = False
        self._queue: list[_Asked] = []
        self._requests: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._probing: asyncio.Task[None] | None = None
        self._open = True
        endpoint.hold()

    @property
    def name(self) -> str:
        """`openai/NAME/DIMENSION`.

        Raises:
            UsageError: the dimension is not known yet, since nothing was embedded; await `dimension()` first.
        """
        if self._dimension is None:
            raise UsageError(f"the name of openai/{self.model} ends with its dimension: await dimension() first")
        return f"openai/{self.model}/{self._dimension}"

    async def dimension(self) -> int:
        """d, found out by embedding a word if nothing was embedded before.

        Raises:
            ModelError: the server cannot be reached, or has no such model.
        """
        if self._dimension is None:
            return len(await self._ask("dimension"))
        return self._dimension

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of `texts`, shape [len(texts), d]; zeros for a text that is empty or blank, which is not sent.

        Raises:
            ModelError: after the retries. Nothing of the other texts is returned then.
        """
        cleaned = [clean(text).strip() for text in texts]
        full = [index for index, text in enumerate(cleaned) if text]
        if any(size(cleaned[index]) > SURE for index in full):
            await self._find_limit()
        rows = await _all(self._whole(cleaned[index]) for index in full)
        vectors = np.zeros((len(texts), await self.dimension()), np.float32)
        for index, row in zip(full, rows, strict=True):
            vectors[index] = row
        return vectors

    async def aclose(self) -> None:
        """Let go of the endpoint; its last user closes the connections. Safe to call twice."""
        if self._probing is not None:
            self._probing.cancel()  # nobody waits for it any more, and it would open the connections again
        if self._open:
            self._open = False
            await self.endpoint.release()

    async def _whole(self, text: str) -> Vectors:
        """The vector of a text of any length."""
        pieces = cut(text, self._limit or self.piece)
        if len(pieces) > 1:
            self._warn(f"a text of {size(text)} bytes was cut into {len(pieces)} pieces")
        found = await _all(self._piece(piece) for piece in pieces)
        parts = [part for piece in found for part in piece]
        return parts[0][1] if len(parts) == 1 else blend(parts).astype(np.float32)

    async def _piece(self, text: str) -> list[tuple[int, Vectors]]:
        """The vector of a piece with its size, or those of its parts, where the server refuses it as too long.

        A refusal changes nothing for other texts: a text's vector must not depend on what was asked before it.
        """
        try:
            return [(size(text), await self._ask(text))]
        except ModelError as error:
            if not _too_long(error) or size(text) <= LEAST:
                raise
            self._warn(f"a text of {size(text)} bytes was refused as too long, and cut in two")
        left, right = await _all(self._piece(half) for half in halve(text))
        return left + right

    def _warn(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            log.warning(
                "%s: %s; its vector is the mean of its pieces', by length (said once; a piece has %d bytes at most)",
                self.model,
                what,
                self._limit or self.piece,
            )

    async def _find_limit(self) -> None:
        """Find out how many bytes the server reads of a text, once for all who ask meanwhile."""
        loop = asyncio.get_running_loop()
        self._turn_to(loop)
        if self._limit is not None:
            return
        if self._probing is None:
            self._probing = loop.create_task(self._probe())
            self._probing.add_done_callback(self._probed)
        await asyncio.shield(self._probing)  # all go on in one turn of the loop, so that their texts go out together

    def _probed(self, probing: asyncio.Task[None]) -> None:
        if self._probing is probing:
            self._probing = None
        if not probing.cancelled():
            probing.exception()  # seen: all who waited may be cancelled

    async def _probe(self) -> None:
        """Try `piece`, then a half, a quarter… of it."""
        limit = self.piece
        while limit > SURE and not await self._reads(limit):
            limit //= 2
        self._limit = limit
        if limit < self.piece:
            log.info("%s reads %d bytes of a text at most; longer ones are cut", self.model, limit)

    async def _reads(self, length: int) -> bool:
        """Whether the server reads all of a text of that many bytes; two that differ at the end only tell it."""
        whole = " ".join(str(number * 7919 % 10) for number in range(length // 2))
        kept = whole[: int(length * (1 - END))]
        other = f"{kept} {'the end is another one ' * length}"[:length]
        asked = [self._ask(whole), self._ask(other)]
        one, two = await asyncio.gather(*asked, return_exceptions=True)
        for found in (one, two):
            if isinstance(found, BaseException):
                if _too_long(found):
                    return False
                raise found
        assert not isinstance(one, BaseException)
        assert not isinstance(two, BaseException)
        return float(1.0 - one @ two) > MOVED

    def _ask(self, text: str) -> asyncio.Future[Vectors]:
        """The vector of a text that is sent as it is, with all others that are asked for in this turn of the loop."""
        loop = asyncio.get_running_loop()
        self._turn_to(loop)
        if not self._open:  # closed by one debate, used by the next
            self._open = True
            self.endpoint.hold()
        if not self._queue:
            loop.call_soon(self._flush)
        asked = _Asked(text, place.get(), loop.create_future())
        self._queue.append(asked)
        return asked.answer

    def _turn_to(self, loop: asyncio.AbstractEventLoop) -> None:
        """Forget what belongs to an event loop that was used before and is gone."""
        if self._loop is not loop:
            self._loop, self._queue, self._probing = loop, [], None
            self._requests.clear()

    def _flush(self) -> None:
        """Send what has been asked for, older debates' texts first."""
        queue, self._queue = [asked for asked in self._queue if not asked.answer.done()], []
        queue.sort(key=lambda asked: asked.place)
        for batch in _batches(queue):
            context = copy_context()
            context.run(place.set, batch[0].place)
            task = asyncio.get_running_loop().create_task(self._send(batch), context=context)
            self._requests.add(task)
            task.add_done_callback(self._requests.discard)
            for asked in batch:
                asked.answer.add_done_callback(partial(_unwanted, task, batch))

    async def _send(self, batch: list[_Asked]) -> None:
        """One request, and its vectors to those who wait.

        A request that is refused is sent again in two halves: so a text that the server does not take spoils nothing
        for the others, nor does a server that takes fewer texts at a time.
        """
        try:
            vectors = await self._request([asked.text for asked in batch])
        except Exception as error:
            if len(batch) > 1 and (isinstance(error, RequestRejectedError) or _too_long(error)):
                middle = len(batch) // 2
                await asyncio.gather(self._send(batch[:middle]), self._send(batch[middle:]))
                return
            for asked in batch:
                if not asked.answer.done():
                    asked.answer.set_exception(error)
            return
        for asked, vector in zip(batch, vectors, strict=True):
            if not asked.answer.done():
                asked.answer.set_result(vector)

    async def _request(self, texts: list[str]) -> Vectors:
        body = {"model": self.model, "input": texts, "encoding_format": "float"}
        vectors, _ = await self.endpoint.call("/embeddings", body, partial(self._read, len(texts)))
        return vectors

    def _read(self, count: int, data: Any) -> Vectors:
        vectors = read_vectors(data, count)
        found = vectors.shape[1]
        if self._dimension is None:
            self._dimension = found
        if found != self._dimension:
            raise BadResponseError(f"embeddings of {found} numbers came where they had {self._dimension} before")
        return vectors


async def _all(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What all of them return. If one fails the others end before its error is raised: nothing goes on unseen."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _batches(queue: list[_Asked]) -> Iterator[list[_Asked]]:
    batch: list[_Asked] = []
    room = LARGEST
    for asked in queue:
        needed = size(asked.text)
        if batch and (len(batch) == BATCH or needed > room):
            yield batch
            batch, room = [], LARGEST
        batch.append(asked)
        room -= needed
    if batch:
        yield batch


def _unwanted(task: asyncio.Task[None], batch: list[_Asked], _: asyncio.Future[Vectors]) -> None:
    """End a request for which nobody waits any more."""
    if all(asked.answer.cancelled() for asked in batch):
        task.cancel()


def _too_long(error: BaseException) -> bool:
    """Whether an error says that a text is too long; for embeddings llama.cpp says it with a 500."""
    if isinstance(error, ContextOverflowError):
        return True
    return isinstance(error, RequestRejectedError | ServerFaultError) and bool(_TOO_LONG.search(str(error)))


def open_openai(model: str, options: ModelOptions) -> OpenAIEmbedder:
    """The embedding model of that name where the options or OPENAI_BASE_URL say.

    It shares its `Endpoint` with whatever else is there with the same options, so `max_connections` holds for all.

    Raises:
        UsageError: the base URL or a number in the options cannot be used.
    """
    return OpenAIEmbedder(model, shared_endpoint(options))
