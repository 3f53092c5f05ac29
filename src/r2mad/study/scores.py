"""Grading: a debate beside its item. The only place where a gold answer meets a reply."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from r2mad.answers import equivalent
from r2mad.study.records import read
from r2mad.types import DebateRecord, Item, Judgement, Reply, Round, Usage, total


@dataclass(frozen=True, slots=True)
class Score:
    """One debate's outcome, small enough that a table can read thousands."""

    id: str
    """The debate's id."""
    method: str
    seed: int
    question: str
    """The question's id."""
    dataset: str
    group: str
    answer: str | None
    correct: bool
    """Whether the group's answer is right; no answer is not."""
    expected: float
    """Chance of being right if a tie had been broken evenly: the share of tied answers that are right."""
    grades: tuple[str, ...]
    """One string a round, one sign a reply: `1` right, `0` wrong, `-` no answer found, `x` failed."""
    stopped: str
    tie: bool
    degraded: bool
    replies: int
    errors: int
    unparsed: int
    truncated: int
    calls: int
    tokens: int
    seconds: float
    model: str = ""
    """The agents' models, each once, joined by " + "."""
    split: str = ""
    agents: int = 0
    opening: float = 0.0
    """Chance that a plain vote on round 0 is right, ties broken evenly: what the debate had to better."""
    consensus: tuple[float, ...] = ()
    """Cons(Z) of each round."""
    confidence: float | None = None
    """The record's: the chance of being right where it was calibrated, else the winner's share."""
    spent: dict[str, Spent] = field(default_factory=dict)
    """By kind of call: how many, and their tokens."""
    shared: int = 0
    """Of the replies and the judgements, those that another debate had been given already, or an earlier run."""
    shared_tokens: int = 0
    """Tokens of those."""
    waited: float = 0.0
    """Seconds that the calls took when they were first made, added up."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls of one kind, and what they read and wrote in tokens."""

    calls: int
    prompt: int
    completion: int
    cached: int = 0
    """Of the prompt's, those that the server still had read."""


def _right(answer: str | None, item: Item) -> bool:
    return answer is not None and equivalent(answer, item.gold, item.question.kind)


def grade(record: DebateRecord, item: Item) -> Score:
    """Grade a debate against its item. Blocking (a formula may take seconds): see `grade_async`."""
    replies = [reply for one in record.rounds for reply in one.replies]
    verdict = {answer: _right(answer, item) for answer in {reply.answer for reply in replies} | {record.answer}}
    correct = verdict[record.answer]
    tied_right = [_right(answer, item) for answer in record.tied]
    settled = graded_rounds(record, verdict)
    # of a diverse opening's pool those that were not kept were asked as well
    pool = record.rounds[0].candidates or record.rounds[0].replies
    later = [reply for one in record.rounds[1:] for reply in one.replies]
    asked: list[Reply | Judgement] = [*pool, *later, *record.judgements]
    return Score(
        id=record.id,
        method=record.method,
        seed=record.seed,
        question=item.question.id,
        dataset=item.dataset,
        group=item.group,
        answer=record.answer,
        correct=correct,
        expected=sum(tied_right) / len(tied_right) if tied_right else float(correct),
        grades=settled,
        stopped=record.stopped,
        tie=record.tie,
        degraded=record.degraded,
        replies=len(replies),
        errors=sum(reply.error is not None for reply in replies),
        unparsed=sum(reply.answer is None and not reply.error for reply in replies),
        truncated=sum(reply.finish_reason == "length" for reply in replies),
        calls=sum(record.calls.values()),
        tokens=total(record.usage.values()).total_tokens,
        seconds=record.seconds,
        model=" + ".join(dict.fromkeys(agent.model for agent in record.agents)),
        split=item.split,
        agents=len(record.agents),
        opening=vote_on(record.rounds[0], settled[0]),
        consensus=tuple(one.consensus for one in record.rounds),
        confidence=record.confidence if record.calibrated is None else record.calibrated,
        spent=_spent(record),
        shared=sum(one.cached for one in asked),
        shared_tokens=sum(one.usage.total_tokens for one in asked if one.cached),
        waited=round(sum(one.seconds for one in asked), 6),
    )


def graded_rounds(record: DebateRecord, verdict: dict[str | None, bool]) -> tuple[str, ...]:
    """One string a round, one sign a reply; see `Score.grades`."""

    def sign(reply: Reply) -> str:
        if reply.error:
            return "x"
        return "-" if reply.answer is None else str(int(verdict[reply.answer]))

    return tuple("".join(sign(reply) for reply in one.replies) for one in record.rounds)


def vote_on(one: Round, grades: str) -> float:
    """Chance that a plain vote on a round is right if a tie is broken evenly; 0 where nobody gave an answer.

    Args:
        one: the round, its replies labelled with their classes.
        grades: one sign a reply.
    """
    held: dict[int, list[bool]] = {}
    for reply, grade in zip(one.replies, grades, strict=True):
        if reply.class_ is not None:
            held.setdefault(reply.class_, []).append(grade == "1")
    most = max((len(group) for group in held.values()), default=0)
    first = [group for group in held.values() if len(group) == most]
    # equivalent answers are all right or all wrong, but where a grader gave one of them up: then they count by share
    return sum(sum(group) / len(group) for group in first) / len(first) if first else 0.0


def _spent(record: DebateRecord) -> dict[str, Spent]:
    found = {}
    for kind, calls in record.calls.items():
        used = record.usage.get(kind, Usage())
        if calls:
            found[str(kind)] = Spent(calls, used.prompt_tokens, used.completion_tokens, used.cached_tokens)
    return found


async def grade_async(record: DebateRecord, item: Item) -> Score:
    """`grade`, without holding up other debates."""
    if item.question.kind == "math":
        return await asyncio.to_thread(grade, record, item)
    return grade(record, item)


def latest_scores(path: Path) -> list[Score]:
    """The scores of a file, the last line of each debate counting.

    Raises:
        StoreError: see `r2mad.study.records.read`.
    """
    return list({score.id: score for score in read(Score, path)}.values())


@dataclass(frozen=True, slots=True)
class Summary:
    """What a set of scores comes to. Errors, truncated and unparsed replies are in the denominator, and counted."""

    debates: int
    correct: int
    failed: int
    ties: int
    degraded: int
    replies: int
    errors: int
    unparsed: int
    truncated: int
    calls: int
    tokens: int

    @property
    def accuracy(self) -> float:
        """Right answers over all debates, failed ones among them."""
        return self.correct / self.debates if self.debates else 0.0


def summarise(scores: Iterable[Score]) -> Summary:
    """Add scores up."""
    rows = list(scores)
    return Summary(
        debates=len(rows),
        correct=sum(row.correct for row in rows),
        failed=sum(row.stopped == "failed" for row in rows),
        ties=sum(row.tie for row in rows),
        degraded=sum(row.degraded for row in rows),
        replies=sum(row.replies for row in rows),
        errors=sum(row.errors for row in rows),
        unparsed=sum(row.unparsed for row in rows),
        truncated=sum(row.truncated for row in rows),
        calls=sum(row.calls for row in rows),
        tokens=sum(row.tokens for row in rows),
    )
