"""Old debates under today's extractor and golds: nothing is asked, and `debates.jsonl` stays as it is.

Every reply is read anew, its answers are counted anew, and the group's answer is found as the method's vote would find
it: `Plurality` by the tally of the last round, with the record's own rule for ties. A vote that needs more than answers
(`Weighted`, `Judge`, one of a user's own) stands as it was recorded, and only its grade is new.

A debate goes on as it went: had today's extractor seen the agents agree a round earlier, it would have ended there, and
what agents were shown of each other cannot be changed after the fact.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from r2mad.answers import extract, tally
from r2mad.elicit import stated_confidence
from r2mad.errors import StoreError
from r2mad.study.records import DEBATES, ITEMS, SCORES, Writer, dump, read
from r2mad.study.runs import last_debates
from r2mad.study.scores import Score, grade, latest_scores
from r2mad.types import DebateRecord, Item, Reply, Round
from r2mad.verdict import break_tie

EXAMPLES = 5
"""Changes of a run that are shown."""
ELICITED = re.compile(r"(?<!Show)VerbalConfidence\(")
PLURALITY = "Plurality()"


@dataclass(frozen=True, slots=True)
class Changed:
    """A reply that is read differently now, or a debate that turned out differently."""

    debate: str
    method: str
    question: str
    round: int | None
    """None for the group's answer."""
    agent: int | None
    before: str | None
    now: str | None
    text: str = ""
    """The end of the reply."""
    graded: tuple[bool, bool] | None = None
    """Of the group's answer: whether it was right, and is."""


@dataclass(slots=True)
class Counts:
    """What became different, of one method's debates."""

    debates: int = 0
    answers: int = 0
    """Replies that another answer is found in, or none, or one at last."""
    votes: int = 0
    """Debates whose group's answer is another."""
    kept: int = 0
    """Debates whose vote stands as it was recorded."""
    to_right: int = 0
    to_wrong: int = 0
    replies: int = 0
    """Replies whose grade is another."""
    ungraded: int = 0
    """Debates that had no grade until now."""


@dataclass(slots=True)
class Outcome:
    """What regrading a folder came to."""

    folder: Path
    by_method: dict[str, Counts] = field(default_factory=dict)
    examples: list[Changed] = field(default_factory=list)
    without_item: int = 0
    """Debates on questions that `items.jsonl` lacks; their grades stay."""
    scores: list[Score] = field(default_factory=list)
    changed: bool = False
    """Whether any score differs from what was on file."""
    kept_as: Path | None = None
    """Where the old file is, if a new one was written."""


def regrade(folder: Path, *, write: bool) -> Outcome:
    """Grade a folder's debates anew and, if asked to and anything differs, write its scores.jsonl anew.

    The old file is kept as scores.1.jsonl, or the next number that is free. The new one takes its place in one step.

    Raises:
        StoreError: the folder cannot be read or written, or a study is running in it.
    """
    if not (folder / DEBATES).is_file():
        raise StoreError(f"{folder}: no run there, for it has no {DEBATES}")
    if not write:
        return _regraded(folder)
    with _locked(folder):
        found = _regraded(folder)
        if found.changed:
            found.kept_as = _replace(folder / SCORES, found.scores)
    return found


def read_anew(record: DebateRecord) -> tuple[DebateRecord, bool]:
    """(the debate as today's extractor and tally have it, whether the vote was held anew)."""
    rounds = tuple(_round(record, one) for one in record.rounds)
    found = replace(record, rounds=rounds)
    if not _by_plurality(record):
        return found, False
    return replace(found, **_plurality(found)), True


def _round(record: DebateRecord, one: Round) -> Round:
    asked = bool(ELICITED.search(record.composition)) or any(z.verbal_confidence is not None for z in one.replies)
    answers = [_answer(record, reply, asked) for reply in one.replies]
    count = tally(answers, record.question.kind)
    replies = tuple(
        replace(reply, answer=answer, class_=label)
        for reply, answer, label in zip(one.replies, answers, count.labels, strict=True)
    )
    return replace(one, replies=replies, consensus=count.consensus, undecided=count.undecided)


def _answer(record: DebateRecord, reply: Reply, asked: bool) -> str | None:
    if reply.error:
        return None
    said = stated_confidence(reply.text)[0] if asked else reply.text
    return extract(said, record.question.kind, record.question.options)


def _by_plurality(record: DebateRecord) -> bool:
    """Whether the vote was the plurality; of a record that does not say, whether that gives what was recorded."""
    if record.composition:
        return record.composition.endswith(PLURALITY)
    return bool(_plurality(record)["answer"] == record.answer)


def _plurality(record: DebateRecord) -> dict[str, Any]:
    """The fields of a record that its vote decides; see `r2mad.verdict.Plurality`."""
    count = tally([reply.answer for reply in record.rounds[-1].replies], record.question.kind)
    votes = {one.answer: float(one.count) for one in count.classes}
    if not count.classes:
        return {"answer": None, "votes": votes, "tie": False, "tied": (), "confidence": None}
    most = count.classes[0].count
    tied = tuple(one.answer for one in count.classes if one.count == most)
    answer = tied[0] if len(tied) == 1 else break_tie(tied, record.seed, record.question.id)
    tied = tied if len(tied) > 1 else ()
    return {"answer": answer, "votes": votes, "tie": bool(tied), "tied": tied, "confidence": most / count.total}


def _regraded(folder: Path) -> Outcome:
    items = {item.question.id: item for item in read(Item, folder / ITEMS)}
    before = {score.id: score for score in latest_scores(folder / SCORES)}
    found = Outcome(folder)
    there: set[str] = set()
    for record in last_debates([folder]):
        there.add(record.id)
        old, item = before.get(record.id), items.get(record.question.id)
        if item is None:
            found.without_item += 1
            found.scores += [old] if old else []
            continue
        now, voted = read_anew(record)
        new = grade(now, item)
        found.scores.append(new)
        found.changed |= new != old
        _count(found, record, now, old, new, voted)
    found.scores += [score for id, score in before.items() if id not in there]  # debates that are gone: nothing to read
    return found


def _count(  # one line a number, and an example of each kind of change
    found: Outcome, record: DebateRecord, now: DebateRecord, old: Score | None, new: Score, voted: bool
) -> None:
    counts = found.by_method.setdefault(record.method, Counts())
    counts.debates += 1
    counts.kept += not voted
    changed = list(_changed_replies(record, now))
    counts.answers += len(changed)
    counts.votes += record.answer != now.answer
    if old is None:
        counts.ungraded += 1
    else:
        counts.to_right += new.correct and not old.correct
        counts.to_wrong += old.correct and not new.correct
        counts.replies += sum(a != b for a, b in zip("".join(old.grades), "".join(new.grades), strict=False))
        if old.correct != new.correct:
            verdict = Changed(
                record.id, record.method, record.question.id, None, None, old.answer, new.answer,
                graded=(old.correct, new.correct),
            )  # fmt: skip
            changed.insert(0, verdict)
    found.examples += changed[: max(0, EXAMPLES - len(found.examples))]


def _changed_replies(record: DebateRecord, now: DebateRecord) -> Iterator[Changed]:
    for was, one in zip(record.rounds, now.rounds, strict=True):
        for before, after in zip(was.replies, one.replies, strict=True):
            if before.answer != after.answer:
                yield Changed(
                    record.id, record.method, record.question.id, one.index, after.agent, before.answer, after.answer,
                    text=after.text[-200:],
                )  # fmt: skip


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep studies out of the folder; they take both locks in this order too."""
    writers: list[Writer[DebateRecord] | Writer[Score]] = []
    try:
        writers.append(Writer[DebateRecord](folder / DEBATES))
        writers.append(Writer[Score](folder / SCORES))
        yield
    finally:
        for writer in reversed(writers):
            writer.close()


def _replace(path: Path, scores: list[Score]) -> Path | None:
    """Write the scores in one step; returns where the old file is kept, or None if it was empty."""
    part = path.with_suffix(".part")
    try:
        with part.open("wb") as file:
            for score in scores:
                file.write(dump(score) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        kept = _keep(path) if path.stat().st_size else None
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from error
    return kept


def _keep(path: Path) -> Path:
    """A second name for a file, which it keeps when the first one is given to another."""
    number = 1
    while (kept := path.with_name(f"{path.stem}.{number}{path.suffix}")).exists():
        number += 1
    try:
        kept.hardlink_to(path)
    except OSError:  # a file system without links
        shutil.copy2(path, kept)
    return kept
