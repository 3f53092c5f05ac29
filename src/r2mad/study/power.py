"""Before a study: what it can find. Power of McNemar's exact test, which `r2mad.study.comparison` decides by.

`discordance` is the share of questions that exactly one of two methods gets right, both ways together: what a paired
comparison lives on. Look it up in a finished study (`only_one + only_other` over `pairs`), or guess 0.1 to 0.2.
"""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from r2mad.study.paired import quantile

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

EXACT = 1000
"""Up to so many expected discordant questions the power is exact; beyond, the normal approximation is within 0.005."""
NEGLIGIBLE = 1e-12
"""Numbers of discordant questions that are less likely are left out."""
PRECISION = 1e-6
"""Of `detectable`, in shares."""


def mcnemar_power(questions: int, difference: float, discordance: float, level: float = 0.05) -> float:
    """The chance that McNemar's exact test finds p < level, and in favour of the method that is better.

    The number of discordant questions D is binomial (questions, discordance), and of these the better method is right
    on B, binomial (D, (1 + difference/discordance)/2); all pairs of D and B are added up (Connor 1987 gives the normal
    approximation, used here with a continuity correction where more than 1,000 discordant questions are expected).

    Args:
        questions: that both methods are to answer, once each.
        difference: of their accuracies, in shares; its sign does not matter.
        discordance: share of questions that exactly one of them gets right.
        level: of the test.

    Raises:
        ValueError: not 0 <= |difference| <= discordance <= 1, a negative number of questions, or no level.
    """
    difference, z = abs(difference), quantile(1 - level)
    if questions < 0 or not difference <= discordance <= 1:
        raise ValueError(f"no {questions} questions can differ by {difference} with a discordance of {discordance}")
    if questions == 0 or discordance == 0:
        return 0.0
    if questions * discordance > EXACT:
        return _approximate(questions, difference, discordance, z)
    counts, chances = _binomial(questions, discordance)
    worse = (1 - difference / discordance) / 2
    found = sum(
        chance * _at_most(_critical(count, level), count, worse)
        for count, chance in zip(counts.tolist(), chances.tolist(), strict=True)
    )
    return min(1.0, float(found))


def detectable(questions: int, discordance: float, power: float = 0.8, level: float = 0.05) -> float | None:
    """The smallest difference of accuracies, in shares, that a paired study of this size finds with this power.

    A study that finds nothing has not shown that there is nothing: it only speaks against differences above this.

    Returns:
        The difference, to 1e-6; None if even the largest, the discordance itself, would be missed more often.

    Raises:
        ValueError: see `mcnemar_power`, or a power that is not between 0 and 1.
    """
    _check_power(power)
    if mcnemar_power(questions, discordance, discordance, level) < power:
        return None
    missed, found = 0.0, discordance
    while found - missed > PRECISION:
        middle = (missed + found) / 2
        if mcnemar_power(questions, middle, discordance, level) < power:
            missed = middle
        else:
            found = middle
    return found


def questions_needed(difference: float, discordance: float, power: float = 0.8, level: float = 0.05) -> int:
    """How many questions a paired study needs to find this difference of accuracies with this power.

    The exact test's power rises in small steps and may dip by a hair in between: one question fewer is too few, a few
    more are always enough.

    Raises:
        ValueError: a difference of 0, or see `detectable`.
    """
    _check_power(power)
    if difference == 0:
        raise ValueError("no number of questions finds a difference of 0")
    enough = 1
    while mcnemar_power(enough, difference, discordance, level) < power:
        enough *= 2
    short = enough // 2
    while enough - short > 1:
        middle = (short + enough) // 2
        if mcnemar_power(middle, difference, discordance, level) < power:
            short = middle
        else:
            enough = middle
    return enough


def _check_power(power: float) -> None:
    if not 0 < power < 1:
        raise ValueError(f"{power} is no power between 0 and 1")


def _approximate(questions: int, difference: float, discordance: float, z: float) -> float:
    """Connor's formula (1987, Eq. 2), less the one question by which the exact test is more cautious."""
    spread = questions * (discordance - difference * difference)
    distance = questions * difference - 1 - z * sqrt(questions * discordance)
    if spread <= 0:  # all questions are discordant, and all for one side
        return float(distance > 0)
    return NormalDist().cdf(distance / sqrt(spread))


def _binomial(trials: int, share: float) -> tuple[Ints, Floats]:
    """(numbers of successes, their chances), without those that are negligible."""
    chances = np.exp(_log_binomial(trials, share))
    counts = np.flatnonzero(chances > NEGLIGIBLE)
    return counts, chances[counts]


def _log_binomial(trials: int, share: float) -> Floats:
    places, factorials = np.arange(trials + 1), _log_factorials(trials)
    ways = factorials[trials] - factorials - factorials[::-1]
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 · log 0 is 0
        hits = np.where(places == 0, 0.0, places * np.log(share))
        misses = np.where(places == trials, 0.0, (trials - places) * np.log1p(-share))
    return np.asarray(ways + hits + misses, dtype=np.float64)


@lru_cache(maxsize=1024)
def _log_factorials(most: int) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])


@lru_cache(maxsize=8192)
def _critical(discordant: int, level: float) -> int:
    """The most questions that the worse method may win with p < level; −1 if even none is too many."""
    tails = 2 * np.cumsum(np.exp(_log_binomial(discordant, 0.5)))
    return int(np.searchsorted(tails, level, side="left")) - 1


def _at_most(count: int, trials: int, share: float) -> float:
    """The chance of at most so many successes."""
    return float(np.exp(_log_binomial(trials, share)[: count + 1]).sum())
