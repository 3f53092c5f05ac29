"""How round 0 is made: every agent answers alone, from its persona and the task prompt."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Protocol

from r2mad.retrieval import Recall, Retrieval
from r2mad.scene import Scene, unfitted
from r2mad.turn import task_turn
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
    kept: tuple[int, ...] = ()
    """For each agent the place of its reply in the pool."""


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
    return (*scene.preamble(agent), Message("user", task_turn(scene)))


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


@dataclass(frozen=True)
class Reminded:
    """Each agent answers once, alone, after it has been reminded of cases like the question: memory without debate.

    Args:
        retrieval: which cases; before anybody has spoken there is no debate state, so it goes by the question.
    """

    retrieval: Retrieval = Retrieval("similarity")

    needs_memory = True

    def calls(self, agents: int) -> int:
        """n."""
        return agents

    async def __call__(self, scene: Scene) -> Opened:
        """All replies, by agent; without a memory's cases they are those of `Independent`."""
        recalled = await self.retrieval.at_first(scene) if scene.memory else tuple(Recall() for _ in scene.agents)

        async def answer(agent: int) -> tuple[Reply, View]:
            recall = recalled[agent]
            bare = opening_messages(scene, agent)
            reminder = self.retrieval.reminder(scene, recall)
            asked = Message("user", "\n\n".join(filter(None, (reminder, bare[-1].content))))
            layouts = [(*bare[:-1], asked), bare] if reminder else [bare]
            reply, view = await scene.reply(agent, layouts, round_index=0)
            forgot = recall.forgot or (unfitted() if view.trimmed else None)
            return reply, replace(view, candidates=recall.candidates, retrieved=recall.retrieved, forgot=forgot)

        answered = await asyncio.gather(*(answer(agent) for agent in range(len(scene.agents))))
        return Opened(tuple(reply for reply, _ in answered), tuple(view for _, view in answered))
