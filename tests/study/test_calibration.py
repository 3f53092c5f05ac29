"""Calibration, against numbers worked by hand and laws that always hold."""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2mad.errors import StoreError
from r2mad.study.calibration import (
    Pairs,
    assess,
    brier,
    expected_calibration_error,
    group,
    memory,
    reliability,
    verbal,
)
from r2mad.study.stats import wilson
from r2mad.types import Peer
from tests.study.by_hand import debate, parted

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


def _columns(pairs: Sequence[tuple[float, bool]]) -> tuple[list[float], list[bool]]:
    return [sure for sure, _ in pairs], [right for _, right in pairs]


def test_brier_by_hand() -> None:
    """.8 right, .6 wrong, 1 right, 0 right: (.04 + .36 + 0 + 1) / 4 = .35."""
    assert brier([0.8, 0.6, 1.0, 0.0], [True, False, True, True]) == pytest.approx(0.35)
    assert brier([], []) is None


def test_bins_and_their_error_by_hand() -> None:
    """.72 and .78 share a bin of mean .75, one of two right: off by .25. 1.0 stands in the last bin with .9: mean .95,
    both right, off by .05. .2 is in the bin from .2 to .3, wrong, off by .2. ECE = (2·.25 + 2·.05 + 1·.2) / 5 = .16."""
    sure, right = [0.72, 0.78, 1.0, 0.9, 0.2], [True, False, True, True, False]
    found = reliability(sure, right)
    assert [(one.low, one.high, one.count) for one in found] == [(0.2, 0.3, 1), (0.7, 0.8, 2), (0.9, 1.0, 2)]
    assert [one.confidence for one in found] == pytest.approx([0.2, 0.75, 0.95])
    assert [one.right for one in found] == [0.0, 0.5, 1.0]
    assert found[1].interval == wilson(1, 2)
    assert expected_calibration_error(sure, right) == pytest.approx(0.16)
    assert expected_calibration_error([], []) is None
    assert reliability([], []) == ()


def test_a_confidence_on_an_edge_is_in_the_bin_above() -> None:
    """0.29·100 is 28.999999999999996 as a float."""
    assert [one.low for one in reliability([0.29], [True], bins=100)] == [0.29]
    assert [one.low for one in reliability([n / 10 for n in range(11)], [True] * 11)] == [n / 10 for n in range(10)]


@given(PAIRS, st.integers(1, 20))
def test_laws_of_calibration(pairs: list[tuple[float, bool]], bins: int) -> None:
    """0 <= ECE <= 1, 0 <= Brier <= 1, ECE² <= Brier; bins hold everything once; order does not matter."""
    sure, right = _columns(pairs)
    error, score = expected_calibration_error(sure, right, bins), brier(sure, right)
    assert error is not None
    assert score is not None
    assert 0.0 <= error <= 1.0
    assert 0.0 <= score <= 1.0
    assert error <= sqrt(score) + 1e-9
    assert sum(one.count for one in reliability(sure, right, bins)) == len(pairs)
    assert expected_calibration_error(sure[::-1], right[::-1], bins) == pytest.approx(error)


@given(st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=1, max_size=60))
def test_briers_score_is_reliability_less_resolution_plus_uncertainty(pairs: list[tuple[int, bool]]) -> None:
    """Murphy 1973, exact where a bin holds one confidence only: 11 values in bins of a twentieth."""
    sure, right = [value / 10 for value, _ in pairs], [good for _, good in pairs]
    found, base = reliability(sure, right, 20), sum(right) / len(right)
    off = sum(one.count * (one.right - one.confidence) ** 2 for one in found) / len(pairs)
    told = sum(one.count * (one.right - base) ** 2 for one in found) / len(pairs)
    assert brier(sure, right) == pytest.approx(off - told + base * (1 - base))


@pytest.mark.parametrize("sure", [[1.1], [-0.1], [float("nan")], [0.1, 0.2]])
def test_what_is_no_confidence(sure: list[float]) -> None:
    with pytest.raises(ValueError, match=r"outside|not pairs"):
        brier(sure, [True])
    with pytest.raises(ValueError, match="hold nothing"):
        reliability([0.5], [True], 0)


# from records


def test_what_replies_say_of_themselves() -> None:
    """Round 0: A (9) right, B (none said), failed (5, left out); round 1: A (10), no answer (2) not right, B (0)."""
    held = [
        debate("q1", "ABx", "A-B", sure=[[9, None, 5], [10, 2, 0]]),
        debate("q2", "AB"),  # nobody was asked
        debate("q3", "B", sure=[[None]], composition="1 agent, 1 round, VerbalConfidence(), Independent()"),
    ]
    found = verbal(*parted(held))
    assert found == Pairs((0.9, 1.0, 0.2, 0.0), (True, True, False, False), ("q1",) * 4, missing=2)


def test_what_memory_says_of_peers() -> None:
    """Agent 0 saw B (.3) and one without an estimate; agent 1 A (.8), and C hidden; agent 2 A (.6) and B (1)."""
    peers = {
        1: [
            [Peer(1, confidence=0.3), Peer(2)],
            [Peer(0, confidence=0.8), Peer(2, shown=False, confidence=0.9)],
            [Peer(0, confidence=0.6), Peer(1, confidence=1.0000000001)],
        ]
    }
    held = [debate("q1", "ABC", "AAA", peers=peers), debate("q2", "AB", "AA", peers={1: [[Peer(1)], [Peer(0)]]})]
    found = memory(*parted(held))
    assert found == Pairs((0.3, 0.8, 0.6, 1.0), (False, True, True, False), ("q1",) * 4, missing=1)


def test_memory_is_held_against_the_round_before() -> None:
    """Peer 1 said B in round 0 and A, which is right, in round 1; what failed was not shown."""
    failed = Peer(0, shown=False, verdict="error")
    peers = {1: [[Peer(1, confidence=0.2)], [failed]], 2: [[Peer(1, confidence=0.7)], [Peer(0, confidence=0.9)]]}
    assert memory(*parted([debate("q1", "xB", "AA", "AA", peers=peers)])) == Pairs(
        (0.2, 0.7, 0.9), (False, True, True), ("q1",) * 3
    )


def test_what_the_vote_says() -> None:
    held = [debate("q1", "AAB"), debate("q2", "BBB"), debate("q3", "---"), debate("q4", "xxx"), debate("q5", "A-x")]
    found = group(*parted(held))
    assert found.confidence == pytest.approx((2 / 3, 1.0, 1 / 3))
    assert (found.right, found.cluster, found.missing) == ((True, False, True), ("q1", "q2", "q5"), 2)


def test_debates_without_a_score_are_left_out_and_false_scores_refused() -> None:
    (one, score), (other, _) = debate("q1", "AAB"), debate("q2", "AAB")
    assert len(group([one, other], [score])) == 1
    with pytest.raises(StoreError, match="of another debate"):
        group([one], [replace(score, grades=("11",))])


def test_everything_at_once() -> None:
    """Confidence .9 .8 right, .7 .4 wrong: Brier (.01 + .04 + .49 + .16) / 4 = .175, ECE (.1 + .2 + .7 + .4) / 4 = .35,
    and all four pairs of right and wrong in order."""
    found = assess(Pairs((0.9, 0.8, 0.7, 0.4), (True, True, False, False), ("a", "b", "c", "d"), missing=3))
    assert (found.count, found.missing) == (4, 3)
    assert (found.confidence, found.right, found.brier, found.ece) == pytest.approx((0.7, 0.5, 0.175, 0.35))
    assert found.auc is not None
    assert (found.auc.auc, found.auc.high) == (1.0, 1.0)
    nothing = assess(Pairs((), (), (), missing=2))
    assert (nothing.count, nothing.brier, nothing.ece, nothing.auc, nothing.reliability) == (0, None, None, None, ())


def test_the_order_of_debates_does_not_matter() -> None:
    held = [debate(f"q{n}", "AAB" if n % 3 else "ABB", sure=[[n % 11, 5, n % 7]]) for n in range(20)]
    assert assess(verbal(*parted(held))) == assess(verbal(*parted(held[::-1])))
