"""`r2mad demo`: the whole job on the starter set with the embedded model."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from r2mad.cli.common import DONE, INCOMPLETE, LogLevel, complain, fetch_local, log_to_stderr, printable
from r2mad.errors import UsageError
from r2mad.settings import Settings, home_expanded, log_folder

if TYPE_CHECKING:
    from r2mad.study.demo import Line
    from r2mad.study.remember import Built
    from r2mad.study.scores import Score
    from r2mad.types import DebateRecord, Item


@dataclass(frozen=True)
class DemoOptions:
    """What the demo can be told."""

    model: Annotated[str, Parameter(env_var="R2MAD_DEMO_MODEL")] = "local/smollm2-135m"
    """The model to run it on: the embedded one, another `local/…`, or `openai/NAME` (at OPENAI_BASE_URL)."""
    limit: int = 12
    """Number of questions."""
    seed: int = 1
    """Two runs with the same seed on one machine give the same debates."""
    log_dir: Path | None = None
    """Folder for the records; a new folder below it for each run. A folder of your own user if not given."""
    log_level: LogLevel = "warning"
    """Least urgent events to print on stderr."""


def demo(*, options: Annotated[DemoOptions, Parameter(name="*")] = DemoOptions()) -> int:
    """Watch real agents debate real questions on this machine, without an endpoint or a key.

    Fetches a small language model the first time (94 MB), runs cot, sc-3, vote, mad and r2mad on a few questions of the
    starter set, and prints what each came to and what it took, and one debate in full with what each agent remembered.
    The model is very small: it is there to show the machinery at work, not to measure what a method gains.
    """
    log_to_stderr(options.log_level)
    if not 1 <= options.limit <= 40:
        raise UsageError(f"--limit {options.limit} is out of range (1 to 40)")
    fetch_local([options.model])
    parent = (home_expanded(options.log_dir) if options.log_dir else log_folder()) / "demo"
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    return asyncio.run(_run(options, parent / stamp))


async def _run(options: DemoOptions, folder: Path) -> int:
    from r2mad.api import open_table
    from r2mad.cli.show import show_answer, show_transcript
    from r2mad.study.demo import handful, make_memory, run_demo
    from r2mad.study.records import DEBATES

    begun = time.perf_counter()
    items = handful(options.limit)
    # The calls of one run are shared and kept in memory only, so a second run is a run and not a replay.
    settings = Settings(cache=":memory:", max_connections=1 if options.model.startswith("local/") else 8)
    memory = f"sqlite:{folder / 'memory.db'}"
    remembered = await make_memory(options.model, memory, settings, options.limit, _say_remembered)
    print(f"{remembered} debates of the train split are in the memory of r2mad", file=sys.stderr, flush=True)
    if not remembered:
        complain("no debate could be remembered: the endpoint answers nothing")
        return INCOMPLETE
    async with open_table(options.model, settings.changed(memory=memory)) as table:
        ready = time.perf_counter()
        view = _Progress(items, ready)
        lines, record = await run_demo(table, items, folder, seed=options.seed, announce=view.announce)
        held = time.perf_counter()
        print(f"\nOne debate of r2mad in full: {record.question.text}\n")
        show_transcript(record, table.memory.snapshot if table.memory else None)
    show_answer(record, folder / DEBATES)
    print()
    _print_table(lines)
    print(f"\nTook {held - begun:.1f} s, loading the model included.")
    print(f"Records: {folder}")
    failed = record.stopped == "failed"  # the liveliest debate: if even that one failed, all did
    if failed:
        complain(f"no call was answered: {record.failures[0][2].message}")
    return INCOMPLETE if failed else DONE


def _say_remembered(built: Built, record: DebateRecord) -> None:
    """A line on stderr for each debate that is held for the memory of another model than the embedded one."""
    about = printable(record.question.text)[:48]
    failed = f" failed: {printable(record.failures[0][2].message)}" if record.stopped == "failed" else ""
    print(f"[{built.done}/{built.total}] remembering: {about}{failed}", file=sys.stderr, flush=True)


class _Progress:
    """A line on stderr for each debate that ended, with an estimate of the end."""

    def __init__(self, items: list[Item], start: float) -> None:
        from r2mad.study.demo import METHODS, expected_calls

        self._texts = {item.question.id: item.question.text for item in items}
        self._debates, self._done = len(items) * len(METHODS), 0
        self._calls, self._made = expected_calls(len(items)), 0
        self._start = start

    def announce(self, record: DebateRecord, score: Score) -> None:
        self._done += 1
        replies = [reply for one in record.rounds for reply in one.replies]
        self._made += sum(not reply.cached for reply in replies)
        spent = time.perf_counter() - self._start
        # Debates that end early make fewer calls than foreseen, so this errs on the late side.
        left = spent / max(1, self._made) * max(0, self._calls - self._made) if self._done < self._debates else 0.0
        text = printable(self._texts[score.question])[:34]
        answer = printable(score.answer or "-")[:14]
        mark = "right" if score.correct else "wrong" if score.answer is not None else "no answer"
        print(
            f"[{self._done}/{self._debates}, about {left:.0f} s left] {score.method:<5} {text:<34} {answer} ({mark})",
            file=sys.stderr,
            flush=True,
        )


def _print_table(lines: list[Line]) -> None:
    """What each method came to, and what it took beyond what the methods before it had asked already; 79 columns."""
    print("method right  95 % interval rescued lost no answer  calls  new  read  written  seconds")
    for line in lines:
        print(
            f"{line.method:<6} {f'{line.right}/{line.debates}':>5}  {f'{line.low:.0%} to {line.high:.0%}':>13} "
            f"{line.rescued:>7} {line.lost:>4} {f'{line.unparsed}/{line.replies}':>9}  {line.calls:>5} "
            f"{line.calls - line.shared:>4} {line.read_tokens:>5} {line.completion_tokens:>8} {line.seconds:>8.1f}"
        )
    print("rescued, lost: agents' answers that became right, or ceased to be, between rounds")
    print("new: calls that no method before had made; read, written, seconds: theirs alone")
    print("read: prompt tokens that the server had not just read")
