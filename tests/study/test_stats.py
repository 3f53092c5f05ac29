"""Intervals, against values worked by hand and from the literature."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2mad.study.stats import wilson


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
