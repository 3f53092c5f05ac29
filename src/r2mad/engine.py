"""The debate of the design's §4, as one function that reads like the papers. It knows objects only: no names, no files.

round 0      every agent answers alone                                     `method.opening`
round t > 0  every agent reads Z^(t-1) as `method.skew` shows it and replies in its `method.context`
after each   answers are counted into classes; `method.stop` may end it
at the end   `method.vote` turns the last round into the group's answer
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime

from r2mad.answers import Tally, spoken, tally_async
from r2mad.context import Turn
from r2mad.method import Method
from r2mad.prompts import ShownReply
from r2mad.scene import Scene
from r2mad.skew import Shown, everyone
from r2mad.types import AgentInfo, DebateRecord, Peer, Reply, Round, Stopped, View, digest

SILENCE = "(This participant gave no readable reply.)"
"""Shown in place of a reply that is nothing but cut-off reasoning."""


async def run(scene: Scene, method: Method) -> DebateRecord:
    """Hold one debate and return its record. A failed call degrades the debate; it is never raised from here.

    Args:
        scene: the question, the agents (as many as the method has), the prompts, the seed and the ledger.
        method: the parts that make this debate the method it is.
    """
    started, clock = datetime.now(UTC), time.perf_counter()

    opened = await method.opening(scene)
    last, count = await _settle(scene, Round(0, 0.0, opened.replies, opened.views, candidates=opened.pool))
    rounds, prompts = [last], [[scene.pack.task(scene.question)] for _ in scene.agents]

    while not (stopped := _over(scene, method, rounds)):
        shown = everyone(scene, last, own=method.context.own)
        for part in method.skew:
            shown = await part(scene, last, shown)
        for agent, peers in enumerate(shown):
            prompts[agent].append(_debate_prompt(scene, last, agent, peers))
        replies, views = await _speak(scene, method, prompts, rounds, shown)
        last, count = await _settle(scene, Round(len(rounds), 0.0, replies, views))
        rounds.append(last)

    verdict = await method.vote(scene, last, count)
    return DebateRecord(
        id=debate_id(scene, method),
        method=method.name,
        seed=scene.seed,
        question=scene.question,
        agents=roster(scene),
        prompts=scene.pack.label,
        rounds=tuple(rounds),
        answer=verdict.answer,
        votes=verdict.votes,
        tie=bool(verdict.tied),
        tied=verdict.tied,
        stopped=stopped,
        degraded=any(reply.error for one in rounds for reply in one.replies),
        confidence=verdict.confidence,
        calls=scene.ledger.by_kind(),
        usage=dict(scene.ledger.usage),
        seconds=round(time.perf_counter() - clock, 6),
        started=started.isoformat(timespec="milliseconds"),
    )


def debate_id(scene: Scene, method: Method) -> str:
    """What makes this debate this one: method and parts, agents, prompts, seed, question. Known before it is held.

    A model counts by its name and not by its address, so a run can be resumed when its server has moved.
    """
    agents = [[agent.persona.name, agent.model.name, asdict(agent.sampling)] for agent in scene.agents]
    return digest([method.name, method.composition, agents, scene.pack.label, scene.seed, scene.question.id])


def roster(scene: Scene) -> tuple[AgentInfo, ...]:
    """The agents as records name them."""
    return tuple(AgentInfo(agent.persona.name, agent.model.name, agent.sampling) for agent in scene.agents)


def _over(scene: Scene, method: Method, rounds: Sequence[Round]) -> Stopped | None:
    """Why there is no further round: nobody is left, the last one was held, the method's own reason, or no budget."""
    if all(reply.error for reply in rounds[-1].replies):
        return "failed"
    if len(rounds) == method.rounds:
        return "rounds"
    if why := method.stop(rounds):
        return why
    # Half a round would waste what the whole ones cost: the group's answer is the last whole round's.
    return None if scene.ledger.room(len(scene.agents)) else "partial"


async def _settle(scene: Scene, unsettled: Round) -> tuple[Round, Tally]:
    """Count a round's answers: each reply learns its class, the round its consensus (Eq. 5)."""
    count = await tally_async([reply.answer for reply in unsettled.replies], scene.question.kind)
    labelled = zip(unsettled.replies, count.labels, strict=True)
    settled = replace(
        unsettled,
        consensus=count.consensus,
        replies=tuple(replace(reply, class_=label) for reply, label in labelled),
        undecided=count.undecided,
    )
    scene.observe(settled.index, settled)
    return settled, count


def _debate_prompt(scene: Scene, previous: Round, agent: int, peers: Sequence[Peer]) -> str:
    """The user turn that shows an agent what its filters let through."""
    said = {reply.agent: reply for reply in previous.replies}
    shown = [
        ShownReply(
            scene.agents[peer.agent].persona.name,
            spoken(said[peer.agent].text).strip() or SILENCE,
            answer=said[peer.agent].answer,
            own=peer.agent == agent,
            label=peer.label,
        )
        for peer in peers
        if peer.shown
    ]
    return scene.pack.debate(scene.question, shown)


async def _speak(
    scene: Scene, method: Method, prompts: Sequence[Sequence[str]], rounds: Sequence[Round], shown: Shown
) -> tuple[tuple[Reply, ...], tuple[View, ...]]:
    """One debate round: all agents reply at once, each in its own context."""
    index = len(rounds)

    async def speak(agent: int) -> tuple[Reply, View]:
        turns: list[Turn] = [(prompts[agent][t], rounds[t].replies[agent]) for t in range(index)]
        layouts = method.context.layouts(scene.preamble(agent), turns, prompts[agent][index])
        reply, view = await scene.reply(agent, layouts, index)
        return reply, replace(view, peers=shown[agent])

    answered = await asyncio.gather(*(speak(agent) for agent in range(len(scene.agents))))
    return tuple(reply for reply, _ in answered), tuple(view for _, view in answered)
