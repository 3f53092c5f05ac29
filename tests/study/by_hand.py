"""Debates written down by hand: each round a word, each reply a letter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from r2mad.answers import tally
from r2mad.study.scores import Score, grade
from r2mad.types import AgentInfo, DebateRecord, Failure, Item, Peer, Question, Reply, Round, View, digest

OPTIONS = ("the first", "the second", "the third", "the fourth")
Held = tuple[DebateRecord, Score]
Peers = Mapping[int, Sequence[Sequence[Peer]]]


def debate(
    name: str,
    *rounds: str,
    gold: str = "A",
    method: str = "mad",
    seed: int = 1,
    sure: Sequence[Sequence[float | None]] = (),
    peers: Peers | None = None,
    **changes: Any,
) -> Held:
    """A debate on question `name` and its score.

    Args:
        name: the question's id.
        rounds: one letter a reply; `-` for no answer, `x` for a reply that failed.
        gold: the right letter.
        sure: the replies' verbal confidence, one row a round.
        peers: for each later round, what each agent was shown.
        changes: further fields of the record.
    """
    settled = tuple(
        _round(index, word, sure[index] if sure else [None] * len(word), (peers or {}).get(index, ()))
        for index, word in enumerate(rounds)
    )
    count = tally([reply.answer for reply in settled[-1].replies], "choice")
    most = [one.answer for one in count.classes if one.count == count.classes[0].count]
    question = Question("Which?", OPTIONS, id=name)
    record = DebateRecord(
        **{
            "id": digest([name, method, seed]),
            "method": method,
            "seed": seed,
            "question": question,
            "agents": tuple(AgentInfo(f"agent {seat}", "fake/one") for seat in range(len(rounds[-1]))),
            "prompts": "general:0",
            "rounds": settled,
            "answer": most[0] if most else None,
            "votes": {one.answer: float(one.count) for one in count.classes},
            "tie": len(most) > 1,
            "tied": tuple(most) if len(most) > 1 else (),
            "stopped": "failed" if set(rounds[-1]) == {"x"} else "rounds",
            "degraded": "x" in "".join(rounds),
            "confidence": count.classes[0].count / count.total if most else None,
            "calls": {},
            "usage": {},
            "seconds": 1.0,
            "started": "2026-01-01T00:00:00.000+00:00",
            **changes,
        }
    )
    return record, grade(record, Item(question, gold))


def _round(index: int, word: str, sure: Sequence[float | None], peers: Sequence[Sequence[Peer]]) -> Round:
    answers = [None if letter in "-x" else letter for letter in word]
    count = tally(answers, "choice")
    replies = tuple(
        Reply(
            seat,
            answer=answer,
            class_=label,
            verbal_confidence=stated,
            error=Failure("timeout", "too slow") if letter == "x" else None,
        )
        for seat, (letter, answer, label, stated) in enumerate(zip(word, answers, count.labels, sure, strict=True))
    )
    views = tuple(View(seat, peers=tuple(row)) for seat, row in enumerate(peers))
    return Round(index, count.consensus, replies, views)


def parted(held: Sequence[Held]) -> tuple[list[DebateRecord], list[Score]]:
    """The records and the scores."""
    return [record for record, _ in held], [score for _, score in held]
