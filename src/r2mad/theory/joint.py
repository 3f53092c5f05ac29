"""The joint guarantee of memory and weights: Theorem C.3 as it is printed, where it fails, and a bound that holds.

**Setting.** Two concepts, θ* and θ'. At the last step every agent i reads the same Z^(T−1) with and without R2-MAD.
Its log-odds are L_i in plain debate and L_i + Δ_i with R2-MAD, Δ_i = Λ_mem + Λ_cw (Eq. 23); Λ_mem is random, as E is.
It answers right with chance P'_i + (P*_i − P'_i)·σ(L_i), P*_i ≥ P'_i (Eq. 29; the paper's shift c_i is taken into
L_i). The *gain* is how much likelier right answers are with R2-MAD, averaged over agents.

**As printed** (Eq. 28), with δ = E[Λ_mem], ρ = inf σ' over the relevant log-odds, and P* − P' taken into ρ:

    gain ≥ ρ·δ + ρ·(1 − α)mκ − R,    |R| ≤ ½·sup|σ''|·(δ + (1 − α)mκ)²

**What is wrong.** (1) The remainder has (E Δ)² where the expansion needs E[Δ²], which is larger by the variance of
Λ_mem. (2) Eq. 30 takes the slope at an unknown ξ *and* a second-order term; it then puts inf σ' for it, which is no
lower bound where Δ < 0. (3) The proof is of one step from one Z^(T−1); whole debates differ in their Z^(T−1), and
nothing is said of that. (4) δ ≥ 0 does not follow from Proposition 4.1 (see `latent.memory_lift`).

**Corrected.** Taylor's theorem around L_i, with the remainder in Lagrange's form: for some η between L_i and L_i + Δ_i,

    σ(L_i + Δ_i) = σ(L_i) + σ'(L_i)·Δ_i + ½·σ''(η)·Δ_i²  ≥  σ(L_i) + σ'(L_i)·Δ_i − ½·S·Δ_i²,    S = sup|σ''| = √3/18

L_i is fixed given Z^(T−1), so the expectation goes through; times P*_i − P'_i ≥ 0, and averaged over agents:

    gain ≥ mean_i (P*_i − P'_i) · ( σ'(L_i)·(δ_i + (1 − α)mκ_i) − ½·S·E[Δ_i²] ),
    E[Δ_i²] = (δ_i + (1 − α)mκ_i)² + Var(Λ_mem)

It needs no sign of δ and no infimum. Where E[Δ_i] ≥ 0 it also holds, weaker, with ρ for σ'(L_i): the printed form and
one more term, ½·S·Var(Λ_mem). For a random Z^(T−1) take the expectation of both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from r2mad.theory._arrays import Floats, chance, distribution, real, whole

CURVATURE = sqrt(3) / 18
"""S, the largest |σ''|: at σ = ½ ± 1/√12, about 0.0962."""


@dataclass(frozen=True, slots=True, eq=False)
class LastStep:
    """What is known of the last step of a debate with n agents and k possible memories each; made by `last_step`."""

    vanilla: Floats
    """L_i given Z^(T−1), shape [..., n]."""
    memory: Floats
    """The values of Λ_mem, shape [..., n, k]."""
    chance: Floats
    """Their chances, shape [..., n, k]."""
    confidence: Floats
    """Λ_cw = (1 − α)mκ_i (Eq. 31), shape [..., n]."""
    right: Floats
    """P*_i, shape [..., n]."""
    wrong: Floats
    """P'_i, shape [..., n]."""

    @property
    def lift(self) -> Floats:
        """The values of Δ_i, shape [..., n, k]."""
        return np.asarray(self.memory + self.confidence[..., None], dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A lower bound of the gain, in parts; each has the batch's shape."""

    memory: Floats
    """The memory's part."""
    confidence: Floats
    """The weights' part."""
    remainder: Floats
    """What is taken off for curvature."""

    @property
    def total(self) -> Floats:
        """The bound."""
        return np.asarray(self.memory + self.confidence - self.remainder, dtype=np.float64)


def last_step(
    vanilla: npt.ArrayLike,
    memory: npt.ArrayLike,
    chances: npt.ArrayLike,
    *,
    confidence: npt.ArrayLike = 0.0,
    right: npt.ArrayLike = 1.0,
    wrong: npt.ArrayLike = 0.0,
) -> LastStep:
    """A checked `LastStep`.

    Args:
        vanilla: L_i, shape [..., n].
        memory: values of Λ_mem, shape [..., n, k].
        chances: of these values, shape [..., n, k].
        confidence: Λ_cw, broadcast to [..., n]; see `latent.majority_lift`.
        right: P*_i, broadcast to [..., n].
        wrong: P'_i, broadcast to [..., n].

    Raises:
        ValueError: shapes that do not agree, chances that are no distribution, or P* < P'.
    """
    base, values, share = real("vanilla", vanilla), real("memory", memory), distribution("chances", chances)
    if base.ndim < 1 or values.shape != share.shape or values.shape[:-1] != base.shape:
        raise ValueError(
            f"vanilla is [..., n], memory and chances [..., n, k]: {base.shape}, {values.shape}, {share.shape}"
        )
    weighed = np.broadcast_to(real("confidence", confidence), base.shape)
    best, worst = (np.broadcast_to(chance(name, x), base.shape) for name, x in (("right", right), ("wrong", wrong)))
    if (best < worst).any():
        raise ValueError("right answers are at least as likely under the true concept: P* >= P'")
    return LastStep(base, values, share, weighed, best, worst)


def counterexample() -> LastStep:
    """One agent, of weight 1, which is the whole majority; L = 1; Λ_mem = +2 or −2 with chances .55 and .45.

    δ = 0.2 is above 0, as the theorem asks, and the gain is −0.086. The printed bound promises +0.007.
    """
    return last_step([1.0], [[2.0, -2.0]], [[0.55, 0.45]])


def gain(step: LastStep) -> Floats:
    """The gain itself, mean_i (P*_i − P'_i)·(E σ(L_i + Δ_i) − σ(L_i)), from Eq. 29; shape [...]."""
    after = (step.chance * sigmoid(step.vanilla[..., None] + step.lift)).sum(axis=-1)
    return np.asarray(((step.right - step.wrong) * (after - sigmoid(step.vanilla))).mean(axis=-1), dtype=np.float64)


def printed_bound(step: LastStep) -> Bound:
    """The right side of Eq. 28 less the left one's accuracy of plain debate, with R as large as it may be.

    Where agents differ, our reading: δ and (1 − α)mκ are means over agents; ρ is the least slope between any L_i and
    any L_i + Δ_i that can occur, times the least P*_i − P'_i; "sup|σ''|" is over all log-odds. **Not a bound**: see
    `counterexample`.
    """
    reached = step.vanilla[..., None] + step.lift
    reached = np.where(step.chance > 0, reached, step.vanilla[..., None])
    both = np.concatenate([step.vanilla[..., None], reached], axis=-1)
    # σ' falls on both sides of 0, so its least value over an interval is at an end
    slope = np.minimum(sigmoid_slope(both.min(axis=(-2, -1))), sigmoid_slope(both.max(axis=(-2, -1))))
    rho = slope * (step.right - step.wrong).min(axis=-1)
    delta, weighed = (step.chance * step.memory).sum(axis=-1).mean(axis=-1), step.confidence.mean(axis=-1)
    return Bound(rho * delta, rho * weighed, 0.5 * CURVATURE * (delta + weighed) ** 2)


def corrected_bound(step: LastStep) -> Bound:
    """A lower bound of the gain that holds for every `LastStep`: the module's docstring derives it."""
    spread = step.right - step.wrong
    slope = spread * sigmoid_slope(step.vanilla)
    delta = (step.chance * step.memory).sum(axis=-1)
    second = (step.chance * step.lift**2).sum(axis=-1)
    return Bound(
        (slope * delta).mean(axis=-1),
        (slope * step.confidence).mean(axis=-1),
        (0.5 * CURVATURE * spread * second).mean(axis=-1),
    )


def simulate_gain(rng: np.random.Generator, draws: int, step: LastStep) -> Floats:
    """The twin of `gain`: last steps played out, with and without R2-MAD on the same luck.

    Each agent draws a memory, then a concept from its log-odds, then a right or wrong answer from the concept.

    Args:
        draws: at least 1.
        step: without a batch, so L_i has shape [n].

    Returns:
        For each draw the difference of the shares of right answers, shape [draws]; its mean estimates the gain.

    Raises:
        ValueError: a batch, or no draws.
    """
    if step.vanilla.ndim != 1:
        raise ValueError("one last step at a time")
    size = (whole("draws", draws, 1), step.vanilla.shape[0])
    edges = np.cumsum(step.chance, axis=-1)[:, :-1]  # without the last, which rounding may leave below 1
    drawn = (rng.random(size)[..., None] >= edges).sum(axis=-1)
    lift = np.take_along_axis(step.lift, drawn.T, axis=-1).T
    concept, answer = rng.random(size), rng.random(size)

    def right(odds: Floats) -> Floats:
        share = np.where(concept < sigmoid(odds), step.right, step.wrong)
        return np.asarray((answer < share).mean(axis=-1), dtype=np.float64)

    return right(step.vanilla + lift) - right(np.broadcast_to(step.vanilla, size))


def sigmoid(value: Floats) -> Floats:
    """σ(u) = 1/(1 + e^−u), elementwise, without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * value)), dtype=np.float64)


def sigmoid_slope(value: Floats) -> Floats:
    """σ'(u) = σ(u)·σ(−u), elementwise."""
    return np.asarray(sigmoid(value) * sigmoid(-value), dtype=np.float64)
