"""Debate as a game of urns: plain debate drifts nowhere, confidence gives it a direction (seed 002).

Agent i believes in answer k as its pseudo-counts α_k do: its answer is drawn from their mean α_k/S, S = Σ α_k (a
Dirichlet–categorical model, Choi et al. 2025). Reading agent j's answer adds 1 to the count of that answer in plain
debate, and j's confidence c_j in a confidence-weighted one. p_{i,t} is agent i's belief in the right answer.

We have only a summary of the paper; Lemma 1 (Eq. 38) is in it in full, Lemma 2 (Eq. 47), Assumption 1 and Corollary 1
(Eq. 51) without the definitions of ω and ρ. **Our reading**: ω_j = E[c_j]/Σ E[c] and ρ_j = E[c_j·1(j right)]/E[c_j],
so that q = E[Δ^(right)]/E[Δ]; then ρ_j − p_j = Cov(c_j, 1(j right))/E[c_j], and the assumption ρ ≥ p is positive
correlation.

**What holds.** One step changes the belief by Σ_j c_j·(1(j right) − p)/(S + Σ_j c_j). With equal c its mean is 0: a
martingale. With q > p alone its mean need *not* be above 0, since the denominator is random and grows with confidence
(`misleading`). It is above 0, a strict submartingale, if a right answer's confidence dominates a wrong one's in first
order, and not only on average: x/(S + D + x) rises with x for any sum D of the other confidences. With two levels, one
for right and one for wrong answers, both conditions are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from r2mad.theory._arrays import (
    SUM,
    Floats,
    Ints,
    chance,
    distribution,
    log_factorials,
    nonnegative,
    positive,
    times_log,
    whole,
)

MOST = 200_000
"""Cases that `expected_belief` adds up: a second's work; six peers with six levels are 12,376."""


@dataclass(frozen=True, slots=True, eq=False)
class Confidence:
    """How sure agents say they are: levels, and their chances after right and after wrong answers; each of shape [l].

    Raises:
        ValueError: levels not above 0 (Lemma 1 needs Δ > 0) or not all different, or chances that are no
            distributions over them.
    """

    levels: Floats
    """c > 0."""
    if_right: Floats
    """P(c | right)."""
    if_wrong: Floats
    """P(c | wrong)."""

    def __post_init__(self) -> None:
        levels = positive("levels", self.levels)
        shares = [distribution(name, getattr(self, name)) for name in ("if_right", "if_wrong")]
        if levels.ndim != 1 or any(share.shape != levels.shape for share in shares):
            raise ValueError("levels and their chances are three rows of the same length")
        if np.unique(levels).size != levels.size:
            raise ValueError("levels: all different")
        for name, value in zip(("levels", "if_right", "if_wrong"), (levels, *shares), strict=True):
            object.__setattr__(self, name, value)  # frozen: normalised once, here

    @property
    def mean_right(self) -> float:
        """E[c | right]."""
        return float(self.if_right @ self.levels)

    @property
    def mean_wrong(self) -> float:
        """E[c | wrong]."""
        return float(self.if_wrong @ self.levels)

    def covariance(self, p: npt.ArrayLike) -> Floats:
        """Cov(c, 1(right)) = p(1 − p)·(E[c | right] − E[c | wrong]) for agents that are right with chance p."""
        share = chance("p", p)
        return np.asarray(share * (1 - share) * (self.mean_right - self.mean_wrong), dtype=np.float64)

    @property
    def dominates(self) -> bool:
        """Whether a right answer's confidence dominates a wrong one's in first order, and differs from it."""
        order = np.argsort(self.levels, kind="stable")
        return dominates(self.if_right[order], self.if_wrong[order])


PLAIN = Confidence(np.ones(1), np.ones(1), np.ones(1))
"""Everybody counts 1: plain debate."""


def misleading() -> Confidence:
    """Right answers are surer on average (6.4 against 5), and yet for S = 1 and a single peer belief in them falls.

    They are stated with 10 or 1, wrong ones always with 5, and what is gained is concave in c: x/(1 + x) is .75
    against .83.
    """
    return Confidence(np.array([1.0, 5.0, 10.0]), np.array([0.4, 0.0, 0.6]), np.array([0.0, 1.0, 0.0]))


def belief(counts: npt.ArrayLike) -> Floats:
    """α_k/S: the mean of the Dirichlet distribution, which an answer is drawn from; shape [..., K] for counts [..., K].

    Raises:
        ValueError: counts that are not above 0.
    """
    alpha = positive("counts", counts)
    return np.asarray(alpha / alpha.sum(axis=-1, keepdims=True), dtype=np.float64)


def update(
    counts: npt.ArrayLike, answers: npt.ArrayLike, reads: npt.ArrayLike, confidence: npt.ArrayLike | None = None
) -> Floats:
    """The counts after a round: α_i + Σ_j reads_ij·c_j·e(answer_j).

    Args:
        counts: α, shape [..., n, K].
        answers: places of the agents' answers, shape [..., n].
        reads: 1 in row i and column j where agent i reads agent j, else 0; shape [n, n].
        confidence: c_j ≥ 0, shape [..., n]; None: all 1, plain debate.

    Returns:
        Shape [..., n, K].

    Raises:
        ValueError: counts that are not above 0, or a negative confidence.
    """
    alpha, place = positive("counts", counts), np.asarray(answers, dtype=np.int64)
    weight = np.ones(place.shape) if confidence is None else nonnegative("confidence", confidence)
    said = weight[..., None] * (place[..., None] == np.arange(alpha.shape[-1]))
    return np.asarray(alpha + nonnegative("reads", reads) @ said, dtype=np.float64)


def expected_plain(counts: npt.ArrayLike, reads: npt.ArrayLike) -> Floats:
    """E[belief after one plain round]: λ_i·p_i + (1 − λ_i)·(mean of p_j over those read), λ_i = S_i/(S_i + |N(i)|).

    It is p_i for every agent if all believe alike; and the agents' mean stays if all have the same S, read equally
    many, and are read equally often. These are the martingales of plain debate.

    Args:
        counts: α, shape [..., n, K].
        reads: shape [n, n].

    Returns:
        Shape [..., n, K].

    Raises:
        ValueError: counts that are not above 0.
    """
    alpha, seen = positive("counts", counts), nonnegative("reads", reads)
    mass = alpha.sum(axis=-1, keepdims=True) + seen.sum(axis=-1)[:, None]
    return np.asarray((alpha + seen @ belief(alpha)) / mass, dtype=np.float64)


def convex_form(mass: npt.ArrayLike, confidence: npt.ArrayLike, correct: npt.ArrayLike) -> tuple[Floats, Floats]:
    """(λ, q) of Lemma 1: p_t = λ·p_{t−1} + (1 − λ)·q, with λ = S/(S + Δ) and q = Δ^(right)/Δ (Eq. 38), Δ = Σ_j c_j.

    Args:
        mass: S of the agent before, shape [...].
        confidence: c_j of those it reads, shape [..., m].
        correct: 1 where j is right, else 0; shape [..., m].

    Returns:
        Two of shape [...].

    Raises:
        ValueError: S or Δ not above 0, a negative confidence, or `correct` outside [0, 1].
    """
    prior, weight = positive("mass", mass), nonnegative("confidence", confidence)
    total = positive("the sum of confidences", weight.sum(axis=-1))
    q = (weight * chance("correct", correct)).sum(axis=-1) / total
    return np.asarray(prior / (prior + total), dtype=np.float64), np.asarray(q, dtype=np.float64)


def confident_shares(
    p: npt.ArrayLike, mean_right: npt.ArrayLike, mean_wrong: npt.ArrayLike
) -> tuple[Floats, Floats, Floats]:
    """(ω, ρ, q) of Lemma 2: q = Σ_j ω_j·ρ_j (Eq. 47), in expectation (our reading; the realised q is `convex_form`'s).

    E[c_j] = p_j·E[c_j | right] + (1 − p_j)·E[c_j | wrong]; ω_j is its share, ρ_j = p_j·E[c_j | right]/E[c_j]. If right
    answers are the surer ones, ρ_j ≥ p_j (Assumption 1), and for equal p_j so is q ≥ p (Corollary 1, Eq. 51).

    Args:
        p: p_j of those read, shape [..., m].
        mean_right: E[c_j | right] > 0, shape [..., m].
        mean_wrong: E[c_j | wrong] > 0, shape [..., m].

    Returns:
        Shapes [..., m], [..., m], [...].

    Raises:
        ValueError: p outside [0, 1], or a mean that is not above 0.
    """
    share = chance("p", p)
    right = share * positive("mean_right", mean_right)
    mean = right + (1 - share) * positive("mean_wrong", mean_wrong)
    omega, rho = mean / mean.sum(axis=-1, keepdims=True), right / mean
    return omega, rho, np.asarray((omega * rho).sum(axis=-1), dtype=np.float64)


def expected_belief(p: npt.ArrayLike, mass: float, peers: int, confidence: Confidence = PLAIN) -> Floats:
    """E[p_t | p_{t−1} = p], exactly: every split of `peers` equal agents over right and wrong answers and levels.

    It is p for equal confidences; above p for 0 < p < 1 if `confidence.dominates`.

    Args:
        p: the belief of the agent and of those it reads, shape [...].
        mass: S > 0.
        peers: how many it reads, at least 1; itself among them, if it reads itself.
        confidence: of all.

    Returns:
        Shape [...].

    Raises:
        ValueError: a value out of range, or more than 200,000 cases.
    """
    share, prior = chance("p", p)[..., None], float(positive("mass", mass))
    kinds = 2 * confidence.levels.shape[0]
    if comb(whole("peers", peers, 1) + kinds - 1, peers) > MOST:
        raise ValueError(f"{peers} peers with {kinds // 2} levels have too many cases; simulate them")
    split = _splits(peers, kinds)
    each = np.concatenate([share * confidence.if_right, (1 - share) * confidence.if_wrong], axis=-1)
    factorials = log_factorials(peers)
    ways = factorials[peers] - factorials[split].sum(axis=-1)
    chances = np.exp(ways + times_log(split.astype(np.float64), each[..., None, :]).sum(axis=-1))
    right = split[:, : kinds // 2] @ confidence.levels
    total = right + split[:, kinds // 2 :] @ confidence.levels
    return np.asarray((chances * (prior * share + right) / (prior + total)).sum(axis=-1), dtype=np.float64)


def simulate_beliefs(
    rng: np.random.Generator,
    draws: int,
    counts: npt.ArrayLike,
    agents: int,
    rounds: int,
    confidence: Confidence = PLAIN,
) -> Floats:
    """The twin of `expected_belief`, over many rounds: equal agents that all read each other and themselves.

    They see the same, so they go on believing the same. Each draws its answer; a right one (place 0) is stated with a
    confidence from `if_right`, any other from `if_wrong`.

    Args:
        draws: debates, at least 1.
        counts: α of all agents at the start, shape [K]; place 0 is the right answer.
        agents: n, at least 1.
        rounds: at least 0.

    Returns:
        The belief in the right answer before each round and after the last, shape [draws, rounds + 1].

    Raises:
        ValueError: counts that are not above 0, no draw or no agent.
    """
    alpha = np.tile(positive("counts", counts), (whole("draws", draws, 1), 1))
    everyone = np.ones((1, whole("agents", agents, 1)))  # one row: all agents read all, and stay alike
    path = [belief(alpha)[:, 0]]
    for _ in range(whole("rounds", rounds)):
        edges = np.cumsum(belief(alpha), axis=-1)[:, :-1]
        answers = (rng.random((draws, agents))[..., None] >= edges[:, None, :]).sum(axis=-1)
        luck = rng.random((draws, agents))
        levels = [confidence.levels[_drawn(luck, share)] for share in (confidence.if_right, confidence.if_wrong)]
        said = np.where(answers == 0, levels[0], levels[1])
        alpha = update(alpha[:, None, :], answers, everyone, said)[:, 0, :]
        path.append(belief(alpha)[:, 0])
    return np.stack(path, axis=-1)


def dominates(one: npt.ArrayLike, other: npt.ArrayLike) -> bool:
    """Whether a distribution over ordered values dominates another in first order, and strictly somewhere.

    Args:
        one: chances, shape [s], the smallest value first.
        other: chances over the same values, shape [s].

    Raises:
        ValueError: no distributions, or not over as many values.
    """
    first, second = distribution("one", one), distribution("other", other)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError("both are distributions over the same values")
    lead = np.cumsum(second) - np.cumsum(first)
    return bool((lead >= -SUM).all() and (lead > SUM).any())


def _drawn(luck: Floats, share: Floats) -> Ints:
    return np.asarray((luck[..., None] >= np.cumsum(share)[:-1]).sum(axis=-1), dtype=np.int64)


def _splits(things: int, kinds: int) -> Ints:
    """All ways to split so many things over so many kinds, shape [ways, kinds]: stars and bars."""
    bars = np.array(list(combinations(range(things + kinds - 1), kinds - 1)), dtype=np.int64).reshape(-1, kinds - 1)
    edge = np.full((bars.shape[0], 1), -1, dtype=np.int64)
    return np.diff(np.concatenate([edge, bars, edge + things + kinds], axis=-1), axis=-1) - 1
