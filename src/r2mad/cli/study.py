"""`r2mad study`: methods × data sets × models × seeds, taken up wherever it was stopped."""

from __future__ import annotations

import asyncio
import json as json_module
import re
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from r2mad.cli.ask import LIST
from r2mad.cli.common import DONE, INCOMPLETE, INTERRUPTED, LogLevel, complain, fetch_local, log_to_stderr
from r2mad.errors import UsageError
from r2mad.settings import Settings, home_expanded, log_folder

if TYPE_CHECKING:
    from r2mad.study.config import StudyConfig
    from r2mad.study.runner import Gate
    from r2mad.study.studies import Outcome


NAME = re.compile(r"\w[\w .@+=\[\]-]{0,99}")
"""A run's name: it is a folder's, below the log folder and nowhere else."""
MEMORIES = "memories"
_SECRET = re.compile(r"(--(?:embedder-)?api-key)[ =]\S+|(?<=://)[^/@\s]+@")


@dataclass(frozen=True)
class StudyOptions:
    """What to run, where no file says it, and how far."""

    dataset: str | None = None
    """Data sets, separated by commas, as `name`, `name:split` or `name:split@scheme`; see `r2mad datasets`."""
    method: str | None = None
    """Methods, separated by commas; see `r2mad methods`."""
    model: Annotated[list[str], LIST] = field(default_factory=list)
    """`provider/name`; give it again for each further model to compare. Agents of different models need a file."""
    seed: str | None = None
    """Seeds, separated by commas; each question is asked once with each. 1 if nothing is said."""
    name: str | None = None
    """The run's folder below the log folder; by default the file's name, or a digest of what is run."""
    limit: int | None = None
    """Only the first so many questions of each data set. Run again with more, it goes on."""
    shard: str = "1/1"
    """`i/n`: only each n-th question from the i-th on, in a folder of its own; `report` takes several folders."""
    train: str | None = None
    """Labelled items by which mad-m2-auto chooses its mask; the data set's own train split if not given."""
    memory_limit: int | None = None
    """Most train questions that a memory is built of."""
    dry_run: bool = False
    """Ask nothing: print debates, calls, tokens and, with prices in the file, cost, at most."""
    reply_tokens: int = 400
    """For --dry-run: how many tokens a reply is taken to have."""
    max_tokens_total: int | None = None
    """Make no call that is likely to take the study over so many tokens, read and written."""
    max_cost: float | None = None
    """The same in money, by the prices in the file."""
    allow_leak: bool = False
    """Go on though evaluated questions are in the memory, with what turned out right."""
    log_dir: Path | None = None
    """Folder for runs and memories. A folder of your own user if not given."""
    display: Literal["rich", "plain", "none"] | None = None
    """How progress is shown on stderr: rich on a terminal, plain elsewhere."""
    json: bool = False
    """Print the results as one JSON object on stdout."""
    log_level: LogLevel = "warning"
    """Least urgent events to print on stderr."""


def study(
    file: Path | None = None,
    /,
    *,
    options: Annotated[StudyOptions, Parameter(name="*")] = StudyOptions(),
    settings: Annotated[Settings, Parameter(name="*")] = Settings(),  # noqa: B008  (frozen)
) -> int:
    """Compare methods on data sets; the same command goes on where it was stopped, and asks nothing twice.

    Ctrl-C lets the debates under way end; a second one stops at once. Memories that methods need are built first, from
    the data set's train split, and kept. Then look at `r2mad report RUN` and `r2mad compare RUN A B`.

        r2mad study --dataset starter:test --method cot,sc-3,mad,r2mad --model local/smollm2-135m --limit 12
        r2mad study studies/table1.toml --dry-run

    Args:
        file: A study's TOML file; flags take precedence over what it says.
    """
    log_to_stderr(options.log_level)
    config = _config(file, options, settings)
    for team in config.teams:
        fetch_local([seat.model for seat in team.seats])
    logs = home_expanded(options.log_dir) if options.log_dir else log_folder()
    folder = logs / _folder(config, file, options)
    if options.dry_run:
        return _tell_dry_run(config, folder, options)
    try:
        outcome = _interruptible(lambda watch: _run(config, folder, logs / MEMORIES, options, watch))
    except KeyboardInterrupt:
        complain(f"stopped; the same command goes on from what is in {folder}")
        return INTERRUPTED
    return _tell(outcome, folder, options)


def _config(file: Path | None, options: StudyOptions, settings: Settings) -> StudyConfig:
    from r2mad.study.config import StudyConfig, read_config, team_of

    sets, methods = _listed(options.dataset), _listed(options.method)
    seeds = _seeds(options.seed or "1")
    part = _shard(options.shard)
    if file is not None:
        config = read_config(file, settings)
        given: dict[str, Any] = {"datasets": sets, "methods": methods, "teams": tuple(map(team_of, options.model))}
        given["seeds"] = seeds if options.seed else ()
    else:
        if not sets or not methods or not options.model:
            raise UsageError("a study needs a file, or --dataset, --method and --model; see `r2mad study --help`")
        config = StudyConfig("", sets, methods, tuple(map(team_of, options.model)), seeds, settings)
        given = {}
    for name in ("limit", "max_tokens_total", "max_cost"):
        given[name] = getattr(options, name)
    given["allow_leak"] = options.allow_leak or None
    if options.train:
        given["train"] = replace(config.train, dataset=options.train)
    for flag, value in (("--memory-limit", options.memory_limit), ("--reply-tokens", options.reply_tokens)):
        if value is not None and value < 1:
            raise UsageError(f"{flag} {value} is out of range")
    if options.memory_limit:
        given["memory"] = replace(config.memory, limit=options.memory_limit)
    given["shard"] = part
    return replace(config, **{name: value for name, value in given.items() if value not in (None, ())})


def _listed(given: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (given or "").split(",") if part.strip())


def _seeds(given: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in _listed(given))
    except ValueError as error:
        raise UsageError(f"--seed {given!r} is no list of whole numbers") from error


def _shard(given: str) -> tuple[int, int]:
    try:
        part, parts = map(int, given.split("/"))
    except ValueError as error:
        raise UsageError(f"--shard {given!r} is not of the form i/n") from error
    return part, parts


def _folder(config: StudyConfig, file: Path | None, options: StudyOptions) -> str:
    """The run's folder: it does not depend on --limit, so that a longer run goes on."""
    name = options.name or (config.name if file else "") or config.identity
    if not NAME.fullmatch(name) or name == MEMORIES:
        raise UsageError(f"{name!r} is no name for a run: letters, digits, spaces, dots, dashes and +, = or @ inside")
    part, parts = config.shard
    return name if parts == 1 else f"{name}-shard-{part}-of-{parts}"


async def _run(config: StudyConfig, folder: Path, memories: Path, options: StudyOptions, watch: _Watch) -> Outcome:
    from r2mad.cli.progress import Progress
    from r2mad.study.studies import run_config

    display = options.display or ("rich" if sys.stderr.isatty() else "plain")
    with Progress(display, config) as progress:

        def begun(left: int, total: int, gate: Gate) -> None:
            watch.gate = gate
            progress.begun(left, total)

        return await run_config(
            config,
            folder,
            memories,
            announce=progress.announce,
            say=progress.say,
            begun=begun,
            command=_SECRET.sub(r"\1 …", " ".join(sys.argv[1:])),
        )


class _Watch:
    """What a first Ctrl-C does: shut the gate, if debates have begun."""

    def __init__(self) -> None:
        self.gate: Gate | None = None
        self.pressed = 0

    def press(self, task: asyncio.Task[Any]) -> None:
        """Ctrl-C was pressed."""
        self.pressed += 1
        if self.gate is None or self.pressed > 1:
            task.cancel()
        else:
            self.gate.close("interrupted")
            complain("finishing what is under way; Ctrl-C again stops at once")


def _interruptible(work: Any) -> Outcome:
    """Run with Ctrl-C as a request to finish.

    Raises:
        KeyboardInterrupt: it was pressed while nothing could be finished, or twice.
    """
    watch = _Watch()

    async def main() -> Outcome:
        coroutine: Coroutine[Any, Any, Outcome] = work(watch)
        task = asyncio.ensure_future(coroutine)
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, ValueError, RuntimeError):  # not in a main thread: tests
            loop.add_signal_handler(signal.SIGINT, watch.press, task)
        try:
            return await task
        except asyncio.CancelledError:
            if watch.pressed:
                raise KeyboardInterrupt from None
            raise
        finally:
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.remove_signal_handler(signal.SIGINT)

    return asyncio.run(main())


def _tell(outcome: Outcome, folder: Path, options: StudyOptions) -> int:
    from dataclasses import asdict

    from r2mad.cli.results import print_results
    from r2mad.study.metrics import cells, measure

    order = [variant.method.name for variant in outcome.plan.variants]
    found = cells(outcome.scores)
    ranked = sorted(found, key=lambda cell: (cell.model, cell.dataset, order.index(cell.method)))
    measured = [measure(cell, found[cell]) for cell in ranked]
    if options.json:
        rows = [asdict(one) for one in measured]
        print(json_module.dumps({"run": str(folder), "session": asdict(outcome.session), "cells": rows}))
    else:
        print_results(measured, sys.stdout)
        print(f"\nRecords: {folder}\nNext: r2mad report {folder}")
    session = outcome.session
    if session.ended not in ("done", "interrupted"):
        complain(session.ended)
    if session.left:
        complain(f"{session.left} debates are still to be held, or failed; the same command goes on")
    if session.ended == "interrupted":
        return INTERRUPTED
    return INCOMPLETE if session.left else DONE


def _tell_dry_run(config: StudyConfig, folder: Path, options: StudyOptions) -> int:
    from r2mad.cli.results import print_estimate
    from r2mad.study.estimate import estimate
    from r2mad.study.records import DEBATES, finished
    from r2mad.study.studies import check_folder

    check_folder(config, folder)
    rows = asyncio.run(estimate(config, options.reply_tokens))
    held = len(finished(folder / DEBATES))
    if options.json:
        from dataclasses import asdict

        print(json_module.dumps([asdict(row) for row in rows]))
    else:
        print_estimate(rows, options.reply_tokens, sys.stdout)
        if held:
            print(f"{held} debates are in {folder} already; those of this study among them are not asked again.")
    return DONE
