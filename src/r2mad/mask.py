"""Masks: filters that keep replies of the round before from being shown on (Multi-Agent Debate with Memory Masking).

A false reply in an agent's context is a bad example that it reasons by. A mask judges every reply once, for all agents,
and takes what fails out of what they see, an agent's own reply as well: so it goes with the context `Fresh`, where no
reply stands anywhere else. An agent that is left with nothing answers from the question alone.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan
from statistics import median
from typing import Literal

from r2mad.answers import spoken
from r2mad.errors import UsageError
from r2mad.retrieval import Recall
from r2mad.scene import Scene
from r2mad.skew import Shown
from r2mad.types import Failure, Judgement, MaskChoice, Peer, Reply, Round

_WORD = r"(?P<word>YES|NOT[ -]SURE|UNSURE|NO)"
_LINE = (
    re.compile(  # nothing but the word, in any dress: **NO**, "Verdict: NO.", \boxed{\text{NO}}, <answer>NO</answer>
        rf"(?:<\w+>|[\W_])*(?:(?:(?:my|the|final)\s+)?(?:verdict|judge?ment|answer)(?:\s+is)?[\W_]*)?"
        rf"(?:\\boxed\{{)?(?:\\text\{{)?[\W_]*{_WORD}[\W_]*(?:</\w+>)?[\W_]*",
        re.IGNORECASE,
    )
)
_SAID = re.compile(rf"\b(?:verdict|judge?ment)(?:\W{{1,6}}is)?\W{{1,6}}{_WORD}\b", re.IGNORECASE)
_FIRST = re.compile(rf"\W*{_WORD}[*_]{{0,3}}[ \t]*(?:[.,:;!\u2013\u2014(-](?!\s*\d)|\n|\Z)", re.IGNORECASE)
_SHOUTED = re.compile(r"\b(?:YES|NO|NOT SURE)\b")
LONGEST_LINE = 80
"""Characters of a line that can hold nothing but a verdict."""


def read_verdict(text: str) -> str | None:
    """`yes`, `no` or `not sure`; None where none of them can be read.

    The last line counts if it holds nothing else; if it does not, the last words like "my verdict is NO"; if there are
    none, the word that the text begins with, where a stop follows it ("Yes, because …"; "No errors were found" says the
    opposite of no) and no other verdict is written in capitals after it. A line in the middle is never taken: it may be
    a quotation of the reply that is judged.
    """
    said = unicodedata.normalize("NFKC", spoken(text)).strip()
    last = said.rsplit("\n", 1)[-1].strip()
    if len(last) <= LONGEST_LINE and (alone := _LINE.fullmatch(last)):
        return _meant(alone)
    if found := list(_SAID.finditer(said)):
        return _meant(found[-1])
    begins = _FIRST.match(said[:40])
    return _meant(begins) if begins and not _SHOUTED.search(said, begins.end()) else None


def _meant(found: re.Match[str]) -> str:
    word = found["word"].lower()
    return word if word in ("yes", "no") else "not sure"


@dataclass(frozen=True)
class SubjectiveMask:
    """Asks a model of every reply whether it is right: one call a reply and round, to agent 0's model.

    Args:
        strict: what comes of "not sure", of a verdict that cannot be read and of a call that failed: kept (loose), or
            masked (strict).
    """

    strict: bool = False

    masks = True

    def calls(self, agents: int) -> int:
        """n."""
        return agents

    async def __call__(self, scene: Scene, previous: Round, shown: Shown, recalled: Sequence[Recall]) -> Shown:
        """Every reply that somebody sees with its verdict, shown on or not."""
        asked = sorted({peer.agent for peers in shown for peer in peers if peer.shown})
        notes = await asyncio.gather(*(ask_verdict(scene, previous, agent) for agent in asked))
        verdicts = {
            agent: "failed" if note.error else str(note.verdict) for agent, note in zip(asked, notes, strict=True)
        }

        def masked(peer: Peer) -> Peer:
            if not peer.shown:
                return peer
            verdict = verdicts[peer.agent]
            return replace(peer, verdict=verdict, shown=verdict == "yes" if self.strict else verdict != "no")

        return tuple(tuple(masked(peer) for peer in peers) for peers in shown)


async def ask_verdict(scene: Scene, judged: Round, agent: int) -> Judgement:
    """What agent 0's model says of agent `agent`'s reply in a round; the record keeps it."""
    reply = next(reply for reply in judged.replies if reply.agent == agent)

    async def read(text: str) -> str:
        return read_verdict(text) or "unreadable"

    prompt = scene.pack.mask(scene.question, scene.shown(reply))
    return await scene.judge("mask", prompt, judged, read, about=agent)


Keep = Literal["lowest", "above-median"]
Score = Literal["sampled", "top-token"]


@dataclass(frozen=True)
class ObjectiveMask:
    """Keeps the reply that the model was surest of: the one of lowest perplexity, exp(−mean log-probability).

    Means are compared and not perplexities, whose exponential overflows for a token of probability 0.

    Args:
        keep: "lowest" the one reply of lowest perplexity, of several the first agent's; "above-median", as the authors'
            code does, all whose mean is not below the median.
        score: whose log-probabilities: those of the tokens that were sampled, or of the likeliest one at each place.
    """

    keep: Keep = "lowest"
    score: Score = "sampled"

    masks = True
    needs_logprobs = True

    @property
    def needs_top_logprobs(self) -> bool:
        """Whether it reads those of the likeliest tokens."""
        return self.score == "top-token"

    def __post_init__(self) -> None:
        if self.keep not in ("lowest", "above-median") or self.score not in ("sampled", "top-token"):
            raise UsageError(
                f"an objective mask keeps 'lowest' or 'above-median' by 'sampled' or 'top-token', "
                f"not {self.keep!r} by {self.score!r}"
            )

    def of(self, reply: Reply) -> float | None:
        """A reply's mean log-probability; None where the server sent none."""
        score = reply.mean_logprob if self.score == "sampled" else reply.mean_top_logprob
        return None if score is None or isnan(score) else score

    async def __call__(self, scene: Scene, previous: Round, shown: Shown, recalled: Sequence[Recall]) -> Shown:
        """Every reply with its score, shown on or not. A reply without a score is masked unless none has one."""
        scores = {reply.agent: self.of(reply) for reply in previous.replies}
        seen = {peer.agent for peers in shown for peer in peers if peer.shown}
        if seen and all(scores[agent] is None for agent in seen):
            why = Failure("logprobs", "no reply of the round came with log-probabilities, so none was masked")
            scene.ledger.judgements.append(Judgement("mask", previous.index, None, 0, error=why))
        return tuple(self._masked(peers, scores) for peers in shown)

    def _masked(self, peers: tuple[Peer, ...], scores: dict[int, float | None]) -> tuple[Peer, ...]:
        """One agent's view. Where all see all, the choice is the same for all; behind a sparse topology it is among
        what an agent may read, or most would be left with nothing."""
        kept = kept_by_score({peer.agent: scores[peer.agent] for peer in peers if peer.shown}, self.keep)

        def masked(peer: Peer) -> Peer:
            if not peer.shown:
                return peer
            score, stays = scores[peer.agent], peer.agent in kept
            verdict = "unscored" if score is None else "kept" if stays else "masked"
            return replace(peer, shown=stays, score=score, verdict=verdict)

        return tuple(masked(peer) for peer in peers)


def kept_by_score(scores: dict[int, float | None], keep: Keep = "lowest") -> set[int]:
    """The agents whose replies an objective mask keeps: of highest mean log-probability, that is lowest perplexity.

    Args:
        scores: mean log-probability by agent, in order of agents; None where there is none.
        keep: see `ObjectiveMask`.

    Returns:
        One agent or, above the median, about half of them; all of them where none has a score.
    """
    known = {agent: score for agent, score in scores.items() if score is not None}
    if not known:
        return set(scores)
    if keep == "lowest":
        return {max(known, key=lambda agent: known[agent])}
    middle = median(known.values())
    return {agent for agent, score in known.items() if score >= middle}


@dataclass(frozen=True, repr=False)
class AutoMask:
    """The mask that tells right replies from wrong ones better for this model, found out on labelled training items.

    `r2mad.study.masking.choose_mask` makes the choice; without one the mask cannot be used. Its evidence is part of
    every record, and not of a debate's identity: only what was chosen is.
    """

    choice: MaskChoice | None = None
    official: bool = False
    """Whether the objective mask is that of the authors' code."""

    masks = True

    def __repr__(self) -> str:
        form = ", official" if self.official else ""
        return f"AutoMask({self.choice.chosen if self.choice else 'not chosen yet'}{form})"

    @property
    def chosen(self) -> SubjectiveMask | ObjectiveMask:
        """The mask that it stands for.

        Raises:
            UsageError: nothing was chosen yet.
        """
        if self.choice is None:
            raise UsageError("the automatic mask chooses on labelled training items: --train starter:train")
        if self.choice.chosen == "subjective":
            return SubjectiveMask()
        return ObjectiveMask("above-median", "top-token") if self.official else ObjectiveMask()

    @property
    def needs_top_logprobs(self) -> bool:
        """Whether the chosen mask reads those of the likeliest tokens."""
        return self.official and self.needs_logprobs

    @property
    def needs_logprobs(self) -> bool:
        """Whether the chosen mask reads log-probabilities."""
        return self.choice is not None and self.choice.chosen == "objective"

    def calls(self, agents: int) -> int:
        """n for the subjective mask, and for one that is not chosen yet; none for the objective one."""
        return 0 if self.needs_logprobs else agents

    async def __call__(self, scene: Scene, previous: Round, shown: Shown, recalled: Sequence[Recall]) -> Shown:
        """What the chosen mask makes of it."""
        return await self.chosen(scene, previous, shown, recalled)
