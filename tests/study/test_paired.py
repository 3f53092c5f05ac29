"""Paired tests and intervals: against published values, other hands' code, brute force, and laws that must hold."""

import time
from itertools import product
from math import sqrt
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from scipy.stats import bootstrap as scipy_bootstrap
from statsmodels.stats.contingency_tables import mcnemar as other_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from r2mad.study.paired import (
    _likeliest_variance,
    bootstrap,
    holm,
    mcnemar,
    mcnemar_mid_p,
    quantile,
    score_interval,
    sign_flip,
    tango,
)
from r2mad.study.stats import Z95, wilson

COUNTS = st.integers(0, 60)
SIXTHS = st.lists(st.integers(-6, 6).map(lambda n: n / 6), min_size=1, max_size=40)

# tests


@given(COUNTS, COUNTS)
def test_mcnemar_as_others_compute_it(b: int, c: int) -> None:
    assert mcnemar(b, c) == pytest.approx(other_mcnemar([[3, b], [c, 4]], exact=True).pvalue)
    if b + c:
        assert mcnemar(b, c) == pytest.approx(binomtest(b, b + c).pvalue)
    assert mcnemar(b, c) == mcnemar(c, b)
    assert mcnemar_mid_p(b, c) == mcnemar_mid_p(c, b) <= mcnemar(b, c) <= 1.0


def test_mcnemar_of_published_tables() -> None:
    """Bentur et al. 2009 in Fagerland, Lydersen and Laake 2013: 1 and 7 discordant of 21; exact .070, mid-p .039."""
    assert mcnemar(1, 7) == pytest.approx(18 / 256)
    assert mcnemar_mid_p(1, 7) == pytest.approx(10 / 256)
    assert mcnemar(12, 2) == pytest.approx(0.0129, abs=5e-5)  # Armitage and Berry 1994, p. 127


def test_mcnemar_at_the_ends() -> None:
    assert mcnemar(0, 0) == mcnemar_mid_p(0, 0) == 1.0
    assert mcnemar(5, 5) == 1.0
    assert mcnemar_mid_p(1, 1) == 0.75  # of four equally likely outcomes two are less likely and two as likely
    assert (mcnemar(0, 5), mcnemar(0, 6)) == (0.0625, 0.03125)
    assert 0 < mcnemar(5000, 5300) < 0.01  # big numbers stay exact
    assert mcnemar(0, 5000) == 0.0  # below what a double holds
    with pytest.raises(ValueError, match="no counts"):
        mcnemar(-1, 2)


def _flips_by_hand(values: list[float]) -> float:
    moved = [round(value * 6) for value in values if value]
    sums = [abs(sum(sign * value for sign, value in zip(signs, moved, strict=True))) for signs in _signs(len(moved))]
    return sum(one >= abs(sum(moved)) for one in sums) / len(sums)


def _signs(count: int) -> list[tuple[int, ...]]:
    return list(product((-1, 1), repeat=count))


@given(st.lists(st.integers(-6, 6).map(lambda n: n / 6), max_size=9))
def test_sign_flips_are_counted_right(values: list[float]) -> None:
    assert sign_flip(values) == pytest.approx(_flips_by_hand(values))
    assert sign_flip([-value for value in values]) == pytest.approx(sign_flip(values))
    assert sign_flip([*reversed(values), 0.0]) == pytest.approx(sign_flip(values))


@given(COUNTS, COUNTS, st.integers(0, 9))
def test_sign_flips_of_rights_and_wrongs_are_mcnemar(b: int, c: int, same: int) -> None:
    for size in (1.0, 1 / 3):  # all of one size, so only the side counts
        assert sign_flip([size] * b + [-size] * c + [0.0] * same) == pytest.approx(mcnemar(b, c))


def test_sign_flips_of_any_numbers() -> None:
    """Numbers without a common step are rounded to 1/2520, and many of them to less; p hardly moves."""
    drawn = np.random.default_rng(3)
    for size in (12, 200, 1000):
        values = drawn.uniform(-1, 1, size=size) + 1.2 / sqrt(size)
        flips = np.random.default_rng(4).choice([-1.0, 1.0], size=(20_000, size)) @ values
        told = sign_flip(np.clip(values, -1, 1).tolist())
        share = (np.abs(flips) >= abs(values.sum())).mean()
        assert told == pytest.approx(share, abs=0.01)
    with pytest.raises(ValueError, match="lies in"):
        sign_flip([1.5])
    with pytest.raises(ValueError, match="lies in"):
        sign_flip([float("nan")])


# Tango's interval


def test_tango_of_published_tables() -> None:
    # Tango 1998, §6.1: soft contact lenses, 0 and 1 discordant of 44; the lower limit at 90 % is −0.096
    assert tango(0, 1, 44, 0.90)[0] == pytest.approx(-0.096, abs=5e-4)
    # Bentur et al. 2009 in Fagerland, Lydersen and Laake 2014: −0.517 to −0.026
    assert tango(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)
    # R's PropCIs::scoreci.mp, as others have published its answers
    assert tango(28, 25, 618, 0.90) == pytest.approx((-0.0148, 0.0247), abs=5e-5)
    assert tango(60, 20, 1000) == pytest.approx((0.0231, 0.0584), abs=5e-5)


def test_tango_is_closed_at_the_ends() -> None:
    for pairs in (1, 7, 166, 5000):
        half = Z95**2 / (pairs + Z95**2)
        assert tango(0, 0, pairs) == pytest.approx((-half, half), abs=1e-9)
        assert tango(pairs, 0, pairs) == pytest.approx(((pairs - Z95**2) / (pairs + Z95**2), 1.0), abs=1e-9)
    assert tango(0, 0, 0) == (-1.0, 1.0)
    for wrong in ((-1, 0, 5), (3, 3, 5)):
        with pytest.raises(ValueError, match="discordant"):
            tango(*wrong)
    with pytest.raises(ValueError, match="level"):
        tango(1, 1, 5, 1.0)
    assert quantile(0.95) == pytest.approx(Z95)


def _score(b: int, c: int, n: int, delta: float) -> float:
    """The statistic, its nuisance found by brute force: the q that makes the counts most likely."""
    q = np.linspace(max(0.0, -delta), (1 - delta) / 2, 400_001)[1:-1]
    with np.errstate(divide="ignore"):
        likely = b * np.log(q + delta) + c * np.log(q) + (n - b - c) * np.log(1 - 2 * q - delta)
    best = float(q[np.argmax(likely)])
    return (b - c - n * delta) / sqrt(n * (2 * best + delta * (1 - delta)))


@pytest.mark.parametrize(("b", "c", "n"), [(1, 7, 21), (9, 4, 166), (1, 1, 30), (3, 0, 12), (20, 15, 60)])
def test_tango_inverts_the_score_test(b: int, c: int, n: int) -> None:
    low, high = tango(b, c, n)
    assert _score(b, c, n, low) == pytest.approx(Z95, abs=1e-3)
    assert _score(b, c, n, high) == pytest.approx(-Z95, abs=1e-3)
    inside = np.linspace(low + 1e-3, high - 1e-3, 15)
    assert all(abs(_score(b, c, n, float(delta))) < Z95 for delta in inside)


@given(COUNTS, COUNTS, COUNTS)
def test_laws_of_tango(b: int, c: int, same: int) -> None:
    n = b + c + same
    assume(n > 0)
    low, high = tango(b, c, n)
    assert -1.0 <= low <= (b - c) / n <= high <= 1.0
    assert tango(c, b, n) == pytest.approx((-high, -low), abs=2e-9)
    wide = tango(b, c, n, 0.99)
    assert wide[0] <= low <= high <= wide[1]


# its extension to other scores


@settings(max_examples=40)
@given(COUNTS, COUNTS, COUNTS)
def test_the_score_interval_is_tango_for_rights_and_wrongs(b: int, c: int, same: int) -> None:
    assume(b + c + same > 0)
    values = [1.0] * b + [-1.0] * c + [0.0] * same
    assert score_interval(values) == pytest.approx(tango(b, c, len(values)), abs=3e-9)


@settings(max_examples=30)
@given(SIXTHS, st.randoms())
def test_laws_of_the_score_interval(values: list[float], shuffled: Random) -> None:
    low, high = score_interval(values)
    assert -1.0 <= low <= sum(values) / len(values) + 1e-9
    assert sum(values) / len(values) - 1e-9 <= high <= 1.0
    assert score_interval([-value for value in values]) == pytest.approx((-high, -low), abs=2e-9)
    mixed = list(values)
    shuffled.shuffle(mixed)
    assert score_interval(mixed) == (low, high)


@settings(max_examples=30)
@given(SIXTHS)
def test_every_difference_within_passes_and_none_without(values: list[float]) -> None:
    """The limits were found by halving, so nothing must lie in between: the statistic only falls."""
    assume(sum(value != 0 for value in values) >= 6)
    end = max(abs(value) for value in values)
    unique = np.unique([*values, -end, end])
    shares = np.array([[values.count(value) / len(values) for value in unique]])
    low, high = score_interval(values)
    grid = np.linspace(-end, end, 401)[1:-1]
    variance = end**2 * _likeliest_variance(unique / end, np.repeat(shares, len(grid), axis=0), grid / end)
    passes = len(values) * (sum(values) / len(values) - grid) ** 2 <= Z95**2 * variance
    assert np.array_equal(passes, (grid > low) & (grid < high))


def test_score_intervals_at_the_ends() -> None:
    assert score_interval([]) == (-1.0, 1.0)
    assert score_interval([0.0] * 50) == pytest.approx(tango(0, 0, 50))
    assert score_interval([1.0] * 8)[1] == 1.0
    few = score_interval([1 / 3] + [0.0] * 99)  # one question that moves a little does not say that none moves more
    assert few[1] > 0.035
    with pytest.raises(ValueError, match="lies in"):
        score_interval([-1.1])


# the bootstrap


def test_bootstrap_as_scipy_computes_it() -> None:
    drawn = np.random.default_rng(8)
    values = drawn.choice([-1.0, 0.0, 1.0], p=[0.05, 0.85, 0.10], size=200)
    skewed = drawn.beta(0.5, 4, size=60)
    for data in (values, skewed):
        found = bootstrap(data[:, None].tolist(), draws=20_000)
        for method, told in (("percentile", found.percentile), ("BCa", found.bca)):
            other = scipy_bootstrap((data,), np.mean, n_resamples=20_000, method=method, rng=np.random.default_rng(1))
            ends = (other.confidence_interval.low, other.confidence_interval.high)
            assert told == pytest.approx(ends, abs=0.06 * (ends[1] - ends[0]))


def test_bootstrap_keeps_a_questions_seeds_together() -> None:
    """30 questions whose 5 seeds all agree are 30 facts and not 150: √5 times as wide."""
    sides = [[float(side)] for side in np.random.default_rng(2).choice([-1, 0, 1], size=30)]
    once, five = bootstrap(sides), bootstrap([side * 5 for side in sides])
    assert once == five
    as_if = bootstrap([side for side in sides for _ in range(5)])
    width, narrow = (one.bca[1] - one.bca[0] for one in (five, as_if))
    assert width / narrow == pytest.approx(sqrt(5), rel=0.05)


@settings(max_examples=25)
@given(st.lists(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 1.0]), min_size=1, max_size=3), min_size=1, max_size=20))
def test_laws_of_the_bootstrap(differences: list[list[float]]) -> None:
    found = bootstrap(differences, draws=500, seed=3)
    assert bootstrap(differences[::-1], draws=500, seed=3) == found
    mirrored = bootstrap([[-value for value in seeds] for seeds in differences], draws=500, seed=3)
    assert mirrored.mean == pytest.approx(-found.mean)
    assert mirrored.bca == pytest.approx((-found.bca[1], -found.bca[0]))
    assert found.percentile[0] - 1e-9 <= found.mean <= found.percentile[1] + 1e-9 or len(differences) < 5


def test_bootstrap_at_the_ends() -> None:
    assert bootstrap([[0.5, 0.5]] * 4).bca == (0.5, 0.5)
    assert bootstrap([[1.0]]).percentile == (1.0, 1.0)
    none: list[list[float]] = []
    for wrong in (none, [[1.0], []]):
        with pytest.raises(ValueError, match="bootstrap needs"):
            bootstrap(wrong)


def test_ten_thousand_draws_of_a_thousand_questions_take_no_second() -> None:
    differences = np.random.default_rng(1).choice([-1.0, 0.0, 1.0], size=(1000, 5)).tolist()
    started = time.perf_counter()
    bootstrap(differences)
    assert time.perf_counter() - started < 1.0


# families, and Wilson by another hand


@settings(max_examples=20, deadline=None)  # the other hands' is slow
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_as_others_compute_it(p_values: list[float]) -> None:
    told = holm(p_values)
    assert all(after >= before for after, before in zip(told, p_values, strict=True))
    if p_values:
        assert told == pytest.approx(multipletests(p_values, method="holm")[1])
    ranked = sorted(zip(p_values, told, strict=True))
    assert [after for _, after in ranked] == sorted(after for _, after in ranked)


def test_holm_by_hand() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([]) == []
    for wrong in (-0.1, float("nan")):
        with pytest.raises(ValueError, match="p-value"):
            holm([wrong])


@given(st.integers(0, 300), st.integers(1, 300))
def test_wilson_as_others_compute_it(right: int, total: int) -> None:
    right = min(right, total)
    assert wilson(right, total) == pytest.approx(proportion_confint(right, total, method="wilson"), abs=1e-12)
