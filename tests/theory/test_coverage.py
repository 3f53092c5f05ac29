"""Openings: how many distinct hypotheses they have, and what that is worth."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2mad.theory import (
    coverage_success,
    distinct_among,
    diverse_opening,
    dominates,
    expected_coverage,
    random_opening,
    simulate_coverage,
    simulate_opening,
)
from tests.theory.near import DRAWS, agrees

WEIGHTS = np.array([0.55, 0.25, 0.15, 0.05])


def test_eq_29() -> None:
    assert coverage_success(0.3, [0, 1, 2]) == pytest.approx([0, 0.3, 0.51])
    for p in (0.05, 0.5, 0.9):
        assert (np.diff(coverage_success(p, np.arange(8))) > 0).all()


@pytest.mark.parametrize("samples", [0, 1, 3, 5])
def test_distinct_hypotheses_by_enumeration(samples: int) -> None:
    expected = np.zeros(samples + 1)
    for drawn in product(range(4), repeat=samples):
        expected[len(set(drawn))] += WEIGHTS[list(drawn)].prod()
    assert distinct_among(WEIGHTS, samples) == pytest.approx(expected, abs=1e-12)


@settings(deadline=None)  # machines may be busy
@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=6), st.integers(1, 5), st.integers(0, 8), st.floats(0, 1))
def test_a_diverse_opening_dominates(parts: list[float], agents: int, more: int, p: float) -> None:
    weights = np.array(parts) / sum(parts)
    plain, wide = random_opening(weights, agents), diverse_opening(weights, agents + more, agents)
    assert plain.shape == wide.shape == (agents + 1,)
    assert (np.cumsum(wide) <= np.cumsum(plain) + 1e-9).all()
    assert expected_coverage(p, wide) >= expected_coverage(p, plain) - 1e-12  # Eq. 30


def test_it_dominates_strictly_where_it_can() -> None:
    plain, wide = random_opening(WEIGHTS, 3), diverse_opening(WEIGHTS, 10, 3)
    assert dominates(wide, plain)
    assert expected_coverage(0.3, wide) > expected_coverage(0.3, plain) + 0.05
    assert not dominates(diverse_opening([1.0], 10, 3), random_opening([1.0], 3))  # one hypothesis is all there is


def test_any_rising_success_prefers_the_dominating_opening() -> None:
    """The monotonicity of Eq. 22 is all that is needed: any nondecreasing P(right | S)."""
    rng = np.random.default_rng(0)
    plain, wide = random_opening(WEIGHTS, 4), diverse_opening(WEIGHTS, 9, 4)
    rising = np.sort(rng.uniform(0, 1, (500, 5)), axis=-1)
    assert (rising @ wide >= rising @ plain).all()


def test_openings_drawn() -> None:
    rng = np.random.default_rng(6)
    plain, wide = simulate_opening(rng, DRAWS, WEIGHTS, 6, 3)
    assert (wide >= plain).all()  # the coupling
    for drawn, chances in ((plain, random_opening(WEIGHTS, 3)), (wide, diverse_opening(WEIGHTS, 6, 3))):
        for number in range(4):
            assert agrees((drawn == number).astype(np.float64), float(chances[number]))
        assert agrees(simulate_coverage(rng, 0.3, drawn), float(expected_coverage(0.3, chances)))


def test_openings_that_are_none() -> None:
    with pytest.raises(ValueError, match="candidates: at least 3"):
        diverse_opening(WEIGHTS, 2, 3)
    with pytest.raises(ValueError, match="sum to 1"):
        distinct_among([0.5, 0.6], 3)
    with pytest.raises(ValueError, match="between 0 and 1"):
        coverage_success(1.5, 2)


def test_rounding_is_no_slip() -> None:
    """A single weight over its own sum may come out as 1 + 2e-16."""
    assert distinct_among([1.0 + 2.3e-16], 2) == pytest.approx([0, 1, 0])
    assert coverage_success(1.0 + 2.3e-16, 2) == 1
