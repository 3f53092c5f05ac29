"""A method is a choice of parts; the table of methods is `methods.py`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from r2mad.context import Context, History
from r2mad.errors import UsageError
from r2mad.opening import Independent, Opening
from r2mad.retrieval import Retrieval
from r2mad.skew import Everyone, Filter
from r2mad.verdict import Plurality, Stop, Unanimity, Vote


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
        if self.rounds > 1 and self.opening.calls(self.agents) > self.agents and isinstance(self.opening, Independent):
            raise UsageError(
                f"{self.name}: several samples an agent leave no one reply to debate; use 1 round or sample"
            )

        if self.retrieval and self.rounds < 2:
            raise UsageError(f"{self.name} remembers before its second round, so it needs at least 2 rounds")
        if not self.retrieval and any(getattr(part, "needs_memory", False) for part in self.skew):
            raise UsageError(f"{self.name}: confidence from memory needs a retrieval to take it from")

    @property
    def needs_memory(self) -> bool:
        """Whether any part of it reads a memory."""
        return self.retrieval is not None or getattr(self.opening, "needs_memory", False)

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
    def calls(self) -> int:
        """Calls to models if no debate stops early: the opening's, then one an agent and round, and the summaries."""
        return self.opening.calls(self.agents) + (self.agents + self.summarises) * (self.rounds - 1)

    @property
    def composition(self) -> str:
        """The parts in one line, as `r2mad methods` shows them."""
        size = f"{self.agents} agent{'s' * (self.agents > 1)}, {self.rounds} round{'s' * (self.rounds > 1)}"
        if self.rounds == 1:
            return f"{size}, {described(self.opening)}, {described(self.vote)}"
        skew = " → ".join(described(part) for part in self.skew)
        memory = [part for part in (self.retrieval, "summaries" if self.summarise else None) if part]
        parts = (self.opening, *memory, skew, self.context, self.stop, self.vote)
        return ", ".join([size, *(part if isinstance(part, str) else described(part) for part in parts)])


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
