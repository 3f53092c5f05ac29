"""Runs methods over items, keeps every finished debate, and takes up where it was stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from r2mad import engine
from r2mad.api import Table
from r2mad.errors import AuthenticationError, BudgetExceededError, EndpointError, ModelNotFoundError, UsageError
from r2mad.experience import leak_key
from r2mad.method import Method
from r2mad.methods import find_method
from r2mad.models import place
from r2mad.scene import Scene
from r2mad.study.records import DEBATES, ITEMS, SCORES, Head, Writer, finished, latest, read, write_items
from r2mad.study.scores import Score, grade_async, latest_scores
from r2mad.types import DebateRecord, Item

USELESS = {kind.kind for kind in (EndpointError, AuthenticationError, ModelNotFoundError)}
"""Kinds of failure that are the endpoint's for good, and not a call's."""

Announce = Callable[[DebateRecord, Score], None]
"""Called when a debate is on disk, and not before."""


@dataclass(frozen=True)
class Batch:
    """Methods over items with one seed, at one table."""

    table: Table
    items: Sequence[Item]
    methods: Sequence[str | Method]
    seed: int


class Gate:
    """Whether a run may begin another debate. It is asked before each; whoever holds it may shut it at any time."""

    def __init__(self) -> None:
        self.shut = False
        self.why = ""

    def close(self, why: str) -> None:
        """Begin no further debate; those under way go on."""
        self.shut, self.why = True, self.why or why


async def run_study(
    table: Table,
    items: Sequence[Item],
    methods: Sequence[str | Method],
    folder: Path,
    *,
    seed: int,
    announce: Announce | None = None,
    allow_leak: bool = False,
) -> list[Score]:
    """`run_batches` for one batch.

    Args:
        table: open models and, if a method needs it, a memory.
        items: what to ask, with golds.
        methods: names or compositions.
        folder: where the run's files are.
        seed: of all debates.
        announce: told of each debate that is on disk.
        allow_leak: go on though questions of the run are in the memory, with what turned out right.

    Raises:
        R2madError: see `run_batches`.
    """
    batch = Batch(table, items, methods, seed)
    return await run_batches([batch], folder, announce=announce, allow_leak=allow_leak)


async def run_batches(
    batches: Sequence[Batch],
    folder: Path,
    *,
    announce: Announce | None = None,
    allow_leak: bool = False,
    gate: Gate | None = None,
    admitted: Callable[[Sequence[str]], None] | None = None,
) -> list[Score]:
    """Hold every method's debate on every item, and return all scores of the folder that belong to them.

    Called again with the same arguments it asks only what is missing: debates that are on disk stay as they are, and
    those that failed are held again. As many debates are under way as the endpoint may have calls, across batches. A
    memory is only read, as it was when its table was opened.

    Args:
        batches: what to hold, in order.
        folder: where the run's files are.
        announce: told of each debate that is on disk.
        allow_leak: go on though questions of the run are in the memory, with what turned out right.
        gate: asked before each debate; once it is shut the run ends when what is under way is over.
        admitted: told the ids of all its debates once nothing can refuse the run, and before anything is asked.

    Raises:
        UsageError: an unknown method, a bad setting, two items with one id, a memory that holds a question of the run
            or no case of any agent, an endpoint that lacks what a method needs; nothing was asked.
        EndpointError: the endpoint refuses every call alike (a wrong key, no such model); the rest was not asked.
        StoreError: the folder cannot be written, is being written by another process, or is damaged.
    """
    ready = resolved(batches)
    for batch in ready:
        await _try(batch, allow_leak)
    gate = gate or Gate()
    items = {item.question.id: item for batch in ready for item in batch.items}
    async with Writer[DebateRecord](folder / DEBATES) as debates, Writer[Score](folder / SCORES) as scores:
        # under the lock: a run that is refused must not change the other's items
        write_items(folder / ITEMS, [item for batch in ready for item in batch.items])
        await _score_what_is_not(folder, items, scores)
        wanted = [id for batch in ready for id in _ids(batch)]
        if admitted:
            admitted(wanted)
        jobs = enumerate(_jobs(ready, finished(folder / DEBATES)))

        async def work() -> None:
            for turn, job in jobs:  # one iterator for all workers: each takes the next job
                if gate.shut:
                    return
                place.set(turn)  # debates begun earlier are served first
                record = await engine.run(job.scene, job.method)
                if (purse := job.scene.ledger.purse) and purse.empty and _cut(record):
                    gate.close("the cap on what the study may take allows no further debate")
                    return  # not kept: with a higher cap it goes on from its calls, which are in the cache
                record = replace(record, dataset=job.item.dataset, split=job.item.split, study=folder.name)
                score = await grade_async(record, job.item)
                await debates.append(record)
                await scores.append(score)
                if announce:
                    announce(record, score)
                stop_if_useless(record)

        await all_of(work() for _ in range(max(batch.table.settings.max_connections for batch in ready)))
    known = set(wanted)
    return [score for score in latest_scores(folder / SCORES) if score.id in known]


def resolved(batches: Sequence[Batch]) -> list[Batch]:
    """The batches with their methods looked up. Log-probabilities are asked for in all calls of a study, or in none:
    methods would share no reply otherwise (common random numbers).

    Raises:
        UsageError: an unknown method.
    """
    found = [
        replace(batch, methods=[find_method(one) if isinstance(one, str) else one for one in batch.methods])
        for batch in batches
    ]
    if not any(method.needs_logprobs for batch in found for method in _methods(batch)):
        return found
    asking = [replace(batch.table, settings=batch.table.settings.changed(logprobs=True)) for batch in found]
    return [replace(batch, table=table) for batch, table in zip(found, asking, strict=True)]


def _methods(batch: Batch) -> list[Method]:
    return [method for method in batch.methods if isinstance(method, Method)]


async def _try(batch: Batch, allow_leak: bool) -> None:
    """Find out what could refuse a batch, before anything is asked."""
    if len({item.question.id for item in batch.items}) < len(batch.items):
        raise UsageError("two items have the same id")
    kinds = {item.question.kind: item for item in batch.items}  # a kind has its own pack, and so its own agents
    for method in _methods(batch):
        for item in kinds.values():
            scene, _ = batch.table.prepare(item.question, method, seed=batch.seed)
            _check_memory(scene, batch.items, allow_leak)
        if method.choice:
            refuse_known(set(method.choice.questions), batch.items)
    await batch.table.equip(*_methods(batch))


def refuse_known(keys: Set[str], items: Sequence[Item]) -> None:
    """Make sure that no evaluated question helped to choose a mask (invariant 1).

    Args:
        keys: `leak_key` of each training question.
        items: what is evaluated.

    Raises:
        UsageError: some did.
    """
    shared = [item.question.id for item in items if leak_key(item.question) in keys]
    if shared:
        raise UsageError(
            f"{len(shared)} evaluated questions are among the training items that choose the mask (first: {shared[0]})"
        )


def _ids(batch: Batch) -> Iterator[str]:
    """The ids of all debates of a batch."""
    for item in batch.items:
        for method in batch.methods:
            scene, sized = batch.table.prepare(item.question, method, seed=batch.seed)
            yield engine.debate_id(scene, sized)


def pending(batches: Sequence[Batch], folder: Path) -> int:
    """How many debates are still to be held. Nothing is asked.

    Raises:
        StoreError: the folder is damaged.
    """
    done = finished(folder / DEBATES)
    return sum(id not in done for batch in resolved(batches) for id in _ids(batch))


def _check_memory(scene: Scene, items: Sequence[Item], allow_leak: bool) -> None:
    """Refuse a memory that knows the answers, and one that knows nothing: its run would be called what it is not."""
    if scene.memory is None:
        return
    leaked = [item.question for item in items if scene.memory.snapshot.knows(item.question)]
    if leaked and not allow_leak:
        raise UsageError(
            f"{len(leaked)} of {len(items)} questions are in the memory {scene.memory.url}, with what turned out right "
            f"(first: {leaked[0].id}): evaluate on others, or forget them with `r2mad memory forget`"
        )
    if not scene.memory.info(scene.agents).cases:
        names = ", ".join(agent.persona.name for agent in scene.agents)
        raise UsageError(f"the memory {scene.memory.url} has no cases of these agents ({names}): use another")


@dataclass(frozen=True, slots=True)
class _Job:
    scene: Scene
    method: Method
    item: Item


def _jobs(batches: Sequence[Batch], done: set[str]) -> Iterator[_Job]:
    """What is still to be held, made one by one so that a large study does not lie in memory.

    Item by item rather than method by method: methods that ask the same then ask it while a server still has it read.
    """
    for batch in batches:
        for item in batch.items:
            for method in batch.methods:
                scene, sized = batch.table.prepare(item.question, method, seed=batch.seed)
                if engine.debate_id(scene, sized) not in done:
                    yield _Job(scene, sized, item)


def _cut(record: DebateRecord) -> bool:
    """Whether a debate is less than it would have been, because a call was not paid for."""
    kinds = {why.kind for _, _, why in record.failures}
    kinds |= {note.error.kind for note in record.judgements if note.error}
    kinds |= {one.plain.kind for one in record.rounds if one.plain}
    kinds |= {reply.error.kind for reply in record.rounds[0].candidates if reply.error}
    return BudgetExceededError.kind in kinds


def stop_if_useless(record: DebateRecord) -> None:
    """End a run whose every further call would be refused as this debate's were."""
    kinds = {why.kind for _, _, why in record.failures}
    if record.stopped == "failed" and kinds and kinds <= USELESS:
        raise EndpointError(f"the run ends here, since it would go on like this: {record.failures[0][2].message}")


async def _score_what_is_not(folder: Path, known: Mapping[str, Item], scores: Writer[Score]) -> None:
    """Grade debates that a crash left without a score."""
    ended = {head.id: head.stopped for head in read(Head, folder / DEBATES) if head.question.id in known}
    scored = {score.id: score.stopped for score in read(Score, folder / SCORES)}
    missing = {id for id, stopped in ended.items() if scored.get(id) != stopped}
    if missing:
        for record in latest(folder / DEBATES, only=missing).values():
            await scores.append(await grade_async(record, known[record.question.id]))


async def all_of(workers: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all; the first error ends the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            for worker in workers:
                group.create_task(worker)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
