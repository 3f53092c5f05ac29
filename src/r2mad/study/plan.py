"""From a study's configuration to batches of debates: data sets read, methods varied, memories built, masks chosen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from r2mad.api import Table, fitted, open_table, with_memory
from r2mad.diverse import Diverse
from r2mad.errors import UsageError
from r2mad.experience import leak_key
from r2mad.method import Method
from r2mad.methods import find_method
from r2mad.opening import Reminded
from r2mad.settings import Settings
from r2mad.skew import MemoryConfidence
from r2mad.study.config import MemoryPlan, StudyConfig, Sweep, Team
from r2mad.study.datasets import load, parse_name, with_split
from r2mad.study.masking import choose_mask, refuse_overlap, training, with_choice
from r2mad.study.remember import builder, open_shelf, remember
from r2mad.study.runner import Batch
from r2mad.types import Item, digest

Say = Callable[[str], None]
"""Told what is being prepared, a line at a time."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One method of a study, and the memory that it is to read where that is not the study's own."""

    method: Method
    memory: MemoryPlan


@dataclass(frozen=True, slots=True)
class Plan:
    """A study with its names looked up; nothing is opened yet."""

    config: StudyConfig
    items: dict[str, list[Item]]
    """The questions of each data set, cut by limit and shard."""
    variants: tuple[Variant, ...]

    @property
    def debates(self) -> int:
        """How many debates there are in all."""
        asked = sum(len(items) for items in self.items.values())
        return asked * len(self.variants) * len(self.config.seeds) * len(self.config.teams)


def make_plan(config: StudyConfig) -> Plan:
    """Look everything up that needs no endpoint.

    Raises:
        UsageError: an unknown data set, method or column, a bad row, a sweep that fits no part.
        StoreError: a data set's file cannot be read.
    """
    part, parts = config.shard
    items = {}
    for given in config.datasets:
        name = evaluated(given)
        if name in items:
            raise UsageError(f"{name} is named twice")
        found = load_items(config, name)[: config.limit][part - 1 :: parts]
        if not found:
            raise UsageError(f"{name} has no question in this part of the study")
        items[name] = found
    seen: dict[str, str] = {}
    for name, found in items.items():
        for item in found:
            if seen.setdefault(item.question.id, name) != name:
                raise UsageError(f"{seen[item.question.id]} and {name} share the question {item.question.id}")
    variants = [Variant(_sized(find_method(name), config), config.memory) for name in config.methods]
    for sweep in config.sweeps:
        variants += [_varied(config, sweep, value) for value in sweep.values]
    named = [variant.method.name for variant in variants]
    if len(set(named)) < len(named):
        raise UsageError(f"a method is named twice: {', '.join(sorted({n for n in named if named.count(n) > 1}))}")
    return Plan(config, items, tuple(variants))


def evaluated(name: str) -> str:
    """A data set as a study evaluates it: its test split if nothing else is said; a file of the user's whole."""
    found, whole = parse_name(name), ":all" in name.partition("?")[0]
    return name if found.split or whole or not found.known else with_split(name, "test")


def load_items(config: StudyConfig, name: str) -> list[Item]:
    """A data set's items, by the study's columns where it has some for that file.

    Raises:
        UsageError: no such data set, or columns that do not fit.
        StoreError: its file cannot be read.
    """
    columns = config.columns.get(parse_name(name).base)
    return load(name, columns=columns) if columns else load(name)


def _sized(method: Method, config: StudyConfig) -> Method:
    """The method with the study's settings: `cot` stays one agent beside a mad of five. A sweep varies what comes out,
    so no setting may be applied after it."""
    agents, rounds = config.settings.agents, config.settings.rounds
    sized = method.sized(
        agents if "agents" in method.adjustable else None, rounds if "rounds" in method.adjustable else None
    )
    return fitted(sized, config.settings)


def _varied(config: StudyConfig, sweep: Sweep, value: Any) -> Variant:
    """One value of a sweep as a method of its own, called `method[what=value]`."""
    base, what = _sized(find_method(sweep.method), config), sweep.what
    if isinstance(value, bool) or (
        what in ("agents", "rounds", "k", "candidates", "memory_limit") and not _counts(value)
    ):
        raise UsageError(f"a sweep of {what} takes whole numbers of at least 1, not {value!r}")
    memory = config.memory
    if what in ("memory", "memory_limit") and (memory.url or config.settings.memory):
        raise UsageError(f"a sweep of {what} builds its memories, so that no --memory or [memory] url can be given")
    if what == "memory_limit":
        memory = replace(memory, limit=value)
    elif what == "memory":
        memory = replace(memory, dataset=str(value))
    try:
        method = replace(base, name=f"{base.name}[{what}={value}]", **_changed(base, what, value))
    except TypeError as error:
        raise UsageError(f"{base.name} cannot have {what} = {value!r}: {error}") from error
    return Variant(method, memory)


def _counts(value: Any) -> bool:
    return isinstance(value, int) and value >= 1


def _changed(base: Method, what: str, value: Any) -> dict[str, Any]:
    """The parts of a method that a sweep's value changes."""
    if what in ("agents", "rounds"):
        base.sized(**{what: value})  # refuses what is not adjustable
        return {what: value}
    if what in ("k", "gamma"):
        if base.retrieval:
            return {"retrieval": replace(base.retrieval, **{what: value})}
        if isinstance(base.opening, Reminded):
            return {"opening": Reminded(replace(base.opening.retrieval, **{what: value}))}
    if what in ("high", "low", "beta") and any(isinstance(part, MemoryConfidence) for part in base.skew):
        swept = [replace(part, **{what: value}) if isinstance(part, MemoryConfidence) else part for part in base.skew]
        return {"skew": tuple(swept)}
    if what == "candidates" and isinstance(base.opening, Diverse):
        return {"opening": replace(base.opening, candidates=value)}
    if what in ("memory", "memory_limit") and base.needs_memory:
        return {}
    raise UsageError(f"{base.name} has nothing that a sweep of {what} could vary")


@asynccontextmanager
async def opened(plan: Plan, memories: Path, say: Say) -> AsyncIterator[list[Batch]]:
    """Open models, build the memories that are missing, choose masks, and hand out the batches.

    Args:
        plan: what to run.
        memories: folder in which memories are kept by their keys, for all studies.
        say: told what is being done.

    Raises:
        R2madError: see `r2mad.study.remember.remember` and `r2mad.study.masking.choose_mask`.
    """
    async with AsyncExitStack() as stack:
        batches = []
        for team in plan.config.teams:
            table = await stack.enter_async_context(_seated(plan.config, team))
            for name, items in plan.items.items():
                batches += await _batches(plan, table, name, items, _Shelves(memories, stack, say))
        yield batches


@asynccontextmanager
async def _seated(config: StudyConfig, team: Team) -> AsyncIterator[Table]:
    """The open models of a team, without any memory."""
    models = [seat.model for seat in team.seats]
    settings = config.settings.changed(memory=None)
    if all(model.startswith("local/") for model in models) and settings.max_connections == Settings().max_connections:
        settings = settings.changed(max_connections=1)  # a model in this process is no quicker for several at once
    async with open_table(models[0] if len(models) == 1 else models, settings) as table:
        tweaks = [
            {key: value for key, value in asdict(seat).items() if key != "model" and value not in (None, {})}
            for seat in team.seats
        ]
        yield replace(table, tweaks=tuple(tweaks)) if any(tweaks) else table


@dataclass(frozen=True)
class _Shelves:
    """Where memories are, and what tells of their making."""

    folder: Path
    stack: AsyncExitStack
    say: Say


async def _batches(plan: Plan, table: Table, name: str, items: list[Item], shelves: _Shelves) -> list[Batch]:
    """One team's batches on one data set: a batch for each memory, and for each seed."""
    variants = plan.variants
    if any(variant.method.needs_choice for variant in variants):
        variants = await _chosen(plan, table, name, items, shelves.say)
    found = []
    plain = [variant.method for variant in variants if not variant.method.needs_memory]
    by_memory: dict[MemoryPlan, list[Method]] = {}
    for variant in variants:
        if variant.method.needs_memory:
            by_memory.setdefault(variant.memory, []).append(variant.method)
    groups = [(await _remembering(plan, table, name, memory, shelves), by_memory[memory]) for memory in by_memory]
    if groups:  # one batch for those without and those with the usual memory: they share their openings
        groups[0] = (groups[0][0], [*plain, *groups[0][1]])
    else:
        groups = [(table, plain)]
    for at, methods in groups:
        found += [Batch(replace(at, as_given=True), items, methods, seed) for seed in plan.config.seeds]
    return found


async def _chosen(plan: Plan, table: Table, name: str, items: list[Item], say: Say) -> tuple[Variant, ...]:
    """The variants with their masks decided, on training items that are not evaluated."""
    source = plan.config.train.dataset or _training(name)
    train = training(load_items(plan.config, source), plan.config.train.limit)
    refuse_overlap(train, items)
    choice = await choose_mask(table, train)
    say(f"{name}: the automatic mask is the {choice.chosen} one: {choice.reason}")
    return tuple(
        replace(variant, method=with_choice(variant.method, choice)) if variant.method.needs_choice else variant
        for variant in plan.variants
    )


async def _remembering(plan: Plan, table: Table, name: str, memory: MemoryPlan, shelves: _Shelves) -> Table:
    """The table with its memory, which is built first where it is not there."""
    url = memory.url or plan.config.settings.memory
    if url is None:
        source = memory.dataset or _training(name)
        train = load_items(plan.config, source)[: memory.limit]
        _refuse_leak(plan, train, name)
        url = f"sqlite:{shelves.folder / memory_key(table, train, memory.seed, source)}.db"
        settings = plan.config.settings.changed(memory=None)
        async with open_shelf(url, settings) as shelf:
            if len(shelf.store.known()) < len(train):
                shelves.say(f"{source}: building a memory of {len(train)} debates at {url}")
                built = await remember(table, train, shelf, seed=memory.seed)
                if built.failed:
                    raise UsageError(f"{built.failed} debates for the memory {url} failed; run the same command again")
    return await with_memory(table, url, shelves.stack)


def _refuse_leak(plan: Plan, train: Sequence[Item], name: str) -> None:
    """Refuse a memory of evaluated questions before it is built (invariant 7)."""
    known = {leak_key(item.question) for item in train}
    leaked = [item.question.id for item in plan.items[name] if leak_key(item.question) in known]
    if leaked and not plan.config.allow_leak:
        raise UsageError(
            f"{len(leaked)} questions of {name} are in the memory that would be built for it (first: {leaked[0]})"
        )


def memory_key(table: Table, train: Sequence[Item], seed: int, source: str) -> str:
    """A memory's file name: a readable start, and a digest of all that decides what is in it."""
    scene, held = table.prepare(train[0].question, builder(), seed=seed)
    agents = [[agent.persona.name, agent.model.name, asdict(agent.sampling)] for agent in scene.agents]
    told = [[item.question.id, item.question.text, list(item.question.options), item.gold] for item in train]
    settings = table.settings
    parts = [told, agents, scene.pack.label, held.composition, seed, settings.embedder, settings.form]
    return f"{source.replace(':', '-').replace('/', '-')}-{digest(parts, size=6)}"


def _training(name: str) -> str:
    """The train split of a data set; it is an error of its own if there is none."""
    return with_split(name, "train")
