"""False memories: self-consistency, plain and masked debate, and what they cost (MAD-M², seed 001).

Assumption 2.1: an agent that reads N_e false memories answers right with chance e^(−αN_e).

We have only a summary of that paper. It gives the assumption, what Proposition 2.3 says, and the token bound of the
subjective mask; the formulas for success below are **our derivation** from the assumption:

- Round 1: N_a agents answer alone, each right with chance p. Every agent then reads all N_a replies, its own too, so
  N_e is binomial (N_a, 1 − p); after a mask that misses a false memory with chance μ it is binomial (N_a, (1 − p)·μ).
- Round 2: given N_e, which is the same for all, agents are independent, each right with chance q = e^(−αN_e).
- Vote: right or wrong, all wrong answers taken for one (the worst case); a tie counts half.

Taken literally, an agent that reads nothing false is *always* right, however hard the question: a perfect mask gives
1, and debate may beat CoT-SC by far. The summary also calls CoT-SC an ideal upper bound of debate. That follows if an
agent without false memories is as good as one alone, q = p·e^(−αN_e). So q = a·e^(−αN_e) here, with `alone` = a: 1 as
printed, p for the other reading, under which a perfect mask is CoT-SC of N_a samples. In both, masking right memories
costs nothing, and (1 − p)·N_a grows with N_a: plain debate of many agents fails on easy questions too, only later; the
summary says so of hard ones.

All functions are vectorised: numbers of chances, α and μ broadcast; numbers of agents and samples are integers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from r2mad.theory._arrays import Bools, Floats, binomial, chance, nonnegative, positive, whole


def majority(success: npt.ArrayLike, voters: int) -> Floats:
    """The chance that most of `voters` independent answers are right, each with chance `success`; a tie counts half.

    Args:
        success: shape [...].
        voters: at least 1.

    Returns:
        Shape [...].

    Raises:
        ValueError: a chance outside [0, 1], or no voter.
    """
    count = np.arange(whole("voters", voters, 1) + 1)
    worth = (count * 2 > voters) + 0.5 * (count * 2 == voters)
    return np.asarray(np.minimum(1.0, binomial(voters, chance("success", success)) @ worth), dtype=np.float64)


def sc_success(p: npt.ArrayLike, samples: int) -> Floats:
    """The success of CoT-SC: the majority of `samples` chains of thought. It rises with them if p > ½, falls if p < ½.

    Raises:
        ValueError: see `majority`.
    """
    return majority(p, samples)


def sc_bounds(p: npt.ArrayLike, samples: int) -> tuple[Floats, Floats]:
    """(lower, upper) bounds of `sc_success`, by Hoeffding's inequality, with e = exp(−2·samples·(p − ½)²).

    Easy (p ≥ ½): at least 1 − e. Hard (p < ½): at most e. The paper's own bound is not in the summary.

    Raises:
        ValueError: see `majority`.
    """
    share = chance("p", p)
    miss = np.exp(-2 * whole("samples", samples, 1) * (share - 0.5) ** 2)
    easy = share >= 0.5
    return np.where(easy, 1 - miss, 0.0), np.where(easy, 1.0, miss)


def answer_success(false: npt.ArrayLike, alpha: npt.ArrayLike, alone: npt.ArrayLike = 1.0) -> Floats:
    """q = a·e^(−αN_e): one agent that reads `false` false memories (Assumption 2.1, where a = 1).

    Args:
        false: N_e ≥ 0; broadcasts with the others.
        alpha: α ≥ 0.
        alone: a, success without false memories.

    Raises:
        ValueError: a negative number, or a chance outside [0, 1].
    """
    decay = np.exp(-nonnegative("alpha", alpha) * nonnegative("false", false))
    return np.asarray(chance("alone", alone) * decay, dtype=np.float64)


def tolerable_false(alpha: npt.ArrayLike, success: npt.ArrayLike = 0.5) -> Floats:
    """−log(success)/α: how many false memories leave an agent right with at least this chance, for a = 1.

    At ½ it is what a majority survives: with more false memories, more agents make it worse. At p it is where a debate
    breaks even with answering alone: only with fewer false memories does it beat CoT-SC of N_a samples. For another a
    put success/a for success.

    Raises:
        ValueError: an α that is not above 0, or a success outside (0, 1].
    """
    share = chance("success", positive("success", success))
    return np.asarray(-np.log(share) / positive("alpha", alpha), dtype=np.float64)


def round_success(false: npt.ArrayLike, alpha: npt.ArrayLike, agents: int, alone: npt.ArrayLike = 1.0) -> Floats:
    """The majority's success in round 2, given N_e. It falls with N_e and α.

    Raises:
        ValueError: see `answer_success`, or no agent.
    """
    return majority(answer_success(false, alpha, alone), agents)


def round_bounds(
    false: npt.ArrayLike, alpha: npt.ArrayLike, agents: int, alone: npt.ArrayLike = 1.0
) -> tuple[Floats, Floats]:
    """(lower, upper) bounds of `round_success`: those of `sc_bounds` at q = a·e^(−αN_e).

    What the summary says of Proposition 2.3 can be read off: fewer false memories move q up, in either regime; and
    where q < ½ more agents push success down exponentially.

    Raises:
        ValueError: see `answer_success`, or no agent.
    """
    return sc_bounds(answer_success(false, alpha, alone), agents)


def plain_success(p: npt.ArrayLike, agents: int, alpha: npt.ArrayLike, alone: npt.ArrayLike = 1.0) -> Floats:
    """The success of plain debate in two rounds: Σ_e P(N_e = e)·majority(a·e^(−αe)), N_e binomial (N_a, 1 − p).

    Raises:
        ValueError: see `masked_success`.
    """
    return masked_success(p, agents, alpha, 1.0, alone)


def masked_success(
    p: npt.ArrayLike, agents: int, alpha: npt.ArrayLike, missed: npt.ArrayLike, alone: npt.ArrayLike = 1.0
) -> Floats:
    """The success of masked debate in two rounds: as `plain_success`, with N_e binomial (N_a, (1 − p)·μ).

    Fewer misses make N_e smaller in the sense of first-order dominance, and `round_success` falls with N_e: so masking
    never hurts here, in the easy and in the hard regime.

    Args:
        p: success of round 1, shape [...].
        agents: N_a, at least 1.
        alpha: α ≥ 0; broadcasts with p.
        missed: μ, the chance that a false memory passes the mask: 1 is plain debate; broadcasts with p.
        alone: a, success in round 2 without false memories; broadcasts with p.

    Returns:
        Shape [...].

    Raises:
        ValueError: a chance outside [0, 1], a negative α, or no agent.
    """
    weight, best = nonnegative("alpha", alpha)[..., None], chance("alone", alone)[..., None]
    left = np.asarray((1 - chance("p", p)) * chance("missed", missed), dtype=np.float64)
    per_count = round_success(np.arange(whole("agents", agents, 1) + 1), weight, agents, best)
    return np.asarray(np.minimum(1.0, (binomial(agents, left) * per_count).sum(axis=-1)), dtype=np.float64)


def success_ceiling(
    p: npt.ArrayLike, agents: int, alpha: npt.ArrayLike, missed: npt.ArrayLike = 1.0, alone: npt.ArrayLike = 1.0
) -> Floats:
    """An upper bound of `masked_success` (of plain debate by default) that decays exponentially in N_a.

    With k = ⌊log(2a)/α⌋, what a majority survives: P(N_e ≤ k) + P(N_e > k)·exp(−2N_a·(½ − a·e^(−α(k+1)))²). The first
    term is at most exp(−2N_a·((1 − p)μ − k/N_a)²) once (1 − p)μN_a > k. So for p < 1, μ > 0 and α > 0 success tends to
    0 as N_a grows, from N_a ≈ log(2a)/(α(1 − p)μ) on: sooner on hard questions.

    Raises:
        ValueError: see `masked_success`.
    """
    left = np.asarray((1 - chance("p", p)) * chance("missed", missed), dtype=np.float64)
    weight, best = np.broadcast_arrays(nonnegative("alpha", alpha), chance("alone", alone))
    most = float(whole("agents", agents, 1))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        survived = np.floor(np.log(2 * best) / weight)
    # without decay a majority survives everything or nothing; −1 is nothing, not even no false memory
    survived = np.where(weight == 0, np.where(best >= 0.5, most, -1.0), np.clip(survived, -1.0, most))
    within = (binomial(agents, left) * (np.arange(agents + 1) <= survived[..., None])).sum(axis=-1)
    gap = np.maximum(0.0, 0.5 - best * np.exp(-weight * (survived + 1)))
    return np.asarray(np.minimum(1.0, within + (1 - within) * np.exp(-2 * agents * gap**2)), dtype=np.float64)


def by_agents(p: float, agents: Sequence[int], alpha: float, missed: float = 1.0, alone: float = 1.0) -> Floats:
    """`masked_success` for each number of agents, shape [a].

    It may rise at first, and falls in the end: on hard questions sooner than on easy ones (see `success_ceiling`).

    Raises:
        ValueError: see `masked_success`.
    """
    each = [float(masked_success(p, count, alpha, missed, alone)) for count in agents]
    return np.asarray(each, dtype=np.float64)


def simulate_majority(rng: np.random.Generator, draws: int, success: float, voters: int) -> Floats:
    """The twin of `majority` and `sc_success`: 1 for a right vote, 0 for a wrong one, ½ for a tie; shape [draws].

    Raises:
        ValueError: a chance outside [0, 1], no voter or no draw.
    """
    share = float(chance("success", success))
    return _vote(rng.random((whole("draws", draws, 1), whole("voters", voters, 1))) < share)


def simulate_debate(
    rng: np.random.Generator,
    draws: int,
    p: float,
    agents: int,
    alpha: float,
    missed: float = 1.0,
    alone: float = 1.0,
) -> Floats:
    """The twin of `plain_success` and `masked_success`: debates of two rounds played out, reply by reply.

    Returns:
        For each debate 1, 0 or ½ for a tie, shape [draws].

    Raises:
        ValueError: see `masked_success`, or no draw.
    """
    size = (whole("draws", draws, 1), whole("agents", agents, 1))
    wrong = rng.random(size) >= float(chance("p", p))
    passed = rng.random(size) < float(chance("missed", missed))
    success = answer_success((wrong & passed).sum(axis=-1), alpha, alone)
    return _vote(rng.random(size) < success[:, None])


def _vote(right: Bools) -> Floats:
    double = 2 * right.sum(axis=-1)
    return np.asarray((double > right.shape[-1]) + 0.5 * (double == right.shape[-1]), dtype=np.float64)
