"""Urns: a martingale by enumeration, its drift under confidence, and what correlation alone does not give."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2mad.theory import (
    PLAIN,
    Confidence,
    belief,
    confident_shares,
    convex_form,
    dominates,
    expected_belief,
    expected_plain,
    misleading,
    simulate_beliefs,
    update,
)
from r2mad.theory._arrays import Floats
from tests.theory.near import agrees

SURE = Confidence(np.array([2.0, 5.0, 9.0]), np.array([0.1, 0.3, 0.6]), np.array([0.5, 0.3, 0.2]))
seeds = st.integers(0, 2**32 - 1)


def _enumerated(counts: Floats, reads: Floats) -> Floats:
    """E[belief after one plain round], from all K^n possible rounds."""
    agents, kinds = counts.shape
    total = np.zeros_like(counts)
    for answers in product(range(kinds), repeat=agents):
        chance = np.prod(belief(counts)[np.arange(agents), answers])
        total += chance * belief(update(counts, answers, reads))
    return total


@pytest.mark.parametrize(("agents", "kinds"), [(1, 2), (2, 3), (3, 2), (4, 3)])
def test_plain_debate_is_a_martingale(agents: int, kinds: int) -> None:
    rng = np.random.default_rng(agents)
    same = np.tile(rng.uniform(0.2, 3, kinds), (agents, 1))
    everyone, others = np.ones((agents, agents)), np.ones((agents, agents)) - np.eye(agents)
    assert _enumerated(same, everyone) == pytest.approx(belief(same), abs=1e-12)
    assert _enumerated(same, others) == pytest.approx(belief(same), abs=1e-12)


def test_the_mean_is_a_martingale_of_agents_that_differ() -> None:
    rng = np.random.default_rng(0)
    counts = 4 * rng.dirichlet(np.ones(3), size=4)  # the same S
    ring = np.roll(np.eye(4), 1, axis=1)
    for reads in (np.ones((4, 4)), np.ones((4, 4)) - np.eye(4), ring):
        after = _enumerated(counts, reads)
        assert after.mean(axis=0) == pytest.approx(belief(counts).mean(axis=0), abs=1e-12)
        assert after != pytest.approx(belief(counts), abs=1e-3)  # each of them moves


@settings(deadline=None)  # machines may be busy
@given(seeds)
def test_the_expected_round_in_closed_form(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts, reads = rng.uniform(0.1, 4, (3, 2)), rng.integers(0, 2, (3, 3)).astype(np.float64)
    assert expected_plain(counts, reads) == pytest.approx(_enumerated(counts, reads), abs=1e-12)


def test_a_martingale_over_two_rounds() -> None:
    """Not only from a start: E[p_2] over all first and second rounds of three agents."""
    start, everyone = np.tile([0.7, 1.1], (3, 1)), np.ones((3, 3))
    total = 0.0
    for answers in product(range(2), repeat=3):
        chance = np.prod(belief(start)[np.arange(3), answers])
        total += chance * _enumerated(update(start, answers, everyone), everyone)[0, 0]
    assert total == pytest.approx(belief(start)[0, 0], abs=1e-12)


@settings(deadline=None)  # machines may be busy
@given(seeds)
def test_lemma_1(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts, answers = rng.uniform(0.1, 5, (4, 3)), rng.integers(0, 3, 4)
    confidence, reads = rng.uniform(0.1, 10, 4), np.ones((4, 4))
    after = belief(update(counts, answers, reads, confidence))[:, 0]
    keep, q = convex_form(counts.sum(axis=-1), np.tile(confidence, (4, 1)), np.tile(answers == 0, (4, 1)))
    assert ((keep > 0) & (keep < 1)).all()
    assert after == pytest.approx(keep * belief(counts)[:, 0] + (1 - keep) * q, abs=1e-12)


@settings(deadline=None)  # machines may be busy
@given(seeds)
def test_lemma_2_and_corollary_1(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, right, wrong = rng.uniform(0, 1, 4), rng.uniform(0.1, 10, 4), rng.uniform(0.1, 10, 4)
    omega, rho, q = confident_shares(p, right, wrong)
    assert omega.sum() == pytest.approx(1, abs=1e-12)
    mean = p * right + (1 - p) * wrong
    assert q == pytest.approx((p * right).sum() / mean.sum(), abs=1e-12)  # E[Δ right] / E[Δ]
    assert rho - p == pytest.approx(p * (1 - p) * (right - wrong) / mean, abs=1e-12)  # Cov / E[c]
    same = np.full(4, p[0])
    _, above, q = confident_shares(same, np.maximum(right, wrong) + 0.1, wrong)
    assert (above > same).all()
    assert q > p[0]


@pytest.mark.parametrize("peers", [1, 2, 5])
@pytest.mark.parametrize("mass", [0.5, 3.0])
def test_confidence_makes_a_strict_submartingale(peers: int, mass: float) -> None:
    p = np.linspace(0, 1, 21)
    assert SURE.dominates
    up = expected_belief(p, mass, peers, SURE)
    assert (up[1:-1] > p[1:-1] + 1e-4).all()
    assert up[[0, -1]] == pytest.approx([0, 1])
    assert expected_belief(p, mass, peers) == pytest.approx(p, abs=1e-12)
    indifferent = Confidence(SURE.levels, SURE.if_right, SURE.if_right)
    assert expected_belief(p, mass, peers, indifferent) == pytest.approx(p, abs=1e-12)
    backwards = Confidence(SURE.levels, SURE.if_wrong, SURE.if_right)
    assert (expected_belief(p, mass, peers, backwards)[1:-1] < p[1:-1] - 1e-4).all()


@settings(deadline=None)  # machines may be busy
@given(seeds)
def test_dominance_suffices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wrong, levels = rng.dirichlet(np.ones(4)), rng.choice(np.arange(1.0, 11.0), 4, replace=False)
    order = np.argsort(levels)
    right = wrong.copy()
    right[order[0]] *= 0.5  # half of the least confidence moves to the greatest
    right[order[-1]] += wrong[order[0]] * 0.5
    moved = Confidence(levels, right, wrong)
    assert moved.dominates == bool(wrong[order[0]] > 1e-8)
    p, mass = float(rng.uniform(0.05, 0.95)), float(rng.uniform(0.2, 20))
    assert expected_belief(p, mass, 3, moved) >= p - 1e-12


def test_correlation_does_not_suffice() -> None:
    surer = misleading()
    assert surer.covariance(0.5) > 0
    assert confident_shares([0.5], [surer.mean_right], [surer.mean_wrong])[2] > 0.5  # Corollary 1 holds
    assert not surer.dominates
    assert expected_belief(0.5, 1.0, 1, surer) == pytest.approx(0.5 + 0.25 * (0.4 / 2 + 0.6 * 10 / 11 - 5 / 6))
    assert expected_belief(0.5, 1.0, 1, surer) < 0.5


def test_the_expected_belief_by_enumeration() -> None:
    """Two peers, three levels: all 36 outcomes."""
    p, mass, total = 0.3, 2.0, 0.0
    kinds = [(level, True, p * chance) for level, chance in zip(SURE.levels, SURE.if_right, strict=True)]
    kinds += [(level, False, (1 - p) * chance) for level, chance in zip(SURE.levels, SURE.if_wrong, strict=True)]
    for one, other in product(kinds, repeat=2):
        right = sum(level for level, good, _ in (one, other) if good)
        total += one[2] * other[2] * (mass * p + right) / (mass + one[0] + other[0])
    assert expected_belief(p, mass, 2, SURE) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("confidence", [PLAIN, SURE, misleading()])
def test_debates_played_out(confidence: Confidence) -> None:
    start = np.array([0.4, 0.9, 0.2])
    paths = simulate_beliefs(np.random.default_rng(2), 100_000, start, 3, 1, confidence)
    assert paths.shape == (100_000, 2)
    assert paths[0, 0] == pytest.approx(0.4 / 1.5)
    assert agrees(paths[:, 1], float(expected_belief(0.4 / 1.5, 1.5, 3, confidence)))


def test_many_rounds() -> None:
    start = np.array([0.8, 1.2])
    plain = simulate_beliefs(np.random.default_rng(3), 50_000, start, 3, 5)
    assert all(agrees(plain[:, index], 0.4) for index in range(1, 6))
    sure = simulate_beliefs(np.random.default_rng(3), 50_000, start, 3, 5, SURE).mean(axis=0)
    assert (np.diff(sure) > 0).all()


def test_dominance_of_distributions() -> None:
    assert dominates([0.1, 0.9], [0.2, 0.8])
    assert not dominates([0.2, 0.8], [0.2, 0.8])
    assert not dominates([0.4, 0, 0.6], [0, 1, 0])
    shuffled = Confidence(SURE.levels[[2, 0, 1]], SURE.if_right[[2, 0, 1]], SURE.if_wrong[[2, 0, 1]])
    assert shuffled.dominates  # levels need no order


def test_values_that_are_none() -> None:
    with pytest.raises(ValueError, match="above 0"):
        Confidence(np.array([0.0, 1.0]), np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match="all different"):
        Confidence(np.array([1.0, 1.0]), np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match="same length"):
        Confidence(np.array([1.0, 2.0]), np.array([1.0]), np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match="too many cases"):
        expected_belief(0.5, 1.0, 60, SURE)
    with pytest.raises(ValueError, match="sum of confidences"):
        convex_form(1.0, [0.0, 0.0], [1, 0])
    with pytest.raises(ValueError, match="same values"):
        dominates([1.0], [0.5, 0.5])
