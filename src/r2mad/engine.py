"""One debate, as one function that reads like the papers. It knows objects only: no names, no files.

round 0      every agent answers alone                                     `method.opening`
round t > 0  Z^(t-1) is summed up (h^(t-1), Eq. 4) if a part needs it      `summary.py`
             every agent is reminded of cases like its state (Eq. 7, 8)    `method.retrieval`
             every agent reads Z^(t-1) as `method.skew` shows it (Eq. 11) and replies in its `method.context`
after each   answers are counted into classes; `method.stop` may end it
at the end   `method.vote` turns the last round into the group's answer
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime

from r2mad.answers import Tally, tally_async
from r2mad.context import Turn
from r2mad.errors import boundary
from r2mad.method import Method
from r2mad.retrieval import Recall, Retrieval, reply_text
from r2mad.scene import Scene, unfitted
from r2mad.skew import everyone
from r2mad.summary import summed_up
from r2mad.turn import debate_turn, task_turn
from r2mad.types import DebateRecord, MemoryInfo, Peer, Reply, Round, Stopped, View, digest


async def run(scene: Scene, method: Method) -> DebateRecord:
    """Hold one debate and return its record. A failed call degrades the debate; it is never raised from here.

    Args:
        scene: the question, the agents (as many as the method has), the prompts, the seed, the ledger, the memory.
        method: the parts that make this debate the method it is.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    scene = replace(scene, elicit=method.elicit)
    identity, memory = debate_id(scene, method), await _remembered(scene, method)
    retrieval = method.retrieval if memory and memory.cases else None  # nothing to remember: a plain debate
    summing = retrieval is not None or method.summarise

    opened = await method.opening(scene if memory and memory.cases else replace(scene, memory=None))
    last, count = await _settle(
        scene, Round(0, 0.0, opened.replies, opened.views, candidates=opened.pool, kept=opened.kept)
    )
    rounds, prompts = [last], [[task_turn(scene)] for _ in scene.agents]

    while not (stopped := _over(scene, method, rounds, summing)):
        if summing:
            last, _ = await asyncio.gather(summed_up(scene, rounds), _embed_ahead(scene, last, retrieval))
            rounds[-1] = last
        recalled = await retrieval(scene, last) if retrieval else ()
        if reconsider := getattr(method.stop, "reconsider", None):  # memory may doubt what agents agree on
            trust, stopped = await reconsider(scene, rounds, recalled)
            rounds[-1] = last = replace(last, trust=trust)
            if stopped:
                break
        shown = everyone(scene, last, own=method.context.own)
        for part in method.skew:
            shown = await part(scene, last, shown, recalled)
        reminders = [retrieval.reminder(scene, recall) if retrieval else "" for recall in recalled]
        for agent, peers in enumerate(shown):
            prompts[agent].append(debate_turn(scene, last, agent, peers, method.context.own))
        answered = await _speak(scene, method, prompts, rounds, reminders)
        views = tuple(
            _view(view, shown[i], recalled[i] if recalled else Recall()) for i, (_, view) in enumerate(answered)
        )
        last, count = await _settle(scene, Round(len(rounds), 0.0, tuple(reply for reply, _ in answered), views))
        rounds.append(last)

    verdict = await method.vote(scene, last, count)
    return DebateRecord(
        id=identity,
        method=method.name,
        seed=scene.seed,
        question=scene.question,
        agents=scene.roster,
        prompts=scene.pack.label,
        rounds=tuple(rounds),
        answer=verdict.answer,
        votes=verdict.votes,
        tie=bool(verdict.tied),
        tied=verdict.tied,
        stopped=stopped,
        degraded=any(one.hurt for one in rounds) or any(note.error for note in scene.ledger.judgements),
        confidence=verdict.confidence,
        calls=scene.ledger.by_kind(),
        usage=dict(scene.ledger.usage),
        seconds=round(time.perf_counter() - clock, 6),
        started=started.isoformat(timespec="milliseconds"),
        embedder=scene.embeds if memory or method.needs_embedder else None,
        memory=memory,
        composition=method.composition,
        judgements=scene.ledger.judged(),
        choice=method.choice,
    )


def debate_id(scene: Scene, method: Method) -> str:
    """What makes this debate this one: method and parts, agents, prompts, seed, question, and the memory it reads.

    Known before it is held. A model counts by its name and not by its address, so a run can be resumed when its server
    has moved; a memory by its content, so it can be resumed when that was copied; an embedder by its name.
    """
    agents = [[agent.persona.name, agent.model.name, asdict(agent.sampling)] for agent in scene.agents]
    parts = [method.name, method.composition, agents, scene.pack.label, scene.seed, scene.question.id]
    if scene.memory and method.needs_memory:
        parts.append(scene.memory.snapshot.version)
    if method.needs_embedder:
        parts.append(scene.compares)
    return digest(parts)


async def _remembered(scene: Scene, method: Method) -> MemoryInfo | None:
    """The memory that this debate reads, if it reads one."""
    if scene.memory is None or not method.needs_memory:
        return None
    return await asyncio.to_thread(scene.memory.info, scene.agents)  # a first look reads the agents' banks


async def _embed_ahead(scene: Scene, last: Round, retrieval: Retrieval | None) -> None:
    """Embed what is known already while the summary is being written; the retrieval then finds it in the cache."""
    if retrieval and scene.memory:
        await boundary(scene.memory.embedder.embed([reply_text(reply) for reply in last.replies]))


def _over(scene: Scene, method: Method, rounds: Sequence[Round], summing: bool) -> Stopped | None:
    """Why there is no further round: nobody is left, the last one was held, the method's own reason, or no budget."""
    if all(reply.error for reply in rounds[-1].replies):
        return "failed"
    if len(rounds) == method.rounds:
        return "doubted" if any(one.trust is not None for one in rounds[:-1]) else "rounds"
    if why := method.stop(rounds):
        return why
    # Half a round would waste what the whole ones cost: the group's answer is the last whole round's.
    needed = method.round_calls - (method.summarises and not summing) + method.closing_calls
    return None if scene.ledger.room(needed) else "partial"


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


async def _speak(
    scene: Scene,
    method: Method,
    prompts: Sequence[list[str]],
    rounds: Sequence[Round],
    reminders: Sequence[str],
) -> list[tuple[Reply, View]]:
    """One debate round: all agents reply at once, each in its own context. A reminder stands before its prompt, which
    is kept as it was sent; one that does not fit into the model's context is left out, and the view says so."""
    index = len(rounds)

    async def speak(agent: int) -> tuple[Reply, View]:
        turns: list[Turn] = [(prompts[agent][t], rounds[t].replies[agent]) for t in range(index)]
        bare = prompts[agent][index]
        layouts = list(method.context.layouts(scene.preamble(agent), turns, bare))
        if not reminders or not reminders[agent]:
            return await scene.reply(agent, layouts, index)
        whole = prompts[agent][index] = f"{reminders[agent]}\n\n{bare}"
        reminded = list(method.context.layouts(scene.preamble(agent), turns, whole))
        reply, view = await scene.reply(agent, [*reminded, *layouts], index)
        if view.trimmed < len(reminded):
            return reply, view
        prompts[agent][index] = bare
        return reply, replace(view, forgot=unfitted())

    return await asyncio.gather(*(speak(agent) for agent in range(len(scene.agents))))


def _view(view: View, peers: tuple[Peer, ...], recall: Recall) -> View:
    """What the agent was sent, with what its filters and its memory made of it."""
    return replace(
        view,
        trade_off=recall.trade_off,
        candidates=recall.candidates,
        retrieved=recall.retrieved,
        peers=peers,
        forgot=view.forgot or recall.forgot,
    )
