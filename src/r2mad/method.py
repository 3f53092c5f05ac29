"""A method is a choice of parts; the table of methods is `methods.py`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from r2mad.context import Context, History
from r2mad.elicit import Elicit
from r2mad.errors import UsageError
from r2mad.mask import AutoMask
from r2mad.opening import Independent, Opening
from r2mad.retrieval import Retrieval
from r2mad.skew import Everyone, Filter, Graph, Ring
from r2mad.types import MaskChoice
from r2mad.verdict import Plurality, Stop, Unanimity, Vote

LARGEST = 1000
"""Agents, rounds, or replies of an opening: far above any use, and no slip of the finger is held for hours."""


@dataclass(frozen=True)
class Method:
    """One way to debate. The defaults are `mad`'s: 3 agents, 3 rounds, everyone, history, unanimity, plurality."""

    name: str
    summary: str
    """One line for `r2mad methods`."""
    source: str
    """Where it was published."""
    agents: int = 3
    rounds: int = 3
    """Rounds at most, round 0 included."""
    elicit: Elicit | None = None
    """What replies must carry besides an answer."""
    opening: Opening = Independent()
    retrieval: Retrieval | None = None
    """What agents remember before each later round."""
    summarise: bool = False
    """Whether every round but the last is summed up though nobody retrieves; memory is built so."""
    skew: tuple[Filter, ...] = (Everyone(),)
    context: Context = History()
    stop: Stop = Unanimity()
    vote: Vote = Plurality()
    adjustable: tuple[str, ...] = ("agents", "rounds")
    """Which of the two a user may change without making it another method."""

    def __post_init__(self) -> None:
        if self.agents < 1 or self.rounds < 1:
            raise UsageError(f"{self.name}: needs at least 1 agent and 1 round, not {self.agents} and {self.rounds}")
        opened = self.opening.calls(self.agents)
        if self.rounds > 1 and opened > self.agents and isinstance(self.opening, Independent):
            raise UsageError(
                f"{self.name}: several samples an agent leave no one reply to debate; use 1 round or sample"
            )
        if max(self.agents, self.rounds, opened) > LARGEST:
            raise UsageError(f"{self.name}: more than {LARGEST} agents, rounds or replies to open with")
        if opened < self.agents:
            raise UsageError(f"{self.name}: {opened} candidates of the opening cannot seat {self.agents} agents")
        if self.retrieval and self.rounds < 2:
            raise UsageError(f"{self.name} remembers before its second round, so it needs at least 2 rounds")
        if problem := self._misfit():
            raise UsageError(f"{self.name}: {problem}")

    def _misfit(self) -> str | None:
        """Why its parts do not go together."""
        if not self.retrieval and any(getattr(part, "needs_memory", False) for part in (*self.skew, self.stop)):
            return "confidence from memory needs a retrieval to take it from"
        if not self.elicit and any(getattr(part, "needs_elicit", False) for part in (*self.skew, self.vote)):
            return "stated confidence must be asked for: elicit=VerbalConfidence()"
        if not self.context.own and any(getattr(part, "masks", False) for part in self.skew):
            return "a mask removes an agent's own reply as well, so no conversation may hold it: context=Fresh()"
        if sum(getattr(part, "labels", False) for part in self.skew) > 1:
            return "only one confidence can stand beside a reply: memory's, or the one that was stated"
        if self.rounds < 2 and any(
            getattr(part, "masks", False) or isinstance(part, (Ring, Graph)) for part in self.skew
        ):
            return "what agents are shown matters from the second round on, so it needs at least 2 rounds"
        for part in self.skew:
            if (size := getattr(part, "size", None)) not in (None, self.agents):
                return f"its topology is for {size} agents, not {self.agents}"
        return None

    @property
    def parts(self) -> tuple[object, ...]:
        """Every part that it has."""
        found = (self.elicit, self.opening, self.retrieval, *self.skew, self.context, self.stop, self.vote)
        return tuple(part for part in found if part is not None)

    @property
    def needs_memory(self) -> bool:
        """Whether any part of it reads a memory."""
        return self.retrieval is not None or getattr(self.opening, "needs_memory", False)

    @property
    def needs_logprobs(self) -> bool:
        """Whether a part reads log-probabilities, which must then be asked for, and be of one model."""
        return any(getattr(part, "needs_logprobs", False) for part in self.parts)

    @property
    def needs_top_logprobs(self) -> bool:
        """Whether it is those of the likeliest tokens."""
        return any(getattr(part, "needs_top_logprobs", False) for part in self.parts)

    @property
    def needs_embedder(self) -> bool:
        """Whether a part compares replies by their vectors."""
        return any(getattr(part, "needs_embedder", False) for part in self.parts)

    @property
    def needs(self) -> tuple[str, ...]:
        """What it needs besides models that answer, in words."""
        needed = {
            "memory": self.needs_memory,
            "log-probabilities": self.needs_logprobs,
            "one model": self.needs_logprobs,
            "embedder": self.needs_embedder,
            "training items": self.needs_choice,
        }
        return tuple(name for name, does in needed.items() if does)

    @property
    def choice(self) -> MaskChoice | None:
        """Why its mask is what it is, where that was chosen."""
        return next((part.choice for part in self.skew if isinstance(part, AutoMask)), None)

    @property
    def needs_choice(self) -> bool:
        """Whether a part must first choose on labelled training items."""
        return self.choice is None and any(isinstance(part, AutoMask) for part in self.skew)

    @property
    def summarises(self) -> bool:
        """Whether rounds are summed up: the debate state holds the summary (Eq. 4)."""
        return self.summarise or self.retrieval is not None

    def sized(self, agents: int | None = None, rounds: int | None = None) -> Method:
        """The same method for another number of agents or rounds; None leaves it as it is.

        Raises:
            UsageError: the method is defined by that number, or the number is under 1.
        """
        asked: dict[str, Any] = {"agents": agents, "rounds": rounds}
        changes = {name: value for name, value in asked.items() if value is not None and value != getattr(self, name)}
        for name in changes:
            if name not in self.adjustable:
                number = getattr(self, name)
                noun = name.removesuffix("s") if number == 1 else name
                raise UsageError(f"{self.name} has {number} {noun} by definition; leave --{name} out")
        return replace(self, **changes) if changes else self

    @property
    def round_calls(self) -> int:
        """Calls of one round after the opening: one an agent, the summary before it, and what its filters ask."""
        return self.agents + self.summarises + sum(_calls(part, self.agents) for part in self.skew)

    @property
    def closing_calls(self) -> int:
        """Calls of its vote."""
        return _calls(self.vote, self.agents)

    @property
    def calls(self) -> int:
        """Calls to models if no debate stops early: the opening's, those of the rounds after it, and the vote's."""
        return self.opening.calls(self.agents) + self.round_calls * (self.rounds - 1) + self.closing_calls

    @property
    def composition(self) -> str:
        """The parts in one line, as `r2mad methods` shows them."""
        size = f"{self.agents} agent{'s' * (self.agents > 1)}, {self.rounds} round{'s' * (self.rounds > 1)}"
        asked = [described(self.elicit)] if self.elicit else []
        if self.rounds == 1:
            return ", ".join([size, *asked, described(self.opening), described(self.vote)])
        skew = " → ".join(described(part) for part in self.skew)
        memory = [part for part in (self.retrieval, "summaries" if self.summarise else None) if part]
        parts = (self.opening, *memory, skew, self.context, self.stop, self.vote)
        return ", ".join([size, *asked, *(part if isinstance(part, str) else described(part) for part in parts)])


def _calls(part: object, agents: int) -> int:
    """Calls that a filter makes a round, or a vote once; most make none, and say nothing of it."""
    counted = getattr(part, "calls", None)
    return int(counted(agents)) if counted else 0


def described(part: object) -> str:
    """A part as text that is the same in every process, for it decides a debate's id.

    A part's own `repr` serves if it has one; else its class and what it holds, since Python's default names an address.
    """
    if hasattr(part, "__qualname__"):  # a function, or a class that is called as it is
        return str(part.__qualname__)
    if type(part).__repr__ is not object.__repr__:
        return repr(part)
    held = (
        ", ".join(f"{name}={value!r}" for name, value in sorted(vars(part).items()))
        if hasattr(part, "__dict__")
        else ""
    )
    return f"{type(part).__qualname__}({held})"
