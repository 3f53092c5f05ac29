"""Signal coverage: why diverse openings help before anything is debated (seed 002, Proposition 1, Eq. 22–30).

Of S distinct hypotheses in the opening each is right with chance p, independently; so some one of them is with chance
1 − (1 − p)^S (Eq. 29). That rises with S; so an opening whose S dominates another's in first order succeeds at least as
often (Eq. 30).

The summary does not say how S is distributed. **Our model**: h hypotheses, sampled with given chances; n plain
samples have S_rand distinct ones; a diverse opening draws m ≥ n candidates and keeps the n most distinct, so S_div =
min(n, distinct among m). Its first n candidates are a plain opening, so S_div ≥ S_rand in every single case:
dominance is a fact here, no assumption.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from r2mad.theory._arrays import Floats, Ints, chance, distribution, log_factorials, nonnegative, times_log, whole


def coverage_success(p: npt.ArrayLike, distinct: npt.ArrayLike) -> Floats:
    """1 − (1 − p)^S (Eq. 29): the chance that one of S distinct hypotheses is right; it rises with S for 0 < p < 1.

    Args:
        p: of one hypothesis; broadcasts with S.
        distinct: S ≥ 0.

    Raises:
        ValueError: p outside [0, 1], or a negative S.
    """
    return np.asarray(1 - (1 - chance("p", p)) ** nonnegative("distinct", distinct), dtype=np.float64)


def expected_coverage(p: npt.ArrayLike, opening: npt.ArrayLike) -> Floats:
    """E[1 − (1 − p)^S] (Eq. 30), where S has the chances `opening`, of shape [s], for S = 0, 1, …; shape as of p.

    Raises:
        ValueError: p outside [0, 1], or an opening that is no distribution.
    """
    share = distribution("opening", opening)
    return np.asarray(coverage_success(chance("p", p)[..., None], np.arange(share.shape[-1])) @ share, dtype=np.float64)


def distinct_among(hypotheses: npt.ArrayLike, samples: int) -> Floats:
    """The chances of S = 0, …, samples distinct hypotheses among independent samples, shape [samples + 1].

    Hypothesis by hypothesis: the number of ways to have drawn k samples and seen d, as a product of exponential
    generating functions, times samples!.

    Args:
        hypotheses: their chances, shape [h].
        samples: at least 0.

    Raises:
        ValueError: no distribution.
    """
    weights, most = distribution("hypotheses", hypotheses), whole("samples", samples)
    factorials = log_factorials(most)
    state = np.zeros((most + 1, most + 1))  # drawn so far, distinct so far
    state[0, 0] = 1.0
    for weight in weights:
        term = np.exp(times_log(np.arange(most + 1.0), np.asarray(weight)) - factorials)
        grown = state.copy()
        for count in range(1, most + 1):
            grown[count:, 1:] += term[count] * state[: most + 1 - count, :-1]
        state = grown
    chances = np.asarray(state[most] * np.exp(factorials[most]), dtype=np.float64)
    return np.asarray(chances / chances.sum(), dtype=np.float64)


def random_opening(hypotheses: npt.ArrayLike, agents: int) -> Floats:
    """The chances of S_rand = 0, …, n: n agents answer once each; shape [n + 1].

    Raises:
        ValueError: no distribution.
    """
    return distinct_among(hypotheses, agents)


def diverse_opening(hypotheses: npt.ArrayLike, candidates: int, agents: int) -> Floats:
    """The chances of S_div = 0, …, n: the n most distinct of m candidates; shape [n + 1].

    Args:
        hypotheses: their chances, shape [h].
        candidates: m ≥ n.
        agents: n.

    Raises:
        ValueError: no distribution, or m < n.
    """
    chances = distinct_among(hypotheses, whole("candidates", candidates, whole("agents", agents)))
    return np.concatenate([chances[:agents], [chances[agents:].sum()]])


def simulate_opening(
    rng: np.random.Generator, draws: int, hypotheses: npt.ArrayLike, candidates: int, agents: int
) -> tuple[Ints, Ints]:
    """The twin of both openings: (S_rand, S_div) on the same luck, each of shape [draws].

    Raises:
        ValueError: see `diverse_opening`, or no draw.
    """
    weights = distribution("hypotheses", hypotheses)
    whole("candidates", candidates, whole("agents", agents))
    drawn = rng.choice(weights.shape[0], size=(whole("draws", draws, 1), candidates), p=weights)
    seen = drawn[..., None] == np.arange(weights.shape[0])
    plain, wide = (seen[:, :count].any(axis=1).sum(axis=-1) for count in (agents, candidates))
    return plain.astype(np.int64), np.minimum(wide, agents).astype(np.int64)


def simulate_coverage(rng: np.random.Generator, p: float, distinct: Ints) -> Floats:
    """The twin of `coverage_success`: for each S of shape [draws], 1 if any of S hypotheses turns out right, else 0.

    Raises:
        ValueError: p outside [0, 1], or a negative S.
    """
    numbers = nonnegative("distinct", distinct)
    right = rng.random((numbers.shape[0], int(numbers.max(initial=0)))) < float(chance("p", p))
    among = np.arange(right.shape[1]) < numbers[:, None]
    return np.asarray((right & among).any(axis=1), dtype=np.float64)
