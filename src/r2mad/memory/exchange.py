"""A memory as lines of JSON: to read it, to keep it beside results, to move it to another store or another embedder.

    {"schema": 1, "memory": {"embedder": …, "dimension": …, "form": …, "version": …, "debates": …, "vectors": …}}
    {"schema": 1, "record": {…}, "outcome": {…}, "added": …}
    …

The first line describes the memory, each further one is a debate. Text is enough: whoever reads it in embeds it anew.
With `vectors` each line also holds what the embedder made of it (base64 of little-endian single precision), and a
memory of the same embedder takes that as it is, to the last bit. Files may be joined: a line that describes a memory
holds for those below it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite, prod
from typing import TYPE_CHECKING, Any, ClassVar

from r2mad.errors import StoreError, UsageError
from r2mad.experience import Form, Outcome, Remembered
from r2mad.memory._shapes import check
from r2mad.protocols import MemoryStore
from r2mad.serial import dump, load
from r2mad.types import JSON, SCHEMA, DebateRecord

if TYPE_CHECKING:
    from r2mad.experience import Vectors

BATCH = 64
"""Debates that are embedded at once and written in one transaction: few enough that little is lost when it is cut."""
BOM = b"\xef\xbb\xbf"
TRIES = 5
"""How often a memory that is being written to is looked at until two looks agree."""

Renew = Callable[[DebateRecord, Outcome], Awaitable[Remembered]]
"""Embeds a debate anew for the memory that it goes into."""
Announce = Callable[[int], None]
"""Told how many debates are done, now and then."""


@dataclass(frozen=True, slots=True)
class Description:
    """What the first line says of the memory."""

    embedder: str
    dimension: int
    form: Form
    version: str
    debates: int
    vectors: bool = False
    """Whether the lines hold vectors."""


@dataclass(frozen=True, slots=True)
class _Vectors:
    """What an embedder made of a debate, each field base64 of its numbers in order."""

    question: str
    replies: str
    states: tuple[tuple[int, int, str], ...]
    """(t, i, s_i^(t))"""


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """Any line of the file: a description or a debate."""

    __pydantic_config__: ClassVar[dict[str, Any]] = JSON

    schema: int
    memory: Description | None = None
    record: DebateRecord | None = None
    outcome: Outcome | None = None
    added: str | None = None
    vectors: _Vectors | None = None


def debate_line(debate: Remembered, vectors: bool = False) -> bytes:
    """A debate as one line, without the newline."""
    parts = {"record": dump(debate.record), "outcome": dump(debate.outcome), "added": dump(debate.added)}
    if vectors:
        states = tuple((*place, _packed(state)) for place, state in sorted(debate.states.items()))
        parts["vectors"] = dump(_Vectors(_packed(debate.question), _packed(debate.replies), states))
    return _object(parts)


def _object(parts: dict[str, bytes]) -> bytes:
    """One line of the file from what stands in it, JSON already."""
    return b"{%b}" % b",".join(
        b'"%b":%b' % (name.encode(), part) for name, part in {"schema": dump(SCHEMA), **parts}.items()
    )


def export_lines(store: MemoryStore, vectors: bool = False) -> Iterator[bytes]:
    """A memory as it is when the first line is asked for, line by line with newlines.

    Raises:
        StoreError: it cannot be read, or debates were taken out of it meanwhile.
    """
    version, ids = _one_look(store)
    about = Description(store.embedder, store.dimension, store.form, version, len(ids), vectors)
    yield _object({"memory": dump(about)}) + b"\n"
    written = 0
    for debate in store.debates():
        if debate.record.id in ids:  # what came after the first look belongs to another version
            yield debate_line(debate, vectors) + b"\n"
            written += 1
    if written < len(ids):
        raise StoreError(f"{store.url}: {len(ids) - written} debates were taken out while it was read; export it again")


def _one_look(store: MemoryStore) -> tuple[str, set[str]]:
    """The version and the debates that make it."""
    for _ in range(TRIES):
        version, ids = store.snapshot().version, store.known()
        if store.snapshot().version == version:
            return version, ids
    raise StoreError(f"{store.url}: it is being written to all the time; export it later")


@dataclass(frozen=True, slots=True)
class Entry:
    """One debate of a file, with what was said of the memory it comes from."""

    about: Description
    record: DebateRecord
    outcome: Outcome
    added: str
    vectors: _Vectors | None
    where: str

    def remembered(self) -> Remembered:
        """The debate with the vectors that stand in the file.

        Raises:
            StoreError: there are none, or they do not fit the debate.
        """
        if self.vectors is None:
            raise StoreError(f"{self.where}: no vectors stand there")
        dimension, record = self.about.dimension, self.record
        try:
            question = _unpacked(self.vectors.question, (dimension,))
            replies = _unpacked(self.vectors.replies, (len(record.rounds), len(record.agents), dimension))
            states = {(t, i): _unpacked(text, (dimension,)) for t, i, text in self.vectors.states}
        except ValueError as error:
            raise StoreError(f"{self.where}: its vectors are damaged: {error}") from error
        debate = Remembered(record, self.outcome, question, replies, states, self.added)
        try:
            check(debate, dimension)
        except UsageError as error:
            raise StoreError(f"{self.where}: {error}") from error
        return debate


@dataclass(slots=True)
class Import:
    """A file that is being read in: what it holds, and in the end what is missing from it."""

    lines: Iterable[bytes]
    where: str
    """How messages name the file."""
    line: int = 0
    """Lines read."""
    about: Description | None = None
    """What its first line said, once that is read."""
    read: int = 0
    """Debates read."""
    added: int = 0
    """Debates that were new to the memory."""
    promised: int = 0
    """Debates that the lines which describe memories spoke of."""
    torn: int | None = None
    """Number of the last line if it is not whole."""

    @property
    def complete(self) -> bool:
        """Whether all was there that should be."""
        return self.torn is None and self.read >= self.promised

    def begin(self) -> Description:
        """Read what the first line says, for who must know before the rest is read.

        Raises:
            StoreError: it does not describe a memory.
        """
        self.lines = iter(self.lines)  # whoever reads on reads on from here
        for line in self.lines:
            self._take(line)
            if self.about:
                return self.about
        what = "it is empty" if self.torn is None else "its first line is not whole"
        raise StoreError(f"{self.where}: {what}; nothing was read")

    def entries(self) -> Iterator[Entry]:
        """The debates; `begin` may have been called before.

        Raises:
            StoreError: a line is damaged or newer than this r2mad; the message names it.
        """
        for line in self.lines:
            entry = self._take(line)
            if entry:
                yield entry

    def _take(self, line: bytes) -> Entry | None:
        self.line += 1
        where = f"{self.where}, line {self.line}"
        if not line.endswith(b"\n"):
            self.torn = self.line
            return None
        line = line.removeprefix(BOM) if self.line == 1 else line
        if not line.strip():  # a hand-edited file may have empty lines, and a mark at its start
            return None
        parsed = _parse(line, where)
        if parsed.memory:
            self.about = parsed.memory
            self.promised += parsed.memory.debates
            return None
        if self.about is None:
            raise StoreError(f"{where}: it does not describe a memory, as a first line should")
        if parsed.record is None or parsed.outcome is None:
            raise StoreError(f"{where}: neither a debate with its outcome nor a line that describes a memory")
        _check(parsed.record, parsed.outcome, where)
        self.read += 1
        return Entry(self.about, parsed.record, parsed.outcome, parsed.added or "", parsed.vectors, where)


def _parse(line: bytes, where: str) -> MemoryLine:
    try:
        parsed = load(MemoryLine, line, where)
    except UsageError as error:  # a question that could never have been asked
        raise StoreError(f"{where}: {error}") from error
    newest = max(parsed.schema, parsed.record.schema if parsed.record else 0)
    if newest > SCHEMA:
        raise StoreError(f"{where}: schema {newest} is newer than this r2mad knows ({SCHEMA}); update it")
    return parsed


def _check(record: DebateRecord, outcome: Outcome, where: str) -> None:
    """See that it is a debate such as a memory holds: one reply an agent and round, each with its verdict."""
    agents, rounds = len(record.agents), len(record.rounds)
    if not rounds or [one.index for one in record.rounds] != list(range(rounds)):
        raise StoreError(f"{where}: the debate's rounds are not 0, 1 and so on")
    if any(sorted(reply.agent for reply in one.replies) != list(range(agents)) for one in record.rounds):
        raise StoreError(f"{where}: a round has not one reply of each agent")
    if len(outcome.rewards) != agents or not all(reward is None or isfinite(reward) for reward in outcome.rewards):
        raise StoreError(f"{where}: {agents} agents need a reward each, a number or null")
    if len(outcome.correct) != rounds or any(len(row) != agents for row in outcome.correct):
        raise StoreError(f"{where}: `correct` needs a row for each round and a value for each agent")


async def read_in(
    source: Import, store: MemoryStore, renew: Renew, announce: Announce | None = None, *, batch: int = BATCH
) -> None:
    """Put a file's debates into a memory; `source` tells in the end how it went.

    Debates that the memory knows are passed over before anything is embedded, so an import that was interrupted, or
    ended at a damaged line, is taken up by running it again. All above such a line is in the memory.

    Raises:
        StoreError: a damaged or newer line, or the memory cannot be written.
        ModelError: the embedder failed.
    """
    known = await asyncio.to_thread(store.known)
    waiting: list[Entry | Remembered] = []
    entries = source.entries()
    while True:
        entry: Entry | None = None
        problem: StoreError | None = None
        try:
            entry = next(entries, None)
            if entry and entry.record.id not in known:
                waiting.append(entry.remembered() if _fits(entry, store) else entry)
                known.add(entry.record.id)
        except StoreError as error:
            problem = error
        if waiting and (entry is None or problem or len(waiting) >= batch):
            source.added += await _add(waiting, store, renew)
            waiting = []
            if announce:
                announce(source.read)
        if problem:
            raise problem
        if entry is None:
            return


def _fits(entry: Entry, store: MemoryStore) -> bool:
    """Whether an entry's vectors are what the memory's own embedder would make."""
    about = (entry.about.embedder, entry.about.dimension, entry.about.form)
    return entry.vectors is not None and about == (store.embedder, store.dimension, store.form)


async def _add(waiting: Sequence[Entry | Remembered], store: MemoryStore, renew: Renew) -> int:
    async def ready(one: Entry | Remembered) -> Remembered:
        if isinstance(one, Remembered):
            return one
        return replace(await renew(one.record, one.outcome), added=one.added)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ready(one)) for one in waiting]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return await asyncio.to_thread(store.add, [task.result() for task in tasks])


def _packed(vectors: Vectors) -> str:
    return base64.b64encode(vectors.astype("<f4", copy=False).tobytes()).decode()


def _unpacked(text: str, shape: tuple[int, ...]) -> Vectors:
    """Vectors of a shape from their base64.

    Raises:
        ValueError: not base64, not as many numbers as the shape has, or something that is no number.
    """
    import numpy as np

    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    if len(raw) != 4 * prod(shape):
        raise ValueError(f"{len(raw)} bytes where {' x '.join(map(str, shape))} numbers of 4 belong")
    return np.frombuffer(raw, dtype="<f4").astype(np.float32).reshape(shape)
