"""The front door in Python: names and addresses become objects, then the engine holds the debate."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from r2mad import engine
from r2mad.errors import UsageError
from r2mad.method import Method
from r2mad.methods import find_method
from r2mad.models import ModelOptions, open_model
from r2mad.models.cached import CachedModel, CallCache
from r2mad.prompts import Pack, load_pack, suggest_pack
from r2mad.protocols import ChatModel, Observer
from r2mad.scene import Agent, Ledger, Scene, nobody
from r2mad.settings import Settings
from r2mad.types import DebateRecord, Question, Suggestions

Models = str | ChatModel | Sequence[str | ChatModel]
"""A model by name (`provider/name`) or as an object, or one for each agent."""


async def debate(
    question: Question | str,
    *,
    method: str | Method = "mad",
    model: Models,
    seed: int | None = None,
    observe: Observer | None = None,
    **settings: Any,
) -> DebateRecord:
    """Hold one debate.

    Args:
        question: what to answer; a string is an open question whose answer is a few words.
        method: a method's name (see `r2mad.methods.METHODS`) or a composition of your own.
        model: `provider/name`, a `ChatModel`, or a sequence of them, one an agent (fewer are taken in turn).
        seed: makes the debate repeatable; a fresh one is drawn, and recorded, if not given.
        observe: called with (round, `Reply`) as replies come and with (round, `Round`) as rounds end.
        **settings: any field of `r2mad.settings.Settings`.

    Returns:
        The record. Calls that failed stand in it as errors: look at `degraded`, and at `stopped == "failed"`.

    Raises:
        UsageError: an unknown name, a bad question or setting; nothing was asked.
        StoreError: the cache file cannot be used.
    """
    asked = Question(question) if isinstance(question, str) else question
    if not isinstance(asked, Question):
        raise UsageError(f"a question is a text or a Question, not {type(asked).__name__}")
    async with open_table(model, Settings().changed(**settings)) as table:
        return await table.hold(asked, method, seed=seed, observe=observe)


def debate_sync(question: Question | str, **arguments: Any) -> DebateRecord:
    """`debate` for code without an event loop: the same arguments, result and errors.

    Raises:
        UsageError: called inside a running event loop, where `await debate(…)` is the way.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(debate(question, **arguments))
    raise UsageError("debate_sync was called inside an event loop; use `await debate(…)` there")


@dataclass(frozen=True)
class Table:
    """Open models and a cache, at which any number of debates can be held, one after another or at once."""

    models: tuple[ChatModel, ...]
    settings: Settings

    async def hold(
        self, question: Question, method: str | Method, *, seed: int | None = None, observe: Observer | None = None
    ) -> DebateRecord:
        """Hold one debate; see `debate`."""
        scene, chosen = self.prepare(question, method, seed=seed, observe=observe)
        return await engine.run(scene, chosen)

    def prepare(
        self, question: Question, method: str | Method, *, seed: int | None = None, observe: Observer | None = None
    ) -> tuple[Scene, Method]:
        """All that a debate needs, with every name resolved and nothing asked yet.

        Raises:
            UsageError: see `debate`.
        """
        settings = self.settings
        chosen = find_method(method) if isinstance(method, str) else method
        if not isinstance(chosen, Method) or not (seed is None or isinstance(seed, int)):  # type: ignore[redundant-expr]
            raise UsageError("a method is a name or a Method, and a seed is a whole number")
        agents = settings.agents
        if agents is None and len(self.models) > chosen.agents:
            if "agents" not in chosen.adjustable:
                raise UsageError(f"{chosen.name} has one agent, and {len(self.models)} models were given")
            agents = len(self.models)
        chosen = chosen.sized(agents, settings.rounds)
        if len(self.models) > chosen.agents:
            raise UsageError(f"{len(self.models)} models for {chosen.agents} agents")
        suggested = [getattr(model, "suggestions", None) or Suggestions() for model in self.models]
        pack = load_pack_once(settings.prompts or _common_pack(suggested) or suggest_pack(question))
        seated = tuple(
            Agent(persona, self.models[index % len(self.models)], settings.sampling(suggested[index % len(suggested)]))
            for index, persona in enumerate(pack.roster(chosen.agents))
        )
        drawn = secrets.randbelow(2**31) if seed is None else seed
        return Scene(question, seated, pack, drawn, Ledger(settings.max_calls), observe or nobody), chosen


def _common_pack(suggested: Sequence[Suggestions]) -> str | None:
    """The pack that all models suggest: a debate has one, and a larger model should not get a tiny one's."""
    packs = {one.prompts for one in suggested}
    return packs.pop() if len(packs) == 1 else None


@asynccontextmanager
async def open_table(model: Models, settings: Settings) -> AsyncIterator[Table]:
    """Open the models and the cache for any number of debates, and close them in the end.

    Raises:
        UsageError: no model, or an unknown one.
        StoreError: the cache file cannot be used.
    """
    names = [model] if isinstance(model, (str, ChatModel)) else list(model or ())
    if not names or not all(isinstance(name, (str, ChatModel)) for name in names):
        raise UsageError("no model given, or something that is neither provider/name nor a ChatModel")
    options = model_options(settings)
    cache = CallCache(settings.cache_path, read_older=not settings.no_cache)
    opened: list[ChatModel] = []
    mine: list[ChatModel] = []  # models that the caller made are the caller's to close
    try:
        for name in names:
            found = open_model(name, options) if isinstance(name, str) else name
            opened.append(CachedModel(found, cache))
            if isinstance(name, str):
                mine.append(found)
        yield Table(tuple(opened), settings)
    finally:
        try:
            for found in mine:
                await found.aclose()
        finally:
            cache.close()


def model_options(settings: Settings) -> ModelOptions:
    """What of the settings concerns reaching a model."""
    return ModelOptions(
        base_url=settings.base_url,
        api_key=settings.api_key,
        max_connections=settings.max_connections,
        timeout=settings.timeout,
        max_retries=settings.max_retries,
    )


_packs: dict[str, Pack] = {}


def load_pack_once(name: str) -> Pack:
    """`load_pack`, remembered for the life of the process: a run must not change its prompts half-way."""
    if name not in _packs:
        _packs[name] = load_pack(name)
    return _packs[name]
