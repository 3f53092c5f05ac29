"""When a debate ends early, and what the group's answer is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Protocol

from r2mad.answers import Tally, tally_async
from r2mad.errors import UsageError
from r2mad.retrieval import Recall
from r2mad.scene import Scene
from r2mad.skew import MemoryConfidence, everyone
from r2mad.types import Round, Stopped, digest


class Stop(Protocol):
    """Decides, after a round that is not the last, whether the debate is over.

    One that has a method `reconsider` as `UnanimityUnlessDoubted` does is asked again once the agents have remembered.
    """

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


@dataclass(frozen=True)
class UnanimityUnlessDoubted:
    """Over when all agree, unless memory doubts what they agree on: its mean confidence in their replies is low.

    Agents then remember before the debate may end, which costs a summary more for each debate that ends early.

    Args:
        confidence: how memory weighs a reply; under its `low` threshold it is doubted.
    """

    confidence: MemoryConfidence = MemoryConfidence()

    needs_memory = True

    def __call__(self, rounds: Sequence[Round]) -> Stopped | None:
        """Nothing yet: memory has not spoken."""
        return None

    async def reconsider(
        self, scene: Scene, rounds: Sequence[Round], recalled: Sequence[Recall]
    ) -> tuple[float | None, Stopped | None]:
        """(mean confidence in the agreed answer, why the debate is over); nothing to go by is no doubt."""
        if rounds[-1].consensus < 1.0:
            return None, None
        trusted = await trust(scene, rounds[-1], recalled, self.confidence)
        doubted = trusted is not None and trusted < self.confidence.low
        return trusted, None if doubted else "unanimity"


@dataclass(frozen=True)
class Selective:
    """Holds a debate only where it is needed: it is over after the opening if enough agents agree. Later: unanimity.

    Args:
        enough: share of all agents that must hold the most popular answer of round 0.
        confidence: with it, memory must not doubt that answer either; see `UnanimityUnlessDoubted`.
    """

    enough: float = 1.0
    confidence: MemoryConfidence | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.enough <= 1.0:
            raise UsageError(f"selective debate needs a share in (0, 1] that is enough, not {self.enough}")

    @property
    def needs_memory(self) -> bool:
        """Whether memory is asked."""
        return self.confidence is not None

    def __call__(self, rounds: Sequence[Round]) -> Stopped | None:
        """`settled`, or `unanimity`, after the opening; nothing yet where memory is to be asked."""
        if len(rounds) > 1:
            return Unanimity()(rounds)
        return None if self.confidence else self._settled(rounds[0])

    def _settled(self, opening: Round) -> Stopped | None:
        if opening.consensus == 1.0:
            return "unanimity"
        return "settled" if opening.consensus >= self.enough - _ROUNDING else None

    async def reconsider(
        self, scene: Scene, rounds: Sequence[Round], recalled: Sequence[Recall]
    ) -> tuple[float | None, Stopped | None]:
        """The same once the agents have remembered what is like the opening."""
        if self.confidence is None or len(rounds) > 1 or not (over := self._settled(rounds[0])):
            return None, None
        trusted = await trust(scene, rounds[0], recalled, self.confidence)
        return trusted, None if trusted is not None and trusted < self.confidence.low else over


async def trust(scene: Scene, last: Round, recalled: Sequence[Recall], weigh: MemoryConfidence) -> float | None:
    """Mean c_{j,i} (Eq. 11 of R2-MAD) over all agents i and those peers j that hold the most popular answer.

    None where no agent's cases say anything of them. An agent alone weighs its own reply.
    """
    shown = await weigh(scene, last, everyone(scene, last, own=len(scene.agents) == 1), recalled)
    holders = {reply.agent for reply in last.replies if reply.class_ == 0}
    found = [peer.confidence for peers in shown for peer in peers if peer.agent in holders]
    known = [value for value in found if value is not None]
    return fsum(known) / len(known) if known else None


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


_ROUNDING = 1e-9
"""Shares and sums of stated confidence that differ by less are equal: what is left of rounding is far below."""


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


@dataclass(frozen=True)
class Weighted:
    """The answer with the most stated confidence behind it. Who did not say counts as the mean of those who did.

    Where nobody said, or nobody is sure of anything, it is the plurality.
    """

    needs_elicit = True

    async def __call__(self, scene: Scene, last: Round, tally: Tally) -> Verdict:
        """Votes are sums of stated confidence; the denominator holds replies without an answer too."""
        stated = [reply.verbal_confidence for reply in last.replies if reply.verbal_confidence is not None]
        usual = fsum(stated) / len(stated) if stated else 0.0
        masses = [usual if z.verbal_confidence is None else z.verbal_confidence for z in last.replies]
        by_class = [
            fsum(mass for mass, label in zip(masses, tally.labels, strict=True) if label == index)
            for index in range(len(tally.classes))
        ]
        if fsum(by_class) <= 0.0:
            return await Plurality()(scene, last, tally)
        most = max(by_class)
        order = sorted(
            range(len(by_class)), key=lambda index: -by_class[index]
        )  # stable: a tally's order does the rest
        votes = {tally.classes[index].answer: round(by_class[index], 9) for index in order}
        tied = tuple(
            found.answer for found, mass in zip(tally.classes, by_class, strict=True) if mass >= most - _ROUNDING
        )
        answer = tied[0] if len(tied) == 1 else break_tie(sorted(tied), scene.seed, scene.question.id)
        return Verdict(answer, votes, tied if len(tied) > 1 else (), most / fsum(masses))


@dataclass(frozen=True)
class Judge:
    """One call more: agent 0's model reads the last round and writes the group's answer. For free-form text above all.

    Where all agree it is not asked. Where it fails, or gives no answer that can be read, the plurality stands.
    """

    def calls(self, agents: int) -> int:
        """1."""
        return 1

    async def __call__(self, scene: Scene, last: Round, tally: Tally) -> Verdict:
        """What the judge wrote; the votes are the agents' own, the confidence is the share that gave its answer, and
        None where it used words of its own."""
        plain = await Plurality()(scene, last, tally)
        heard = [reply for reply in last.replies if not reply.error]
        if not heard or last.consensus == 1.0:  # nothing to judge
            return plain
        shown = [
            scene.shown(z, label=None if z.verbal_confidence is None else f"{z.verbal_confidence:g}/10") for z in heard
        ]

        async def read(text: str) -> str | None:
            return await scene.extract(scene.elicit.read(text)[0] if scene.elicit else text)

        prompt = scene.pack.judge(scene.question, shown)
        note = await scene.judge("vote", prompt, last, read, before=scene.examples(0))
        if note.verdict is None:
            return plain
        held = await tally_async([note.verdict, *(reply.answer for reply in last.replies)], scene.question.kind)
        agree = sum(label == held.labels[0] for label in held.labels[1:])
        # in words of its own the judge may say what they all said: then nobody knows how many it speaks for
        unknown = not agree and scene.question.kind == "text"
        return Verdict(note.verdict, plain.votes, (), None if unknown else agree / len(last.replies))
