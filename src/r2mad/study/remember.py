"""Builds a memory: holds debates on training questions, or takes finished ones, and keeps them with their outcomes.

What is in the memory is done. The same command goes on where it was stopped, asks nothing of a finished debate again,
and adds nothing twice. A debate that failed is not kept, and is held again the next time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from r2mad import engine
from r2mad.api import Table, open_embedding
from r2mad.errors import MissingMemoryError, UsageError
from r2mad.experience import question_key
from r2mad.memory import open_memory
from r2mad.memory.cases import embed_debate, places
from r2mad.method import Method
from r2mad.methods import find_method
from r2mad.models import place
from r2mad.protocols import Embedder, MemoryStore
from r2mad.scene import Scene
from r2mad.settings import Settings
from r2mad.study.outcomes import Gold, Judge
from r2mad.study.runner import all_of, stop_if_useless
from r2mad.types import DebateRecord, Item
from r2mad.verdict import Never

BATCH = 32
"""Finished debates that are embedded and stored together: enough to fill an embedder's request."""


@dataclass(slots=True)
class Built:
    """How far a build has come."""

    total: int
    """Debates that it is about."""
    known: int = 0
    """Those that the memory held already."""
    added: int = 0
    cases: int = 0
    """Cases of the debates added."""
    failed: int = 0
    """Debates in which no agent could reply; they are not kept."""
    unjudged: int = 0
    """Debates of which no outcome is known; they are not kept."""
    useless: int = 0
    """Records that hold no case: of one round, or of methods that do not debate."""

    @property
    def done(self) -> int:
        """Debates that need no more work."""
        return self.known + self.added + self.failed + self.unjudged + self.useless


Announce = Callable[[Built, DebateRecord], None]
"""Called when a debate is in the memory, or has turned out not to belong there."""


def builder() -> Method:
    """How memory is built: `mad` with every round forced and summed up."""
    return replace(find_method("mad"), stop=Never(), summarise=True)


@dataclass(frozen=True)
class Shelf:
    """A memory that is open for writing, with its embedder."""

    store: MemoryStore
    embedder: Embedder

    async def put(self, record: DebateRecord, judge: Judge, item: Item | None) -> int | None:
        """Judge a debate and remember it: the number of its cases, 0 if it was known, None where no outcome is.

        Raises:
            ModelError: the verifier or the embedder failed.
            StoreError: the memory cannot be written.
        """
        outcome = await judge(record, item)
        if outcome is None:
            return None
        remembered = await embed_debate(record, outcome, self.embedder, self.store.form)
        new = await asyncio.to_thread(self.store.add, [remembered])
        return len(remembered.states) if new else 0


@asynccontextmanager
async def open_shelf(url: str, settings: Settings) -> AsyncIterator[Shelf]:
    """Open a memory for writing, or make it, with the embedder that it has or is to have.

    Raises:
        UsageError: it has another embedder or form than the settings name.
        StoreError: it cannot be used.
        ModelError: the embedder cannot be reached.
    """
    known = await asyncio.to_thread(_embedder_of, url)
    embedder = await open_embedding(settings, known)
    try:
        dimension = await embedder.dimension()
        store = await asyncio.to_thread(
            lambda: open_memory(url, embedder=embedder.name, dimension=dimension, form=settings.form)
        )
        try:
            yield Shelf(store, embedder)
        finally:
            store.close()
    finally:
        await embedder.aclose()


async def remember(
    table: Table,
    items: Sequence[Item],
    shelf: Shelf,
    *,
    seed: int = 0,
    judge: Judge | None = None,
    announce: Announce | None = None,
) -> Built:
    """Hold a debate on every item, all rounds, and remember it; what the memory holds already is not asked again.

    Raises:
        UsageError: two items with one id, a bad setting, a judge of the user's own that fails.
        EndpointError: the endpoint refuses every call alike; the rest was not asked.
        ModelError: the verifier or the embedder failed; the debate at hand is not kept, those before are.
        StoreError: the memory cannot be written.
    """
    if len({item.question.id for item in items}) < len(items):
        raise UsageError("two items have the same id")
    held, cap = builder().sized(table.settings.agents, table.settings.rounds), table.settings.max_calls
    if held.rounds < 2:
        raise UsageError("a memory is made of later rounds: it needs at least 2")
    if cap is not None and cap < held.calls:
        raise UsageError(f"a debate for a memory makes {held.calls} calls, so --max-calls {cap} would cut it short")
    judge, known, built = judge or Gold(), await asyncio.to_thread(shelf.store.known), Built(len(items))
    jobs = enumerate(_jobs(table, items, seed, known, built))

    async def work() -> None:
        for turn, (scene, method, item) in jobs:
            place.set(turn)  # debates begun earlier are served first
            record = await engine.run(scene, method)
            record = replace(record, dataset=item.dataset, split=item.split)
            if record.stopped == "failed" or not places(record):
                built.failed += 1
            else:
                _count(built, await shelf.put(record, judge, item))
            if announce:
                announce(built, record)
            stop_if_useless(record)

    await all_of(work() for _ in range(table.settings.max_connections))
    return built


async def remember_records(
    records: Iterable[DebateRecord],
    shelf: Shelf,
    judge: Judge,
    *,
    items: Mapping[str, Item] | None = None,
    announce: Announce | None = None,
) -> Built:
    """Remember debates that are over, with outcomes that came later. Rounds that were not held give no cases.

    `items` are the golds by question id, where the judge needs them.

    Raises:
        ModelError, StoreError, UsageError: see `remember`.
    """
    waiting = list({record.id: record for record in records}.values())
    by_text = {question_key(item.question): item for item in (items or {}).values()}  # `ask` knows no data set's ids
    known, built = await asyncio.to_thread(shelf.store.known), Built(len(waiting))

    async def take(record: DebateRecord) -> None:
        if record.id in known:
            built.known += 1
        elif record.stopped == "failed":
            built.failed += 1
        elif not places(record):
            built.useless += 1
        else:
            item = (items or {}).get(record.question.id) or by_text.get(question_key(record.question))
            _count(built, await shelf.put(record, judge, item))
        if announce:
            announce(built, record)

    for start in range(0, len(waiting), BATCH):
        await all_of(take(record) for record in waiting[start : start + BATCH])
    return built


def _count(built: Built, cases: int | None) -> None:
    if cases is None:
        built.unjudged += 1
    elif not cases:
        built.known += 1  # another process was quicker
    else:
        built.added += 1
        built.cases += cases


def _jobs(
    table: Table, items: Sequence[Item], seed: int, known: set[str], built: Built
) -> Iterator[tuple[Scene, Method, Item]]:
    """What is still to be held, made one by one so that a large set does not lie in memory."""
    for item in items:
        scene, method = table.prepare(item.question, builder(), seed=seed)
        if engine.debate_id(scene, method) in known:
            built.known += 1
        else:
            yield scene, method, item


def _embedder_of(url: str) -> str | None:
    """The embedder of a memory that is there; None for one that is yet to be made."""
    try:
        store = open_memory(url)
    except MissingMemoryError:
        return None
    try:
        return store.embedder
    finally:
        store.close()
