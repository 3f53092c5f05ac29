"""Methods side by side: which is better, by how much, how sure that is, and a sentence that says so.

Only questions that both have answered are compared, since luck with the questions then cancels. What one of them lacks
is named, never dropped in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Literal

from r2mad.study.paired import FEWEST, holm, mcnemar, mcnemar_mid_p, score_interval, sign_flip, tango
from r2mad.study.stats import ROUNDING

Scores = Mapping[str, Sequence[float]]
"""By question's id its scores in [0, 1], one a seed, all methods' seeds in the same order."""
Rights = Mapping[str, Sequence[bool]]
"""By question's id whether each answer was right, as the tie fell."""
Outcome = Literal["better", "worse", "equal", "same", "unclear", "few", "none"]
LEVEL = 0.05
"""A smaller p is a finding."""
MARGIN = 0.02
"""Differences up to 2 points are called practically equal."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What a method's answers to a set of questions came to."""

    scores: Scores
    correct: Rights | None = None
    """None if every score is 0 or 1, and says it already."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two methods on the questions that both have answered. Differences are the first's less the other's, in shares."""

    names: tuple[str, str]
    pairs: int
    """Questions that both have answered; every one counts the same."""
    answers: int
    """Pairs of answers with the same question and seed; more than `pairs` if there are several seeds."""
    only_in_one: tuple[str, ...]
    """Questions left out because only the first has answered them."""
    only_in_other: tuple[str, ...]
    uneven: tuple[str, ...]
    """Questions that were not answered equally often: their means are compared, their answers cannot be paired."""
    one: float | None
    """The first's mean score on these questions; None of none."""
    other: float | None
    difference: float | None
    low: float | None
    """Of the 95 % interval of the difference; not corrected for other comparisons."""
    high: float | None
    interval: Literal["tango", "score"] | None
    """What made the interval: `tango`, where each question has a single score of 0 or 1, else `score_interval`."""
    differing: int
    """Questions on which the mean scores differ; fewer than six can never give a p below 0.05."""
    only_one: int | None
    """Pairs of answers of which only the first was right; None if what was right is not known."""
    only_other: int | None
    mcnemar: float | None
    """Exact p of these two counts; None with several seeds, for answers to one question are not independent."""
    mid_p: float | None
    """Its mid-p."""
    p: float | None
    """`sign_flip` of the questions' differences: with a single score of 0 or 1 a question the same as `mcnemar`."""
    adjusted: float | None = None
    """That p after Holm's correction for the whole family; None outside one."""
    family: int = 1
    """Comparisons of the family that have a p."""


def compare(
    one: Scores,
    other: Scores,
    *,
    correct: tuple[Rights, Rights] | None = None,
    names: tuple[str, str] = ("one", "other"),
) -> Comparison:
    """Compare two methods on the questions that both have answered. Nothing is drawn; the same scores give the same.

    The interval is Tango's score interval where each question has one score of 0 or 1, else its extension to other
    scores and several seeds: in simulations it held its level where a bootstrap did not (docs/statistics.md).

    Args:
        one: the first method's scores. They may be fractions, as ties are scored by what is expected.
        other: the other's.
        correct: whether answers were right, of the same questions and seeds, for the discordant counts and McNemar's
            test. Not needed if all scores are 0 or 1.
        names: of the two.

    Raises:
        ValueError: a score outside [0, 1], or not as many rights as scores.
    """
    for scores in (one, other):
        _check(scores)
    first, second = ({key for key, values in scores.items() if values} for scores in (one, other))
    both = sorted(first & second)
    uneven = tuple(key for key in both if len(one[key]) != len(other[key]))
    single = all(len(scores[key]) == 1 for scores in (one, other) for key in both)
    differences = [fmean(one[key]) - fmean(other[key]) for key in both]
    interval, (low, high) = _interval(differences, single)
    counts = _discordant(one, other, correct, [key for key in both if key not in set(uneven)])
    return Comparison(
        names=names,
        pairs=len(both),
        answers=sum(len(one[key]) for key in both if key not in set(uneven)),
        only_in_one=tuple(sorted(first - second)),
        only_in_other=tuple(sorted(second - first)),
        uneven=uneven,
        one=fmean(fmean(one[key]) for key in both) if both else None,
        other=fmean(fmean(other[key]) for key in both) if both else None,
        difference=fmean(differences) if both else None,
        low=low if both else None,
        high=high if both else None,
        interval=interval if both else None,
        differing=sum(abs(value) > ROUNDING for value in differences),
        only_one=counts[0] if counts else None,
        only_other=counts[1] if counts else None,
        mcnemar=mcnemar(*counts) if counts and single and both else None,
        mid_p=mcnemar_mid_p(*counts) if counts and single and both else None,
        p=sign_flip(differences) if both else None,
    )


def _check(scores: Scores) -> None:
    for key, values in scores.items():
        if not all(0.0 <= value <= 1.0 for value in values):
            raise ValueError(f"question {key}: scores lie in [0, 1], not {list(values)}")


def _interval(differences: list[float], single: bool) -> tuple[Literal["tango", "score"], tuple[float, float]]:
    if single and all(value in (-1.0, 0.0, 1.0) for value in differences):
        return "tango", tango(differences.count(1.0), differences.count(-1.0), len(differences))
    return "score", score_interval(differences)


def _discordant(
    one: Scores, other: Scores, correct: tuple[Rights, Rights] | None, keys: list[str]
) -> tuple[int, int] | None:
    """(pairs of answers of which only the first is right, only the other); None if that is not known."""
    if correct is None:
        if any(value not in (0.0, 1.0) for scores in (one, other) for key in keys for value in scores[key]):
            return None
        rights: tuple[Mapping[str, Sequence[float]], Mapping[str, Sequence[float]]] = one, other
    else:
        rights = correct
        for scores, right in zip((one, other), correct, strict=True):
            for key in keys:
                if len(right.get(key, ())) != len(scores[key]):
                    raise ValueError(f"question {key}: {len(scores[key])} scores, but not as many rights and wrongs")
    pairs = [pair for key in keys for pair in zip(rights[0][key], rights[1][key], strict=True)]
    return sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)


def compare_all(cells: Mapping[str, Answers]) -> list[Comparison]:
    """Every pair of a family of methods, in the order given, with Holm's correction over all of them.

    A pair without a common question has no p, and does not count for the correction.

    Raises:
        ValueError: see `compare`.
    """
    found = []
    for (name, one), (against, other) in combinations(cells.items(), 2):
        given = one.correct, other.correct
        correct = None if given == (None, None) else (_rights(one), _rights(other))
        found.append(compare(one.scores, other.scores, correct=correct, names=(name, against)))
    return correct_all(found)


def _rights(answers: Answers) -> Rights:
    """The rights and wrongs; of a method that has none, its scores, if these are all 0 or 1."""
    if answers.correct is not None:
        return answers.correct
    if any(value not in (0.0, 1.0) for values in answers.scores.values() for value in values):
        raise ValueError("one method's rights and wrongs are given, but not the other's, whose scores are fractions")
    return {key: [value == 1.0 for value in values] for key, values in answers.scores.items()}


def correct_all(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """The same comparisons as one family: `adjusted` is Holm's, over all that have a p."""
    rows = list(comparisons)
    raw = [row.p for row in rows if row.p is not None]
    adjusted = iter(holm(raw))
    return [row if row.p is None else replace(row, adjusted=next(adjusted), family=len(raw)) for row in rows]


def outcome(comparison: Comparison, margin: float = MARGIN) -> Outcome:
    """What a comparison comes to.

    `none`: no common question. `few`: fewer than six, which cannot show anything. `same`: no question's score differs.
    `equal`: the whole interval lies within ± the margin, whether or not 0 does. `better` and `worse` (the first of the
    two): 0 lies outside the interval, and p, the corrected one if there is one, is below 0.05. `unclear`: all else.
    """
    row = comparison
    if row.difference is None or row.low is None or row.high is None or row.p is None:
        return "none"
    if row.pairs < FEWEST:
        return "few"
    if row.differing == 0:
        return "same"
    if -margin <= row.low and row.high <= margin:
        return "equal"
    sure = max(row.p, row.adjusted or 0.0) < LEVEL
    if sure and row.low > 0:
        return "better"
    return "worse" if sure and row.high < 0 else "unclear"


def verdict(comparison: Comparison, names: tuple[str, str] | None = None, *, margin: float = MARGIN) -> str:
    """One sentence: on what, by how much, how sure, and what may be said.

    Args:
        comparison: the two.
        names: in its order; its own by default.
        margin: differences up to this are practically none, as a share.
    """
    row, (one, other) = comparison, names or comparison.names
    if row.difference is None or row.low is None or row.high is None or row.p is None:
        return f"{one} and {other} have no question in common{_left_out(row, one, other)}, so nothing can be said."
    lead = f"On {_count(row.pairs, 'question')}{_details(row, one, other)}"
    between = f"95 % interval {signed(row.low)} to {signed(row.high)}"
    if row.differing == 0:
        found = f"{one} and {other} scored the same on every one"
    elif abs(row.difference) < ROUNDING:
        found = f"{one} and {other} were right equally often"
    else:
        more = "more" if row.difference > 0 else "less"
        found = f"{one} was right {_plain(abs(row.difference))} percentage points {more} often than {other}"
    return f"{lead} {found} ({between}); {_conclusion(row, one, margin)}."


def _conclusion(row: Comparison, one: str, margin: float) -> str:
    settled, chances = outcome(row, margin), _chances(row)
    within = row.low is not None and row.high is not None and -margin <= row.low and row.high <= margin
    if settled == "few":
        return f"so few questions cannot tell them apart ({chances})"
    if settled == "equal" or (settled == "same" and within):
        return f"they are practically equal, within {_plain(margin)} points ({chances})"
    if settled == "same":
        return f"this study cannot rule out a difference of that size ({chances})"
    if settled in ("better", "worse"):
        return f"{one} is {settled} ({chances})"
    if row.differing < FEWEST:
        only = f"only {row.differing} differ{'s' if row.differing == 1 else ''}"
        return f"this study cannot tell them apart, for {only}, and fewer than {FEWEST} never suffice ({chances})"
    return _unclear(row, chances)


def _unclear(row: Comparison, chances: str) -> str:
    apart = (row.low or 0.0) > 0 or (row.high or 0.0) < 0
    if row.p is not None and row.adjusted is not None and row.p < LEVEL <= row.adjusted:
        return f"alone that would be a finding, but not among {row.family} comparisons ({chances})"
    if apart:
        return f"the interval leaves out 0 but the exact test does not, so they cannot be told apart ({chances})"
    if row.p is not None and row.p < LEVEL:
        return f"the exact test finds a difference but the interval holds 0, so they cannot be told apart ({chances})"
    return f"this study cannot tell them apart ({chances})"


def _chances(row: Comparison) -> str:
    told = f"p {_chance(row.p)}"
    if row.adjusted is None or row.family < 2:
        return told
    return f"{told}; {_chance(row.adjusted).removeprefix('= ')} after correcting for {row.family} comparisons"


def _chance(p: float | None) -> str:
    """`= 0.14`; never rounded across 0.05."""
    if p is None or p < 0.001:
        return "< 0.001"
    short = f"{p:.2f}" if p >= 0.095 else f"{p:.3f}"
    if (float(short) < LEVEL) == (p < LEVEL):
        return f"= {short}"
    return f"= {p:.3g}" if float(f"{p:.3g}") < LEVEL else "just below 0.05"


def _details(row: Comparison, one: str, other: str) -> str:
    parts = [f"{row.answers} pairs of answers"] if row.answers > row.pairs else []
    parts += [f"{len(row.uneven)} not asked equally often"] if row.uneven else []
    parts += _missing(row, one, other)
    return f" ({'; '.join(parts)})" if parts else ""


def _left_out(row: Comparison, one: str, other: str) -> str:
    parts = _missing(row, one, other)
    return f" ({'; '.join(parts)})" if parts else ""


def _missing(row: Comparison, one: str, other: str) -> list[str]:
    found = ((one, row.only_in_one), (other, row.only_in_other))
    return [f"not counted: {len(keys)} that only {name} answered" for name, keys in found if keys]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def signed(share: float) -> str:
    """A difference in points with its sign, such as `+4.2` or `−1.1`; what is not 0 never reads 0.0."""
    sign = "" if abs(share) < ROUNDING else "+" if share > 0 else "−"
    return sign + _plain(abs(share))


def _plain(share: float) -> str:
    points = 100 * share
    return f"{points:.1f}" if points >= 0.05 or share < ROUNDING else f"{points:.1g}"
