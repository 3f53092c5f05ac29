"""How cases are chosen: every retrieval policy, on similarities and rewards worked by hand."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2mad.errors import UsageError
from r2mad.retrieval import POLICIES, Retrieval, Sought, nearest


class _Bank:
    """Cases as bare vectors and rewards."""

    def __init__(self, states: list[list[float]], rewards: list[float], ids: list[int] | None = None) -> None:
        self.states = np.array(states, np.float32)
        self.questions = self.states
        self.rewards = np.array(rewards, np.float32)
        self.ids = np.array(ids or range(1, len(rewards) + 1), np.uint64)

    def __len__(self) -> int:
        return len(self.ids)

    def case(self, index: int) -> object:
        raise AssertionError("no policy reads a case")


def _angle(*degrees: float) -> list[list[float]]:
    return [[math.cos(math.radians(one)), math.sin(math.radians(one))] for one in degrees]


def _choose(policy: str, bank: _Bank, k: int = 3, trade_off: float = 0.4, lot: int = 5) -> tuple[list[int], list[int]]:
    state = np.array([1.0, 0.0], np.float32)
    sought = Sought(
        bank,  # type: ignore[arg-type]
        bank.states @ state,
        lambda: bank.questions @ state,
        lambda places: [float(np.nan_to_num(bank.rewards[place])) for place in places],
        k,
        trade_off,
        lot,
    )
    return POLICIES[policy](sought)


# Cases at these angles from the state; rewards beside them.
FAN = _Bank(_angle(0, 5, 60, 10, -70, 90), [0, 1, 1, 1, 0, 1])


@pytest.mark.parametrize(
    ("policy", "k", "chosen"),
    [
        # λ = .4: first the nearest rewarded (5°), then what costs least.
        ("debate-state", 1, [1]),
        ("debate-state", 2, [1, 5]),  # 90°: 0 − .6·cos 85° = −.05; −70°: −.16; 60°: .2 − .34; 10°: .39 − .6; 0°: −.6
        ("nearest", 3, [0, 1, 3]),
        ("similarity", 2, [0, 1]),
        ("positive-only", 3, [1, 3, 2]),
        ("positive-only", 9, [1, 3, 2, 5]),
        ("pos-neg", 3, [1, 0]),
    ],
)
def test_what_each_policy_chooses(policy: str, k: int, chosen: list[int]) -> None:
    assert _choose(policy, FAN, k)[1] == chosen


def test_candidates_are_the_3k_nearest_and_no_others() -> None:
    """With K = 1 only the three nearest are looked at: a rewarded case further away cannot be chosen."""
    bank = _Bank(_angle(0, 5, 10, 30), [0, 0, 0, 1])
    assert _choose("debate-state", bank, 1) == ([0, 1, 2], [0])
    assert _choose("positive-only", bank, 1) == ([3], [3])


def test_diversity_alone_takes_the_nearest_and_then_the_unlike() -> None:
    bank = _Bank(_angle(2, 1, 80, 3, 40, 41), [1, 0, 0, 1, 1, 1])
    assert _choose("diversity-only", bank, 2)[1] == [1, 2]


def test_fixed_trade_offs_are_the_policy_with_that_trade_off() -> None:
    draw = random.Random(4)
    for _ in range(30):
        bank = _Bank(_angle(*(draw.uniform(-180, 180) for _ in range(12))), [draw.randint(0, 1) for _ in range(12)])
        for value in ("0.25", "0.50", "0.75"):
            assert _choose(f"fixed-{value}", bank) == _choose("debate-state", bank, trade_off=float(value))


def test_a_reward_that_is_not_known_counts_as_none() -> None:
    bank = _Bank(_angle(0, 5), [math.nan, 1])
    assert _choose("debate-state", bank, 1)[1] == [1]
    assert _choose("pos-neg", bank)[1] == [1]  # unknown is not wrong either


def test_fewer_cases_than_k_are_all_chosen() -> None:
    bank = _Bank(_angle(0, 50), [0, 1])
    for policy in POLICIES:
        assert sorted(_choose(policy, bank, 5)[1]) == ([1] if policy == "positive-only" else [0, 1]), policy


def test_random_is_uniform_repeats_itself_and_does_not_depend_on_the_order_of_cases() -> None:
    counts = np.zeros(6)
    pairs = set()
    for lot in range(3000):
        chosen = _choose("random", FAN, 2, lot=lot)[1]
        assert chosen == _choose("random", FAN, 2, lot=lot)[1]
        counts[chosen] += 1
        pairs.add(frozenset(chosen))
    assert np.all(abs(counts - 1000) < 4 * math.sqrt(3000 * (1 / 3) * (2 / 3)))
    assert len(pairs) == 15
    order = [3, 1, 5, 0, 4, 2]
    turned = _Bank(FAN.states[order].tolist(), FAN.rewards[order].tolist(), [int(FAN.ids[i]) for i in order])
    for lot in range(50):
        ids = [int(FAN.ids[i]) for i in _choose("random", FAN, 3, lot=lot)[1]]
        assert [int(turned.ids[i]) for i in _choose("random", turned, 3, lot=lot)[1]] == ids


@pytest.mark.parametrize("policy", POLICIES)
def test_no_policy_depends_on_the_order_in_which_cases_were_added(policy: str) -> None:
    draw = random.Random(8)
    for _ in range(20):
        angles = [draw.choice([0, 10, 10, 20, 90, 200]) for _ in range(9)]  # many exact ties
        bank = _Bank(_angle(*angles), [draw.randint(0, 1) for _ in angles], draw.sample(range(1, 99), 9))
        order = draw.sample(range(9), 9)
        turned = _Bank(bank.states[order].tolist(), bank.rewards[order].tolist(), [int(bank.ids[i]) for i in order])
        ids = [int(bank.ids[i]) for i in _choose(policy, bank, 2)[1]]
        assert [int(turned.ids[i]) for i in _choose(policy, turned, 2)[1]] == ids


def _slow_nearest(similarity: list[float], ids: list[int], count: int) -> list[int]:
    """The rule as it is written: by similarity rounded to six decimals, then by name."""
    order = sorted(range(len(ids)), key=lambda index: (-round(float(np.float32(similarity[index])), 6), ids[index]))
    return order[:count]


@given(
    st.lists(st.sampled_from([-0.5, 0.1, 0.1000002, 0.1000004, 0.1000006, 0.5, 0.9]), min_size=1, max_size=40),
    st.integers(0, 45),
    st.randoms(use_true_random=False),
)
def test_nearest_is_exact_at_its_boundary(values: list[float], count: int, draw: random.Random) -> None:
    ids = draw.sample(range(1000), len(values))
    found = nearest(np.array(values, np.float32), np.array(ids, np.uint64), count)
    assert found == _slow_nearest(values, ids, count)


@given(st.integers(0, 2**32), st.integers(1, 12), st.sampled_from([3, 4, 6]), st.integers(256, 6000))
def test_nearest_of_many(seed: int, count: int, decimals: int, total: int) -> None:
    """More than a few blocks, with ties by the hundred and none at all."""
    drawn = np.random.default_rng(seed)
    values = drawn.normal(0, 0.1, total).round(decimals).astype(np.float32)
    ids = drawn.permutation(total).astype(np.uint64)
    assert nearest(values, ids, count) == _slow_nearest(values.tolist(), ids.tolist(), count)


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=60), st.integers(1, 12))
def test_nearest_of_any_numbers(values: list[float], count: int) -> None:
    ids = list(range(len(values), 0, -1))
    found = nearest(np.array(values, np.float32), np.array(ids, np.uint64), count)
    assert found == _slow_nearest(values, ids, count)


@pytest.mark.parametrize("wrong", [{"policy": "best"}, {"k": 0}, {"gamma": 1.5}, {"gamma": -0.1}])
def test_a_retrieval_that_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="retrieval"):
        Retrieval(**wrong)  # type: ignore[arg-type]
