"""How an agent is shown its peers: an ordered tuple of filters over "who sees whose reply, and with what beside it".

The theory calls what peers do to an agent the skew (R2-MAD, Eq. 2). Every filter takes each agent's peers as the
filter before left them: first topology, then mask, then label. The first filter starts from everyone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import TYPE_CHECKING, Protocol

from r2mad.errors import UsageError
from r2mad.experience import Case, Form
from r2mad.retrieval import DECIMALS, Recall
from r2mad.scene import Scene
from r2mad.types import Peer, Round

if TYPE_CHECKING:
    from r2mad.experience import Vectors

Shown = tuple[tuple[Peer, ...], ...]
"""For each agent, the replies of the round before as it will see them."""


class Filter(Protocol):
    """One step of what an agent is shown."""

    async def __call__(self, scene: Scene, previous: Round, shown: Shown, recalled: Sequence[Recall]) -> Shown:
        """Take each agent's peers, hand them on changed. `recalled` is what each agent remembers; empty for nothing."""
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

    async def __call__(self, scene: Scene, previous: Round, shown: Shown, recalled: Sequence[Recall]) -> Shown:
        """Everybody, as they are."""
        return shown


def _linked(shown: Shown, reads: Callable[[int, int], bool]) -> Shown:
    """Each agent with itself and the peers that it reads; the others are not among its peers at all."""
    return tuple(
        tuple(peer for peer in peers if peer.agent == agent or reads(agent, peer.agent))
        for agent, peers in enumerate(shown)
    )


@dataclass(frozen=True)
class Ring:
    """The directed ring: each agent reads its predecessor, and the first the last one."""

    async def __call__(self, scene: Scene, previous: Round, shown: Shown, recalled: Sequence[Recall]) -> Shown:
        """One peer an agent."""
        count = len(scene.agents)
        return _linked(shown, lambda agent, peer: peer == (agent - 1) % count)


@dataclass(frozen=True)
class Graph:
    """Any topology.

    Args:
        reads: the adjacency matrix, shape [n, n]: row i has a 1 in column j where agent i reads agent j. Whether an
            agent sees its own reply is the context's matter, so the diagonal does not count.
    """

    reads: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        try:
            good = all(value in (0, 1) for row in self.reads for value in row)
            rows = tuple(tuple(int(value) for value in row) for row in self.reads) if good else ()
        except (TypeError, ValueError) as error:
            raise UsageError(f"a topology is a matrix of 0 and 1, not {self.reads!r}") from error
        if not rows or any(len(row) != len(rows) for row in rows):
            raise UsageError("a topology is a square matrix of 0 and 1, with a row and a column for each agent")
        object.__setattr__(self, "reads", rows)  # frozen: normalised once, here

    @property
    def size(self) -> int:
        """n, the number of agents that it is for."""
        return len(self.reads)

    async def __call__(self, scene: Scene, previous: Round, shown: Shown, recalled: Sequence[Recall]) -> Shown:
        """Each agent's neighbours."""
        return _linked(shown, lambda agent, peer: bool(self.reads[agent][peer]))


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
        beta: β, how sharply weights part; the default is 4, which gives weights from 0.24 to 1.76.
    """
    return 2.0 / (1.0 + exp(-beta * (confidence - 0.5)))


@dataclass(frozen=True)
class MemoryConfidence:
    """Weighs each peer by how its stance fared in the retrieved cases (R2-MAD, §4.3), and labels it for the agent.

    A model behind an endpoint cannot be weighted, so the weight w reaches it as a word beside the peer's reply: *high*
    above one threshold, *low* below the other, nothing between. The weight itself stands in the record.

    Args:
        high: w_h; a confidence above it is labelled high.
        low: w_l; a confidence below it is labelled low.
        beta: β of the weight.
        form: "official" does what the authors' scripts do: all candidates, each peer's reply against Z^(t−1) of the
            case, and ζ of the agent whose case it is.
    """

    high: float = 0.55
    low: float = 0.45
    beta: float = 4.0
    form: Form = "paper"

    needs_memory = True
    labels = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.low <= self.high <= 1.0 or not self.beta >= 0.0:
            raise UsageError(
                f"confidence needs 0 <= low <= high <= 1 and beta >= 0, not {self.low}, {self.high}, {self.beta}"
            )

    async def __call__(self, scene: Scene, previous: Round, shown: Shown, recalled: Sequence[Recall]) -> Shown:
        """Every shown peer with its confidence, label and weight, where the agent's cases give any."""
        if not recalled:
            return shown

        def weighed(agent: int, peer: Peer) -> Peer:
            own = peer.agent == agent and len(scene.agents) > 1  # nobody is its own peer, but who is alone
            return self._weighed(scene, peer, recalled[agent]) if peer.shown and not own else peer

        return tuple(tuple(weighed(agent, peer) for peer in peers) for agent, peers in enumerate(shown))

    def _weighed(self, scene: Scene, peer: Peer, recall: Recall) -> Peer:
        cases = recall.pool if self.form == "official" else recall.cases
        if recall.replies is None or not cases:
            return peer
        name = scene.agents[peer.agent].persona.name
        said = recall.replies[peer.agent]
        pairs = [pair for case in cases if (pair := self._compared(case, name, said))]
        c = confidence([alike for alike, _ in pairs], [right for _, right in pairs])
        if c is None:
            return peer
        label = "high" if c > self.high else "low" if c < self.low else None
        return replace(peer, confidence=c, label=label, weight=weight(c, self.beta))

    def _compared(self, case: Case, name: str, said: Vectors) -> tuple[float, bool | None] | None:
        """sim(z_j, z_j(e)) and ζ_j(e); None for a case whose debate the peer was not part of."""
        seat = case.seat_of(name)
        if seat is None:
            return None
        official = self.form == "official"
        then = case.debate.replies[case.round - official, seat]
        right = case.debate.outcome.correct[case.round][case.seat if official else seat]
        return round(float(said @ then), DECIMALS), right


@dataclass(frozen=True)
class ShowVerbalConfidence:
    """Puts beside each reply how sure its author says it is, from 0 to 10 (Demystifying Multi-Agent Debate).

    A reply that did not say has nothing beside it.
    """

    labels = True
    needs_elicit = True

    async def __call__(self, scene: Scene, previous: Round, shown: Shown, recalled: Sequence[Recall]) -> Shown:
        """Every shown peer with its label."""
        stated = {reply.agent: reply.verbal_confidence for reply in previous.replies}

        def labelled(peer: Peer) -> Peer:
            sure = stated[peer.agent]
            return replace(peer, label=f"{sure:g}/10") if peer.shown and sure is not None else peer

        return tuple(tuple(labelled(peer) for peer in peers) for peers in shown)
