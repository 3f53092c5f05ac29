"""What a memory keeps: finished debates with their outcomes, and the cases that refer to them (Eq. 6).

Frozen like the records of a debate, but not written as one: each store and exchange file has a form of its own.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from r2mad.types import DebateRecord, Question, digest

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]
    """Embeddings: unit vectors along the last axis, in single precision."""

Form = Literal["paper", "official"]
"""How a debate state is written down before it is embedded (Eq. 4): as the paper defines it, or as the authors' scripts
do, without the consensus. A memory's states are all of one form."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a finished debate turned out, as far as anybody knows."""

    source: str
    """Who says so: `gold`, `verifier:provider/name`, `python:NAME`, `feedback`, or a word of the caller's."""
    rewards: tuple[float | None, ...]
    """r_i, one an agent: 1 if its last answer is right, 0 if not, a value between, or None where it is not known."""
    correct: tuple[tuple[bool | None, ...], ...]
    """ζ_i^(t), one row a round and one column an agent: whether that reply is right; None where it is not known."""
    answer: str | None = None
    """y, the right answer, where it is known."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A debate as a memory keeps it: once, with its outcome and every vector that retrieval needs."""

    record: DebateRecord
    outcome: Outcome
    question: Vectors
    """Of the question with its options, shape [d]."""
    replies: Vectors
    """Of every reply as it was shown, shape [rounds, agents, d]; zeros for a reply that failed or said nothing."""
    states: dict[tuple[int, int], Vectors]
    """s_i^(t) by (t, i), t > 0, shape [d] each: one for every case. A reply that failed is no experience."""
    added: str = ""
    """When, UTC, ISO 8601; the store says."""


@dataclass(frozen=True, slots=True)
class Case:
    """e_i^(t), Eq. 6: what agent i lived through in round t of a debate that is over; a reference into that debate."""

    debate: Remembered
    round: int
    """t, above 0."""
    seat: int
    """i, the agent's place in that debate."""

    @property
    def id(self) -> str:
        """The case's name: a hash of (debate, round, agent)."""
        return case_id(self.debate.record.id, self.round, self.seat)

    @property
    def reward(self) -> float | None:
        """r_i(e)."""
        return self.debate.outcome.rewards[self.seat]

    def seat_of(self, name: str) -> int | None:
        """Where the agent of that name sat in this case's debate; None if it was not there."""
        return next((seat for seat, agent in enumerate(self.debate.record.agents) if agent.name == name), None)


def case_id(debate: str, round_index: int, seat: int) -> str:
    """The name of a case: 16 hexadecimal digits that depend on nothing but (debate, round, agent)."""
    return digest([debate, round_index, seat])


def leak_key(question: Question) -> str:
    """What makes two questions one for whoever knows the answer: neither case nor spacing nor the options' order."""

    def plain(text: str) -> str:
        return " ".join(unicodedata.normalize("NFKC", text).casefold().split())

    return digest([plain(question.text), sorted(plain(option) for option in question.options)])


def question_key(question: Question) -> str:
    """What makes two questions the same wherever they come from: text and options, and not their ids."""
    return digest([question.text, list(question.options)])
