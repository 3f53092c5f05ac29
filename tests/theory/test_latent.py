"""Latent concepts: the identities of the paper, against plain products, and rejection sampling."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2mad.theory import (
    confidence_lift,
    corrected_prior,
    decomposition,
    dominance_log_rate,
    effective_majority,
    generation,
    log_odds,
    majority_lift,
    margin,
    memory_lift,
    posterior,
    rival_ratio,
    simulate_posterior,
    vanilla_posterior,
)
from r2mad.theory._arrays import Floats
from tests.theory.near import DRAWS, agrees

TIGHT = 1e-10
seeds = st.integers(0, 2**32 - 1)


def _case(seed: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """(prior, messages, task, evidence, weights) of a random agent among up to 6 peers with up to 5 concepts."""
    rng = np.random.default_rng(seed)
    concepts, peers = int(rng.integers(2, 6)), int(rng.integers(1, 7))
    prior = rng.dirichlet(np.ones(concepts))
    messages, task, evidence = (rng.uniform(0.01, 1, size) for size in ((peers, concepts), concepts, concepts))
    return prior, messages, task, evidence, rng.uniform(0, 2, peers)


@settings(deadline=None)  # machines may be busy
@given(seeds)
def test_eq_2_and_3_are_plain_products(seed: int) -> None:
    prior, messages, task, evidence, weights = _case(seed)
    memory = corrected_prior(prior, evidence)
    full = [task[c] * memory[c] * prod(messages[:, c] ** weights) for c in range(len(prior))]
    plain = [task[c] * prior[c] * prod(messages[:, c]) for c in range(len(prior))]
    found = posterior(prior, messages, task=task, evidence=evidence, weights=weights)
    assert found == pytest.approx(np.array(full) / sum(full), abs=TIGHT)
    assert vanilla_posterior(prior, messages, task=task) == pytest.approx(np.array(plain) / sum(plain), abs=TIGHT)
    ones = np.ones(len(weights))
    assert posterior(prior, messages, task=task, weights=ones) == pytest.approx(np.array(plain) / sum(plain), abs=TIGHT)
    replies = np.random.default_rng(seed).dirichlet(np.ones(3), size=len(prior)).T  # P(z | θ), [z, c]
    said = generation(replies, found)
    assert said == pytest.approx([sum(row * found) for row in replies], abs=TIGHT)
    assert said.sum() == pytest.approx(1, abs=TIGHT)


@settings(deadline=None)  # machines may be busy
@given(seeds)
def test_proposition_4_1(seed: int) -> None:
    """Eq. 9 with its marginal, Eq. 13, and the direction of Eq. 10 and 14."""
    prior, _, _, evidence, _ = _case(seed)
    found = corrected_prior(prior, evidence)
    assert found == pytest.approx(prior * evidence / (prior @ evidence), abs=TIGHT)
    before, after = prior[0] / prior[1], found[0] / found[1]
    assert np.log(after) == pytest.approx(np.log(before) + memory_lift(evidence, 0, 1), abs=TIGHT)
    if abs(evidence[0] - evidence[1]) > 1e-9:
        assert (after > before) == (evidence[0] > evidence[1])


@settings(deadline=None)  # machines may be busy
@given(seeds)
def test_lemma_c_2(seed: int) -> None:
    """Eq. 23: the parts, each from its own formula, add up to the log-odds of the whole posterior."""
    prior, messages, task, evidence, weights = _case(seed)
    parts = decomposition(prior, messages, 0, 1, task=task, evidence=evidence, weights=weights)
    whole = posterior(prior, messages, task=task, evidence=evidence, weights=weights)
    plain = vanilla_posterior(prior, messages, task=task)
    assert parts.total == pytest.approx(np.log(whole[0] / whole[1]), abs=TIGHT)
    assert parts.vanilla == pytest.approx(np.log(plain[0] / plain[1]), abs=TIGHT)
    assert parts.memory == pytest.approx(np.log(evidence[0] / evidence[1]), abs=TIGHT)
    by_hand = sum((w - 1) * np.log(row[0] / row[1]) for w, row in zip(weights, messages, strict=True))
    assert parts.confidence == pytest.approx(by_hand, abs=TIGHT)
    direct = log_odds(prior, messages, 0, 1, task=task, evidence=evidence, weights=weights)
    assert parts.total == pytest.approx(direct, abs=TIGHT)
    neither = decomposition(prior, messages, 0, 1, task=task)
    assert neither.memory == 0
    assert neither.confidence == 0


@settings(deadline=None)  # machines may be busy
@given(seeds, st.integers(0, 6), st.floats(0, 1))
def test_eq_31(seed: int, majority: int, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    said, others = rng.uniform(0.01, 1, 3), rng.uniform(0.01, 1, (2, 3))
    messages = np.vstack([np.tile(said, (majority, 1)), others])
    weights = np.array([alpha] * majority + [1.0, 1.0])
    lift = majority_lift(alpha, majority, margin(said, 0, 1))
    assert lift == pytest.approx(confidence_lift(messages, weights, 0, 1), abs=TIGHT)


def test_the_memory_lift_is_a_divergence_if_drawn_under_the_truth() -> None:
    rng = np.random.default_rng(4)
    table = rng.dirichlet(np.ones(5), size=(1000, 2))  # P(E | θ) of five possible memories
    lifts = memory_lift(np.swapaxes(table, 1, 2), 0, 1)
    assert ((table[:, 0] * lifts).sum(axis=-1) >= 0).all()
    assert ((table[:, 1] * lifts).sum(axis=-1) <= 0).all()  # and is none if the wrong concept chooses them


def test_proposition_4_2() -> None:
    """The log-odds of the best rival against θ' are a line in m, its slope α·log r; in plain debate αm do as much."""
    rng = np.random.default_rng(1)
    said, others, prior = np.array([0.2, 0.6, 0.5, 0.1]), rng.uniform(0.1, 1, (2, 4)), rng.dirichlet(np.ones(4))
    ratio = rival_ratio(said, wrong=1)
    assert ratio == pytest.approx(0.5 / 0.6, abs=TIGHT)

    def against(majority: int, alpha: float) -> float:
        messages = np.vstack([np.tile(said, (majority, 1)), others])
        return float(log_odds(prior, messages, 2, 1, weights=np.array([alpha] * majority + [1.0, 1.0])))

    for alpha in (1.0, 0.5, 0.24):
        for majority in (1, 4, 1000):  # r^1000 is no number, its logarithm is
            fall = against(majority, alpha) - against(0, alpha)
            assert fall == pytest.approx(dominance_log_rate(ratio, majority, alpha), abs=1e-9)
    assert against(8, 0.5) == pytest.approx(against(4, 1.0), abs=TIGHT)
    assert effective_majority(8, 0.5) == 4
    assert against(4, 0.5) > against(4, 1.0)


def test_the_limit_is_the_misconception_whatever_the_weight() -> None:
    """Eq. 20: the ratio of two replies' chances tends to their ratio under θ'."""
    said, prior = np.array([0.3, 0.6, 0.5]), np.array([0.6, 0.1, 0.3])
    replies = np.array([[0.7, 0.2, 0.1], [0.3, 0.8, 0.9]])
    for alpha in (1.0, 0.3):
        belief = posterior(prior, np.tile(said, (2000, 1)), weights=np.full(2000, alpha))
        first, second = generation(replies, belief)
        assert first / second == pytest.approx(0.2 / 0.8, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_posterior_is_what_rejection_leaves(seed: int) -> None:
    prior, *likelihoods, weights = _case(seed)
    messages, task, evidence = (0.5 + 0.5 * likelihood for likelihood in likelihoods)  # or few would be kept
    kept = simulate_posterior(
        np.random.default_rng(seed), DRAWS, prior, messages, task=task, evidence=evidence, weights=weights
    )
    assert kept.size > 1000
    found = posterior(prior, messages, task=task, evidence=evidence, weights=weights)
    for concept, share in enumerate(found.tolist()):
        assert abs((kept == concept).mean() - share) <= 4.5 * np.sqrt(share * (1 - share) / kept.size) + 1e-12


def test_rejection_of_plain_debate() -> None:
    prior, messages = np.array([0.5, 0.3, 0.2]), np.array([[0.9, 0.5, 0.4], [0.2, 0.8, 0.4]])
    kept = simulate_posterior(np.random.default_rng(3), DRAWS, prior, messages)
    assert agrees((kept == 1).astype(np.float64), float(vanilla_posterior(prior, messages)[1]))


def test_batches() -> None:
    rng = np.random.default_rng(2)
    prior, messages = rng.dirichlet(np.ones(3), size=7), rng.uniform(0, 1, (7, 4, 3))
    weights, evidence = rng.uniform(0, 2, (7, 4)), rng.uniform(0, 1, (7, 3))
    whole = posterior(prior, messages, evidence=evidence, weights=weights)
    parts = decomposition(prior, messages, 0, 2, evidence=evidence, weights=weights)
    for place in range(7):
        one = posterior(prior[place], messages[place], evidence=evidence[place], weights=weights[place])
        assert whole[place] == pytest.approx(one, abs=TIGHT)
        assert parts.total[place] == pytest.approx(np.log(one[0] / one[2]), abs=TIGHT)
    assert posterior(prior[0], messages).shape == (7, 3)


def test_what_is_impossible() -> None:
    half, zero = [0.5, 0.5], [[0.0, 0.4]]
    assert posterior(half, zero).tolist() == [0, 1]
    assert posterior(half, zero, weights=[0.0]).tolist() == half  # nobody listens
    assert posterior(half, np.ones((0, 2))).tolist() == half
    with pytest.raises(ValueError, match="no concept can explain"):
        posterior(half, [[0.0, 0.0]])
    with pytest.raises(ValueError, match="above 0 for both"):
        log_odds(half, zero, 0, 1)


@pytest.mark.parametrize(
    ("prior", "messages", "more", "message"),
    [
        ([0.5, 0.6], [[1, 1]], {}, "sum to 1"),
        ([1.5, -0.5], [[1, 1]], {}, "no negative"),
        ([0.5, 0.5], [[1, float("nan")]], {}, "finite"),
        ([0.5, 0.5], [[1, 1, 1]], {}, "messages are"),
        ([0.5, 0.5], [1, 1], {}, "messages are"),
        ([0.5, 0.5], [[1, 1]], {"weights": [1, 1]}, "messages are"),
        ([0.5, 0.5], [[1, 1]], {"weights": [-1]}, "no negative"),
        ([0.5, 0.5], [[1, 1]], {"evidence": [1]}, "evidence"),
        ([0.5, 0.5], [[1, 1]], {"task": [1, 2, 3]}, "task"),
    ],
)
def test_arguments_that_are_none(
    prior: list[float], messages: list[list[float]], more: dict[str, list[float]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        posterior(prior, messages, **more)


@pytest.mark.parametrize("ratio", [0.0, 1.0, -0.1, 1.1])
def test_a_ratio_lies_between_0_and_1(ratio: float) -> None:
    with pytest.raises(ValueError, match="ratio"):
        dominance_log_rate(ratio, 3)


def test_a_majority_speaks_for_its_own_concept() -> None:
    with pytest.raises(ValueError, match="its own concept"):
        rival_ratio([0.5, 0.5], wrong=1)
    with pytest.raises(ValueError, match="second concept"):
        rival_ratio([0.5], wrong=0)
    with pytest.raises(ValueError, match="above 0"):
        memory_lift([0.0, 0.5], 0, 1)
    with pytest.raises(ValueError, match="lies between"):
        simulate_posterior(np.random.default_rng(0), 10, [0.5, 0.5], [[2.0, 1.0]])
