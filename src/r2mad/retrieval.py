"""What an agent remembers: the debate-state-aware retrieval of seed 000, §4.2, as pure functions over similarities.

Stores find candidates; what is chosen among them, and in which order, is decided here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence

DECIMALS = 6
"""Similarities are rounded to so many decimals first: vectors from other machines differ in later ones, and a choice
should not hang on them."""
_NOISE = 12
"""Decimals at which two scores count as equal: what is left of rounding in sums of rounded similarities is below."""


def trade_off(consensus: float, gamma: float) -> float:
    """λ of Eq. 8: λ = 1 − γ·Cons(Z^(t−1)). Near 1, retrieval seeks what was relevant and went well; near 0, variety.

    Args:
        consensus: Cons(Z^(t−1)), the share of all agents that hold the most popular answer, in [0, 1].
        gamma: γ in [0, 1].

    Raises:
        ValueError: a value outside its range.
    """
    if not 0.0 <= consensus <= 1.0 or not 0.0 <= gamma <= 1.0:
        raise ValueError(f"consensus {consensus} and gamma {gamma} must lie in [0, 1]")
    return 1.0 - gamma * consensus


def mmr(
    similarity: Sequence[float],
    reward: Sequence[float],
    pairwise: Sequence[Sequence[float]],
    k: int,
    trade_off: float,
) -> list[int]:
    """Maximal marginal relevance, Eq. 7: choose k of c candidates greedily, each time the one that maximises

        λ·sim(e, s)·r(e) − (1−λ)·max over the chosen e' of sim(e, e')

    where the second term is 0 while nothing is chosen. Ties go to the higher sim(e, s), then to the lower index, so a
    caller who passes candidates in order of their case ids gets the design's rule. With k = 1, λ > 0 cannot matter.

    Args:
        similarity: sim(e, s) of each candidate, shape [c].
        reward: r(e), shape [c].
        pairwise: sim(e, e'), shape [c, c], symmetric.
        k: how many to choose; all if there are fewer.
        trade_off: λ in [0, 1].

    Returns:
        Indices in the order of choice.

    Raises:
        ValueError: shapes that do not fit, λ outside [0, 1], or k below 0.
    """
    count = len(similarity)
    if len(reward) != count or len(pairwise) != count or any(len(row) != count for row in pairwise):
        raise ValueError(f"{count} similarities, {len(reward)} rewards and {len(pairwise)} rows of pairs do not fit")
    if not 0.0 <= trade_off <= 1.0 or k < 0:
        raise ValueError(f"trade-off {trade_off} must lie in [0, 1], and k {k} not below 0")
    near = [round(float(value), DECIMALS) for value in similarity]
    worth = [trade_off * near[index] * float(reward[index]) for index in range(count)]
    closest: list[float | None] = [None] * count  # to what is chosen; None while nothing is
    left, chosen = set(range(count)), list[int]()
    while left and len(chosen) < k:

        def rank(index: int) -> tuple[float, float, int]:
            redundant = closest[index]
            penalty = 0.0 if redundant is None else (1.0 - trade_off) * redundant
            return round(worth[index] - penalty, _NOISE), near[index], -index

        best = max(left, key=rank)
        left.remove(best)
        chosen.append(best)
        for index in left:
            likeness = round(float(pairwise[index][best]), DECIMALS)
            known = closest[index]
            closest[index] = likeness if known is None else max(known, likeness)
    return chosen
