"""What debates with and without masks cost in tokens (MAD-M², seed 001).

T^q is the length of the question, T^o_{r,i} that of agent i's reply in round r. The sums over T^o_{r−1,i} run from r
= 2, the sums over T^o_{r,i} from r = 1. Prompts around them, verdicts, and the question in front of a judged reply
are not counted, as in the paper's bound: a mask that shows the question with each reply costs more than that bound by
its repetitions.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from r2mad.theory._arrays import Floats, nonnegative, whole

Kind = Literal["plain", "subjective", "objective"]
"""Which debate: everything is read; replies are judged and read if found right; only the surest reply is read."""


def plain_tokens(question: npt.ArrayLike, outputs: npt.ArrayLike) -> Floats:
    """N_a·N_round·T^q + N_a·ΣΣ T^o_{r−1,i} + ΣΣ T^o_{r,i}: all agents read all replies of the round before.

    The summary gives it only as what the subjective bound exceeds by one N_a·ΣΣ T^o_{r−1,i}.

    Args:
        question: T^q, shape [...].
        outputs: T^o, shape [..., N_round, N_a].

    Returns:
        Shape [...].

    Raises:
        ValueError: negative lengths, or no round or agent.
    """
    asked, read, written = _parts(question, outputs)
    return np.asarray(asked + read + written, dtype=np.float64)


def subjective_tokens(question: npt.ArrayLike, outputs: npt.ArrayLike) -> Floats:
    """N_a·N_round·T^q + 2·N_a·ΣΣ T^o_{r−1,i} + ΣΣ T^o_{r,i}: an upper bound of debate with the subjective mask.

    Every agent judges every reply, and may then have to read it again. A mask that is made once for all agents, as both
    the paper and we do, judges for N_a times less. Arguments and errors as of `plain_tokens`.
    """
    asked, read, written = _parts(question, outputs)
    return np.asarray(asked + 2 * read + written, dtype=np.float64)


def objective_tokens(question: npt.ArrayLike, outputs: npt.ArrayLike) -> Floats:
    """N_a·N_round·T^q + N_a·Σ_r max_i T^o_{r−1,i} + ΣΣ T^o_{r,i}: an upper bound of debate with the objective mask.

    It reads one reply a round, at most the longest, and judges by log-probabilities that it has already. The summary
    says only that it saves tokens; the bound is ours. It never exceeds `plain_tokens`. Arguments and errors as there.
    """
    asked, _, written = _parts(question, outputs)
    replies = np.asarray(outputs, dtype=np.float64)
    longest = replies[..., :-1, :].max(axis=-1).sum(axis=-1)
    return np.asarray(asked + replies.shape[-1] * longest + written, dtype=np.float64)


def simulate_tokens(
    rng: np.random.Generator, draws: int, question: float, outputs: npt.ArrayLike, kind: Kind, kept: float = 0.5
) -> Floats:
    """The twin of the three bounds: debates with random masks, added up call by call.

    Args:
        draws: at least 1.
        question: T^q.
        outputs: T^o, shape [N_round, N_a].
        kind: plain keeps all replies, objective one of each round, subjective each with chance `kept`, after every
            agent has judged every reply.
        kept: of the subjective mask.

    Returns:
        The tokens of each debate, shape [draws].

    Raises:
        ValueError: see `plain_tokens`, or no draw.
    """
    lengths = nonnegative("outputs", outputs)
    _parts(question, lengths)
    rounds, agents = lengths.shape
    spent = np.zeros(whole("draws", draws, 1))
    for index in range(rounds):
        read = np.zeros(draws)
        if index > 0:
            mask = _mask(rng, draws, agents, kind, kept)
            read = mask @ lengths[index - 1]
        for agent in range(agents):
            if index > 0 and kind == "subjective":
                spent += lengths[index - 1].sum()
            spent += question + read + lengths[index, agent]
    return spent


def _mask(rng: np.random.Generator, draws: int, agents: int, kind: Kind, kept: float) -> Floats:
    if kind == "plain":
        return np.ones((draws, agents))
    if kind == "objective":
        return np.asarray(np.eye(agents)[rng.integers(agents, size=draws)], dtype=np.float64)
    return np.asarray(rng.random((draws, agents)) < kept, dtype=np.float64)


def _parts(question: npt.ArrayLike, outputs: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Questions asked, replies read by all agents if nothing is masked, and replies written; in tokens, [...] each."""
    length, replies = nonnegative("question", question), nonnegative("outputs", outputs)
    if replies.ndim < 2 or 0 in replies.shape[-2:]:
        raise ValueError(f"outputs are [..., N_round, N_a] with at least one of each, not {replies.shape}")
    rounds, agents = replies.shape[-2:]
    return (
        np.asarray(agents * rounds * length, dtype=np.float64),
        np.asarray(agents * replies[..., :-1, :].sum(axis=(-2, -1)), dtype=np.float64),
        np.asarray(replies.sum(axis=(-2, -1)), dtype=np.float64),
    )
