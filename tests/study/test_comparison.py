"""Comparisons of two methods and of families, by hand, and what may be said of them."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2mad.study.comparison import Answers, Comparison, compare, compare_all, outcome, signed, verdict
from r2mad.study.paired import mcnemar, mcnemar_mid_p, sign_flip, tango

NAMES = ("r2mad", "mad")


def _made(only_one: int, only_other: int, same: int) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    pairs = [(1.0, 0.0)] * only_one + [(0.0, 1.0)] * only_other + [(1.0, 1.0)] * same
    one = {f"q{place:04}": [pair[0]] for place, pair in enumerate(pairs)}
    return one, {f"q{place:04}": [pair[1]] for place, pair in enumerate(pairs)}


def _told(only_one: int, only_other: int, same: int) -> Comparison:
    return compare(*_made(only_one, only_other, same), names=NAMES)


def test_a_comparison_of_rights_and_wrongs() -> None:
    found = _told(17, 8, 141)
    assert (found.pairs, found.answers, found.differing) == (166, 166, 25)
    assert (found.only_one, found.only_other) == (17, 8)
    assert found.difference == pytest.approx(9 / 166)
    assert (found.one, found.other) == pytest.approx((158 / 166, 149 / 166))
    assert found.interval == "tango"
    assert (found.low, found.high) == tango(17, 8, 166)
    assert found.p == found.mcnemar == mcnemar(17, 8)
    assert found.mid_p == mcnemar_mid_p(17, 8)
    assert (found.adjusted, found.family) == (None, 1)


def test_nothing_is_dropped_in_silence() -> None:
    one = {"a": [1.0], "b": [0.0], "c": [1.0], "failed": [], "u": [1.0, 0.0, 0.0]}
    other = {"a": [0.0], "b": [0.0], "d": [1.0], "failed": [1.0], "u": [1.0]}
    found = compare(one, other)
    assert found.pairs == 3
    assert found.only_in_one == ("c",)
    assert found.only_in_other == ("d", "failed")
    assert found.uneven == ("u",)
    assert found.answers == 2
    assert found.difference == pytest.approx((1 + 0 + (1 / 3 - 1)) / 3)  # every question counts the same
    assert (found.only_one, found.only_other, found.mcnemar) == (1, 0, None)
    said = verdict(found, NAMES)
    assert "On 3 questions (1 not asked equally often" in said
    assert "not counted: 1 that only r2mad answered; not counted: 2 that only mad answered" in said


def test_several_seeds_are_not_taken_for_questions() -> None:
    """Six questions, each right three times by the first only: six facts, p = 2 · ½⁶, and not 2 · ½¹⁸."""
    one, other = ({f"q{n}": [side] * 3 for n in range(6)} for side in (1.0, 0.0))
    found = compare(one, other)
    assert (found.pairs, found.answers, found.only_one, found.interval) == (6, 18, 18, "score")
    assert found.p == 0.03125
    assert (found.mcnemar, found.mid_p) == (None, None)
    assert (found.low, found.high) == pytest.approx(tango(6, 0, 6), abs=3e-9)


def test_ties_count_as_expected_and_mcnemar_takes_how_they_fell() -> None:
    one = {"a": [0.5], "b": [1.0], "c": [0.0]}
    other = {"a": [0.0], "b": [1.0], "c": [1 / 3]}
    assert compare(one, other).only_one is None
    rights = {"a": [True], "b": [True], "c": [False]}, {"a": [False], "b": [True], "c": [False]}
    found = compare(one, other, correct=rights)
    assert found.difference == pytest.approx((0.5 - 1 / 3) / 3)
    assert (found.only_one, found.only_other, found.mcnemar, found.interval) == (1, 0, 1.0, "score")
    assert found.p == sign_flip([0.5, 0.0, -1 / 3])
    with pytest.raises(ValueError, match="question b"):
        compare(one, other, correct=({**rights[0], "b": []}, rights[1]))


@pytest.mark.parametrize("wrong", [1.5, -0.1, float("nan")])
def test_no_score(wrong: float) -> None:
    with pytest.raises(ValueError, match="question a"):
        compare({"a": [wrong]}, {"a": [1.0]})


SCORES = st.dictionaries(
    st.sampled_from("abcdefgh"), st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=2), max_size=8
)


@settings(max_examples=30)
@given(SCORES, SCORES)
def test_sides_and_order_do_not_matter(one: dict[str, list[float]], other: dict[str, list[float]]) -> None:
    there, back = compare(one, other), compare(other, one)
    backwards = compare(dict(reversed(one.items())), dict(reversed(other.items())))
    assert there == backwards
    assert (there.only_in_one, there.only_one, there.p) == (back.only_in_other, back.only_other, back.p)
    if there.difference is None or there.low is None or there.high is None:
        assert back.difference is back.low is back.p is None
        return
    assert back.difference == pytest.approx(-there.difference)
    assert (back.low, back.high) == pytest.approx((-there.high, -there.low), abs=2e-9)
    assert -1.0 <= there.low <= there.difference + 1e-9
    assert there.difference - 1e-9 <= there.high <= 1.0
    mirror = {"better": "worse", "worse": "better"}
    assert outcome(back) == mirror.get(outcome(there), outcome(there))


# families


def test_a_family_is_corrected_together() -> None:
    one, other = _made(14, 2, 150)
    third = {key: [0.0] if place < 40 else [1.0] for place, key in enumerate(one)}
    cells = {"a": Answers(one), "b": Answers(other), "c": Answers(third), "lost": Answers({"elsewhere": [1.0]})}
    found = compare_all(cells)
    assert [row.names for row in found][:3] == [("a", "b"), ("a", "c"), ("a", "lost")]
    assert len(found) == 6
    tested = [row for row in found if row.p is not None]
    assert [row.family for row in tested] == [3, 3, 3]
    for row in tested:
        assert row.p is not None
        assert row.adjusted is not None
        assert row.p <= row.adjusted <= 3 * row.p
    assert [(row.adjusted, row.difference) for row in found if row.p is None] == [(None, None)] * 3


def test_a_familys_rights_come_along() -> None:
    ties = Answers({"a": [0.5], "b": [1.0]}, {"a": [True], "b": [True]})
    plain = Answers({"a": [0.0], "b": [1.0]})
    assert compare_all({"x": ties, "y": plain})[0].only_one == 1
    with pytest.raises(ValueError, match="but not the other's"):
        compare_all({"x": ties, "y": Answers({"a": [0.5], "b": [1.0]})})


# what is said


def test_it_is_better_or_worse() -> None:
    assert outcome(_told(30, 8, 128)) == "better"
    assert verdict(_told(30, 8, 128)) == (
        "On 166 questions r2mad was right 13.3 percentage points more often than mad (95 % interval +6.3 to +20.6); "
        "r2mad is better (p < 0.001)."
    )
    assert verdict(_told(8, 30, 128), ("one", "two")) == (
        "On 166 questions one was right 13.3 percentage points less often than two (95 % interval −20.6 to −6.3); "
        "one is worse (p < 0.001)."
    )


def test_it_cannot_be_told() -> None:
    found = replace(_told(17, 10, 139), adjusted=0.42, family=6)
    assert outcome(found) == "unclear"
    assert verdict(found) == (
        "On 166 questions r2mad was right 4.2 percentage points more often than mad (95 % interval −2.0 to +10.7); "
        "this study cannot tell them apart (p = 0.25; 0.42 after correcting for 6 comparisons)."
    )
    assert "were right equally often (95 % interval −" in verdict(_told(9, 9, 82))


def test_a_finding_that_the_family_takes_back() -> None:
    found = replace(_told(18, 6, 142), adjusted=0.14, family=6)
    assert outcome(found) == "unclear"
    assert verdict(found).endswith(
        "alone that would be a finding, but not among 6 comparisons (p = 0.023; "
        "0.14 after correcting for 6 comparisons)."
    )


def test_interval_and_test_may_disagree_at_the_edge() -> None:
    found = _told(9, 2, 155)
    assert found.low is not None
    assert found.low > 0
    assert outcome(found) == "unclear"
    assert verdict(found).endswith(
        "the interval leaves out 0 but the exact test does not, so they cannot be told apart (p = 0.065)."
    )
    assert "but the interval holds 0" in verdict(replace(found, low=-0.001, p=0.04))


def test_too_little_to_tell() -> None:
    assert outcome(_told(3, 0, 2)) == "few"
    assert "so few questions cannot tell them apart (p = 0.25)" in verdict(_told(3, 0, 2))
    assert outcome(_told(5, 0, 161)) == "unclear"
    assert verdict(_told(5, 0, 161)).endswith(
        "this study cannot tell them apart, for only 5 differ, and fewer than 6 never suffice (p = 0.062)."
    )
    nothing = compare({"a": [1.0]}, {"b": [1.0]}, names=NAMES)
    assert outcome(nothing) == "none"
    assert verdict(nothing) == (
        "r2mad and mad have no question in common (not counted: 1 that only r2mad answered; "
        "not counted: 1 that only mad answered), so nothing can be said."
    )
    assert verdict(compare({}, {})) == "one and other have no question in common, so nothing can be said."


def test_they_are_alike() -> None:
    assert outcome(_told(0, 0, 166)) == "same"
    assert verdict(_told(0, 0, 166)) == (
        "On 166 questions r2mad and mad scored the same on every one (95 % interval −2.3 to +2.3); "
        "this study cannot rule out a difference of that size (p = 1.00)."
    )
    assert "practically equal, within 2.0 points" in verdict(_told(0, 0, 400))
    assert outcome(_told(20, 18, 1962)) == "equal"
    assert "practically equal, within 2.0 points" in verdict(_told(20, 18, 1962))
    assert outcome(_told(20, 18, 1962), margin=0.001) == "unclear"


def test_several_seeds_are_told() -> None:
    one, other = ({f"q{n}": [side, 1.0, 1.0] for n in range(30)} for side in (1.0, 0.0))
    assert verdict(compare(one, other)).startswith("On 30 questions (90 pairs of answers) one was right 33.3 percent")


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.042, "+4.2"), (-0.011, "−1.1"), (0.0, "0.0"), (-0.0002, "−0.02"), (0.0004, "+0.04"), (1.0, "+100.0")],
)
def test_no_sign_is_lost_in_rounding(share: float, text: str) -> None:
    assert signed(share) == text


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (0.0496, "p = 0.0496"),
        (0.049996, "p just below 0.05"),
        (0.05, "p = 0.050"),
        (0.0004, "p < 0.001"),
        (1, "p = 1.00"),
    ],
)
def test_no_p_is_rounded_across_the_line(p: float, text: str) -> None:
    assert f"({text})" in verdict(replace(_told(17, 10, 139), p=p))
