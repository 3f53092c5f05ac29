"""What runs did with a memory: which cases agents were reminded of, and how those debates ended beside the others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from r2mad.errors import StoreError
from r2mad.study.records import DEBATES, SCORES, read
from r2mad.study.scores import latest_scores
from r2mad.study.stats import wilson
from r2mad.types import DebateRecord


@dataclass(frozen=True, slots=True)
class Share:
    """How many debates ended with the right answer, with Wilson's interval at 95 %."""

    right: int = 0
    debates: int = 0

    def __add__(self, other: Share) -> Share:
        return Share(self.right + other.right, self.debates + other.debates)

    @property
    def share(self) -> float | None:
        """Right answers over all; None of no debate."""
        return self.right / self.debates if self.debates else None

    @property
    def interval(self) -> tuple[float, float]:
        """Where the share of many such debates would lie."""
        return wilson(self.right, self.debates)


@dataclass(frozen=True, slots=True)
class Use:
    """What came of one case."""

    case: str
    times: int
    """How often an agent was reminded of it, once a round and agent."""
    debates: int
    """Debates in which any agent was, graded or not."""
    with_it: Share
    """The graded ones among them."""
    without: Share
    """The graded debates with a memory, of the runs in which it was ever retrieved, that went without it."""


@dataclass(frozen=True, slots=True)
class Retrievals:
    """What a number of runs did with their memory."""

    debates: int
    """Debates that had a memory with cases of their agents."""
    ungraded: int
    """Those without a score, which no share counts."""
    versions: tuple[str, ...]
    """Versions of the memories they read."""
    uses: tuple[Use, ...]
    """Most often retrieved first."""


def retrievals(runs: Iterable[Path]) -> Retrievals:
    """Look through the debates of runs; a debate that stands in two of them counts in both.

    Raises:
        StoreError: a folder holds no run, or a file of it is damaged.
    """
    times: Counter[str] = Counter()
    debates: Counter[str] = Counter()
    with_it: defaultdict[str, Share] = defaultdict(Share)
    without: defaultdict[str, Share] = defaultdict(Share)
    versions: set[str] = set()
    number = ungraded = 0
    for run in dict.fromkeys(run.resolve() for run in runs):
        found = _cases(run, versions)
        right = {score.id: score.correct for score in latest_scores(run / SCORES) if score.id in found}
        number += len(found)
        ungraded += len(found) - len(right)
        here: defaultdict[str, Share] = defaultdict(Share)
        for id, cases in found.items():
            times.update(cases)
            debates.update(cases.keys())
            for case in cases:
                here[case] += Share(int(right[id]), 1) if id in right else Share()
        everything = Share(sum(right.values()), len(right))
        for case, ended in here.items():
            with_it[case] += ended
            without[case] += Share(everything.right - ended.right, everything.debates - ended.debates)
    uses = [Use(case, times[case], debates[case], with_it[case], without[case]) for case in times]
    uses.sort(key=lambda use: (-use.times, use.case))
    return Retrievals(number, ungraded, tuple(sorted(versions)), tuple(uses))


def _cases(run: Path, versions: set[str]) -> dict[str, Counter[str]]:
    """For each debate of a run that had a memory: the cases it retrieved, and how often."""
    path = run / DEBATES
    if not path.is_file():
        raise StoreError(f"{run}: no run there, for it has no {DEBATES}")
    found: dict[str, Counter[str]] = {}
    for record in read(DebateRecord, path):
        found.pop(record.id, None)  # of several lines with one id the last counts
        if record.memory and record.memory.cases:
            versions.add(record.memory.version)
            found[record.id] = Counter(
                case.case
                for settled in record.rounds
                for view in settled.views
                if not view.forgot  # chosen, and then left out because they did not fit
                for case in view.retrieved
            )
    return found
