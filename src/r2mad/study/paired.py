"""Two methods on the same questions: exact tests, and intervals that hold where few questions tell them apart.

Differences are of the first method less the second, in shares: 0.04 is 4 percentage points. Questions are the units
that were drawn; answers to one question under several seeds belong together and never count as independent. Only the
bootstrap draws random numbers. `r2mad.study.comparison` says which of these stands in a report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, lcm, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from r2mad.study.stats import CHUNK, ROUNDING

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

FEWEST = 6
"""Fewer questions that differ can never give an exact p below 0.05: 2 · ½⁵ is 0.0625, 2 · ½⁶ is 0.031."""
STEPS = 32
"""Halvings that bring a limit in [−1, 1] within 1e-9: 2 / 2³² is 5e-10."""
INNER = 60
"""Halvings of the multiplier within each: as many as a double can tell apart."""
GRID = 2520
"""The least common multiple of 1 to 10: seeds and ties give scores in fractions of it."""
WORK = 300_000_000
"""Additions that a sign-flip test may take, about half a second; beyond them scores are rounded on a coarser grid."""


def mcnemar(only_one: int, only_other: int) -> float:
    """McNemar's test, exact and two-sided: p for so many questions that only one of two methods got right.

    If the methods are equally good each such question is a fair coin, so p is twice the smaller tail of a binomial,
    at most 1 (McNemar 1947; Mosteller 1952). It never errs more often than it says, and is a little cautious.

    Returns:
        p in [0, 1]; 1.0 where no question tells them apart.

    Raises:
        ValueError: a negative count.
    """
    tail, _ = _tail(only_one, only_other)
    return min(1.0, float(2 * tail))


def mcnemar_mid_p(only_one: int, only_other: int) -> float:
    """McNemar's mid-p (Lancaster 1961; recommended by Fagerland, Lydersen and Laake 2013): outcomes as likely as the
    one that was seen count half. Closer to its level than the exact p, which it is never above, but not guaranteed.

    Returns:
        p in [0, 1]; 1.0 where no question tells them apart.

    Raises:
        ValueError: a negative count.
    """
    tail, seen = _tail(only_one, only_other)
    if only_one + only_other == 0:
        return 1.0
    # at b = c what was seen is the most likely outcome, and has no mirror image to be counted with
    return float(1 - seen / 2) if only_one == only_other else float(2 * tail - seen)


def _tail(only_one: int, only_other: int) -> tuple[Fraction, Fraction]:
    """(chance of at most the smaller count, chance of just that) in so many throws of a coin."""
    least, all_of_them = min(only_one, only_other), only_one + only_other
    if least < 0:
        raise ValueError(f"{only_one} and {only_other} are no counts")
    term = whole = 1
    for place in range(least):  # each binomial coefficient from the one before: big, but exact
        term = term * (all_of_them - place) // (place + 1)
        whole += term
    return Fraction(whole, 2**all_of_them), Fraction(comb(all_of_them, least), 2**all_of_them)


def sign_flip(differences: Sequence[float]) -> float:
    """Exact two-sided sign-flip test (Fisher 1935; Pitman 1937): p for differences of paired scores, one a question.

    If it makes no difference which method is which, each question's difference could as well have had the other sign.
    p is the share of all 2^k ways to sign the k differences that are not 0 in which their sum is as far from 0 as it
    was. Counted by convolution, so nothing is drawn. If all are of one size, as scores of 0 and 1 are, it is `mcnemar`.

    Differences are taken as multiples of the largest step that fits them all; where none of at least 1/2520 does, or
    it would take too long, they are rounded to a grid, and the test is exact for these.

    Args:
        differences: a question's mean score by one method less that by the other, in any order.

    Returns:
        p in [0, 1]; 1.0 where none differs.

    Raises:
        ValueError: a difference outside [−1, 1].
    """
    values = _checked(differences)
    moved = np.abs(values[np.abs(values) > ROUNDING])
    if not len(moved):
        return 1.0
    if float(np.ptp(moved)) < ROUNDING:
        wins = int((values > ROUNDING).sum())
        return mcnemar(wins, len(moved) - wins)
    steps = max(1, min(_denominator(moved), int(WORK / (len(moved) * float(moved.sum())))))
    units = np.rint(values * steps).astype(np.int64)
    sizes, most = np.sort(np.abs(units[units != 0])), int(np.abs(units).sum())
    chance = np.zeros(most + 1)  # of each sum of those with a plus; less the rest it is 2 · sum − most
    chance[0], reached = 1.0, 0
    for size in sizes.tolist():
        reached += size
        half = chance[: reached + 1] / 2
        half[size:] += chance[: reached + 1 - size] / 2
        chance[: reached + 1] = half
    far = np.abs(2 * np.arange(most + 1) - most) >= abs(int(units.sum()))
    return min(1.0, float(chance[far].sum()))


def _denominator(moved: Floats) -> int:
    """The least number of steps to 1 that all differences are multiples of; `GRID` if that is more."""
    steps = 1
    for value in np.unique(np.round(moved, 9)).tolist():
        near = Fraction(value).limit_denominator(GRID)
        steps = lcm(steps, near.denominator)
        if steps > GRID or abs(float(near) - value) > 2 * ROUNDING:
            return GRID
    return steps


def tango(only_one: int, only_other: int, pairs: int, level: float = 0.95) -> tuple[float, float]:
    """Tango's score interval for the difference of two paired proportions (Tango 1998), (only_one − only_other)/pairs.

    A difference Δ lies within if |b − c − nΔ| ≤ z·√(n(2q + Δ(1 − Δ))), where n is the number of pairs, b and c are the
    discordant ones, and q is the most likely chance of c under Δ: the larger root of
    2n·q² + (−b − c + (2n − b + c)Δ)·q − cΔ(1 − Δ) = 0. Found by halving, to 1e-9.

    It holds its level for few discordant pairs, where mean ± 1.96 errors does not. Without any it is ±z²/(n + z²).

    Args:
        only_one: pairs that only the first method got right.
        only_other: pairs that only the other did.
        pairs: all pairs, those that both or neither got right among them.
        level: of the interval.

    Returns:
        (low, high) within [−1, 1]; (−1, 1) of no pair.

    Raises:
        ValueError: counts that cannot be, or a level that is not between 0 and 1.
    """
    z = quantile(level)
    if min(only_one, only_other) < 0 or only_one + only_other > pairs:
        raise ValueError(f"{only_one} and {only_other} of {pairs} are no discordant pairs")
    if pairs == 0:
        return -1.0, 1.0
    mean = (only_one - only_other) / pairs

    def holds(delta: float) -> bool:
        slope = -only_one - only_other + (2 * pairs - only_one + only_other) * delta
        root = sqrt(max(0.0, slope * slope + 8 * pairs * only_other * delta * (1 - delta)))
        variance = (root - slope) / (2 * pairs) + delta * (1 - delta)
        return pairs * (mean - delta) ** 2 <= z * z * max(0.0, variance)

    limits = []
    for outside in (-1.0, 1.0):
        inside = mean
        for _ in range(STEPS):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if holds(middle) else (inside, middle)
        limits.append(inside)
    return limits[0], limits[1]


def quantile(level: float) -> float:
    """z such that a standard normal lies within ±z with this chance.

    Raises:
        ValueError: a level that is not between 0 and 1.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"{level} is no level between 0 and 1")
    return NormalDist().inv_cdf((1 + level) / 2)


def score_interval(differences: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """`score_intervals` of one study; (−1, 1) of no question.

    Raises:
        ValueError: a difference outside [−1, 1], or a level that is not between 0 and 1.
    """
    values = _checked(differences)
    if not len(values):
        return -1.0, 1.0
    low, high = score_intervals(values[None, :], level)[0].tolist()
    return low, high


def score_intervals(differences: Floats, level: float = 0.95) -> Floats:
    """Tango's interval for any paired scores in [0, 1]: of the mean of the questions' differences, of many studies.

    Tango's variance is the one that is most likely if the true difference is Δ, over a multinomial of −1, 0 and 1. The
    same is done here with the values that were seen (an empirical likelihood: Owen 1988), and with a value at each end
    that may turn up next time: ± the largest seen, but ±1 where fewer than six questions differ and little has been
    seen. For scores of 0 and 1 and a single seed it is `tango` to 1e-9.

    With p_i = w_i/(1 + λ(d_i − Δ)), λ such that Σ p_i·d_i = Δ (what is missing from Σ p_i = 1 goes to that end), Δ lies
    within if n·(mean − Δ)² ≤ z²·(Σ p_i·d_i² − Δ²).

    Args:
        differences: [studies, questions], each a question's mean score by one method less that by the other.
        level: of the intervals.

    Returns:
        [studies, 2]: low and high, within [−1, 1].
    """
    z, found = quantile(level), np.empty((len(differences), 2))
    rounded = np.round(differences, 9)
    sizes = np.abs(rounded).max(axis=1)
    ends = np.where((np.abs(rounded) > ROUNDING).sum(axis=1) < FEWEST, 1.0, sizes)
    for end in np.unique(ends):
        rows = ends == end
        values = np.unique(np.concatenate([rounded[rows].ravel(), [-end, end]]))
        place = np.searchsorted(values, rounded[rows]) + len(values) * np.arange(int(rows.sum()))[:, None]
        counts = np.bincount(place.ravel(), minlength=len(values) * int(rows.sum())).reshape(-1, len(values))
        found[rows] = end * _score_limits(values / end, counts / rounded.shape[1], rounded.shape[1], z)
    return found


def _score_limits(values: Floats, shares: Floats, size: int, z: float) -> Floats:
    """Limits [studies, 2] for shares [studies, K] of values [K], the first −1 and the last 1."""
    studies = len(shares)
    both = np.concatenate([shares, shares])
    mean = np.clip(both @ values, -1.0, 1.0)
    inside, outside = mean.copy(), np.repeat([-1.0, 1.0], studies)
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        holds = size * (mean - middle) ** 2 <= z * z * _likeliest_variance(values, both, middle)
        inside, outside = np.where(holds, middle, inside), np.where(holds, outside, middle)
    return np.stack([inside[:studies], inside[studies:]], axis=1)


def _likeliest_variance(values: Floats, shares: Floats, delta: Floats) -> Floats:
    """Variance [rows] of the most likely distribution of the mean delta [rows], given what was seen."""
    delta = np.clip(delta, -1 + 1e-12, 1 - 1e-12)  # at the ends themselves the multiplier is infinite
    away, seen = values - delta[:, None], shares > 0
    low, high = -1 / (1 - delta), 1 / (1 + delta)  # beyond, a chance would be negative

    def chances(multiplier: Floats) -> Floats:
        return np.divide(shares, 1 + multiplier[:, None] * away, out=np.zeros_like(shares), where=seen)

    for _ in range(INNER):
        middle = (low + high) / 2
        up = (chances(middle) * away).sum(axis=1) > 0
        low, high = np.where(up, middle, low), np.where(up, high, middle)
    likeliest = chances((low + high) / 2)
    unseen = np.clip(1 - likeliest.sum(axis=1), 0.0, 1.0)  # lies at an end, whose square is 1
    return np.asarray(np.maximum(likeliest @ values**2 + unseen - delta**2, 0.0), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """A mean difference with intervals from drawing questions with replacement."""

    mean: float
    percentile: tuple[float, float]
    """The plain quantiles of the draws."""
    bca: tuple[float, float]
    """The same, corrected for bias and acceleration; the plain ones where it is not defined."""
    questions: int
    draws: int


def bootstrap(
    differences: Sequence[Sequence[float]], *, draws: int = 10_000, seed: int = 0, level: float = 0.95
) -> Bootstrap:
    """Mean difference of two methods, with a bootstrap that draws questions and keeps all their seeds (Efron 1979,
    1987; Davison and Hinkley 1997, §3.8).

    Every question counts the same, however many seeds it has. BCa takes its bias z₀ = Φ⁻¹(share of draws below the
    mean, those that equal it by half) and its acceleration a = Σ u³/(6 (Σ u²)^1.5), u the deviations of the questions'
    means, which for a mean is the jackknife's. Neither interval holds its level where few questions differ (92 % for 95
    at 5 of 166): see `score_interval`.

    Args:
        differences: for each question its differences of paired scores, one a seed; [questions][seeds], may be ragged.
        draws: how many.
        seed: of the draws. The order of questions and the side that is called first make no difference.
        level: of the intervals.

    Raises:
        ValueError: no question, one without a seed, or no draw; see `score_interval`.
    """
    if draws < 1 or not len(differences) or not all(len(seeds) for seeds in differences):
        raise ValueError("a bootstrap needs questions, each with a score, and draws")
    z, means = quantile(level), _checked([float(np.mean(seeds)) for seeds in differences])
    ordered, mirrored = np.sort(means), np.sort(-means)
    apart = np.flatnonzero(ordered != mirrored)
    flipped = bool(len(apart)) and bool(ordered[apart[0]] > mirrored[apart[0]])
    means = mirrored if flipped else ordered  # one of the two ways round, so that both sides see the same draws
    mean, found = float(means.mean()), _drawn_means(means, draws, seed)
    if not len(apart):  # its own mirror image: so must the interval be
        found = np.concatenate([found, -found])
    plain = _interval(found, [(1 - level) / 2, (1 + level) / 2])
    bca = _interval(found, _bca_levels(means, mean, found, z)) if np.ptp(means) > ROUNDING else plain
    if flipped:
        mean, plain, bca = -mean, (-plain[1], -plain[0]), (-bca[1], -bca[0])
    return Bootstrap(mean, plain, bca, len(means), draws)


def _drawn_means(means: Floats, draws: int, seed: int) -> Floats:
    drawn, size = np.random.default_rng(seed), len(means)
    rows = max(1, CHUNK // size)
    some = [min(rows, draws - start) for start in range(0, draws, rows)]
    return np.concatenate([means[drawn.integers(size, size=(count, size))].mean(axis=1) for count in some])


def _bca_levels(means: Floats, mean: float, found: Floats, z: float) -> list[float]:
    """The two quantiles that BCa takes; the plain ones where all draws lie on one side of the mean."""
    normal, away = NormalDist(), means - mean
    below = float(((found < mean - ROUNDING).mean() + (found <= mean + ROUNDING).mean()) / 2)
    bias = normal.inv_cdf(below) if 0.0 < below < 1.0 else 0.0
    acceleration = float((away**3).sum() / (6 * (away**2).sum() ** 1.5))
    scale = [1 - acceleration * (bias + side) for side in (-z, z)]
    if not 0.0 < below < 1.0 or min(scale) <= 0:
        return [normal.cdf(-z), normal.cdf(z)]
    return [normal.cdf(bias + (bias + side) / by) for side, by in zip((-z, z), scale, strict=True)]


def _interval(found: Floats, levels: list[float]) -> tuple[float, float]:
    low, high = np.quantile(found, levels).tolist()
    return low, high


def _checked(differences: Sequence[float] | Floats) -> Floats:
    values = np.asarray(differences, dtype=np.float64)
    if not (np.abs(values) <= 1 + ROUNDING).all():  # so put that what is not a number fails as well
        raise ValueError("a difference of two scores in [0, 1] lies in [−1, 1]")
    return np.clip(values, -1.0, 1.0)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values (Holm 1979): of m tests the k-th smallest p times m − k + 1, at most 1, and never below
    the adjusted value of a smaller p. Rejecting those below 0.05 errs anywhere in the family in at most 5 % of
    studies, however the tests depend on each other.

    Returns:
        As many, in the order given.

    Raises:
        ValueError: a p outside [0, 1].
    """
    if not all(0.0 <= p <= 1.0 for p in p_values):
        raise ValueError("a p-value lies in [0, 1]")
    adjusted, most = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        most = max(most, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = most
    return adjusted
