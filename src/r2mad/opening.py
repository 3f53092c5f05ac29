"""How round 0 is made: every agent answers alone, from its persona and the task prompt."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from r2mad.scene import Scene
from r2mad.types import Message, Reply, View


@dataclass(frozen=True, slots=True)
class Opened:
    """Round 0 as it was made."""

    replies: tuple[Reply, ...]
    """The replies that the debate goes on with, by agent."""
    views: tuple[View, ...]
    """What each of those agents was sent."""
    pool: tuple[Reply, ...] = ()
    """Every reply there was to choose from, if not all were kept."""


class Opening(Protocol):
    """Makes the replies of round 0, and tells how many it asks for."""

    def calls(self, agents: int) -> int:
        """How many calls it makes for `agents` agents."""
        ...

    async def __call__(self, scene: Scene) -> Opened:
        """Ask for them."""
        ...


def opening_messages(scene: Scene, agent: int) -> tuple[Message, ...]:
    """What an agent reads before it first speaks: who it is, then the question."""
    return (*scene.preamble(agent), Message("user", scene.pack.task(scene.question)))


@dataclass(frozen=True)
class Independent:
    """Each agent answers `samples` times, hearing nobody. One request a sample, so that samples can be shared.

    Self-consistency is one agent with several samples; debate is several agents with one.
    """

    samples: int = 1

    def calls(self, agents: int) -> int:
        """n × samples."""
        return agents * self.samples

    async def __call__(self, scene: Scene) -> Opened:
        """All replies, by sample and then by agent."""
        asked = [
            scene.reply(agent, [opening_messages(scene, agent)], round_index=0, sample=sample)
            for sample in range(self.samples)
            for agent in range(len(scene.agents))
        ]
        answered = await asyncio.gather(*asked)
        views = tuple(view for _, view in answered[: len(scene.agents)])  # all samples of an agent see the same
        return Opened(tuple(reply for reply, _ in answered), views)
