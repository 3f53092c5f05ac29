"""Seeds, published figures and equal budgets, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2mad.study.stats import wilson
from r2mad.study.yardsticks import BudgetPoint, at_equal_budget, several_seeds, within


def test_several_seeds() -> None:
    assert several_seeds([]) == (None, None, 0)
    assert several_seeds([0.7]) == (0.7, None, 1)
    mean, sd, n = several_seeds([0.6, 0.7, 0.8])
    assert (mean, sd, n) == pytest.approx((0.7, 0.1, 3))


def test_a_published_figure_within_our_interval() -> None:
    found = within(108, 166, 0.70, 166)
    assert (found.ours_low, found.ours_high) == wilson(108, 166)
    assert (found.theirs_low, found.theirs_high) == pytest.approx(wilson(116, 166), abs=2e-3)
    assert found.ours == pytest.approx(108 / 166)
    assert (found.inside, found.ours_inside, found.overlap) == (True, True, True)


def test_a_published_figure_outside() -> None:
    found = within(108, 166, 0.77, 166)
    assert (found.inside, found.ours_inside, found.overlap) == (False, False, True)
    assert within(100, 1000, 0.8, 1000).overlap is False
    alone = within(108, 166, 0.80)
    assert (alone.theirs_low, alone.theirs_high, alone.ours_inside, alone.overlap) == (None, None, None, None)


def test_published_at_the_ends() -> None:
    nothing = within(0, 0, 0.5, 10)
    assert (nothing.ours, nothing.inside, nothing.overlap) == (None, None, None)
    assert within(5, 10, 1.0, 10).theirs_high == 1.0
    assert within(5, 10, 0.0, 10).theirs_low == 0.0
    with pytest.raises(ValueError, match="65"):
        within(5, 10, 65.3)
    with pytest.raises(ValueError, match="no proportion"):
        within(11, 10, 0.5)


@given(st.integers(0, 200), st.integers(1, 200))
def test_a_whole_number_of_questions_has_wilsons_interval(right: int, total: int) -> None:
    right = min(right, total)
    found = within(1, 2, right / total, total)
    assert (found.theirs_low, found.theirs_high) == pytest.approx(wilson(right, total), abs=1e-9)


POINTS = [BudgetPoint(9, 900.0, 0.72), BudgetPoint(3, 300.0, 0.60), BudgetPoint(6, 600.0, 0.70)]


def test_self_consistency_at_a_budget_in_between() -> None:
    found = at_equal_budget(POINTS, 450.0)
    assert found.accuracy == pytest.approx(0.65)
    assert (found.below, found.above) == (POINTS[1], POINTS[2])
    assert found.weight == pytest.approx(0.5)
    just = at_equal_budget(POINTS, 600.0)
    assert (just.accuracy, just.below, just.above, just.weight) == (0.70, POINTS[2], POINTS[2], 0.0)
    assert at_equal_budget(POINTS, 900.0).accuracy == 0.72


def test_nothing_is_told_beyond_what_was_run() -> None:
    less, more, none = at_equal_budget(POINTS, 200), at_equal_budget(POINTS, 1000), at_equal_budget([], 5)
    assert less.accuracy is more.accuracy is none.accuracy is None
    assert less.reason == "200 is less than sc-3 takes (300)"
    assert more.reason == "1000 is more than sc-9 takes (900)"
    assert none.reason == "self-consistency was not run"


def test_no_budget() -> None:
    for budget in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="budget"):
            at_equal_budget(POINTS, budget)
    with pytest.raises(ValueError, match="same budget"):
        at_equal_budget([*POINTS, BudgetPoint(4, 300.0, 0.61)], 450)
    with pytest.raises(ValueError, match="share"):
        at_equal_budget([BudgetPoint(4, 300.0, 61.0)], 300)


@given(st.floats(300, 900))
def test_interpolation_stays_between_its_neighbours(budget: float) -> None:
    found = at_equal_budget(POINTS, budget)
    assert found.accuracy is not None
    assert found.below is not None
    assert found.above is not None
    assert found.below.accuracy - 1e-12 <= found.accuracy <= found.above.accuracy + 1e-12
    assert found.below.budget <= budget <= found.above.budget
