"""What an agent is told in a turn of its own: the task in round 0, the replies it may see in every later one."""

from __future__ import annotations

from collections.abc import Sequence

from r2mad.scene import Scene
from r2mad.types import Peer, Round


def task_turn(scene: Scene) -> str:
    """The user turn of round 0."""
    return scene.asking(scene.pack.task(scene.question))


def debate_turn(scene: Scene, previous: Round, agent: int, peers: Sequence[Peer], own: bool) -> str:
    """The user turn that shows an agent what its filters let through.

    Args:
        scene: the debate.
        previous: Z^(t−1).
        agent: who is told.
        peers: what it sees, and what not.
        own: whether its own reply is among them; it then has no conversation to go by, and if nothing is shown it
            answers from the question alone.
    """
    said = {reply.agent: reply for reply in previous.replies}
    shown = [scene.shown(said[peer.agent], own=peer.agent == agent, label=peer.label) for peer in peers if peer.shown]
    if own and not shown:
        return task_turn(scene)
    return scene.asking(scene.pack.debate(scene.question, shown))
