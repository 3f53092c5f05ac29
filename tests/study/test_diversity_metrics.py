"""Diversity, difficulty and gain, by hand."""

from math import log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2mad.study.diversity import HARDNESS, diversities, gained, opened, relate
from tests.study.by_hand import Held, debate, parted

WORDS = st.text("ABC-x", min_size=3, max_size=3)


@pytest.mark.parametrize(
    ("word", "diversity", "entropy", "difficulty", "before"),
    [
        ("AAA", 1 / 3, 0.0, 0.0, 1.0),
        ("AAB", 2 / 3, (2 / 3 * log(3 / 2) + 1 / 3 * log(3)) / log(3), 1 / 3, 1.0),
        ("ABC", 1.0, 1.0, 2 / 3, 1 / 3),  # three tied, one of them right
        ("BBA", 2 / 3, (2 / 3 * log(3 / 2) + 1 / 3 * log(3)) / log(3), 2 / 3, 0.0),
        ("A-B", 2 / 3, log(2) / log(3), 2 / 3, 0.5),  # no answer is none of its own
        ("Bx-", 1 / 3, 0.0, 1.0, 0.0),
        ("---", 0.0, None, 1.0, 0.0),
        ("A", 1.0, None, 0.0, 1.0),
    ],
)
def test_an_opening(word: str, diversity: float, entropy: float | None, difficulty: float, before: float) -> None:
    (found,) = opened(*parted([debate("q", word, "A" * len(word))]))
    assert (found.diversity, found.difficulty, found.before) == pytest.approx((diversity, difficulty, before))
    assert found.entropy == (entropy if entropy is None else pytest.approx(entropy))
    assert (found.after, found.gain) == pytest.approx((1.0, 1 - before))


@pytest.mark.parametrize(
    ("word", "hardness"),
    [("AAA", "all right"), ("AAB", "most right"), ("ABAB", "half or fewer right"), ("BBA", "half or fewer right"),
     ("BxC", "none right"), ("AAx", "most right")],
)  # fmt: skip
def test_bins_of_difficulty(word: str, hardness: str) -> None:
    (found,) = opened(*parted([debate("q", word)]))
    assert found.hardness == hardness


def test_a_debate_in_which_nobody_moves_gains_nothing() -> None:
    """However its tie was broken: both ends count it as it is expected to fall."""
    for answer in "AB":
        (found,) = opened(*parted([debate("q", "AB", "AB", answer=answer)]))
        assert (found.before, found.after, found.gain) == (0.5, 0.5, 0.0)


FOUR = [
    debate("q1", "AAA", "AAA"),  # diversity 1/3, difficulty 0, gain 0
    debate("q2", "AAB", "BBB"),  # 2/3, 1/3, −1
    debate("q3", "BBA", "AAA"),  # 2/3, 2/3, +1
    debate("q4", "BBB", "BBB"),  # 1/3, 1, 0
]


def test_associations_by_hand() -> None:
    """Diversity 1 2 2 1 (thirds), right 1 0 1 0, gain 0 −1 1 0, difficulty 0 1 2 3: deviations of diversity are ∓½, so
    with right Σ = −¼ −¼ +¼ +¼ = 0 and with gain −½ + ½ = 0; difficulty with gain −1·−½ + 1·½ = 1 over √(5 · 2)."""
    found = relate(opened(*parted(FOUR)))
    assert [(one.x, one.y) for one in found.associations] == [
        ("diversity", "correct"), ("diversity", "gain"), ("difficulty", "gain"),
    ]  # fmt: skip
    values = [one.pearson.value for one in found.associations if one.pearson]
    assert values == pytest.approx([0.0, 0.0, 1 / sqrt(10)])
    # ranks of gain: 2.5 1 4 2.5, of difficulty 1 2 3 4: 0 + .75 + .75 + 0 = 1.5 over √(5 · 4.5)
    last = found.associations[-1].spearman
    assert last is not None
    assert last.value == pytest.approx(1.5 / sqrt(5 * 4.5))
    assert last.count == 4
    assert (found.debates, found.questions, found.replies) == (4, 4, 3.0)
    assert (found.diversity, found.difficulty) == pytest.approx((0.5, 0.5))


def test_gain_by_difficulty_by_hand() -> None:
    """One debate a bin. All gain alike there, q = .025 of the first question: 0 of an all right one is between
    .025·0 − .975 and 0, −1 between −1 and .025·−1 + .975·0."""
    rows = relate(opened(*parted(FOUR))).by_hardness
    assert [row.hardness for row in rows] == list(HARDNESS)
    assert [row.debates for row in rows] == [1, 1, 1, 1]
    assert [(row.before, row.after) for row in rows] == [(1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)]
    spans = [(row.gain.mean, row.gain.low, row.gain.high) for row in rows if row.gain]
    assert spans[0] == pytest.approx((0.0, -0.975, 0.0))
    assert spans[1] == pytest.approx((-1.0, -1.0, -0.025))
    assert spans[2] == pytest.approx((1.0, 0.025, 1.0))
    assert spans[3] == pytest.approx((0.0, 0.0, 0.975))
    empty = relate(opened(*parted(FOUR[:1]))).by_hardness[3]
    assert (empty.debates, empty.before, empty.after, empty.gain) == (0, None, None, None)


def test_the_gain_has_a_paired_interval_within_what_is_possible() -> None:
    """Gains 0 −1 1 0: mean 0, variance 2/3, error √(2/3 / 4) = .408. Gains 1 and 0 of two starts that are all wrong:
    ½ ± .98, cut to 0 and 1."""
    whole = gained(opened(*parted(FOUR)))
    assert whole is not None
    assert (whole.low, whole.high) == pytest.approx((-1.959964 * sqrt(1 / 6), 1.959964 * sqrt(1 / 6)))
    pair = gained(opened(*parted([debate("q1", "BBB", "AAA"), debate("q2", "BBB", "BBB")])))
    assert pair is not None
    assert (pair.mean, pair.low, pair.high) == (0.5, 0.0, 1.0)
    one_question = gained(opened(*parted([debate("q1", "BBB", "AAA"), debate("q1", "BBB", "BBB", seed=2)])))
    assert one_question is not None
    assert (one_question.mean, one_question.low, one_question.high) == (0.5, 0.0, 1.0)
    assert gained([]) is None


def test_what_does_not_vary_has_no_correlation() -> None:
    found = relate(opened(*parted([debate("q1", "AAB"), debate("q2", "ABA")])))
    assert all(one.pearson is one.spearman is None for one in found.associations)
    nothing = relate([])
    assert (nothing.debates, nothing.diversity, nothing.entropy, nothing.gain) == (0, None, None, None)
    assert diversities([], []) == {}


def test_methods_are_apart() -> None:
    held = [*FOUR, debate("q1", "ABC", "AAA", method="mad-diverse")]
    found = diversities(*parted(held))
    assert [(name, one.debates) for name, one in found.items()] == [("mad", 4), ("mad-diverse", 1)]


@settings(max_examples=30)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=12), st.randoms())
def test_the_order_of_debates_does_not_matter(words: list[tuple[str, str]], random: object) -> None:
    held: list[Held] = [debate(f"q{n // 2}", *pair, seed=n) for n, pair in enumerate(words)]
    found = diversities(*parted(held), draws=20)
    random.shuffle(held)  # type: ignore[attr-defined]  # hypothesis' own Random
    assert diversities(*parted(held), draws=20) == found
    for one in opened(*parted(held)):
        assert 0.0 <= one.diversity <= 1.0
        assert one.entropy is None or 0.0 <= one.entropy <= 1.0
        assert -1.0 <= one.gain <= 1.0
