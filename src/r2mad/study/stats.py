"""Statistics of studies: small, exact, and checked against known values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

Z95 = 1.959963984540054
"""The 97.5 % point of the standard normal distribution."""


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
class Difference:
    """The mean of paired differences, with its 95 % interval."""

    mean: float
    low: float
    high: float
    pairs: int


def paired(one: Sequence[float], other: Sequence[float]) -> Difference:
    """How much better `one` is than `other` on the same questions: mean of the differences, and mean ± 1.96 standard
    errors. For samples of hundreds; small ones need an exact test.

    Args:
        one: a score a question, such as 1.0 for right.
        other: the same questions' scores in the same order.

    Raises:
        ValueError: fewer than two pairs, or not as many scores as scores.
    """
    differences = [a - b for a, b in zip(one, other, strict=True)]
    if len(differences) < 2:
        raise ValueError("a paired difference needs at least two pairs")
    mean = fmean(differences)
    error = stdev(differences) / sqrt(len(differences))
    return Difference(mean, mean - Z95 * error, mean + Z95 * error, len(differences))
