"""Simulated studies with a known difference: intervals hold it as often as they say, and equal methods stay equal.

166 questions are the size of the papers' smaller test sets. A band of 93 to 97 % is four standard errors of 2,000
studies wide on either side of 95 %.
"""

import numpy as np
import numpy.typing as npt
import pytest

from r2mad.study.comparison import compare
from r2mad.study.paired import bootstrap, mcnemar, mcnemar_mid_p, score_intervals, sign_flip
from r2mad.study.stats import wilson

Floats = npt.NDArray[np.float64]
QUESTIONS, STUDIES = 166, 2000


def _studies(seeds: int, gains: float, losses: float, sticky: float | None, seed: int) -> Floats:
    """Differences [studies, questions] of two methods whose accuracies differ by gains − losses.

    Each seed of a question is discordant with that question's own chance, and then falls to either side with that
    question's own chance: with `sticky` small, questions are nearly always or nearly never discordant, and all their
    seeds agree; None makes all questions alike.
    """
    drawn, shape = np.random.default_rng(seed), (STUDIES, QUESTIONS)
    share, side = gains + losses, gains / (gains + losses)
    apart, one = np.full(shape, share), np.full(shape, side)
    if sticky is not None:
        apart = drawn.beta(share * sticky, (1 - share) * sticky, shape)
        one = drawn.beta(2 * side * sticky, 2 * (1 - side) * sticky, shape) if 0 < side < 1 else one
    discordant = drawn.binomial(seeds, apart)
    return (2.0 * drawn.binomial(discordant, one) - discordant) / seeds


def _covered(limits: Floats, truth: float) -> float:
    return float(((limits[:, 0] - 1e-9 <= truth) & (truth <= limits[:, 1] + 1e-9)).mean())


SCENES = [
    # seeds, gains, losses, sticky
    (1, 0.10, 0.05, None),  # accuracies such as 0.70 and 0.65
    (1, 0.075, 0.075, None),
    (1, 0.025, 0.005, None),  # five questions differ
    (1, 0.015, 0.015, None),
    (1, 0.03, 0.0, None),
    (3, 0.10, 0.05, None),
    (3, 0.10, 0.05, 1.0),
    (3, 0.10, 0.05, 0.2),
    (3, 0.075, 0.075, 1.0),
    (3, 0.025, 0.005, 5.0),
    (3, 0.025, 0.005, 0.2),
    (3, 0.015, 0.015, None),
]


@pytest.mark.parametrize(("seeds", "gains", "losses", "sticky"), SCENES)
def test_the_interval_of_a_comparison_covers(seeds: int, gains: float, losses: float, sticky: float | None) -> None:
    differences = _studies(seeds, gains, losses, sticky, seed=5)
    limits = score_intervals(differences)
    assert 0.93 <= _covered(limits, gains - losses) <= 0.97
    for row in range(5):  # it is the very interval that a comparison shows
        told = _compared(differences[row], seeds)
        assert told == pytest.approx(tuple(limits[row]), abs=3e-9)


def _compared(differences: Floats, seeds: int) -> tuple[float | None, float | None]:
    """The interval of two methods with these differences, from plain rights and wrongs."""
    net = np.rint(differences * seeds).astype(int).tolist()
    one = {str(place): [1.0] * max(count, 0) + [0.0] * (seeds - max(count, 0)) for place, count in enumerate(net)}
    other = {str(place): [1.0] * max(-count, 0) + [0.0] * (seeds - max(-count, 0)) for place, count in enumerate(net)}
    found = compare(one, other)
    assert found.interval == ("tango" if seeds == 1 else "score")
    return found.low, found.high


def test_at_worst_the_interval_is_too_wide() -> None:
    """Three seeds, few questions that differ, and these of mixed stickiness: 98 %, never below 93."""
    for gains, losses in ((0.025, 0.005), (0.015, 0.015), (0.03, 0.0)):
        assert 0.93 <= _covered(score_intervals(_studies(3, gains, losses, 1.0, seed=5)), gains - losses) <= 0.99


def test_why_a_comparison_takes_no_bootstrap() -> None:
    """At a discordance of 0.03 a bootstrap's interval falls short of its level, BCa or not."""
    differences = _studies(1, 0.025, 0.005, None, seed=5)[:1000]
    found = [bootstrap(row[:, None].tolist(), draws=1000, seed=n) for n, row in enumerate(differences)]
    for intervals in ([one.bca for one in found], [one.percentile for one in found]):
        assert _covered(np.array(intervals), 0.02) < 0.935
    assert _covered(score_intervals(differences), 0.02) > 0.95


@pytest.mark.parametrize("share", [0.03, 0.15, 0.30])
def test_equal_methods_are_seldom_called_different(share: float) -> None:
    found = np.rint(_studies(1, share / 2, share / 2, None, seed=9)).astype(int)
    counts = [(int((row > 0).sum()), int((row < 0).sum())) for row in found]
    exact = np.mean([mcnemar(*pair) < 0.05 for pair in counts])
    mid_p = np.mean([mcnemar_mid_p(*pair) < 0.05 for pair in counts])
    assert exact <= mid_p <= 0.06  # four standard errors of 2,000 studies would be 0.07
    assert exact <= 0.05


@pytest.mark.parametrize(("share", "sticky"), [(0.03, None), (0.03, 1.0), (0.15, None), (0.15, 1.0), (0.15, 0.2)])
def test_equal_methods_with_three_seeds(share: float, sticky: float | None) -> None:
    """Their questions may each favour one of them: only the mean is 0."""
    found = _studies(3, share / 2, share / 2, sticky, seed=9)
    assert np.mean([sign_flip(row.tolist()) < 0.05 for row in found]) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / STUDIES)


def test_seeds_taken_for_questions_would_find_too_much() -> None:
    """What `compare` avoids: McNemar over all answers calls equal methods different far too often."""
    found = _studies(3, 0.075, 0.075, 0.2, seed=9)
    answers = np.rint(found * 3).astype(int)
    naive = [mcnemar(int(row[row > 0].sum()), int(-row[row < 0].sum())) < 0.05 for row in answers]
    assert np.mean(naive) > 0.15


def test_wilson_covers() -> None:
    """Computed, not simulated: the chance of each number of rights, over a grid of accuracies at 166 questions."""
    limits = np.array([wilson(right, QUESTIONS) for right in range(QUESTIONS + 1)])
    shares = np.linspace(0.02, 0.98, 193)
    ways = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, QUESTIONS + 1)))])
    ways = ways[-1] - ways - ways[::-1]
    rights = np.arange(QUESTIONS + 1)
    covered = []
    for share in shares:
        chances = np.exp(ways + rights * np.log(share) + (QUESTIONS - rights) * np.log(1 - share))
        covered.append(float(chances[(limits[:, 0] <= share) & (share <= limits[:, 1])].sum()))
    assert np.mean(covered) == pytest.approx(0.95, abs=0.003)
    assert min(covered) > 0.92
    inner = [one for share, one in zip(shares, covered, strict=True) if 0.1 <= share <= 0.9]
    assert 0.935 <= min(inner) <= max(inner) <= 0.965
