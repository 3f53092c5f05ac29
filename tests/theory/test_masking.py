"""False memories: closed forms against scipy, debates played out, bounds, and what moves them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from r2mad.theory import (
    answer_success,
    by_agents,
    majority,
    masked_success,
    objective_tokens,
    plain_success,
    plain_tokens,
    round_bounds,
    round_success,
    sc_bounds,
    sc_success,
    simulate_debate,
    simulate_majority,
    simulate_tokens,
    subjective_tokens,
    success_ceiling,
    tolerable_false,
)
from tests.theory.near import DRAWS, agrees

GRID = np.linspace(0, 1, 41)


@pytest.mark.parametrize("voters", [1, 2, 3, 6, 9, 50])
def test_a_majority_against_scipy(voters: int) -> None:
    ties = binom.pmf(voters / 2, voters, GRID) if voters % 2 == 0 else 0.0
    assert majority(GRID, voters) == pytest.approx(binom.sf(voters // 2, voters, GRID) + 0.5 * ties, abs=1e-12)


def test_more_samples_help_easy_questions_and_hurt_hard_ones() -> None:
    curves = np.array([sc_success(GRID, samples) for samples in (1, 3, 9, 27, 81)])
    steps = np.diff(curves, axis=0)
    assert (steps[:, (GRID > 0.5) & (GRID < 1)] > 0).all()
    assert (steps[:, (GRID > 0) & (GRID < 0.5)] < 0).all()
    assert sc_success(0.5, 9) == pytest.approx(0.5)


@pytest.mark.parametrize("samples", [1, 2, 5, 6, 40])
def test_bounds_of_self_consistency(samples: int) -> None:
    low, high = sc_bounds(GRID, samples)
    assert (low <= sc_success(GRID, samples) + 1e-15).all()
    assert (sc_success(GRID, samples) <= high + 1e-15).all()
    assert (high[GRID >= 0.5] == 1).all()
    assert (low[GRID < 0.5] == 0).all()


def test_assumption_2_1() -> None:
    assert answer_success(3, 0.2) == pytest.approx(np.exp(-0.6))
    assert answer_success(0, 5.0) == 1
    assert answer_success(2, 0.1, alone=0.4) == pytest.approx(0.4 * np.exp(-0.2))
    assert answer_success(tolerable_false(0.2), 0.2) == pytest.approx(0.5)
    assert answer_success(tolerable_false(0.3, 0.8), 0.3) == pytest.approx(0.8)


def test_given_false_memories_a_debate_beats_sc_just_if_it_tolerates_them() -> None:
    for p in (0.3, 0.6, 0.8):
        for false in range(6):
            better = bool(round_success(false, 0.2, 5) > sc_success(p, 5))
            assert better == (false < tolerable_false(0.2, p))


@pytest.mark.parametrize("agents", [1, 3, 4, 9])
@pytest.mark.parametrize("alone", [1.0, 0.6])
def test_bounds_of_the_second_round(agents: int, alone: float) -> None:
    false = np.arange(agents + 1)
    for alpha in (0.05, 0.3, 1.0):
        low, high = round_bounds(false, alpha, agents, alone)
        value = round_success(false, alpha, agents, alone)
        assert ((low <= value + 1e-15) & (value <= high + 1e-15)).all()


@pytest.mark.parametrize("p", [0.2, 0.45, 0.5, 0.8])
@pytest.mark.parametrize("alone", [1.0, 0.7])
def test_fewer_false_memories_never_hurt(p: float, alone: float) -> None:
    missed = np.linspace(0, 1, 21)
    for agents in (3, 4, 9):
        curve = masked_success(p, agents, 0.3, missed, alone)
        assert (np.diff(curve) < 0).all()
        assert curve[-1] == pytest.approx(plain_success(p, agents, 0.3, alone))


def test_a_perfect_mask() -> None:
    assert masked_success(0.2, 5, 0.3, 0.0) == pytest.approx(1)  # Assumption 2.1 to the letter
    p = np.array([0.2, 0.6, 0.9])
    assert masked_success(p, 5, 0.3, 0.0, p) == pytest.approx(sc_success(p, 5))


def test_sc_is_an_upper_bound_if_nothing_false_leaves_an_agent_as_it_was() -> None:
    p = GRID[1:-1, None]
    missed = np.linspace(0, 1, 11)
    for agents in (1, 3, 6):
        assert (masked_success(p, agents, 0.4, missed, p) <= sc_success(p, agents) + 1e-12).all()


@pytest.mark.parametrize("p", [0.3, 0.55, 0.9])
def test_many_agents_sink_plain_debate_in_either_regime(p: float) -> None:
    counts = [3, 9, 27, 81, 243]
    plain = by_agents(p, counts, 0.2)
    assert plain[-1] < 0.01
    for count, value in zip(counts, plain, strict=True):
        assert value <= float(success_ceiling(p, count, 0.2)) + 1e-12
    hard, easy = by_agents(0.3, counts, 0.2), by_agents(0.9, counts, 0.2)
    assert (hard <= easy).all()
    ceiling = np.array([float(success_ceiling(p, count, 0.2)) for count in (400, 800, 1600)])
    assert (ceiling[1:] < ceiling[:-1] ** 1.5).all()  # exponentially in N_a


def test_the_ceiling_is_one() -> None:
    p, alpha = GRID[:, None, None], np.array([0.0, 0.01, 0.2, 1.0, 30.0])[:, None]
    alone = np.array([0.0, 0.3, 0.5, 0.8, 1.0])
    for agents in (1, 2, 5, 12):
        value = masked_success(p, agents, alpha, 0.7, alone)
        assert value.shape == (41, 5, 5)
        assert (value <= success_ceiling(p, agents, alpha, 0.7, alone) + 1e-12).all()


@pytest.mark.parametrize(("p", "voters"), [(0.3, 9), (0.7, 6), (0.5, 1)])
def test_votes_cast(p: float, voters: int) -> None:
    assert agrees(simulate_majority(np.random.default_rng(7), DRAWS, p, voters), float(sc_success(p, voters)))


@pytest.mark.parametrize(
    ("p", "agents", "alpha", "missed", "alone"),
    [(0.7, 3, 0.3, 1.0, 1.0), (0.3, 6, 0.2, 1.0, 1.0), (0.4, 5, 0.5, 0.3, 1.0), (0.8, 4, 0.2, 0.5, 0.8)],
)
def test_debates_played_out(p: float, agents: int, alpha: float, missed: float, alone: float) -> None:
    values = simulate_debate(np.random.default_rng(5), DRAWS, p, agents, alpha, missed, alone)
    assert agrees(values, float(masked_success(p, agents, alpha, missed, alone)))


def test_tokens_by_hand() -> None:
    """Three agents, two rounds, question 10; replies 1, 2, 3 and then 4, 5, 6."""
    outputs = [[1, 2, 3], [4, 5, 6]]
    assert plain_tokens(10, outputs) == 60 + 18 + 21
    assert subjective_tokens(10, outputs) == 60 + 36 + 21
    assert objective_tokens(10, outputs) == 60 + 9 + 21
    assert plain_tokens(10, [[1, 2, 3]]) == subjective_tokens(10, [[1, 2, 3]]) == 36


def test_tokens_call_by_call() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        outputs, question = rng.integers(0, 900, (rng.integers(1, 5), rng.integers(1, 7))), float(rng.integers(500))
        plain = simulate_tokens(rng, 10, question, outputs, "plain")
        assert plain == pytest.approx(float(plain_tokens(question, outputs)))
        assert (simulate_tokens(rng, 50, question, outputs, "objective") <= objective_tokens(question, outputs)).all()
        assert (simulate_tokens(rng, 50, question, outputs, "subjective") <= subjective_tokens(question, outputs)).all()
        full = simulate_tokens(rng, 1, question, outputs, "subjective", kept=1.0)
        assert full == pytest.approx(float(subjective_tokens(question, outputs)))  # the bound is attained
        assert objective_tokens(question, outputs) <= plain_tokens(question, outputs)


def test_tokens_in_batches() -> None:
    outputs = np.random.default_rng(0).uniform(0, 100, (8, 3, 4))
    for count in (plain_tokens, subjective_tokens, objective_tokens):
        assert count(5, outputs) == pytest.approx([float(count(5, one)) for one in outputs])


def test_numbers_that_are_none() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        majority(1.2, 3)
    with pytest.raises(ValueError, match="voters: at least 1"):
        majority(0.5, 0)
    with pytest.raises(ValueError, match="alpha"):
        plain_success(0.5, 3, -1.0)
    with pytest.raises(ValueError, match="success"):
        tolerable_false(0.2, 0.0)
    with pytest.raises(ValueError, match="outputs"):
        plain_tokens(1, [1, 2])
    with pytest.raises(ValueError, match="draws"):
        simulate_debate(np.random.default_rng(0), 0, 0.5, 3, 0.1)
