"""Statistics of studies: small, exact, and checked against known values."""

from __future__ import annotations

from math import sqrt

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
