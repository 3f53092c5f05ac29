"""Intervals, against values worked by hand and from the literature."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2mad.study.stats import paired, wilson


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),  # z²/(n + z²)
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, table I
        (15, 148, 0.0624, 0.1605),
        (0, 0, 0.0, 1.0),
    ],
)
def test_wilson(right: int, total: int, low: float, high: float) -> None:
    assert wilson(right, total) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 200), st.integers(1, 200))
def test_wilson_holds_the_share_and_is_symmetric(right: int, total: int) -> None:
    right = min(right, total)
    low, high = wilson(right, total)
    assert 0.0 <= low <= right / total <= high <= 1.0
    assert wilson(total - right, total) == pytest.approx((1 - high, 1 - low))


def test_no_proportion() -> None:
    with pytest.raises(ValueError, match="no proportion"):
        wilson(3, 2)


def test_a_paired_difference() -> None:
    """Differences 1, 0, 0, −1, 1: mean .2, variance .7, standard error √(.7/5)."""
    found = paired([1, 1, 0, 0, 1], [0, 1, 0, 1, 0])
    assert found.mean == pytest.approx(0.2)
    assert found.high - found.mean == pytest.approx(1.959964 * (0.7 / 5) ** 0.5, abs=1e-6)
    assert found.mean - found.low == pytest.approx(found.high - found.mean)
    assert found.pairs == 5
    assert paired([1, 0], [1, 0]).low == 0.0


@pytest.mark.parametrize(("one", "other"), [([1], [0]), ([], []), ([1, 0], [1])])
def test_pairs_that_are_none(one: list[float], other: list[float]) -> None:
    with pytest.raises(ValueError, match=r"pairs|zip"):
        paired(one, other)
