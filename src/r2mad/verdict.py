"""When a debate ends early, and what the group's answer is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from r2mad.answers import Tally
from r2mad.scene import Scene
from r2mad.types import Round, Stopped, digest


class Stop(Protocol):
    """Decides, after a round that is not the last, whether the debate is over."""

    def __call__(self, rounds: Sequence[Round]) -> Stopped | None:
        """Why it is over, or None."""
        ...


@dataclass(frozen=True)
class Unanimity:
    """Over as soon as all n agents give equivalent answers. A missing answer agrees with nobody."""

    def __call__(self, rounds: Sequence[Round]) -> Stopped | None:
        """`unanimity` once Cons(Z) is 1."""
        return "unanimity" if rounds[-1].consensus == 1.0 else None


@dataclass(frozen=True)
class Never:
    """Every round is debated; memory is built so, to see what debate does to a consensus."""

    def __call__(self, rounds: Sequence[Round]) -> Stopped | None:
        """Never over early."""
        return None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The group's answer and how it came about."""

    answer: str | None
    votes: dict[str, float]
    """Votes by answer, most first; replies without an answer cast none."""
    tied: tuple[str, ...] = ()
    """The answers that shared the first place, if several did."""
    confidence: float | None = None
    """The winner's votes over all replies."""


class Vote(Protocol):
    """Turns the last round into the group's answer."""

    async def __call__(self, scene: Scene, last: Round, tally: Tally) -> Verdict:
        """The verdict on a round whose answers were counted into `tally`."""
        ...


def break_tie(tied: Sequence[str], seed: int, question: str) -> str:
    """Choose among tied answers by a hash of (seed, question id): the same in every process, and no agent's favour.

    `tied` must stand in an order that does not depend on the agents' (a tally's does not).
    """
    return tied[int(digest(["tie", seed, question]), 16) % len(tied)]


@dataclass(frozen=True)
class Plurality:
    """The answer most agents hold (the papers say "majority"). A tie is broken by a hash, and recorded."""

    async def __call__(self, scene: Scene, last: Round, tally: Tally) -> Verdict:
        """The plurality class of the last round."""
        votes = {found.answer: float(found.count) for found in tally.classes}
        if not tally.classes:
            return Verdict(None, votes)
        most = tally.classes[0].count
        tied = tuple(found.answer for found in tally.classes if found.count == most)
        answer = tied[0] if len(tied) == 1 else break_tie(tied, scene.seed, scene.question.id)
        return Verdict(answer, votes, tied if len(tied) > 1 else (), most / tally.total)
