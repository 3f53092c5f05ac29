"""What a study's scores come to, cell by cell: one model, data set and method, over all its questions and seeds.

Only `scores.jsonl` is read, so a run of a hundred thousand debates is summed up in seconds. Errors, truncated and
unparsed replies stay in the denominator everywhere, and are counted beside the accuracy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from math import fsum
from statistics import fmean, stdev

from r2mad.study.scores import Score
from r2mad.study.stats import Proportion

REFERENCE = "mad"
"""The method whose opening decides which questions are shared misconceptions, for all methods alike."""


@dataclass(frozen=True, order=True, slots=True)
class Cell:
    """Where a debate belongs in a table."""

    model: str
    dataset: str
    method: str


@dataclass(frozen=True, slots=True)
class Transitions:
    """Agents' answers from one round to the next, over all agent-rounds; what is not right is wrong, `None` too."""

    right_before: int = 0
    lost: int = 0
    """Right at t−1 and wrong at t."""
    wrong_before: int = 0
    won: int = 0
    """Wrong at t−1 and right at t."""

    def __add__(self, other: Transitions) -> Transitions:
        return Transitions(
            self.right_before + other.right_before,
            self.lost + other.lost,
            self.wrong_before + other.wrong_before,
            self.won + other.won,
        )

    @property
    def to_wrong(self) -> Proportion:
        """P(C→W): share of right answers that turned wrong."""
        return Proportion(self.lost, self.right_before)

    @property
    def to_right(self) -> Proportion:
        """P(W→C): share of wrong answers that turned right."""
        return Proportion(self.won, self.wrong_before)


@dataclass(frozen=True, slots=True)
class Metrics:
    """One cell's numbers. Means are over debates; None where there is nothing to take a mean of."""

    cell: Cell
    debates: int
    questions: int
    seeds: int
    right: Proportion
    """Debates whose answer is right, ties as they were broken."""
    expected: float | None
    """The same if ties were broken evenly."""
    by_seed: tuple[float, ...]
    """Accuracy of each seed, in order of seeds."""
    spread: float | None
    """Standard deviation over seeds; None for one."""
    opening: float | None
    """Accuracy of a plain vote on round 0."""
    gain: float | None
    """Debate gain: expected accuracy less the opening's."""
    transitions: Transitions
    consensus: tuple[float, ...]
    """Mean Cons(Z) of each round, over the debates that held it."""
    rounds: float | None
    """Rounds held, on average."""
    failed: int
    partial: int
    ties: int
    degraded: int
    replies: int
    errors: int
    unparsed: int
    truncated: int
    calls: float | None
    """Calls a debate."""
    tokens: float | None
    """Tokens a debate, read and written."""
    tokens_by_kind: dict[str, float]
    calls_by_kind: dict[str, float]
    shared: float | None
    """Of the calls, those that were not made for this method: a mean a debate."""
    shared_tokens: float | None
    waited: float | None
    """Seconds of calls a debate, as they took when first made."""
    seconds: float | None
    """Wall seconds a debate, as it was held; in a batch they overlap."""


def measure(cell: Cell, scores: Sequence[Score]) -> Metrics:
    """A cell's numbers from its scores."""
    count = len(scores)
    by_seed: dict[int, list[float]] = defaultdict(list)
    for score in scores:
        by_seed[score.seed].append(float(score.correct))
    means = tuple(fmean(by_seed[seed]) for seed in sorted(by_seed))
    expected, opening = _mean([one.expected for one in scores]), _mean([one.opening for one in scores])
    kinds = sorted({kind for one in scores for kind in one.spent})
    return Metrics(
        cell=cell,
        debates=count,
        questions=len({one.question for one in scores}),
        seeds=len(by_seed),
        right=Proportion(sum(one.correct for one in scores), count),
        expected=expected,
        by_seed=means,
        spread=stdev(means) if len(means) > 1 else None,
        opening=opening,
        gain=None if expected is None or opening is None else expected - opening,
        transitions=sum((transitions(one) for one in scores), Transitions()),
        consensus=_by_round([one.consensus for one in scores]),
        rounds=_mean([float(len(one.grades)) for one in scores]),
        failed=sum(one.stopped == "failed" for one in scores),
        partial=sum(one.stopped == "partial" for one in scores),
        ties=sum(one.tie for one in scores),
        degraded=sum(one.degraded for one in scores),
        replies=sum(one.replies for one in scores),
        errors=sum(one.errors for one in scores),
        unparsed=sum(one.unparsed for one in scores),
        truncated=sum(one.truncated for one in scores),
        calls=_mean([float(one.calls) for one in scores]),
        tokens=_mean([float(one.tokens) for one in scores]),
        tokens_by_kind={
            kind: sum(s.spent[kind].prompt + s.spent[kind].completion for s in scores if kind in s.spent) / count
            for kind in kinds
        },
        calls_by_kind={kind: sum(s.spent[kind].calls for s in scores if kind in s.spent) / count for kind in kinds},
        shared=_mean([float(one.shared) for one in scores]),
        shared_tokens=_mean([float(one.shared_tokens) for one in scores]),
        waited=_mean([one.waited for one in scores]),
        seconds=_mean([one.seconds for one in scores]),
    )


def transitions(score: Score) -> Transitions:
    """One debate's, over its agents and rounds. A reply that failed is not right."""
    found = Transitions()
    for before, after in zip(score.grades, score.grades[1:], strict=False):
        for was, now in zip(before, after, strict=True):
            right, still = was == "1", now == "1"
            found += Transitions(int(right), int(right and not still), int(not right), int(not right and still))
    return found


def cells(scores: Iterable[Score]) -> dict[Cell, list[Score]]:
    """Scores by the cell that they belong to, in order of their first appearance."""
    found: dict[Cell, list[Score]] = {}
    for score in scores:
        found.setdefault(Cell(score.model, score.dataset, score.method), []).append(score)
    return found


def misconceived(scores: Iterable[Score], reference: str = REFERENCE) -> dict[tuple[str, str], set[tuple[str, int]]]:
    """The shared-misconception subset: questions on which more than half of the agents are not right in round 0.

    It goes by `mad`'s round 0, so that it is the same questions for every method; no answer is not right.

    Returns:
        For each (model, data set) the (question, seed) pairs; nothing for one that the reference did not run on.
    """
    found: dict[tuple[str, str], set[tuple[str, int]]] = {}
    for score in scores:
        if score.method == reference:
            chosen = found.setdefault((score.model, score.dataset), set())
            opening = score.grades[0]
            if sum(sign != "1" for sign in opening) * 2 > len(opening):
                chosen.add((score.question, score.seed))
    return found


def within(scores: Iterable[Score], chosen: dict[tuple[str, str], set[tuple[str, int]]]) -> list[Score]:
    """The scores on chosen questions."""
    nothing: Set[tuple[str, int]] = frozenset()
    return [one for one in scores if (one.question, one.seed) in chosen.get((one.model, one.dataset), nothing)]


def by_question(scores: Iterable[Score], *, expected: bool = False) -> dict[str, list[float]]:
    """Each question's scores in order of seeds: right or wrong, or the chance of it where ties are broken evenly."""
    found: dict[str, list[float]] = defaultdict(list)
    for score in sorted(scores, key=lambda one: (one.question, one.seed)):
        found[score.question].append(score.expected if expected else float(score.correct))
    return dict(found)


def _mean(values: Sequence[float]) -> float | None:
    return fsum(values) / len(values) if values else None


def _by_round(rows: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    longest = max((len(row) for row in rows), default=0)
    return tuple(fmean([row[index] for row in rows if len(row) > index]) for index in range(longest))
