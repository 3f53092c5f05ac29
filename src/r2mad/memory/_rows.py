"""Debates and cases as rows of the memory's tables, and back."""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from r2mad.experience import Outcome, Remembered, case_id, leak_key
from r2mad.memory._tables import Holder, Row, Run, head_mark, mark
from r2mad.serial import dump, load
from r2mad.types import DebateRecord, digest

if TYPE_CHECKING:
    from r2mad.experience import Vectors

_PUT_DEBATE = "INSERT INTO debates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_PUT_CASE = "INSERT INTO cases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

FLOAT = np.dtype("<f4")
"""How vectors are written."""

_GET_DEBATE = """SELECT
    number, id, question_key, head_mark, first_case, cases, question_id, dataset, split, study, source, added, content,
    mark, question_mark, question, replies, CAST(record AS BLOB), CAST(outcome AS BLOB)
FROM debates WHERE number = ?"""
"""Without the casts damage that leaves no text is SQLite's error, which does not say whose record it is."""
_MARK = 13
"""Where `mark` stands in a row of `debates`."""
UNKNOWN = math.inf
"""A reward that is not known, while a case is read: None has no place in an array."""
_GET_CASES = """SELECT number, debate, round, seat, ifnull(reward, 9e999), id, name, model, mark, state
FROM cases WHERE """
_CASE = struct.Struct("<qqqqdq")
"""A case's numbers as its checksum sees them: number, debate, round, seat, reward, id."""


@lru_cache(1024)
def case_start(holder: Holder) -> int:
    """What the checksums of all of an agent's cases with one model begin with."""
    return mark(*holder)


def case_mark(start: int, numbers: Row, state: bytes) -> int:
    """The checksum of a case; `numbers` are its number, debate, round, seat, reward (or UNKNOWN), id."""
    return crc32(state, crc32(_CASE.pack(*numbers), start))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A debate ready to be stored but for the numbers that the memory gives it."""

    id: str
    key: str
    content: str
    about: tuple[str, ...]
    """question_id, dataset, split, study, source."""
    question: bytes
    replies: bytes
    record: str
    outcome: str
    cases: tuple[tuple[str, str, int, int, float | None, int, bytes], ...]
    """name, model, round, seat, reward, id, state."""

    def row(self, number: int, first: int, added: str) -> Row:
        """The debate's row of `debates`, where `first` is the number of its first case."""
        found = head_mark(number, self.id, self.key)
        head = (number, self.id, self.key, found, first, len(self.cases), *self.about, added, self.content)
        tail = (mark(number, self.question), self.question, self.replies, self.record, self.outcome)
        return (*head, mark(*head, *tail), *tail)

    def store(self, run: Run, number: int, first: int, added: str) -> Counter[Holder]:
        """Write its rows, and tell how many cases are whose."""
        run(_PUT_DEBATE, self.row(number, first, added))
        for place, (name, model, index, seat, reward, case, state) in enumerate(self.cases, start=first):
            numbers = (place, number, index, seat, UNKNOWN if reward is None else reward, case)
            found = case_mark(case_start((name, model)), numbers, state)
            run(_PUT_CASE, (place, number, name, model, index, seat, reward, case, found, state))
        return Counter((name, model) for name, model, *_ in self.cases)


def prepare(debate: Remembered) -> Prepared:
    """A debate whose shapes are known to fit, as rows.

    Raises:
        StoreError: it holds something that cannot be written, such as half a surrogate pair.
    """
    record, known = debate.record, debate.outcome
    rewards = tuple(None if reward is None else float(reward) for reward in known.rewards)
    correct = tuple(tuple(None if right is None else bool(right) for right in row) for row in known.correct)
    outcome = replace(known, rewards=rewards, correct=correct)  # 1 and 1.0 are one reward, and have one digest
    told, turned_out = dump(record), dump(outcome)
    cases = []
    for index, seat in sorted(debate.states):
        agent = record.agents[seat]
        case = int.from_bytes(bytes.fromhex(case_id(record.id, index, seat)), signed=True)  # SQLite's have a sign
        cases.append((agent.name, agent.model, index, seat, rewards[seat], case, _bytes(debate.states[index, seat])))
    return Prepared(
        id=record.id,
        key=leak_key(record.question),
        content=_content(told, turned_out),
        about=(record.question.id, record.dataset, record.split, record.study, outcome.source),
        question=_bytes(debate.question),
        replies=_bytes(debate.replies),
        record=told.decode(),
        outcome=turned_out.decode(),
        cases=tuple(cases),
    )


def _content(record: bytes, outcome: bytes) -> str:
    """A debate's part in the memory's version: all of it but what a repetition of the same debate would change.

    That is when and how long, in which study, from which place the memory was read, and what came from a cache.
    """
    told = json.loads(record, parse_int=float)  # 1 and 1.0 are one value, whoever wrote it
    for name in ("seconds", "started", "study"):
        told.pop(name)
    if told["memory"]:
        told["memory"].pop("url")
    replies = [reply for one in told["rounds"] for reply in (*one["replies"], *one["candidates"])]
    for reply in replies:
        reply.pop("seconds")
        reply.pop("cached")
    for usage in (*told["usage"].values(), *(reply["usage"] for reply in replies)):
        usage.pop("cached_tokens")
    return digest([told, json.loads(outcome)], 16)


def read_debate(run: Run, number: int, dimension: int, where: str) -> Remembered | None:
    """The debate of that number; None if there is none.

    Raises:
        ValueError: it is damaged.
        StoreError: its record is of a newer schema; the message begins with `where`.
    """
    row = verified(run, number)
    if row is None:
        return None
    name, first, count, added = row[1], row[4], row[5], row[11]
    record = load(DebateRecord, row[17], f"{where}, debate {name}")
    outcome = load(Outcome, row[18], f"{where}, debate {name}")
    states = {}
    for case in read_cases(run, "number >= ? AND number < ?", (first, first + count), dimension):
        if case[1] != number:
            raise ValueError(f"debate {name}: a case in its place is not its own")
        states[case[2], case[3]] = vectors(case[9], (dimension,))
    if len(states) != count:
        raise ValueError(f"debate {name}: it has {len(states)} cases and should have {count}")
    try:
        question = vectors(row[15], (dimension,))
        replies = vectors(row[16], (len(record.rounds), len(record.agents), dimension))
    except ValueError as error:
        raise ValueError(f"debate {name}: {error}") from error
    return Remembered(record, outcome, question, replies, states, added)


def verified(run: Run, number: int) -> Row | None:
    """The row of a debate as it was written; None if there is none.

    Raises:
        ValueError: it is damaged.
    """
    row: Row | None = run(_GET_DEBATE, (number,)).fetchone()
    if row is not None and mark(*row[:_MARK], *row[_MARK + 1 :]) != row[_MARK]:
        raise ValueError(f"debate {row[1]}: its checksum does not fit")
    return row


def read_cases(run: Run, where: str, values: Row, dimension: int) -> Iterator[Row]:
    """Cases by number, each as number, debate, round, seat, reward (or UNKNOWN), id, name, model, mark, state.

    Written to be quick, as every case goes through it before a first search.

    Raises:
        ValueError: one is damaged.
    """
    size, last, holder, start = FLOAT.itemsize * dimension, 0, None, 0
    for row in run(f"{_GET_CASES} {where} ORDER BY number", values):
        if row[6:8] != holder:
            holder = row[6:8]
            start = case_start(holder)
        try:
            fits = len(row[9]) == size and row[0] > last and case_mark(start, row[:6], row[9]) == row[8]
        except (TypeError, struct.error):  # a value of another kind
            fits = False
        if not fits:
            raise ValueError(f"debate {_named(run, row[1])}: the checksum of a case does not fit")
        last = row[0]
        yield row


def remove(run: Run, number: int, dimension: int) -> tuple[Counter[Holder], str]:
    """Take a debate out; how many cases of whom went with it, and its part of the memory's content.

    Raises:
        ValueError: it is damaged.
    """
    row = verified(run, number)
    if row is None:
        raise ValueError(f"debate number {number} is missing")
    where, values = "number >= ? AND number < ?", (row[4], row[4] + row[5])
    cases = Counter(case[6:8] for case in read_cases(run, where, values, dimension))
    if cases.total() != row[5]:
        raise ValueError(f"debate {row[1]}: it has {cases.total()} cases and should have {row[5]}")
    run(f"DELETE FROM cases WHERE {where}", values)  # noqa: S608  (a text of our own)
    run("DELETE FROM debates WHERE number = ?", (number,))
    return cases, row[12]


def vectors(blob: bytes, shape: tuple[int, ...]) -> Vectors:
    """Vectors as they were written, read-only.

    Raises:
        ValueError: the length does not fit.
    """
    return np.frombuffer(blob, FLOAT).reshape(shape).astype(np.float32, copy=False)


def _bytes(array: Vectors) -> bytes:
    return np.ascontiguousarray(array, FLOAT).tobytes()


def _named(run: Run, number: object) -> str:
    """A debate's id, if that can still be read."""
    row = run("SELECT id FROM debates WHERE number = ?", (number,)).fetchone()
    return str(row[0]) if row else f"number {number}"
