"""Latent concepts: what an agent says, split into its prior and what its peers do to it (R2-MAD, §3, §4, appendix C).

A question and its answer come from a concept θ* out of c concepts. To an agent, a concept θ is worth

    P(θ | …) ∝ P(x | θ) · P(θ) · P(E | θ) · Π_j P(z_j | θ)^{w_j}

with the prior P(θ), the task's likelihood P(x | θ), that of the retrieved experiences P(E | θ), and that of what each
of n peers said, with its weight. Without E and with all w = 1 this is Eq. 2 (Estornell and Liu 2024), else Eq. 3.
Everything is conditional on the agent's parameters φ, which are left out. All n replies count, the agent's own among
them.

Shapes: concepts lie on the last axis; leading axes are a batch and broadcast. `true` and `wrong` are the places of θ*
and of the misconception θ'. Likelihoods need no common scale, since only their ratios over concepts matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from r2mad.theory._arrays import Floats, Ints, chance, distribution, log, nonnegative, positive, real, times_log, whole


def corrected_prior(prior: npt.ArrayLike, evidence: npt.ArrayLike) -> Floats:
    """P(θ | E) = P(θ) · P(E | θ) / P(E): the prior with what the agent remembers (Proposition 4.1, Eq. 9 and 12).

    So P(θ*)/P(θ') is multiplied by P(E | θ*)/P(E | θ') (Eq. 13): it rises if and only if E speaks for θ* (Eq. 10, 14).

    Args:
        prior: P(θ), shape [..., c].
        evidence: P(E | θ), shape [..., c].

    Returns:
        Shape [..., c].

    Raises:
        ValueError: no distribution, a negative likelihood, or an E that no concept of the prior can explain.
    """
    return posterior(prior, np.ones((0, np.shape(prior)[-1])), evidence=evidence)


def vanilla_posterior(prior: npt.ArrayLike, messages: npt.ArrayLike, *, task: npt.ArrayLike | None = None) -> Floats:
    """P(θ | x, Z) of plain debate: the bracket of Eq. 2 without the reply, normalised.

    Args:
        prior: P(θ), shape [..., c].
        messages: P(z_j | θ), shape [..., n, c].
        task: P(x | θ), shape [..., c]; None: the task tells the concepts nothing.

    Returns:
        Shape [..., c].

    Raises:
        ValueError: see `posterior`.
    """
    return posterior(prior, messages, task=task)


def posterior(
    prior: npt.ArrayLike,
    messages: npt.ArrayLike,
    *,
    task: npt.ArrayLike | None = None,
    evidence: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> Floats:
    """P(θ | x, Z, E) with weighted peers: the bracket of Eq. 3 without the reply, normalised.

    Args:
        prior: P(θ), shape [..., c].
        messages: P(z_j | θ), shape [..., n, c]; n may be 0.
        task: P(x | θ), shape [..., c]; None: the same for all.
        evidence: P(E | θ), shape [..., c]; None: no memory.
        weights: w_j ≥ 0, shape [..., n]; None: all 1. A weight of 0 takes the peer out, even one whose message is
            impossible.

    Returns:
        Shape [..., c].

    Raises:
        ValueError: a prior that is no distribution, a negative likelihood or weight, arrays that do not agree on c or
        n,
            or what no concept can explain.
    """
    scores = _scores(prior, messages, task, evidence, weights)
    best = scores.max(axis=-1, keepdims=True)
    if np.isneginf(best).any():
        raise ValueError("no concept can explain what the agent sees: every one has a chance of 0")
    worth = np.exp(scores - best)
    return np.asarray(worth / worth.sum(axis=-1, keepdims=True), dtype=np.float64)


def generation(replies: npt.ArrayLike, belief: npt.ArrayLike) -> Floats:
    """P(z | …) = Σ_θ P(z | θ) · P(θ | …): what the agent says next (Eq. 2 or 3, whichever the belief is of).

    Args:
        replies: P(z | θ) for each possible reply, shape [z, c].
        belief: a posterior, shape [..., c].

    Returns:
        Shape [..., z]; it sums to 1 where the replies of each concept do.

    Raises:
        ValueError: a chance outside [0, 1], or a belief that is no distribution.
    """
    return np.asarray(distribution("belief", belief) @ chance("replies", replies).T, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class LogOdds:
    """L(w, E) in its three parts (Lemma C.2). Each has the batch's shape."""

    vanilla: Floats
    """L^van: the log-odds of plain debate."""
    memory: Floats
    """Λ_mem(E), Eq. 24."""
    confidence: Floats
    """Λ_cw(w, Z), Eq. 25."""

    @property
    def total(self) -> Floats:
        """L = L^van + Λ_mem + Λ_cw (Eq. 23)."""
        return np.asarray(self.vanilla + self.memory + self.confidence, dtype=np.float64)


def log_odds(
    prior: npt.ArrayLike,
    messages: npt.ArrayLike,
    true: int,
    wrong: int,
    *,
    task: npt.ArrayLike | None = None,
    evidence: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> Floats:
    """L = log P(θ* | …)/P(θ' | …) (Definition C.1, Eq. 22), as it follows from Eq. 3; arguments as of `posterior`.

    Raises:
        ValueError: see `posterior`, or a chance of 0 for either concept.
    """
    scores = _scores(prior, messages, task, evidence, weights)
    pair = scores[..., [true, wrong]]
    if np.isneginf(pair).any():
        raise ValueError("log-odds need a chance above 0 for both concepts")
    return np.asarray(pair[..., 0] - pair[..., 1], dtype=np.float64)


def decomposition(
    prior: npt.ArrayLike,
    messages: npt.ArrayLike,
    true: int,
    wrong: int,
    *,
    task: npt.ArrayLike | None = None,
    evidence: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> LogOdds:
    """The log-odds as a sum of plain debate, memory and weights (Lemma C.2, Eq. 23–25); arguments as of `posterior`.

    Neither lift depends on the other, nor on the prior.

    Raises:
        ValueError: see `log_odds`.
    """
    vanilla = log_odds(prior, messages, true, wrong, task=task)
    nothing = np.zeros_like(vanilla)
    memory = nothing if evidence is None else memory_lift(evidence, true, wrong)
    confidence = nothing if weights is None else confidence_lift(messages, weights, true, wrong)
    return LogOdds(vanilla, memory, confidence)


def memory_lift(evidence: npt.ArrayLike, true: int, wrong: int) -> Floats:
    """Λ_mem(E) = log P(E | θ*)/P(E | θ') (Eq. 24).

    It is at least 0 on average if E is drawn from P(E | θ*), where the mean is a Kullback–Leibler divergence. For
    experiences that were retrieved in another way it may be negative: Theorem C.3 takes its sign for granted from
    Proposition 4.1, which only says what follows *if* E speaks for θ*.

    Args:
        evidence: P(E | θ) > 0, shape [..., c].

    Returns:
        Shape [...].

    Raises:
        ValueError: a likelihood that is not above 0.
    """
    return _log_ratio("evidence", evidence, true, wrong)


def confidence_lift(messages: npt.ArrayLike, weights: npt.ArrayLike, true: int, wrong: int) -> Floats:
    """Λ_cw(w, Z) = Σ_j (w_j − 1) · log P(z_j | θ*)/P(z_j | θ') (Eq. 25).

    Args:
        messages: P(z_j | θ) > 0, shape [..., n, c].
        weights: w_j ≥ 0, shape [..., n].

    Returns:
        Shape [...].

    Raises:
        ValueError: a likelihood that is not above 0, or a negative weight.
    """
    ratios = _log_ratio("messages", messages, true, wrong)
    return np.asarray(((nonnegative("weights", weights) - 1) * ratios).sum(axis=-1), dtype=np.float64)


def margin(message: npt.ArrayLike, true: int, wrong: int) -> Floats:
    """κ = log P(z' | θ')/P(z' | θ*): by how much one reply of the majority speaks for the misconception (Theorem C.3).

    Args:
        message: P(z' | θ) > 0, shape [..., c].

    Returns:
        Shape [...]; above 0 for a message that is likelier under θ'.

    Raises:
        ValueError: a likelihood that is not above 0.
    """
    return -_log_ratio("message", message, true, wrong)


def majority_lift(alpha: npt.ArrayLike, majority: npt.ArrayLike, kappa: npt.ArrayLike) -> Floats:
    """Λ_cw = (1 − α)·m·κ (Eq. 31): Eq. 25 where m replies of the same margin κ have weight α and the others 1.

    Where margins differ it holds with m·κ read as their sum.

    Args:
        alpha: α ≥ 0; broadcasts with the others.
        majority: m ≥ 0.
        kappa: κ.

    Raises:
        ValueError: a negative α or m.
    """
    return np.asarray(
        (1 - nonnegative("alpha", alpha)) * nonnegative("majority", majority) * real("kappa", kappa), dtype=np.float64
    )


def rival_ratio(message: npt.ArrayLike, wrong: int) -> Floats:
    """r = max over θ ≠ θ' of P(z' | θ)/P(z' | θ') (Eq. 18 and 21): how near the best rival comes to the misconception.

    The paper says "leading competing concept" of θ*; the largest ratio decays slowest and is our reading of it.

    Args:
        message: P(z' | θ), shape [..., c], largest at θ'.

    Returns:
        Shape [...], in [0, 1).

    Raises:
        ValueError: fewer than two concepts, or a message that is not likeliest under θ' (Eq. 19).
    """
    likelihood = nonnegative("message", message)
    if likelihood.shape[-1] < 2:
        raise ValueError("a rival needs a second concept")
    rival = np.delete(likelihood, wrong, axis=-1).max(axis=-1)
    if (rival >= likelihood[..., wrong]).any():
        raise ValueError("the majority's message must be likeliest under its own concept (Eq. 19)")
    return np.asarray(rival / likelihood[..., wrong], dtype=np.float64)


def dominance_log_rate(ratio: npt.ArrayLike, majority: npt.ArrayLike, alpha: npt.ArrayLike = 1.0) -> Floats:
    """α·m·log r: the majority's part in the log-odds of the best rival against θ' (Proposition 4.2); m·log r for α = 1.

    For m identical replies this is no approximation: the whole log-odds are this and a term without m or α. The weight
    changes the slope in m, not the order nor the limit (Eq. 20): for any α > 0, θ' wins as m grows.

    Args:
        ratio: r in (0, 1); broadcasts with the others.
        majority: m ≥ 0.
        alpha: α ≥ 0, the majority's weight.

    Returns:
        A value of at most 0.

    Raises:
        ValueError: a ratio outside (0, 1), a negative m or α.
    """
    share = chance("ratio", positive("ratio", ratio))
    if (share >= 1).any():
        raise ValueError("ratio: below 1 (Eq. 19)")
    return np.asarray(effective_majority(majority, alpha) * np.log(share), dtype=np.float64)


def effective_majority(majority: npt.ArrayLike, alpha: npt.ArrayLike) -> Floats:
    """α·m: the majority in plain debate that does what m replies of weight α do (Proposition 4.2, step 4).

    Read the other way, m/α replies of weight α are needed for what m do in plain debate; the paper's "effective" size
    m_eff is that number.

    Raises:
        ValueError: a negative m or α.
    """
    return np.asarray(nonnegative("majority", majority) * nonnegative("alpha", alpha), dtype=np.float64)


def simulate_posterior(
    rng: np.random.Generator,
    draws: int,
    prior: npt.ArrayLike,
    messages: npt.ArrayLike,
    *,
    task: npt.ArrayLike | None = None,
    evidence: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> Ints:
    """Concepts drawn from Eq. 3 by rejection, the twin of `posterior`: shares of the outcome estimate it.

    A concept is drawn from the prior and kept if everything seen comes about under it, each with its own chance: the
    task, the experiences, and each message with chance P(z_j | θ)^{w_j}. That is what a weight means: α = ½ makes the
    agent as surprised by a message as by one that is √P likely.

    Args:
        draws: before rejection, at least 1.
        prior: P(θ), shape [c]; the others as of `posterior`, without a batch, and all at most 1.

    Returns:
        The concepts that were kept, shape [k], k ≤ draws.

    Raises:
        ValueError: see `posterior`, or a likelihood above 1.
    """
    belief, said = distribution("prior", prior), chance("messages", messages)
    weight = np.ones(said.shape[0]) if weights is None else nonnegative("weights", weights)
    factors = [np.exp(times_log(weight[:, None], said)).prod(axis=0)]
    factors += [chance(name, value) for name, value in (("task", task), ("evidence", evidence)) if value is not None]
    concepts = rng.choice(belief.shape[0], size=whole("draws", draws, 1), p=belief)
    kept = np.ones(draws, dtype=np.bool_)
    for factor in factors:
        kept &= rng.random(draws) < factor[concepts]
    return np.asarray(concepts[kept], dtype=np.int64)


def _scores(
    prior: npt.ArrayLike,
    messages: npt.ArrayLike,
    task: npt.ArrayLike | None,
    evidence: npt.ArrayLike | None,
    weights: npt.ArrayLike | None,
) -> Floats:
    """Logarithms of the bracket of Eq. 3, without the reply: [..., c]. In logarithms, since r^m soon is no number."""
    belief, said = distribution("prior", prior), nonnegative("messages", messages)
    weight = np.ones(said.shape[:-1]) if weights is None else nonnegative("weights", weights)
    concepts = belief.shape[-1]
    if said.ndim < 2 or said.shape[-1] != concepts or weight.ndim < 1 or weight.shape[-1] != said.shape[-2]:
        raise ValueError(f"messages are [..., n, {concepts}] and weights [..., n], not {said.shape}, {weight.shape}")
    scores = log(belief) + times_log(weight[..., None], said).sum(axis=-2)
    for name, value in (("task", task), ("evidence", evidence)):
        if value is not None:
            likelihood = nonnegative(name, value)
            if likelihood.ndim < 1 or likelihood.shape[-1] != concepts:
                raise ValueError(f"{name}: [..., {concepts}], not {likelihood.shape}")
            scores = scores + log(likelihood)
    return np.asarray(scores, dtype=np.float64)


def _log_ratio(name: str, value: npt.ArrayLike, above: int, below: int) -> Floats:
    likelihood = positive(name, value)
    return np.asarray(np.log(likelihood[..., above]) - np.log(likelihood[..., below]), dtype=np.float64)
