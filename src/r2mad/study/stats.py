"""Statistics of studies: small, exact, and checked against known values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass
from math import fsum, sqrt
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from r2mad.types import Separation

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]
    Bools = npt.NDArray[np.bool_]

Z95 = 1.959963984540054
"""The 97.5 % point of the standard normal distribution."""
TAIL = 0.025
"""What a two-sided interval at 95 % leaves out at each end."""
ROUNDING = 1e-9
"""Numbers that differ by less are equal: what is left of rounding is far below."""
CHUNK = 2_000_000
"""Numbers that a bootstrap holds at once: 16 MB."""


def wilson(right: int, total: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval for a proportion (Wilson 1927), by default at 95 %.

    It stays within [0, 1] and keeps its coverage for few trials and shares near 0 or 1, where the usual interval fails.
    For no trials it is (0, 1).

    Raises:
        ValueError: not 0 <= right <= total.
    """
    if not 0 <= right <= total:
        raise ValueError(f"{right} of {total} is no proportion")
    if total == 0:
        return 0.0, 1.0
    share, squared = right / total, z * z / total
    centre = (share + squared / 2) / (1 + squared)
    half = z / (1 + squared) * sqrt(share * (1 - share) / total + squared / (4 * total))
    # exact at the ends, where rounding would leave 1e-17
    return (0.0 if right == 0 else centre - half), (1.0 if right == total else centre + half)


@dataclass(frozen=True, slots=True)
class Proportion:
    """So many of so many."""

    part: int = 0
    whole: int = 0

    @property
    def share(self) -> float | None:
        """Part over whole; None of nothing."""
        return self.part / self.whole if self.whole else None

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's at 95 %; (0, 1) of nothing."""
        return wilson(self.part, self.whole)


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of paired differences, with its 95 % interval."""

    mean: float
    low: float
    high: float
    pairs: int


def paired(one: Sequence[float], other: Sequence[float], cluster: Sequence[str] | None = None) -> Difference:
    """How much better `one` is than `other` on the same questions: mean of the differences, and mean ± 1.96 standard
    errors. For samples of hundreds; small ones need an exact test.

    With clusters the standard error allows for pairs that belong together (Liang and Zeger 1986): it is the root of
    C/(C − 1)·Σ_c (Σ_{i∈c} (d_i − mean))², over the number of pairs. With one pair a cluster it is the usual one.

    Args:
        one: a score a question, such as 1.0 for right.
        other: the same questions' scores in the same order.
        cluster: for each pair the question that it is of, where a question has several.

    Raises:
        ValueError: fewer than two pairs or clusters, or not as many scores as scores.
    """
    differences = [a - b for a, b in zip(one, other, strict=True)]
    names = [str(place) for place in range(len(differences))] if cluster is None else cluster
    mean = fmean(differences) if differences else 0.0
    sums: dict[str, float] = {}
    for name, difference in zip(names, differences, strict=True):
        sums[name] = sums.get(name, 0.0) + difference - mean
    if len(sums) < 2:
        raise ValueError("a paired difference needs at least two pairs, of two questions")
    spread = fsum(value * value for value in sums.values())
    error = sqrt(len(sums) / (len(sums) - 1) * spread) / len(differences)
    return Difference(mean, mean - Z95 * error, mean + Z95 * error, len(differences))


def least_share(trials: int) -> float:
    """The least share of successes that is compatible with `trials` successes in as many independent trials.

    The lower end of the exact two-sided interval at 95 % (Clopper and Pearson 1934): 0.025^(1/trials), about
    1 − 3.7/trials. With the whole 5 % at one end it is the "rule of three". 0 of no trial.
    """
    return float(TAIL ** (1 / trials)) if trials > 0 else 0.0


def auc(score: Sequence[float], right: Sequence[bool]) -> float | None:
    """Area under the ROC curve: the chance that a right reply scores higher than a wrong one, a tie counting half.

    It is the Mann–Whitney statistic over the number of pairs (Hanley and McNeil 1982), from midranks.

    Args:
        score: one a reply; infinite ones are ranked as well.
        right: whether each of them is right.

    Returns:
        A value in [0, 1]; None if all are right or all are wrong.

    Raises:
        ValueError: not as many scores as replies, or one that is not a number.
    """
    values, good = _numbers(score), np.asarray(right, dtype=bool)
    _same_length(values, good)
    hits, misses = int(good.sum()), int((~good).sum())
    if not hits or not misses:
        return None
    return float((_midranks(values)[good].sum() - hits * (hits + 1) / 2) / (hits * misses))


def separation(
    score: Sequence[float],
    right: Sequence[bool],
    cluster: Sequence[str],
    *,
    stratum: Sequence[int] | None = None,
    seed: int = 0,
    draws: int = 2000,
) -> Separation | None:
    """`auc` with a 95 % percentile interval from a bootstrap that draws clusters with replacement.

    Replies to one question stand or fall together, so questions are drawn and not replies. Draws that hold replies of
    one kind only are skipped.

    Where scores tell right from wrong without an error (or never, or all are equal) every draw gives the same area,
    and the interval would be a point however small the sample is; Hanley and McNeil's standard error is 0 there as
    well. Then the interval comes from m pairs of one right and one wrong reply, of questions all different: m
    independent trials that all gave the same area a. With q = `least_share(m)` the area of all such pairs is at least
    a·q and at most 1 − (1 − a)·q at 95 %. One question alone gives no such pair, and the interval (0, 1).

    Args:
        score: one a reply.
        right: whether each of them is right.
        cluster: the question that each of them answers.
        stratum: where scores are comparable only with others of the same kind: the kind of each. Right and wrong
            replies are then paired within a kind.
        seed: of the draws.
        draws: how many.

    Returns:
        None if no right reply can be paired with a wrong one.

    Raises:
        ValueError: see `auc`.
    """
    values, good = _numbers(score), np.asarray(right, dtype=bool)
    _same_length(values, good)
    codes, clusters = _codes(cluster, values)
    kinds = np.zeros(len(values), dtype=np.int64) if stratum is None else np.asarray(stratum, dtype=np.int64)
    _same_length(values, kinds)
    won, pairs = _pairs_won(values, good, kinds, np.ones((1, len(values)), dtype=np.int64))
    if not pairs[0]:
        return None
    area, found = float(won[0] / pairs[0]), []
    for counts in _resamples(clusters, len(values), seed, draws):
        won, pairs = _pairs_won(values, good, kinds, counts[:, codes])
        found.append(won[pairs > 0] / pairs[pairs > 0])
    low, high = _percentiles(np.concatenate(found))
    if high - low > ROUNDING:
        return Separation(area, low, high)
    sure = least_share(sum(_disjoint_pairs(good[kinds == kind], codes[kinds == kind]) for kind in set(kinds.tolist())))
    return Separation(area, area * sure, 1 - (1 - area) * sure)


def _pairs_won(values: Floats, good: Bools, kinds: Ints, weights: Ints) -> tuple[Floats, Floats]:
    """(pairs in which the right reply scores higher, ties counting half; all pairs of right and wrong) in each draw.

    Weights [draws, n] say how often each reply was drawn; pairs are of one kind.
    """
    won, pairs = np.zeros(len(weights)), np.zeros(len(weights))
    for kind in np.unique(kinds):
        here = np.flatnonzero(kinds == kind)
        order = here[np.argsort(values[here], kind="stable")]
        starts = np.searchsorted(values[order], np.unique(values[order]))
        hits = np.add.reduceat(weights[:, order] * good[order], starts, axis=1)
        misses = np.add.reduceat(weights[:, order] * ~good[order], starts, axis=1)
        won += (hits * (np.cumsum(misses, axis=1) - misses / 2)).sum(axis=1)
        pairs += hits.sum(axis=1) * misses.sum(axis=1)
    return won, pairs


@dataclass(frozen=True, slots=True)
class Correlation:
    """A coefficient of correlation with its 95 % interval."""

    value: float
    low: float | None
    high: float | None
    """None where the draws do not vary, as in a perfect correlation or with a single question: a point would claim
    to be certain."""
    count: int
    """Pairs of numbers that it is from."""


def correlation(
    x: Sequence[float],
    y: Sequence[float],
    cluster: Sequence[str],
    *,
    ranks: bool = False,
    seed: int = 0,
    draws: int = 2000,
) -> Correlation | None:
    """Pearson's correlation, or Spearman's, with a 95 % percentile interval from a bootstrap that draws clusters.

    Spearman's is Pearson's of midranks, and each draw is ranked anew. Draws in which either is constant are skipped.

    Args:
        x: numbers.
        y: as many others.
        cluster: the question that each pair of them is of.
        ranks: Spearman's.
        seed: of the draws.
        draws: how many.

    Returns:
        None if x or y is constant, or there are fewer than two pairs.

    Raises:
        ValueError: not as many numbers as numbers, or one that is none or infinite.
    """
    one, other = _numbers(x), _numbers(y)
    _same_length(one, other)
    if np.isinf(one).any() or np.isinf(other).any():
        raise ValueError("what is infinite has no mean")
    codes, clusters = _codes(cluster, one)
    rank = [_ranker(one), _ranker(other)] if ranks else [_as_it_is(one), _as_it_is(other)]
    whole = _weighted_pearson(rank, np.ones((1, len(one)))) if len(one) > 1 else np.empty(0)
    if not len(whole):
        return None
    found = [
        _weighted_pearson(rank, counts[:, codes].astype(np.float64))
        for counts in _resamples(clusters, len(one), seed, draws)
    ]
    low, high = _percentiles(np.concatenate(found))
    varied = high - low > ROUNDING
    return Correlation(float(whole[0]), low if varied else None, high if varied else None, len(one))


def _numbers(values: Sequence[float]) -> Floats:
    found = np.asarray(values, dtype=np.float64)
    if np.isnan(found).any():
        raise ValueError("what is not a number has no rank")
    return found


def _same_length(one: Sized, other: Sized) -> None:
    if len(one) != len(other):
        raise ValueError(f"{len(one)} and {len(other)} numbers are not pairs")


def _codes(cluster: Sequence[str], values: Floats) -> tuple[Ints, int]:
    """(each one's cluster as a number, how many clusters); the numbers do not depend on the order of what is given."""
    _same_length(cluster, values)
    number = {name: place for place, name in enumerate(sorted(set(cluster)))}
    return np.array([number[name] for name in cluster], dtype=np.int64), len(number)


def _resamples(clusters: int, size: int, seed: int, draws: int) -> Iterator[Ints]:
    """How often each cluster was drawn: arrays [some draws, clusters], so many at once as fit into a chunk."""
    drawn = np.random.default_rng(seed)
    rows = max(1, CHUNK // max(size, clusters, 1))
    for start in range(0, draws, rows):
        some = min(rows, draws - start)
        places = drawn.integers(clusters, size=(some, clusters)) + clusters * np.arange(some)[:, None]
        yield np.bincount(places.ravel(), minlength=some * clusters).reshape(some, clusters)


def _percentiles(found: Floats) -> tuple[float, float]:
    """The 95 % interval of the draws; (0, 0) of none."""
    if not len(found):
        return 0.0, 0.0
    low, high = np.quantile(found, [TAIL, 1 - TAIL])
    return float(low), float(high)


def _disjoint_pairs(good: Bools, codes: Ints) -> int:
    """How many pairs of a right and a wrong reply there are, if each cluster serves once."""
    hits, misses = set(codes[good].tolist()), set(codes[~good].tolist())
    return min(len(hits), len(misses), len(hits | misses) // 2)


def _midranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place], dtype=np.float64)


def _as_it_is(values: Floats) -> Callable[[Floats], Floats]:
    return lambda weights: np.broadcast_to(values, weights.shape)


def _ranker(values: Floats) -> Callable[[Floats], Floats]:
    """Midranks of the values as often as the weights say, for many sets of weights [draws, n]."""
    unique, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(unique)))

    def rank(weights: Floats) -> Floats:
        counts = np.add.reduceat(weights[:, order], starts, axis=1)
        return np.asarray((np.cumsum(counts, axis=1) - (counts - 1) / 2)[:, place], dtype=np.float64)

    return rank


def _weighted_pearson(rank: Sequence[Callable[[Floats], Floats]], weights: Floats) -> Floats:
    """The correlation in each draw in which neither is constant; weights are of the shape [draws, n]."""
    totals = weights.sum(axis=1, keepdims=True)
    centred = []
    for one in rank:
        values = one(weights)
        centred.append(values - (weights * values).sum(axis=1, keepdims=True) / totals)
    x, y = centred
    spread = (weights * x * x).sum(axis=1) * (weights * y * y).sum(axis=1)
    varied = spread > (ROUNDING * totals[:, 0]) ** 2
    found = (weights * x * y).sum(axis=1)[varied] / np.sqrt(spread[varied])
    return np.asarray(np.clip(found, -1.0, 1.0), dtype=np.float64)
