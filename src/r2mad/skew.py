"""How an agent is shown its peers: an ordered tuple of filters over "who sees whose reply, and with what beside it".

The theory calls what peers do to an agent the skew (seed 000, Eq. 2). Every filter takes each agent's peers as the
filter before left them: first topology, then mask, then label. The first filter starts from everyone.
"""

from __future__ import annotations

from dataclasses import dataclass
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
