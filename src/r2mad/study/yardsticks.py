"""What a number is held against: its own spread over seeds, a published figure, self-consistency at the same budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, isfinite
from statistics import fmean, stdev
from typing import NamedTuple

from r2mad.study.stats import wilson


class Spread(NamedTuple):
    """A number over several seeds, to be unpacked as mean, sd, n."""

    mean: float | None
    """None without a value."""
    sd: float | None
    """Standard deviation of a sample, with n − 1; None for a single seed, which says nothing about spread."""
    n: int


def several_seeds(values: Sequence[float]) -> Spread:
    """Mean and standard deviation of one number measured under several seeds.

    The spread over seeds is that of sampling answers to the *same* questions. How far other questions would move the
    number it does not say: that is the interval's to tell, and usually more.
    """
    if not values:
        return Spread(None, None, 0)
    return Spread(fmean(values), stdev(values) if len(values) > 1 else None, len(values))


@dataclass(frozen=True, slots=True)
class Published:
    """Our accuracy beside a published one, each with its 95 % interval (Wilson 1927)."""

    ours: float | None
    """None of no debate."""
    ours_low: float
    ours_high: float
    theirs: float
    theirs_low: float | None
    """None if it is not known how many questions they asked."""
    theirs_high: float | None
    inside: bool | None
    """Whether their figure lies within our interval; None of no debate."""
    ours_inside: bool | None
    """Whether ours lies within theirs."""
    overlap: bool | None
    """Whether the intervals share a number; None if one is missing. Two that overlap may still differ: only intervals
    apart say something, and they say more than 95 %."""


def within(own_right: int, own_total: int, published: float, published_total: int | None = None) -> Published:
    """Hold an accuracy of ours against a published one.

    Both are samples of questions, so a difference is no failure to reproduce as long as the intervals allow for it.
    If both used the very same questions the intervals are wider than needed, and agreement is less of a feat.

    Args:
        own_right: questions that we got right.
        own_total: questions that we asked.
        published: their accuracy as a share; 65.3 % is 0.653.
        published_total: how many questions theirs is from, if known. Their share need not be a whole number of
            questions, as it may be a mean over seeds: the interval is interpolated between the two next to it.

    Raises:
        ValueError: not 0 <= own_right <= own_total, or a published accuracy outside [0, 1].
    """
    if not 0.0 <= published <= 1.0:
        raise ValueError(f"a published accuracy is a share from 0 to 1, not {published}")
    low, high = wilson(own_right, own_total)
    ours = own_right / own_total if own_total else None
    theirs = _wilson_of(published, published_total) if published_total else None
    return Published(
        ours=ours,
        ours_low=low,
        ours_high=high,
        theirs=published,
        theirs_low=theirs[0] if theirs else None,
        theirs_high=theirs[1] if theirs else None,
        inside=low <= published <= high if ours is not None else None,
        ours_inside=theirs[0] <= ours <= theirs[1] if theirs and ours is not None else None,
        overlap=low <= theirs[1] and theirs[0] <= high if theirs and ours is not None else None,
    )


def _wilson_of(share: float, total: int) -> tuple[float, float]:
    """Wilson's interval of a share that need not be a whole number of the total."""
    right = min(floor(share * total), total - 1)
    rest = share * total - right
    ends = zip(wilson(right, total), wilson(right + 1, total), strict=True)
    low, high = ((1 - rest) * below + rest * above for below, above in ends)
    return low, high


@dataclass(frozen=True, slots=True)
class BudgetPoint:
    """What self-consistency came to with one number of samples."""

    samples: int
    """m of `sc-m`."""
    budget: float
    """Mean tokens, or calls, that a question took."""
    accuracy: float


@dataclass(frozen=True, slots=True)
class AtBudget:
    """Accuracy of self-consistency at another method's budget."""

    accuracy: float | None
    """None where there is no estimate; the reason says why."""
    reason: str | None
    below: BudgetPoint | None
    """The two points that the estimate lies between; both the same where one has just that budget."""
    above: BudgetPoint | None
    weight: float | None
    """Share of the upper one: accuracy = (1 − weight)·below + weight·above."""


def at_equal_budget(points: Sequence[BudgetPoint], budget: float) -> AtBudget:
    """What self-consistency would reach at this mean budget a question, by interpolation.

    Between two neighbouring m, on the axis of the budget and not of m, along a straight line. That is no mere guess at
    a number of samples in between: whoever tosses a coin for each question, m samples with chance 1 − weight and the
    next m with chance weight, spends just this budget on average and is right just so often. A true m in between may do
    a little better. Nothing is told beyond the smallest and the largest m that were run.

    Args:
        points: of at least one m, in any order.
        budget: the other method's, in the same unit.

    Raises:
        ValueError: a budget that is negative or no number, two points of one budget, or an accuracy outside [0, 1].
    """
    ordered = sorted(points, key=lambda point: point.budget)
    if not all(isfinite(value) and value >= 0 for value in [budget, *(point.budget for point in points)]):
        raise ValueError("a budget is a number of tokens or calls, not negative")
    if not all(0.0 <= point.accuracy <= 1.0 for point in points):
        raise ValueError("an accuracy is a share from 0 to 1")
    if len({point.budget for point in points}) < len(points):
        raise ValueError("two points have the same budget")
    if not ordered:
        return AtBudget(None, "self-consistency was not run", None, None, None)
    first, last = ordered[0], ordered[-1]
    if budget < first.budget:
        why = f"{budget:g} is less than sc-{first.samples} takes ({first.budget:g})"
        return AtBudget(None, why, None, first, None)
    if budget > last.budget:
        return AtBudget(None, f"{budget:g} is more than sc-{last.samples} takes ({last.budget:g})", last, None, None)
    below = next(point for point in reversed(ordered) if point.budget <= budget)
    above = next(point for point in ordered if point.budget >= budget)
    weight = (budget - below.budget) / (above.budget - below.budget) if above.budget > below.budget else 0.0
    return AtBudget((1 - weight) * below.accuracy + weight * above.accuracy, None, below, above, weight)
