"""Grading: a debate beside its item. The only place where a gold answer meets a reply."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from r2mad.answers import equivalent
from r2mad.study.records import read
from r2mad.types import DebateRecord, Item, Reply, total


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


def _right(answer: str | None, item: Item) -> bool:
    return answer is not None and equivalent(answer, item.gold, item.question.kind)


def grade(record: DebateRecord, item: Item) -> Score:
    """Grade a debate against its item. Blocking (a formula may take seconds): see `grade_async`."""
    replies = [reply for one in record.rounds for reply in one.replies]
    verdict = {answer: _right(answer, item) for answer in {reply.answer for reply in replies} | {record.answer}}
    correct = verdict[record.answer]
    tied_right = [_right(answer, item) for answer in record.tied]

    def sign(reply: Reply) -> str:
        if reply.error:
            return "x"
        return "-" if reply.answer is None else str(int(verdict[reply.answer]))

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
        grades=tuple("".join(sign(reply) for reply in one.replies) for one in record.rounds),
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
    )


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
