"""What every part of a debate is handed: the question, the agents, the prompts, and the one way to call a model.

Parts hold no client. They await `Scene.call` (or `Scene.reply`), which derives the seed, counts the call, keeps to the
budget and lets the agent's own model answer; so no call can escape the record's counts.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from r2mad.answers import extract, spoken
from r2mad.elicit import Elicit
from r2mad.errors import BudgetExceededError, ContextOverflowError, boundary
from r2mad.experience import Form
from r2mad.prompts import Pack, Persona, ShownReply
from r2mad.protocols import ChatModel, Embedder, Observer, Snapshot
from r2mad.types import (
    AgentInfo,
    CallKind,
    Completion,
    Failure,
    Judgement,
    MemoryInfo,
    Message,
    Purpose,
    Question,
    Reply,
    Request,
    Round,
    Sampling,
    Usage,
    View,
    clean,
    digest,
)

Messages = tuple[Message, ...]

SILENCE = "(This participant gave no readable reply.)"
"""Shown in place of a reply that is nothing but cut-off reasoning."""


@dataclass(frozen=True, slots=True)
class Agent:
    """One debater: its persona (whose name is its own), the model that speaks for it, and how that is sampled."""

    persona: Persona
    model: ChatModel
    sampling: Sampling = Sampling()


def call_seed(seed: int, question: str, agent: int, round_index: int, sample: int, kind: CallKind = "debate") -> int:
    """The seed of one call: a stable hash of what the call is, in [0, 2^31) (invariant 4).

    Nothing depends on scheduling or on the method, so methods that ask the same thing ask it with the same seed and
    share the reply (common random numbers, invariant 3).
    """
    parts: list[object] = [seed, question, agent, round_index, sample]
    if kind != "debate":  # what is asked about a debate must not repeat the debate's own randomness
        parts.append(kind)
    return int(digest(parts), 16) % 2**31  # some servers keep the seed in a signed 32-bit integer


MARGIN = 2.5
"""How much larger than the largest call so far one may be: prompts grow from round to round."""


@dataclass
class Purse:
    """What many debates together may spend.

    A call is taken to need as much as the largest one so far, and the first is made alone. One that might go over waits
    until those under way have told what they took, and fails if it still would.
    """

    max_tokens: int | None = None
    max_cost: float | None = None
    rates: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """By model: money for a million tokens read, and written."""
    tokens: int = 0
    paid: float = 0.0
    empty: bool = False
    """Whether a call was refused."""
    largest: tuple[int, float] = (0, 0.0)
    """Tokens, and money, of the largest calls so far."""
    _under_way: int = 0
    _told: asyncio.Condition = field(default_factory=asyncio.Condition)

    def _fits(self) -> bool:
        ahead = MARGIN * (self._under_way + 1)
        tokens, cost = self.largest
        if not tokens and self._under_way:
            return False
        return (self.max_tokens is None or self.tokens + max(1, ahead * tokens) <= self.max_tokens) and (
            self.max_cost is None or self.paid + ahead * cost <= self.max_cost
        )

    async def open(self) -> None:
        """Take what one call may need.

        Raises:
            BudgetExceededError: there is not so much left; the call is not made.
        """
        async with self._told:
            await self._told.wait_for(lambda: self._fits() or not self._under_way)
            if not self._fits():
                self.empty = True
                raise BudgetExceededError(f"the run's cap is reached ({self.tokens} tokens, {self.paid:.4g} paid)")
            self._under_way += 1

    async def close(self, model: str, usage: Usage) -> None:
        """Put back what a call did not need."""
        read, written = self.rates.get(model, (0.0, 0.0))
        cost = (usage.prompt_tokens * read + usage.completion_tokens * written) / 1e6
        async with self._told:
            self._under_way -= 1
            self.tokens, self.paid = self.tokens + usage.total_tokens, self.paid + cost
            self.largest = (max(self.largest[0], usage.total_tokens), max(self.largest[1], cost))
            self._told.notify_all()


@dataclass(slots=True)
class Ledger:
    """Calls and tokens so far, by what they were for, and the caps that the caller set."""

    max_calls: int | None = None
    """Most calls one debate may make; a further one fails with `BudgetExceededError` and is not sent."""
    purse: Purse | None = None
    """What this and other debates may spend together."""
    calls: Counter[CallKind] = field(default_factory=Counter)
    usage: dict[CallKind, Usage] = field(default_factory=dict)
    judgements: list[Judgement] = field(default_factory=list)
    """What came back from calls that judged replies, as it came."""

    def judged(self) -> tuple[Judgement, ...]:
        """The judgements in an order that does not depend on which call came back first."""
        return tuple(
            sorted(self.judgements, key=lambda one: (one.round, one.purpose, -1 if one.about is None else one.about))
        )

    def by_kind(self) -> dict[CallKind, int]:
        """How many calls of each kind were made, the kinds without any among them."""
        return {"debate": self.calls["debate"], "summary": self.calls["summary"], "judge": self.calls["judge"]}

    def room(self, calls: int) -> bool:
        """Whether so many more calls may be made."""
        return self.max_calls is None or self.calls.total() + calls <= self.max_calls

    def open(self, kind: CallKind) -> None:
        """Count a call that is about to be made.

        Raises:
            BudgetExceededError: the cap is reached; the call is neither counted nor made.
        """
        if not self.room(1):
            raise BudgetExceededError(f"the cap of {self.max_calls} calls a debate is reached")
        self.calls[kind] += 1

    def close(self, kind: CallKind, usage: Usage) -> None:
        """Add the tokens of a call that came back."""
        self.usage[kind] = self.usage.get(kind, Usage()) + usage


def unfitted() -> Failure:
    """What a view says where an agent's cases were left out because its model's context was too short."""
    return Failure(ContextOverflowError.kind, "the cases did not fit into the context")


def nobody(round_index: int, what: Reply | Round) -> None:
    """Nobody watches."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What a debate can remember: one snapshot of a memory, and the embedder that its vectors come from."""

    url: str
    snapshot: Snapshot
    embedder: Embedder
    form: Form = "paper"

    def info(self, agents: Sequence[Agent]) -> MemoryInfo:
        """As the record names it. Reads the agents' banks, so it may block."""
        banks = [self.snapshot.bank(agent.persona.name) for agent in agents]
        return MemoryInfo(self.url, self.snapshot.version, sum(len(bank) for bank in banks if bank))


@dataclass(frozen=True, slots=True)
class Scene:
    """One debate's fixed surroundings."""

    question: Question
    agents: tuple[Agent, ...]
    pack: Pack
    seed: int
    ledger: Ledger = field(default_factory=Ledger)
    observe: Observer = nobody
    memory: Memory | None = None
    """What a method that remembers reads; others do not look at it."""
    embedder: Embedder | None = None
    """What a method that compares replies does so with, where no memory brings its own."""
    elicit: Elicit | None = None
    """What replies must carry besides an answer. The engine takes it from the method."""
    comparing: str = ""
    """How the embedder was asked for, where it is opened later; part of the identity of debates that it decides."""

    @property
    def embeds(self) -> str:
        """What makes vectors in this debate, by its own name."""
        found = self.memory.embedder if self.memory else self.embedder
        return found.name if found else self.comparing

    @property
    def compares(self) -> str:
        """The same, known before it is opened."""
        return self.comparing or self.embeds

    @property
    def roster(self) -> tuple[AgentInfo, ...]:
        """The agents as records name them."""
        return tuple(AgentInfo(agent.persona.name, agent.model.name, agent.sampling) for agent in self.agents)

    def preamble(self, agent: int) -> Messages:
        """What an agent reads before the question: who it is, and the pack's examples."""
        return self.pack.preamble(self.agents[agent].persona, self.question, stated=self.elicit is not None)

    def examples(self, agent: int) -> Messages:
        """The pack's examples alone."""
        return tuple(message for message in self.preamble(agent) if message.role != "system")

    async def call(
        self, kind: CallKind, agent: int, messages: Messages, round_index: int, sample: int = 0
    ) -> Completion:
        """One counted call to agent `agent`'s model.

        Raises:
            ModelError: the call failed after its retries, or the budget is spent.
        """
        who = self.agents[agent]
        seed = call_seed(self.seed, self.question.id, agent, round_index, sample, kind)
        request, purse = Request(messages, who.sampling, seed, agent, sample, kind), self.ledger.purse
        self.ledger.open(kind)
        if purse is None:
            completion = await who.model.complete(request)
        else:
            await purse.open()
            used = Usage()
            try:
                completion = await who.model.complete(request)
                used = Usage() if completion.cached else completion.usage
            finally:
                await purse.close(who.model.name, used)
        self.ledger.close(kind, completion.usage)
        return completion

    async def judge(
        self,
        purpose: Purpose,
        prompt: str,
        judged: Round,
        read: Callable[[str], Awaitable[str | None]],
        *,
        agent: int = 0,
        about: int | None = None,
        before: Messages = (),
    ) -> Judgement:
        """Ask agent `agent`'s model about a round, or about one reply of it, and note what it said for the record.

        Args:
            purpose: what it is asked for.
            prompt: the one user turn that it is sent.
            judged: the round.
            read: makes the verdict of what it says.
            agent: whose model is asked.
            about: whose reply is judged.
            before: what it reads before the prompt.

        Returns:
            The judgement; a failed call is one with an error and no verdict.
        """
        sample = 0 if about is None else about
        outcome = await boundary(self.call("judge", agent, (*before, Message("user", prompt)), judged.index, sample))
        note = Judgement(purpose, judged.index, about, agent)
        if isinstance(outcome, Failure):
            note = replace(note, error=outcome)
        else:
            text = clean(outcome.text)
            note = replace(
                note,
                text=text,
                verdict=await read(text),
                usage=outcome.usage,
                seconds=outcome.seconds,
                cached=outcome.cached,
            )
        self.ledger.judgements.append(note)
        return note

    async def reply(
        self, agent: int, layouts: Iterable[Messages], round_index: int, sample: int = 0
    ) -> tuple[Reply, View]:
        """One agent's reply to the first of `layouts` (fullest first) that fits its model's context.

        A failed call is a `Reply` with an error. The view tells which messages were sent and how many layouts were
        too long before.
        """
        tried: list[Messages] = []
        outcome = await boundary(self._first_that_fits(agent, layouts, round_index, sample, tried))
        reply = await self._read(outcome, agent, round_index, sample)
        self.observe(round_index, reply)
        sent = digest([[message.role, message.content] for message in tried[-1]])
        return reply, View(agent, messages=sent, trimmed=len(tried) - 1)

    async def _first_that_fits(
        self, agent: int, layouts: Iterable[Messages], round_index: int, sample: int, tried: list[Messages]
    ) -> Completion:
        overflow: ContextOverflowError | None = None
        for messages in layouts:
            tried.append(messages)
            try:
                return await self.call("debate", agent, messages, round_index, sample)
            except ContextOverflowError as error:
                overflow = error
        assert overflow is not None  # a context always has at least one layout
        raise overflow

    async def _read(self, outcome: Completion | Failure, agent: int, round_index: int, sample: int) -> Reply:
        seed = call_seed(self.seed, self.question.id, agent, round_index, sample)
        if isinstance(outcome, Failure):
            return Reply(agent, sample, finish_reason="error", seed=seed, error=outcome)
        text = clean(outcome.text)
        said, sure = self.elicit.read(text) if self.elicit else (text, None)
        return Reply(
            agent,
            sample,
            text=text,
            reasoning=None if outcome.reasoning is None else clean(outcome.reasoning),
            answer=await self.extract(said),
            finish_reason=clean(outcome.finish_reason),
            mean_logprob=outcome.mean_logprob,
            mean_top_logprob=outcome.mean_top_logprob,
            verbal_confidence=sure,
            usage=outcome.usage,
            seconds=outcome.seconds,
            cached=outcome.cached,
            seed=seed,
            model=outcome.model,
        )

    def asking(self, prompt: str) -> str:
        """A prompt for a reply, with what else a reply must carry."""
        more = self.elicit.request(self.pack) if self.elicit else ""
        return f"{prompt}\n\n{more}" if more else prompt

    def shown(self, reply: Reply, *, own: bool = False, label: str | None = None) -> ShownReply:
        """A reply as prompts show it: without its reasoning, and without what stands in its label if anywhere."""
        said = self.elicit.read(reply.text)[0] if self.elicit else reply.text
        name = self.agents[reply.agent].persona.name
        return ShownReply(name, spoken(said).strip() or SILENCE, answer=reply.answer, own=own, label=label)

    async def extract(self, text: str) -> str | None:
        """The answer that a text gives to the question, or None."""
        kind, options = self.question.kind, self.question.options
        if len(text) > 50_000:  # tens of milliseconds: other debates should not wait for it
            return await asyncio.to_thread(extract, text, kind, options)
        return extract(text, kind, options)
