"""Areas under ROC curves and correlations, against counts of all pairs, and their intervals, by simulation."""

import time
from collections.abc import Sequence
from itertools import product
from math import erf, inf, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2mad.study.stats import auc, correlation, least_share, paired, separation

REPLIES = st.lists(st.tuples(st.integers(-4, 4), st.booleans(), st.sampled_from("abcdef")), min_size=1, max_size=40)
Replies = Sequence[tuple[int, bool, str]]


def _columns(replies: Replies) -> tuple[list[float], list[bool], list[str]]:
    return [float(one[0]) for one in replies], [one[1] for one in replies], [one[2] for one in replies]


def _by_pairs(score: Sequence[float], right: Sequence[bool]) -> float | None:
    hits = [value for value, good in zip(score, right, strict=True) if good]
    misses = [value for value, good in zip(score, right, strict=True) if not good]
    won = [1.0 if one > other else 0.5 if one == other else 0.0 for one, other in product(hits, misses)]
    return sum(won) / len(won) if won else None


def test_an_area_by_hand() -> None:
    """Right: 3, 2; wrong: 1, 2. Pairs 3>1, 3>2, 2>1, 2=2: (1 + 1 + 1 + ½) / 4."""
    assert auc([3, 2, 1, 2], [True, True, False, False]) == 0.875
    assert auc([-inf, -inf, 0], [True, False, True]) == 0.75  # −∞ = −∞, 0 > −∞
    assert auc([1, 2], [True, True]) is auc([1], [False]) is auc([], []) is None


@given(REPLIES)
def test_the_area_is_a_count_of_pairs(replies: Replies) -> None:
    score, right, _ = _columns(replies)
    assert auc(score, right) == pytest.approx(_by_pairs(score, right))


@given(REPLIES)
def test_the_area_turns_with_scores_and_truth_and_keeps_under_monotone_maps(replies: Replies) -> None:
    score, right, _ = _columns(replies)
    area = auc(score, right)
    if area is None:
        return
    assert auc([-value for value in score], right) == pytest.approx(1 - area)
    assert auc(score, [not good for good in right]) == pytest.approx(1 - area)
    assert auc([np.exp(value) for value in score], right) == area
    assert auc([value**3 - 7 for value in score], right) == area


@given(REPLIES, st.randoms())
def test_an_interval_holds_for_any_order_and_lies_in_the_unit(replies: Replies, random: object) -> None:
    found = separation(*_columns(replies), draws=50)
    shuffled = list(replies)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis' own Random
    assert separation(*_columns(shuffled), draws=50) == found
    if found:
        assert 0.0 <= found.low <= found.high <= 1.0
        assert found.auc == pytest.approx(auc(*_columns(replies)[:2]))


def test_bootstrap_of_an_area_is_that_of_its_clusters() -> None:
    """Each resample's area, counted pair by pair, must give the same quantiles."""
    drawn = np.random.default_rng(5)
    names = sorted({f"q{n}" for n in range(8)})
    cluster = [names[n % 8] for n in range(24)]
    right = [bool(value) for value in drawn.random(24) < 0.5]
    score = [float(value) for value in np.round(drawn.normal(size=24) + right, 1)]
    draws = np.random.default_rng(0).integers(8, size=(300, 8))
    areas = []
    for picks in draws:
        rows = [n for pick in picks for n in range(24) if cluster[n] == names[pick]]
        areas.append(_by_pairs([score[n] for n in rows], [right[n] for n in rows]))
    low, high = np.quantile([area for area in areas if area is not None], [0.025, 0.975])
    found = separation(score, right, cluster, seed=0, draws=300)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("score", "area", "low", "high"),
    [
        # two questions each: 2 pairs of one right and one wrong reply; q = 0.025^(1/2) = 0.1581
        ([2, 3, 0, 1], 1.0, 0.1581, 1.0),
        ([0, 1, 2, 3], 0.0, 0.0, 0.8419),
        ([1, 1, 1, 1], 0.5, 0.0791, 0.9209),
    ],
)
def test_scores_without_an_error_are_not_certain(score: list[float], area: float, low: float, high: float) -> None:
    found = separation(score, [True, True, False, False], ["a", "b", "c", "d"])
    assert found is not None
    assert (found.auc, found.low, found.high) == pytest.approx((area, low, high), abs=5e-5)


def test_one_question_says_nothing_of_others() -> None:
    found = separation([3, 2, 1], [True, False, False], ["a", "a", "a"])
    assert found is not None
    assert (found.auc, found.low, found.high) == (1.0, 0.0, 1.0)
    assert separation([1, 2], [True, True], ["a", "b"]) is separation([], [], []) is None


def test_the_least_share() -> None:
    """0.025^(1/10) = e^(−3.6889/10) = 0.6915, and Clopper–Pearson's for 10 of 10 is that."""
    assert least_share(10) == pytest.approx(0.6915, abs=5e-5)
    assert least_share(0) == 0.0


def test_kinds_are_not_compared() -> None:
    """Kind 0: right 1 > wrong 0; kind 1: right 11 > wrong 10. Together the wrong 10 would beat the right 1: 3 of 4."""
    score, right, cluster = [1, 0, 11, 10], [True, False, True, False], ["a", "b", "c", "d"]
    whole = separation(score, right, cluster)
    within = separation(score, right, cluster, stratum=[0, 0, 1, 1])
    assert whole is not None
    assert within is not None
    assert (whole.auc, within.auc) == (0.75, 1.0)
    assert separation(score, right, cluster, stratum=[0, 1, 2, 3]) is None


def test_the_interval_covers() -> None:
    """Scores 1·right + question's own part + noise, all normal: pairs of two questions differ by N(1, 2(½² + 1²)), so
    the area is Φ(1/√2.5) = 0.7365. 60 questions with 3 replies, 300 samples: about 95 % of intervals must hold it."""
    truth = (1 + erf(1 / sqrt(2.5) / sqrt(2))) / 2
    drawn = np.random.default_rng(11)
    cluster = [f"q{n // 3}" for n in range(180)]
    held = 0
    for trial in range(300):
        right = drawn.random(180) < 0.5
        score = right + 0.5 * np.repeat(drawn.normal(size=60), 3) + drawn.normal(size=180)
        found = separation(score.tolist(), right.tolist(), cluster, seed=trial, draws=300)
        assert found is not None
        held += found.low <= truth <= found.high
    assert 0.91 <= held / 300 <= 0.98


def test_an_interval_of_300_replies_takes_no_second() -> None:
    drawn = np.random.default_rng(1)
    right = (drawn.random(300) < 0.5).tolist()
    started = time.perf_counter()
    separation(drawn.normal(size=300).tolist(), right, [f"q{n // 3}" for n in range(300)])
    assert time.perf_counter() - started < 1.0


def test_what_cannot_be_ranked() -> None:
    with pytest.raises(ValueError, match="not a number"):
        auc([float("nan"), 1], [True, False])
    with pytest.raises(ValueError, match="not pairs"):
        auc([1], [True, False])
    with pytest.raises(ValueError, match="not pairs"):
        separation([1, 2], [True, False], ["a"])


# correlations


def test_correlations_by_hand() -> None:
    """x: 1 2 3 4, y: 1 4 9 16. Deviations −1.5 −.5 .5 1.5 and −6.5 −3.5 1.5 8.5: 25 / √(5 · 129) = .9844; the ranks
    are the same, so Spearman's is 1. With ties: x 1 1 2, y 1 2 2 have ranks 1.5 1.5 3 and 1 2.5 2.5: .75/√(1.5·1.5)."""
    names = ["a", "b", "c", "d"]
    pearson = correlation([1, 2, 3, 4], [1, 4, 9, 16], names)
    spearman = correlation([1, 2, 3, 4], [1, 4, 9, 16], names, ranks=True)
    assert pearson is not None
    assert spearman is not None
    assert pearson.value == pytest.approx(25 / sqrt(5 * 129))
    assert spearman.value == pytest.approx(1.0)
    assert (spearman.low, spearman.high, spearman.count) == (None, None, 4)  # no draw can tell it from certain
    tied = correlation([1, 1, 2], [1, 2, 2], ["a", "b", "c"], ranks=True)
    assert tied is not None
    assert tied.value == pytest.approx(0.5)


def test_correlations_that_are_none() -> None:
    assert correlation([1, 1], [1, 2], ["a", "b"]) is None
    assert correlation([0.1 + 0.2, 0.3], [1, 2], ["a", "b"]) is None  # a rounding is no variation
    assert correlation([1], [1], ["a"]) is correlation([], [], []) is None
    one_question = correlation([1, 2, 4], [1, 3, 2], ["a", "a", "a"])
    assert one_question is not None
    assert one_question.low is None
    with pytest.raises(ValueError, match="infinite"):
        correlation([inf, 1], [1, 2], ["a", "b"])


@pytest.mark.parametrize("ranks", [False, True])
def test_bootstrap_of_a_correlation_is_that_of_its_clusters(ranks: bool) -> None:
    drawn = np.random.default_rng(2)
    names = [f"q{n}" for n in range(9)]
    cluster = [names[n // 2] for n in range(18)]
    x = np.round(drawn.normal(size=18), 1)
    y = np.round(x + drawn.normal(size=18), 1)

    def ranked(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> list[float]:
        return [float((values < one).sum() + ((values == one).sum() + 1) / 2) for one in values]

    found = []
    for picks in np.random.default_rng(0).integers(9, size=(200, 9)):
        rows = [n for pick in picks for n in range(18) if cluster[n] == names[pick]]
        pair = [ranked(x[rows]), ranked(y[rows])] if ranks else [x[rows].tolist(), y[rows].tolist()]
        found.append(np.corrcoef(pair)[0, 1])
    told = correlation(x.tolist(), y.tolist(), cluster, ranks=ranks, draws=200)
    assert told is not None
    assert (told.low, told.high) == pytest.approx(tuple(np.quantile(found, [0.025, 0.975])))


# paired differences of questions asked several times


def test_pairs_of_one_question_count_as_they_belong() -> None:
    """Differences 1, 1 (question a) and 0, 0 (b): mean ½, sums of deviations 1 and −1, error √(2/1 · 2) / 4 = ½. As if
    they were four questions it would be √(4/3 · 1) / 4 = .2887."""
    found = paired([1, 1, 1, 1], [0, 0, 1, 1], ["a", "a", "b", "b"])
    assert (found.mean, found.high - found.mean) == pytest.approx((0.5, 1.959964 * 0.5))
    alone = paired([1, 1, 1, 1], [0, 0, 1, 1])
    assert alone.high - alone.mean == pytest.approx(1.959964 * 0.288675, abs=1e-5)
    with pytest.raises(ValueError, match="two questions"):
        paired([1, 0], [0, 0], ["a", "a"])
