"""`r2mad remember`: build a memory from debates on training questions, or from debates that are over."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from r2mad.cli.ask import LIST
from r2mad.cli.common import DONE, INCOMPLETE, INTERRUPTED, LogLevel, complain, fetch_local, log_to_stderr, printable
from r2mad.errors import UsageError
from r2mad.settings import Settings, home_expanded

if TYPE_CHECKING:
    from r2mad.study.outcomes import Judge
    from r2mad.study.remember import Built
    from r2mad.types import DebateRecord, Item


@dataclass(frozen=True)
class RememberOptions:
    """What to build a memory from."""

    model: Annotated[list[str], LIST] = field(default_factory=list)
    """`provider/name`. Give several and the agents take them in turn."""
    records: Annotated[list[Path], LIST] = field(default_factory=list)
    """Remember debates that are over instead of holding new ones: a run's folder, or a file of records."""
    outcome: str = "gold"
    """Who says how a debate turned out: `gold` (the data set's answers), `verifier:provider/name` (a model is asked),
    `FILE.py:NAME` or `module:NAME` (your function of question and answer), or a CSV of feedback with the columns
    `debate` or `question`, `value` (0 wrong to 1 right), and `answer` if it is not the group's."""
    limit: int | None = None
    """Only the first so many questions."""
    seed: int = 0
    """Seed of the debates; the same command goes on where it stopped."""
    display: Literal["plain", "none"] = "plain"
    """Whether a line tells of each debate, on stderr."""
    json: bool = False
    """Print what was built as one JSON object on stdout."""
    log_level: LogLevel = "warning"
    """Least urgent events to print on stderr."""


def remember(
    dataset: str | None = None,
    /,
    *,
    options: Annotated[RememberOptions, Parameter(name="*")] = RememberOptions(),
    settings: Annotated[Settings, Parameter(name="*")] = Settings(),  # noqa: B008  (frozen)
) -> int:
    """Build or extend a memory of debates and how they turned out.

    Every question of the data set's train split is debated through all rounds; each agent keeps a case of each round
    but the first. Stop it at any time: the same command goes on, and asks nothing twice.

        r2mad remember starter --memory sqlite:starter.db --model openai/NAME --base-url http://HOST/v1
        r2mad remember --records RUN --outcome feedback.csv --memory sqlite:service.db

    Args:
        dataset: A data set, `name` for its train split or `name:split`; see `r2mad datasets`.
    """
    log_to_stderr(options.log_level)
    if not settings.memory:
        raise UsageError("where is the memory to be? --memory sqlite:PATH, or R2MAD_MEMORY")
    if options.limit is not None and options.limit < 1:
        raise UsageError(f"--limit {options.limit} is out of range")
    if options.records and options.model:
        raise UsageError("--records takes debates that are over, so leave --model out")
    if not options.records and not options.model:
        raise UsageError("no model given: --model openai/NAME, or --records RUN for debates that are over")
    if not options.records and not dataset:
        raise UsageError("no data set given: r2mad remember DATASET …; see `r2mad datasets`")
    items = _items(dataset, options)
    fetch_local(options.model)
    view = _Progress(options.display)
    try:
        built = asyncio.run(_build(items, options, settings, view))
    except KeyboardInterrupt:
        complain("interrupted; what was finished is in the memory, and the same command goes on from there")
        return INTERRUPTED
    return _report(built, options, settings)


def _report(built: Built, options: RememberOptions, settings: Settings) -> int:
    lost = built.failed + built.unjudged
    if options.json:
        import json
        from dataclasses import asdict

        print(json.dumps({"memory": settings.memory, **asdict(built)}))
    else:
        more = [
            f"{number} {what}"
            for number, what in (
                (built.known, "known already"),
                (built.failed, "failed"),
                (built.unjudged, "without a known outcome"),
                (built.useless, "without a debate round"),
            )
            if number
        ]
        print(
            f"{settings.memory}: {built.added} debates added, {built.cases} cases{''.join(f'; {one}' for one in more)}"
        )
    if built.failed:
        complain(f"{built.failed} debates failed and were not kept; run the same command again")
    return INCOMPLETE if lost else DONE


def _items(dataset: str | None, options: RememberOptions) -> list[Item]:
    from r2mad.study.datasets import load, parse_name, with_split

    if dataset is None:
        return []
    split = parse_name(dataset).split
    # Finished debates say themselves which questions they were about, so all golds may be needed there.
    items = load(dataset if split or options.records else with_split(dataset, "train"))
    if split and split != "train" and not options.records:
        complain(f"{dataset} is not a train split: a study on it will refuse this memory")
    return items if options.records else items[: options.limit]


async def _build(items: list[Item], options: RememberOptions, settings: Settings, view: _Progress) -> Built:
    from r2mad.api import open_table
    from r2mad.study.remember import open_shelf, remember, remember_records

    assert settings.memory is not None
    async with AsyncExitStack() as stack:
        judge = await _judge(options, settings, stack)
        if options.records:
            records = _records(options)
            shelf = await stack.enter_async_context(open_shelf(settings.memory, settings))
            golds = {item.question.id: item for item in items}
            return await remember_records(records, shelf, judge, items=golds, announce=view.announce)
        models = options.model[0] if len(options.model) == 1 else options.model
        # The table does not read the memory that is being written, whatever the settings say.
        table = await stack.enter_async_context(open_table(models, settings.changed(memory=None)))
        table.prepare(items[0].question, "mad", seed=0)  # a bad setting ends here, before a memory is made
        shelf = await stack.enter_async_context(open_shelf(settings.memory, settings))
        return await remember(table, items, shelf, seed=options.seed, judge=judge, announce=view.announce)


async def _judge(options: RememberOptions, settings: Settings, stack: AsyncExitStack) -> Judge:
    from r2mad.api import open_table
    from r2mad.study.outcomes import Gold, Verifier, load_checker, read_feedback

    said = options.outcome
    if said == "gold":
        return Gold()
    if said.startswith("verifier:"):
        name = said.removeprefix("verifier:")
        fetch_local([name])
        table = await stack.enter_async_context(open_table(name, settings.changed(memory=None)))
        return Verifier(table.models[0], seed=options.seed, pack=settings.prompts or "general")
    if said.endswith(".csv"):
        return read_feedback(home_expanded(Path(said)))
    if ":" in said:
        return load_checker(said)
    raise UsageError(f"--outcome {said!r} is none of: gold, verifier:provider/name, FILE.py:NAME, FILE.csv")


def _records(options: RememberOptions) -> list[DebateRecord]:
    from r2mad.study.records import DEBATES, latest

    found: list[DebateRecord] = []
    for given in options.records:
        path = home_expanded(given)
        path = path / DEBATES if path.is_dir() else path
        if not path.exists():
            raise UsageError(f"{path}: no such records")
        found += latest(path).values()
    return found[: options.limit]


class _Progress:
    """A line on stderr for each debate, with an estimate of the end."""

    def __init__(self, display: str) -> None:
        self._quiet = display == "none"
        self._start = time.perf_counter()

    def announce(self, built: Built, record: DebateRecord) -> None:
        if self._quiet:
            return
        made = max(1, built.done - built.known)
        left = (time.perf_counter() - self._start) / made * (built.total - built.done)
        why = record.failures[-1][2].message if record.failures else ""
        what = f"failed: {printable(why)}" if record.stopped == "failed" else f"{built.cases} cases"
        about = printable(record.question.text)[:48]
        print(f"[{built.done}/{built.total}, about {left:.0f} s left] {about:<48} {what}", file=sys.stderr, flush=True)
