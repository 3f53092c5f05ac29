"""The front door in Python: names and addresses become objects, then the engine holds the debate."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from r2mad import engine
from r2mad.embed import DEFAULT, open_embedder
from r2mad.errors import UsageError
from r2mad.memory import open_memory
from r2mad.method import Method
from r2mad.methods import find_method, official
from r2mad.models import ModelOptions, open_model, sends_logprobs
from r2mad.models.cached import CachedModel, CallCache
from r2mad.opening import Reminded
from r2mad.prompts import Pack, load_pack, suggest_pack
from r2mad.protocols import ChatModel, Embedder, MemoryStore, Observer
from r2mad.scene import Agent, Ledger, Memory, Purse, Scene, nobody
from r2mad.settings import Settings
from r2mad.types import DebateRecord, Question, Sampling, Suggestions

Models = str | ChatModel | Sequence[str | ChatModel]
"""A model by name (`provider/name`) or as an object, or one for each agent."""


async def debate(
    question: Question | str,
    *,
    method: str | Method = "mad",
    model: Models,
    memory: str | MemoryStore | None = None,
    seed: int | None = None,
    observe: Observer | None = None,
    **settings: Any,
) -> DebateRecord:
    """Hold one debate.

    Args:
        question: what to answer; a string is an open question whose answer is a few words.
        method: a method's name (see `r2mad.methods.METHODS`) or a composition of your own.
        model: `provider/name`, a `ChatModel`, or a sequence of them, one an agent (fewer are taken in turn).
        memory: `sqlite:PATH`, or a store that `open_memory` opened; methods with experience need one.
        seed: makes the debate repeatable; a fresh one is drawn, and recorded, if not given.
        observe: called with (round, `Reply`) as replies come and with (round, `Round`) as rounds end.
        **settings: any field of `r2mad.settings.Settings`.

    Returns:
        The record. Calls that failed stand in it as errors: look at `degraded`, and at `stopped == "failed"`.

    Raises:
        UsageError: an unknown name, a bad question or setting; nothing was asked.
        StoreError: the cache file or the memory cannot be used.
        ModelError: the memory's embedder cannot be reached.
    """
    asked = Question(question) if isinstance(question, str) else question
    if not isinstance(asked, Question):
        raise UsageError(f"a question is a text or a Question, not {type(asked).__name__}")
    async with open_table(model, Settings().changed(**settings), memory) as table:
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


@dataclass
class Kit:
    """What methods needed beyond models so far, opened once for a table and closed with it."""

    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    embedder: Embedder | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    tried: set[str] = field(default_factory=set)
    """Identities of models that send log-probabilities."""


@dataclass(frozen=True)
class Table:
    """Open models and a cache, at which any number of debates can be held, one after another or at once."""

    models: tuple[ChatModel, ...]
    settings: Settings
    memory: Memory | None = None
    """One snapshot for all its debates, so that a run is not changed by what is written meanwhile; see `refreshed`."""
    store: MemoryStore | None = None
    kit: Kit = field(default_factory=lambda: Kit())
    tweaks: tuple[Mapping[str, Any], ...] = ()
    """For each model what of its agents' sampling differs from the settings; nothing for all."""
    purse: Purse | None = None
    """What all its debates together may spend."""
    as_given: bool = False
    """Whether methods come in their final form: no setting changes their size or parts, and one of fewer agents than
    there are models takes the first ones."""

    async def equip(self, *methods: Method) -> None:
        """Open and try what methods need beyond models, so that what an endpoint lacks shows before it is asked.

        Raises:
            UsageError: a model sends no log-probabilities and a method reads them; no embedder can be opened.
            ModelError: a model or the embedder's endpoint cannot be reached.
        """
        async with self.kit.lock:  # debates that begin together should not each open an embedder
            if any(method.needs_embedder for method in methods) and not self.memory and not self.kit.embedder:
                self.kit.embedder = await open_embedding(self.settings)
                self.kit.stack.push_async_callback(self.kit.embedder.aclose)
            for method in methods:
                if method.needs_logprobs:
                    await self._try_logprobs(method if self.as_given else fitted(method, self.settings))

    async def _try_logprobs(self, method: Method) -> None:
        for model in self.models:
            key = f"{model.identity} top={method.needs_top_logprobs}"
            if key in self.kit.tried:
                continue
            sampling = self.settings.sampling(getattr(model, "suggestions", None) or Suggestions())
            if not await sends_logprobs(model, sampling, top=method.needs_top_logprobs):
                what = "the likeliest tokens' log-probabilities" if method.needs_top_logprobs else "log-probabilities"
                raise UsageError(
                    f"{method.name} needs {what}, and {model.name} sends none: "
                    f"use another endpoint, or a method that does without (mad-m2-s)"
                )
            self.kit.tried.add(key)

    def refreshed(self) -> Table:
        """The same table with the memory as it is now. May block while new cases are read.

        Raises:
            StoreError: the memory cannot be read.
        """
        if self.memory is None or self.store is None:
            return self
        return replace(self, memory=replace(self.memory, snapshot=self.store.snapshot()))

    async def hold(
        self, question: Question, method: str | Method, *, seed: int | None = None, observe: Observer | None = None
    ) -> DebateRecord:
        """Hold one debate; see `debate`."""
        scene, chosen = self.prepare(question, method, seed=seed, observe=observe)
        await self.equip(chosen)
        return await engine.run(replace(scene, embedder=self.embedder), chosen)

    @property
    def comparing(self) -> str:
        """The name by which the embedder is asked for, known before it is opened."""
        return self.memory.embedder.name if self.memory else self.settings.embedder or DEFAULT

    @property
    def embedder(self) -> Embedder | None:
        """What compares replies: the memory's embedder, else the one that `equip` opened."""
        return self.memory.embedder if self.memory else self.kit.embedder

    def _sized(self, method: Method) -> Method:
        agents = self.settings.agents
        if agents is None and len(self.models) > method.agents:
            if "agents" not in method.adjustable:
                raise UsageError(f"{method.name} has one agent, and {len(self.models)} models were given")
            agents = len(self.models)
        return method.sized(agents, self.settings.rounds)

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
        if not self.as_given:
            chosen = fitted(self._sized(chosen), settings)
        if chosen.needs_memory and self.memory is None:
            raise UsageError(f"{chosen.name} needs a memory: --memory sqlite:PATH (`r2mad remember` builds one)")
        if len(self.models) > chosen.agents and not self.as_given:
            raise UsageError(f"{len(self.models)} models for {chosen.agents} agents")
        if chosen.needs_choice:
            raise UsageError(
                f"{chosen.name} chooses its mask on labelled training items: --train starter:train, "
                f"or r2mad.study.masking.choose_mask"
            )
        if chosen.needs_logprobs and len({model.identity for model in self.models}) > 1:
            raise UsageError(f"{chosen.name} compares log-probabilities, so all its agents must be one model")
        suggested = [getattr(model, "suggestions", None) or Suggestions() for model in self.models]
        pack = load_pack_once(settings.prompts or _common_pack(suggested) or suggest_pack(question))

        def sampled(place: int) -> Sampling:
            usual = settings.sampling(suggested[place])
            tweaked = replace(usual, **self.tweaks[place]) if self.tweaks else usual
            return replace(tweaked, logprobs=usual.logprobs or chosen.needs_logprobs)

        seated = tuple(
            Agent(persona, self.models[index % len(self.models)], sampled(index % len(self.models)))
            for index, persona in enumerate(pack.roster(chosen.agents))
        )
        drawn = secrets.randbelow(2**31) if seed is None else seed
        memory = self.memory if chosen.needs_memory else None
        ledger, told = Ledger(settings.max_calls, self.purse), observe or nobody
        return Scene(
            question, seated, pack, drawn, ledger, told, memory, self.embedder, comparing=self.comparing
        ), chosen


def fitted(method: Method, settings: Settings) -> Method:
    """The method with the settings that concern its parts: how the authors run it, and what is remembered."""
    if settings.compat == "official":
        method = official(method)
    changes = {name: value for name in ("k", "gamma") if (value := getattr(settings, name)) is not None}
    if changes and method.retrieval:
        method = replace(method, retrieval=replace(method.retrieval, **changes))
    if changes and isinstance(method.opening, Reminded):
        method = replace(method, opening=Reminded(replace(method.opening.retrieval, **changes)))
    return method


def _common_pack(suggested: Sequence[Suggestions]) -> str | None:
    """The pack that all models suggest: a debate has one, and a larger model should not get a tiny one's."""
    packs = {one.prompts for one in suggested}
    return packs.pop() if len(packs) == 1 else None


@asynccontextmanager
async def open_table(
    model: Models, settings: Settings, memory: str | MemoryStore | None = None
) -> AsyncIterator[Table]:
    """Open the models, the cache and the memory for any number of debates, and close them in the end.

    Raises:
        UsageError: no model, or an unknown one; a memory of another embedder.
        StoreError: the cache file or the memory cannot be used.
        ModelError: the memory's embedder cannot be reached.
    """
    names = [model] if isinstance(model, (str, ChatModel)) else list(model or ())
    if not names or not all(isinstance(name, (str, ChatModel)) for name in names):
        raise UsageError("no model given, or something that is neither provider/name nor a ChatModel")
    options = model_options(settings)
    async with AsyncExitStack() as stack:
        cache = stack.enter_context(CallCache(settings.cache_path, read_older=not settings.no_cache))
        opened: list[ChatModel] = []
        for name in names:
            found = open_model(name, options) if isinstance(name, str) else name
            opened.append(CachedModel(found, cache))
            if isinstance(name, str):  # models that the caller made are the caller's to close
                stack.push_async_callback(found.aclose)
        table = Table(tuple(opened), settings, kit=Kit(stack))
        if place := memory or settings.memory:
            table = await with_memory(table, place, stack)
        yield table


async def with_memory(table: Table, place: str | MemoryStore, stack: AsyncExitStack) -> Table:
    """The table with a snapshot of a memory, and the memory's own embedder; `stack` closes both in the end.

    Raises:
        UsageError: the memory has another embedder or form than the settings name.
        StoreError: it cannot be read.
        ModelError: its embedder cannot be reached.
    """
    if isinstance(place, str):
        store = await asyncio.to_thread(open_memory, place)
        stack.callback(store.close)
    else:
        store = place
    embedder = await open_embedding(table.settings, store.embedder)
    stack.push_async_callback(embedder.aclose)
    if embedder.name != store.embedder:
        raise UsageError(
            f"{store.url} was built with the embedder {store.embedder}, and {embedder.name} cannot read it: leave "
            f"--embedder out, or export the memory and import it into a new one"
        )
    if store.form != table.settings.form:
        wanted = "with" if store.form == "official" else "without"
        raise UsageError(f"{store.url} holds states of the form {store.form!r}: run {wanted} --compat official")
    snapshot = await asyncio.to_thread(store.snapshot)
    return replace(table, memory=Memory(store.url, snapshot, embedder, store.form), store=store)


async def open_embedding(settings: Settings, known: str | None = None) -> Embedder:
    """The embedder of the settings, else the one called `known` (as a memory names it), else the embedded one; probed.

    Raises:
        UsageError: no such embedder, or a file that a memory's name does not tell.
        ModelError: its endpoint cannot be reached.
    """
    name = settings.embedder or (DEFAULT if known is None else spec(known))
    options = model_options(settings)
    if settings.embedder_base_url:  # the model's key is not for another host
        options = replace(options, base_url=settings.embedder_base_url, api_key=settings.embedder_api_key or "-")
    elif settings.embedder_api_key:
        options = replace(options, api_key=settings.embedder_api_key)
    embedder = open_embedder(name, options)
    try:
        await embedder.dimension()
    except BaseException:
        await embedder.aclose()
        raise
    return embedder


def spec(embedder: str) -> str:
    """How to open the embedder that a memory names, such as `openai/bge-m3` for `openai/bge-m3/1024`.

    Raises:
        UsageError: it is a file, whose place only the user knows.
    """
    provider, _, rest = embedder.partition("/")
    if provider == "gguf":
        raise UsageError(f"the memory was built with {embedder}: say where that file is with --embedder gguf/PATH")
    return f"{provider}/{rest.rpartition('/')[0]}" if provider == "openai" else provider


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
