"""Eq. 7, 8 and 11, against examples worked by hand, and the laws that they obey."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2mad.retrieval import mmr, trade_off
from r2mad.skew import confidence, weight

SAME = [[1.0, 1.0], [1.0, 1.0]]


def _apart(count: int) -> list[list[float]]:
    """Candidates that are like nothing but themselves."""
    return [[float(row == column) for column in range(count)] for row in range(count)]


@pytest.mark.parametrize(
    ("consensus", "gamma", "expected"),
    [(0.0, 0.9, 1.0), (1.0, 0.9, 0.1), (2 / 3, 0.9, 0.4), (1 / 3, 0.9, 0.7), (1.0, 1.0, 0.0), (0.5, 0.0, 1.0)],
)
def test_trade_off(consensus: float, gamma: float, expected: float) -> None:
    assert trade_off(consensus, gamma) == pytest.approx(expected)


@pytest.mark.parametrize(("consensus", "gamma"), [(-0.1, 0.9), (1.1, 0.9), (0.5, 1.5), (math.nan, 0.9)])
def test_trade_off_out_of_range(consensus: float, gamma: float) -> None:
    with pytest.raises(ValueError, match="must lie in"):
        trade_off(consensus, gamma)


def test_the_first_choice_is_the_most_similar_of_the_rewarded() -> None:
    assert mmr([0.9, 0.5, 0.7], [0, 1, 1], _apart(3), 1, 0.4) == [2]


def test_all_rewards_0_leaves_the_similar_first_and_then_the_different() -> None:
    pairwise = [[1.0, 0.9, 0.1], [0.9, 1.0, 0.1], [0.1, 0.1, 1.0]]
    # First: all scores are 0, the most similar wins. Then −0.6·0.9 against −0.6·0.1.
    assert mmr([0.9, 0.8, 0.2], [0, 0, 0], pairwise, 3, 0.4) == [0, 2, 1]


def test_redundancy_is_the_nearest_of_the_chosen_not_their_mean() -> None:
    pairwise = [[1.0, 0.0, 0.9, 0.5], [0.0, 1.0, 0.0, 0.5], [0.9, 0.0, 1.0, 0.0], [0.5, 0.5, 0.0, 1.0]]
    # Chosen 0 and 1; then 2 is like 0 by .9 (its mean is .45) and 3 is like both by .5.
    assert mmr([1.0, 0.9, 0.5, 0.5], [1, 1, 1, 1], pairwise, 3, 0.5) == [0, 1, 3]


def test_ties_go_to_the_more_similar_and_then_to_the_lower_index() -> None:
    assert mmr([0.3, 0.6], [0, 0], SAME, 1, 0.4) == [1]
    assert mmr([0.5, 0.5], [1, 1], SAME, 2, 0.4) == [0, 1]
    assert mmr([0.5000001, 0.5000004], [1, 1], SAME, 2, 0.4) == [0, 1]  # alike to six decimals


def test_a_negative_similarity_is_worth_less_than_a_failure() -> None:
    assert mmr([-0.2, 0.1], [1, 0], _apart(2), 1, 0.5) == [1]


def test_more_than_there_are_and_none_at_all() -> None:
    assert sorted(mmr([0.1, 0.2], [1, 1], _apart(2), 5, 0.4)) == [0, 1]
    assert mmr([], [], [], 3, 0.4) == []
    assert mmr([0.1], [1], [[1.0]], 0, 0.4) == []


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        mmr([0.1, 0.2], [1], _apart(2), 1, 0.4)
    with pytest.raises(ValueError, match="do not fit"):
        mmr([0.1, 0.2], [1, 1], [[1.0]], 1, 0.4)
    with pytest.raises(ValueError, match="trade-off"):
        mmr([0.1], [1], [[1.0]], 1, 1.4)


def test_the_trade_off_changes_three_choices_and_cannot_change_one() -> None:
    """Invariant 2, by example: a contented debate wants the near and good, a unanimous one wants variety."""
    similarity, reward = [0.9, 0.85, 0.2], [1, 1, 0]
    pairwise = [[1.0, 0.99, 0.1], [0.99, 1.0, 0.1], [0.1, 0.1, 1.0]]
    assert mmr(similarity, reward, pairwise, 2, trade_off(0.0, 0.9)) == [0, 1]
    assert mmr(similarity, reward, pairwise, 2, trade_off(1.0, 0.9)) == [0, 2]


similarities = st.lists(st.floats(-1, 1), min_size=1, max_size=9)


@given(similarities, st.data(), st.floats(0.01, 1), st.floats(0.01, 1))
def test_for_one_case_the_trade_off_cannot_matter(
    similarity: list[float], data: st.DataObject, one: float, other: float
) -> None:
    """Invariant 2 as a law: any λ above 0 scales all scores of an empty choice alike."""
    count = len(similarity)
    reward = data.draw(st.lists(st.sampled_from([0, 1]), min_size=count, max_size=count))
    assert mmr(similarity, reward, _apart(count), 1, one) == mmr(similarity, reward, _apart(count), 1, other)


@given(similarities, st.integers(0, 12), st.floats(0, 1))
def test_a_choice_has_no_doubles_and_a_longer_one_begins_with_the_shorter(
    similarity: list[float], k: int, balance: float
) -> None:
    count = len(similarity)
    pairwise = [[math.cos(row - column) for column in range(count)] for row in range(count)]
    chosen = mmr(similarity, [1] * count, pairwise, k, balance)
    assert len(chosen) == len(set(chosen)) == min(k, count)
    assert mmr(similarity, [1] * count, pairwise, k + 1, balance)[:k] == chosen[:k]


@pytest.mark.parametrize(
    ("similarity", "correct", "expected"),
    [
        ([0.8, 0.2], [True, False], 0.8),
        ([0.5, 0.5, 0.5], [1, 1, 0], 2 / 3),
        ([0.9, 0.9], [None, True], 1.0),  # what is not known is left out, not counted wrong
        ([0.9, -0.9], [False, True], 0.0),  # what is unlike says nothing
        ([0.6, 0.4], [0.5, 1.0], 0.7),  # a verifier's value between
        ([], [], None),
        ([0.9], [None], None),
        ([-0.1, 0.0], [True, True], None),
    ],
)
def test_confidence(similarity: list[float], correct: list[float | None], expected: float | None) -> None:
    found = confidence(similarity, correct)
    assert found == (expected if expected is None else pytest.approx(expected))


def test_confidence_needs_a_case_for_each_similarity() -> None:
    with pytest.raises(ValueError, match="zip"):
        confidence([0.1], [])


def test_weight() -> None:
    assert weight(0.5, 4.0) == 1.0
    assert weight(1.0, 4.0) == pytest.approx(2 / (1 + math.exp(-2)))
    assert weight(1.0, 4.0) + weight(0.0, 4.0) == pytest.approx(2.0)
    assert weight(0.9, 0.0) == 1.0
