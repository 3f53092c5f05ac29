"""Theorem C.3: false as printed, and the bound that replaces it, on 20,000 random debates and on whole models."""

from __future__ import annotations

import numpy as np
import pytest

from r2mad.theory import (
    LastStep,
    corrected_bound,
    counterexample,
    gain,
    generation,
    last_step,
    majority_lift,
    margin,
    memory_lift,
    posterior,
    printed_bound,
    simulate_gain,
    vanilla_posterior,
)
from r2mad.theory.joint import CURVATURE, sigmoid, sigmoid_slope
from tests.theory.near import DRAWS, agrees

INSTANCES = 20_000


def test_the_printed_bound_is_violated() -> None:
    step = counterexample()
    printed = printed_bound(step)
    assert float(gain(step)) == pytest.approx(-0.086119, abs=1e-6)
    assert float(printed.total) == pytest.approx(0.007111, abs=1e-6)
    assert printed.confidence == 0  # weight 1
    assert (step.chance * step.memory).sum() == pytest.approx(0.2)  # δ ≥ 0, as the theorem asks
    assert float(corrected_bound(step).total) == pytest.approx(-0.153128, abs=1e-6)


def _random(seed: int, agents: int, memories: int, spread: float) -> LastStep:
    """INSTANCES debates: any log-odds, lifts, weights and margins; P* ≥ P' in all."""
    rng = np.random.default_rng(seed)
    size = (INSTANCES, agents)
    ends = np.sort(rng.uniform(0, 1, (*size, 2)), axis=-1)
    return last_step(
        rng.normal(0, 3, size),
        spread * rng.normal(0.2, 1, (*size, memories)),
        rng.dirichlet(np.full(memories, 0.7), size=size),
        confidence=majority_lift(
            rng.uniform(0, 1, size), rng.integers(1, 6, size), spread * rng.exponential(0.5, size)
        ),
        right=ends[..., 1],
        wrong=ends[..., 0],
    )


@pytest.mark.parametrize(("agents", "memories"), [(1, 2), (3, 4), (6, 3)])
@pytest.mark.parametrize("spread", [0.05, 0.5, 3.0])
def test_the_corrected_bound_holds(agents: int, memories: int, spread: float) -> None:
    step = _random(agents, agents, memories, spread)
    room = gain(step) - corrected_bound(step).total
    assert room.shape == (INSTANCES,)
    assert room.min() >= -1e-12


def test_the_corrected_bound_says_something() -> None:
    """For small lifts it is above 0, and near the gain: the remainder is of second order."""
    step = _random(5, 3, 4, 0.05)
    bound, value = corrected_bound(step).total, gain(step)
    assert (bound > 0).mean() > 0.3
    wide = last_step([0.0], [[0.001]], [[1.0]])
    assert float(corrected_bound(wide).total / gain(wide)) == pytest.approx(1, abs=1e-3)
    assert (value >= bound - 1e-12).all()


def test_the_printed_bound_fails_often_enough_to_matter() -> None:
    """One agent, P* = 1, P' = 0, δ ≥ 0: all that the theorem asks."""
    rng = np.random.default_rng(8)
    memory, share = rng.normal(0.3, 1.5, (INSTANCES, 1, 3)), rng.dirichlet(np.ones(3), size=(INSTANCES, 1))
    step = last_step(rng.normal(0, 2, (INSTANCES, 1)), memory, share)
    asked = (share * memory).sum(axis=(-1, -2)) >= 0
    broken = printed_bound(step).total > gain(step) + 1e-12
    assert (broken & asked).sum() > 100
    assert (corrected_bound(step).total <= gain(step) + 1e-12).all()


def test_the_printed_form_holds_with_the_variance_added() -> None:
    """Where E[Δ_i] ≥ 0 the infimum may stand for the slope; what the paper's R lacks is ½·S·Var(Λ_mem)."""
    rng = np.random.default_rng(9)
    memory, share = rng.normal(0.4, 1, (INSTANCES, 1, 3)), rng.dirichlet(np.ones(3), size=(INSTANCES, 1))
    step = last_step(rng.normal(0, 2, (INSTANCES, 1)), memory, share, confidence=rng.exponential(0.5, (INSTANCES, 1)))
    mean = (share * memory).sum(axis=-1)
    variance = ((share * memory**2).sum(axis=-1) - mean**2)[:, 0]
    asked = (mean + step.confidence)[:, 0] >= 0
    mended = printed_bound(step).total - 0.5 * CURVATURE * variance
    assert (gain(step) - mended)[asked].min() >= -1e-12


def test_without_randomness_both_have_one_remainder() -> None:
    step = last_step([0.5], [[0.3]], [[1.0]], confidence=0.2)
    assert printed_bound(step).remainder == pytest.approx(corrected_bound(step).remainder)
    assert printed_bound(step).total <= gain(step)


def test_the_gain_is_that_of_the_whole_model() -> None:
    """Two concepts, a table of memories, a majority: accuracies from Eq. 2 and 3, agent by agent."""
    rng = np.random.default_rng(12)
    for _ in range(200):
        agents, majority, memories = 4, 3, 3
        alpha = float(rng.uniform(0, 1))
        weights = np.array([alpha] * majority + [1.0])
        table = rng.uniform(0.05, 1, (memories, 2))  # P(E | θ), of each memory that may be retrieved
        share = rng.dirichlet(np.ones(memories), size=agents)
        said = np.vstack([np.tile(np.sort(rng.uniform(0.05, 1, 2)), (majority, 1)), rng.uniform(0.05, 1, (1, 2))])
        ends = np.sort(rng.uniform(0, 1, (agents, 2)), axis=-1)
        priors = rng.dirichlet(np.ones(2), size=agents)
        accuracy = 0.0
        odds = []
        for agent in range(agents):
            replies = np.array([[ends[agent, 1], ends[agent, 0]]])  # P(right | θ*), P(right | θ')
            plain = vanilla_posterior(priors[agent], said)
            odds.append(np.log(plain[0] / plain[1]))
            after = posterior(priors[agent], said[None], evidence=table, weights=weights[None])
            accuracy += share[agent] @ generation(replies, after)[:, 0] - generation(replies, plain)[0]
        step = last_step(
            odds,
            np.tile(memory_lift(table, 0, 1), (agents, 1)),
            share,
            confidence=majority_lift(alpha, majority, margin(said[0], 0, 1)),
            right=ends[:, 1],
            wrong=ends[:, 0],
        )
        assert float(gain(step)) == pytest.approx(accuracy / agents, abs=1e-10)
        assert accuracy / agents >= float(corrected_bound(step).total) - 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_the_gain_against_debates_played_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.uniform(0, 1, (3, 2)), axis=-1)
    step = last_step(
        rng.normal(0, 1, 3),
        rng.normal(0.2, 1, (3, 4)),
        rng.dirichlet(np.ones(4), size=3),
        confidence=rng.exponential(0.5, 3),
        right=ends[:, 1],
        wrong=ends[:, 0],
    )
    assert agrees(simulate_gain(rng, DRAWS, step), float(gain(step)))


def test_the_counterexample_played_out() -> None:
    values = simulate_gain(np.random.default_rng(1), DRAWS, counterexample())
    assert agrees(values, float(gain(counterexample())))
    assert values.mean() < float(printed_bound(counterexample()).total) - 0.08


def test_the_curvature_is_the_largest() -> None:
    grid = np.linspace(-10, 10, 400_001)
    second = sigmoid_slope(grid) * (1 - 2 * sigmoid(grid))
    assert np.abs(second).max() == pytest.approx(CURVATURE, abs=1e-9)
    assert np.abs(second).max() <= CURVATURE + 1e-15
    assert sigmoid(np.array([-1e4, 1e4])).tolist() == [0, 1]


def test_steps_that_are_none() -> None:
    with pytest.raises(ValueError, match="P\\*"):
        last_step([0.0], [[1.0]], [[1.0]], right=0.2, wrong=0.4)
    with pytest.raises(ValueError, match="memory and chances"):
        last_step([0.0, 1.0], [[1.0]], [[1.0]])
    with pytest.raises(ValueError, match="sum to 1"):
        last_step([0.0], [[1.0, 2.0]], [[0.5, 0.6]])
    with pytest.raises(ValueError, match="at a time"):
        simulate_gain(np.random.default_rng(0), 5, last_step([[0.0]], [[[1.0]]], [[[1.0]]]))
