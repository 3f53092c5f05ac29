"""A study's progress on stderr: one line that moves on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from r2mad.cli.common import complain, printable

if TYPE_CHECKING:
    from r2mad.study.config import StudyConfig
    from r2mad.study.scores import Score
    from r2mad.types import DebateRecord

EVERY = 10.0
"""Seconds between plain lines: a log of a night's run should be readable."""


class Progress:
    """How far a study has come, how fast it goes, and when it will be over."""

    def __init__(self, display: str, config: StudyConfig) -> None:
        self._display = display
        self._name = config.name or config.identity
        self._left = self._total = self._held = self._failed = self._calls = 0
        self._start = self._told = time.perf_counter()
        self._bars: Bars | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars:
            self._bars.stop()
        elif self._display == "plain" and self._held:
            self._line()

    def say(self, line: str) -> None:
        """A line about what is being prepared."""
        if self._display != "none":
            complain(line)

    def begun(self, left: int, total: int) -> None:
        """Debates begin now."""
        self._left, self._total = left, total
        self._start = self._told = time.perf_counter()
        if self._display == "rich" and left:
            self._bars = Bars(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[rate]}"),
                console=Console(file=sys.stderr),
            )
            self._task = self._bars.add_task(printable(self._name), total=total, completed=total - left, rate="")
            self._bars.start()
        elif self._display == "plain":
            complain(f"{self._name}: {left} of {total} debates are to be held")

    def announce(self, record: DebateRecord, score: Score) -> None:
        """A debate is on disk."""
        self._held += 1
        self._failed += score.stopped == "failed"
        self._calls += score.calls - score.shared
        if self._bars:
            self._bars.update(self._task, advance=1, rate=self._rate())
        elif self._display == "plain" and time.perf_counter() - self._told >= EVERY:
            self._line()

    def _rate(self) -> str:
        spent = max(time.perf_counter() - self._start, 1e-9)
        left = spent / max(1, self._held) * (self._left - self._held)
        failed = f", {self._failed} failed" if self._failed else ""
        return f"{60 * self._held / spent:.0f} debates a minute, {self._calls / spent:.1f} calls a second, " + (
            f"about {_span(left)} left{failed}"
        )

    def _line(self) -> None:
        self._told = time.perf_counter()
        complain(f"{self._total - self._left + self._held} of {self._total} debates, {self._rate()}")


def _span(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:.0f} h {minutes:.0f} min" if hours else f"{minutes:.0f} min {seconds:.0f} s"
