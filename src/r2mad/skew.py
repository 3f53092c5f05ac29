"""How an agent is shown its peers: an ordered tuple of filters over "who sees whose reply, and with what beside it".

The theory calls what peers do to an agent the skew (seed 000, Eq. 2). Every filter takes each agent's peers as the
filter before left them: first topology, then mask, then label. The first filter starts from everyone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Protocol

from r2mad.scene import Scene
from r2mad.types import Peer, Round

Shown = tuple[tuple[Peer, ...], ...]
"""For each agent, the replies of the round before as it will see them."""


class Filter(Protocol):
    """One step of what an agent is shown."""

    async def __call__(self, scene: Scene, previous: Round, shown: Shown) -> Shown:
        """Take each agent's peers, hand them on changed."""
        ...


def everyone(scene: Scene, previous: Round, own: bool) -> Shown:
    """The start of every chain of filters: each agent with all the others, and itself if `own`.

    A reply that failed has nothing to show; it stays in the list with its verdict, so that the record tells.
    """
    peers = tuple(
        Peer(reply.agent, shown=reply.error is None, verdict="error" if reply.error else None)
        for reply in previous.replies
    )
    return tuple(tuple(peer for peer in peers if own or peer.agent != agent) for agent in range(len(scene.agents)))


@dataclass(frozen=True)
class Everyone:
    """The complete graph: each agent reads all its peers."""

    async def __call__(self, scene: Scene, previous: Round, shown: Shown) -> Shown:
        """Everybody, as they are."""
        return shown


def confidence(similarity: Sequence[float], correct: Sequence[float | bool | None]) -> float | None:
    """c_{j,i} of Eq. 11: how often peer j was right in the retrieved cases, weighted by how alike its replies are.

        c = Σ_k sim(z_j, z_j(e_k))·ζ_j(e_k) / Σ_k sim(z_j, z_j(e_k))

    over the cases whose ζ_j is known. A negative similarity counts 0: what is unlike says nothing.

    Args:
        similarity: sim(z_j, z_j(e_k)) for each of the K retrieved cases.
        correct: ζ_j(e_k): right or wrong, a value between, or None where it is not known.

    Returns:
        A value in [0, 1], or None where there is nothing to go by: no case, none known, or no similarity at all.

    Raises:
        ValueError: as many similarities as cases are needed.
    """
    known = [
        (max(0.0, float(alike)), float(right))
        for alike, right in zip(similarity, correct, strict=True)
        if right is not None
    ]
    mass = sum(alike for alike, _ in known)
    return sum(alike * right for alike, right in known) / mass if mass > 0.0 else None


def weight(confidence: float, beta: float) -> float:
    """w_{j,i} = 2σ(β(c − ½)): 1 at c = ½, above it for a peer that was right more often than not, below it otherwise.

    Args:
        confidence: c_{j,i} in [0, 1].
        beta: β, how sharply weights part; the design's default is 4, which gives weights from 0.24 to 1.76.
    """
    return 2.0 / (1.0 + exp(-beta * (confidence - 0.5)))
