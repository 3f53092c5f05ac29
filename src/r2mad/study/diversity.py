"""Whether debates gain from a varied opening, and on hard questions ("Demystifying Multi-Agent Debate").

The paper finds that the diversity of the first answers goes with the final accuracy, and that debate gains more where
questions are harder. Gain, diversity and difficulty all look at the opening, so a part of these correlations is built
in: whoever starts wrong can only gain, and would also gain by drawing its answers anew. Compare methods by them; one
alone proves little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, log
from typing import Literal

from r2mad.study.graded import Graded, by_method, graded
from r2mad.study.scores import Score
from r2mad.study.stats import ROUNDING, Correlation, Difference, correlation, least_share, paired
from r2mad.types import DebateRecord, Round

Hardness = Literal["all right", "most right", "half or fewer right", "none right"]

HARDNESS: tuple[Hardness, ...] = ("all right", "most right", "half or fewer right", "none right")
"""Bins of difficulty, easiest first: the share of right replies in the opening is 1, over ½, over 0, or 0."""


@dataclass(frozen=True, slots=True)
class Opened:
    """How one debate began and what came of it."""

    id: str
    method: str
    question: str
    replies: int
    """n of the opening, failed ones included."""
    diversity: float
    """Distinct answers over n; a reply without an answer is no answer of its own."""
    entropy: float | None
    """Shannon's entropy of the answers over log n, in [0, 1]; None for one reply, or where nobody answered."""
    difficulty: float
    """1 − the share of the n replies that are right."""
    before: float
    """Chance that the opening's most popular answer is right, a tie broken evenly."""
    after: float
    """The same of the group's answer in the end."""

    @property
    def gain(self) -> float:
        """After − before: what debating added."""
        return self.after - self.before

    @property
    def hardness(self) -> Hardness:
        """Its bin of difficulty."""
        if self.difficulty <= ROUNDING:
            return "all right"
        if self.difficulty >= 1 - ROUNDING:
            return "none right"
        return "most right" if self.difficulty < 0.5 - ROUNDING else "half or fewer right"


def opened(records: Iterable[DebateRecord], scores: Iterable[Score]) -> tuple[Opened, ...]:
    """How each graded debate began, in the order of the records.

    Both ends count a tie as it is expected to fall, and not as a hash broke it: a debate in which nobody moves has
    gained nothing.
    """
    return tuple(_opened(one) for one in graded(records, scores))


def _opened(one: Graded) -> Opened:
    opening, signs = one.record.rounds[0], one.score.grades[0]
    size = len(opening.replies)
    counts = Counter(reply.class_ for reply in opening.replies if reply.class_ is not None)
    return Opened(
        id=one.record.id,
        method=one.record.method,
        question=one.record.question.id,
        replies=size,
        diversity=len(counts) / size if size else 0.0,
        entropy=_entropy(counts, size),
        difficulty=1 - signs.count("1") / size if size else 1.0,
        before=_vote(opening, signs, counts),
        after=one.score.expected,
    )


def _entropy(counts: Counter[int], size: int) -> float | None:
    total = counts.total()
    if size < 2 or not total:
        return None
    found = -fsum(count / total * log(count / total) for count in counts.values()) / log(size)
    return min(max(found, 0.0), 1.0)


def _vote(opening: Round, signs: str, counts: Counter[int]) -> float:
    """The chance that a plurality vote on a round is right; 0 where nobody answered."""
    if not counts:
        return 0.0
    most = max(counts.values())
    tied = {label for label, count in counts.items() if count == most}
    right = {reply.class_ for reply, sign in zip(opening.replies, signs, strict=True) if sign == "1"}
    return len(tied & right) / len(tied)


@dataclass(frozen=True, slots=True)
class Association:
    """How two numbers of a debate go together, over the debates of a method."""

    x: Literal["diversity", "difficulty"]
    y: Literal["correct", "gain"]
    pearson: Correlation | None
    """None where one of the two is the same in all debates."""
    spearman: Correlation | None


@dataclass(frozen=True, slots=True)
class HardnessGain:
    """The gain of the debates in one bin of difficulty."""

    hardness: Hardness
    debates: int
    before: float | None
    """Mean chance that the opening's vote is right; None of no debate."""
    after: float | None
    gain: Difference | None
    """Mean of after − before, with its 95 % interval; None of no debate."""


@dataclass(frozen=True, slots=True)
class Diversity:
    """What a method's debates began with, and how that goes with what they came to."""

    debates: int
    questions: int
    replies: float | None
    """Mean size of the opening."""
    diversity: float | None
    entropy: float | None
    """Means, of the debates that have any."""
    difficulty: float | None
    gain: Difference | None
    associations: tuple[Association, ...]
    by_hardness: tuple[HardnessGain, ...]
    """One for each bin, empty ones included, easiest first."""


def diversities(
    records: Iterable[DebateRecord], scores: Iterable[Score], *, seed: int = 0, draws: int = 2000
) -> dict[str, Diversity]:
    """Diversity, difficulty and gain of each method.

    Args:
        records: debates of any methods.
        scores: theirs.
        seed: of the bootstrap, which draws questions with replacement.
        draws: how many.
    """
    groups = by_method(graded(records, scores))
    return {name: relate([_opened(one) for one in found], seed=seed, draws=draws) for name, found in groups.items()}


def relate(debates: Sequence[Opened], *, seed: int = 0, draws: int = 2000) -> Diversity:
    """How diversity and difficulty go with what came of the debates of one method."""
    debates = sorted(debates, key=lambda one: one.id)  # sums then round alike, whatever the order
    questions = [one.question for one in debates]
    columns = {
        "diversity": [one.diversity for one in debates],
        "difficulty": [one.difficulty for one in debates],
        "correct": [one.after for one in debates],
        "gain": [one.gain for one in debates],
    }

    def associated(x: Literal["diversity", "difficulty"], y: Literal["correct", "gain"]) -> Association:
        pearson, spearman = (
            correlation(columns[x], columns[y], questions, ranks=ranks, seed=seed, draws=draws)
            for ranks in (False, True)
        )
        return Association(x, y, pearson, spearman)

    return Diversity(
        debates=len(debates),
        questions=len(set(questions)),
        replies=_mean([float(one.replies) for one in debates]),
        diversity=_mean(columns["diversity"]),
        entropy=_mean([one.entropy for one in debates if one.entropy is not None]),
        difficulty=_mean(columns["difficulty"]),
        gain=gained(debates),
        associations=(
            associated("diversity", "correct"),
            associated("diversity", "gain"),
            associated("difficulty", "gain"),
        ),
        by_hardness=tuple(_in_bin(bin_, [one for one in debates if one.hardness == bin_]) for bin_ in HARDNESS),
    )


def _mean(values: Sequence[float]) -> float | None:
    return fsum(values) / len(values) if values else None


def _in_bin(hardness: Hardness, debates: Sequence[Opened]) -> HardnessGain:
    before, after = _mean([one.before for one in debates]), _mean([one.after for one in debates])
    return HardnessGain(hardness, len(debates), before, after, gained(debates))


def gained(debates: Sequence[Opened]) -> Difference | None:
    """The mean gain with its 95 % interval: paired, with standard errors that allow for questions asked several times.

    No gain is below −before or above 1 − before, and so is no interval. Where all gain the same it would be a point
    however few they are. Then it is what can be said of a gain that was the same in as many questions: with
    q = `least_share(questions)` at least q of all debates gain it, and the others anything that is possible. None of no
    debate.
    """
    if not debates:
        return None
    gains, questions = [one.gain for one in debates], [one.question for one in debates]
    least, most = -max(one.before for one in debates), 1 - min(one.before for one in debates)
    same = max(gains) - min(gains) <= ROUNDING
    if not same and len(set(questions)) > 1:
        found = paired([one.after for one in debates], [one.before for one in debates], questions)
        return Difference(found.mean, max(found.low, least), min(found.high, most), found.pairs)
    mean = fsum(gains) / len(gains)
    sure = least_share(len(set(questions))) if same else 0.0
    return Difference(mean, sure * mean + (1 - sure) * least, sure * mean + (1 - sure) * most, len(debates))
