"""Scenes for debates that a script plays: who is asked what, and in which round, told by the calls' seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from r2mad import engine
from r2mad.method import Method
from r2mad.methods import find_method
from r2mad.models.scripted import Scripted, ScriptedModel
from r2mad.prompts import load_pack
from r2mad.protocols import Embedder
from r2mad.scene import Agent, Ledger, Memory, Scene, call_seed
from r2mad.types import DebateRecord, Question, Request, Sampling

PACK = load_pack("general")
QUESTION = Question("Which way?", ("left", "right", "straight on", "back"), id="way")
SEED = 1
_ROUNDS = {
    call_seed(SEED, QUESTION.id, agent, t, sample): t for agent in range(10) for t in range(6) for sample in range(12)
}

Script = Callable[[Request], Scripted]


def scene_of(
    script: Script,
    agents: int = 3,
    *,
    question: Question = QUESTION,
    max_calls: int | None = None,
    embedder: Embedder | None = None,
    memory: Memory | None = None,
    sampling: Sampling | None = None,
) -> Scene:
    """A scene in which one scripted model speaks for all agents."""
    model = ScriptedModel(script, identity="one")
    seated = tuple(Agent(persona, model, sampling or Sampling()) for persona in PACK.roster(agents))
    return Scene(question, seated, PACK, SEED, Ledger(max_calls), embedder=embedder, memory=memory)


def requests_of(scene: Scene) -> list[Request]:
    """Every request that the scene's model got."""
    model = scene.agents[0].model
    assert isinstance(model, ScriptedModel)
    return model.requests


async def hold(script: Script, method: str | Method, **more: Any) -> tuple[DebateRecord, list[Request]]:
    """Hold a debate; its record, and what was asked."""
    chosen = find_method(method) if isinstance(method, str) else method
    scene = scene_of(script, chosen.agents, **more)
    record = await engine.run(scene, chosen)
    return record, requests_of(scene)


def when(request: Request) -> int:
    """The round of a call for a reply to `QUESTION`."""
    return _ROUNDS[request.seed]


def said(agent: int, round_index: int) -> str:
    """Words that only this agent says, and only in this round; no such text is part of another."""
    return f"[agent {agent} in round {round_index}]"


def asked_in(requests: list[Request], round_index: int) -> dict[int, Request]:
    """What each agent was last sent in a round."""
    return {one.agent: one for one in requests if one.kind == "debate" and when(one) == round_index}


def read_by(request: Request, agents: int, round_index: int) -> set[int]:
    """Whose replies of a round stand in the last turn of a request."""
    return {agent for agent in range(agents) if said(agent, round_index) in request.messages[-1].content}
