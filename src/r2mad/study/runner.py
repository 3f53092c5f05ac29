"""Runs methods over items, keeps every finished debate, and takes up where it was stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from r2mad import engine
from r2mad.api import Table
from r2mad.errors import AuthenticationError, EndpointError, ModelNotFoundError, UsageError
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
    """Hold every method's debate on every item, and return all scores of the folder that belong to them.

    Called again with the same arguments it asks only what is missing: debates that are on disk stay as they are, and
    those that failed are held again. As many debates are under way as the endpoint may have calls. A memory is only
    read, as it was when the table was opened.

    Args:
        table: open models and, if a method needs it, a memory.
        items: what to ask, with golds.
        methods: names or compositions.
        folder: where the run's files are.
        seed: of all debates.
        announce: told of each debate that is on disk.
        allow_leak: go on though questions of the run are in the memory, with what turned out right.

    Raises:
        UsageError: an unknown method, a bad setting, two items with one id, a memory that holds a question of the run
            or no case of any agent; nothing was asked.
        EndpointError: the endpoint refuses every call alike (a wrong key, no such model); the rest was not asked.
        StoreError: the folder cannot be written, is being written by another process, or is damaged.
    """
    if len({item.question.id for item in items}) < len(items):
        raise UsageError("two items have the same id")
    chosen = [find_method(method) if isinstance(method, str) else method for method in methods]
    if any(method.needs_logprobs for method in chosen):  # in all calls or in none, or methods would share no reply
        table = replace(table, settings=table.settings.changed(logprobs=True))
    for method in chosen:  # a bad name or setting ends here, before anything is asked
        for item in {item.question.kind: item for item in items}.values():  # a kind has its own pack, and so its agents
            scene, _ = table.prepare(item.question, method, seed=seed)
            _check_memory(scene, items, allow_leak)
    await table.equip(*chosen)
    async with Writer[DebateRecord](folder / DEBATES) as debates, Writer[Score](folder / SCORES) as scores:
        write_items(folder / ITEMS, items)  # under the lock: a run that is refused must not change the other's items
        await _score_what_is_not(folder, items, scores)
        jobs = enumerate(_jobs(table, items, chosen, seed, finished(folder / DEBATES)))

        async def work() -> None:
            for turn, job in jobs:  # one iterator for all workers: each takes the next job
                place.set(turn)  # debates begun earlier are served first
                record = await engine.run(job.scene, job.method)
                record = replace(record, dataset=job.item.dataset, split=job.item.split, study=folder.name)
                score = await grade_async(record, job.item)
                await debates.append(record)
                await scores.append(score)
                if announce:
                    announce(record, score)
                stop_if_useless(record)

        await all_of(work() for _ in range(table.settings.max_connections))
    wanted = {
        engine.debate_id(scene, method)
        for scene, method in (table.prepare(item.question, method, seed=seed) for method in chosen for item in items)
    }
    return [score for score in latest_scores(folder / SCORES) if score.id in wanted]


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


def _jobs(table: Table, items: Sequence[Item], methods: Sequence[Method], seed: int, done: set[str]) -> Iterator[_Job]:
    """What is still to be held, made one by one so that a large study does not lie in memory.

    Item by item rather than method by method: methods that ask the same then ask it while a server still has it read.
    """
    for item in items:
        for method in methods:
            scene, sized = table.prepare(item.question, method, seed=seed)
            if engine.debate_id(scene, sized) not in done:
                yield _Job(scene, sized, item)


def stop_if_useless(record: DebateRecord) -> None:
    """End a run whose every further call would be refused as this debate's were."""
    kinds = {why.kind for _, _, why in record.failures}
    if record.stopped == "failed" and kinds and kinds <= USELESS:
        raise EndpointError(f"the run ends here, since it would go on like this: {record.failures[0][2].message}")


async def _score_what_is_not(folder: Path, items: Sequence[Item], scores: Writer[Score]) -> None:
    """Grade debates that a crash left without a score."""
    known = {item.question.id: item for item in items}
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
