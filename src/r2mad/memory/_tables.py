"""The memory's tables, and what is read of them as a whole. Every row carries a checksum of its values.

SQLite notices damage to its own structure, but not to what is stored in it; and a vector with one bit flipped is as
good a vector as any. So each row has a `mark`, and what the rows of one table come to stands in a row of another:

    meta      one row: what the memory is, how much is in it, the highest numbers given out so far
    holders   how many cases each agent has with each model; their sum is in `meta`
    debates   a debate, once, with its outcome, the vectors of its question and replies, and where its cases are
    cases     references into debates, each with the vector of its debate state

Numbers are given out once: what was forgotten leaves a gap. Vectors are little-endian single precision.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from typing import Any
from zlib import crc32

from r2mad.types import digest

VERSION = 1
"""Version of the schema."""
APPLICATION = 0x72324D4D
"""SQLite's mark of whose file it is ("r2MM"), so that nobody's other database is taken for a memory."""

SCHEMA = (
    """CREATE TABLE meta (
    embedder TEXT NOT NULL, dimension INTEGER NOT NULL, form TEXT NOT NULL,
    debates INTEGER NOT NULL, cases INTEGER NOT NULL, last_debate INTEGER NOT NULL, last_case INTEGER NOT NULL,
    forgotten INTEGER NOT NULL, content TEXT NOT NULL, mark INTEGER NOT NULL
)""",
    """CREATE TABLE holders (
    name TEXT NOT NULL, model TEXT NOT NULL, cases INTEGER NOT NULL, mark INTEGER NOT NULL, PRIMARY KEY (name, model)
)""",
    """CREATE TABLE debates (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, question_key TEXT NOT NULL, head_mark INTEGER NOT NULL,
    first_case INTEGER NOT NULL, cases INTEGER NOT NULL,
    question_id TEXT NOT NULL, dataset TEXT NOT NULL, split TEXT NOT NULL, study TEXT NOT NULL, source TEXT NOT NULL,
    added TEXT NOT NULL, content TEXT NOT NULL, mark INTEGER NOT NULL, question_mark INTEGER NOT NULL,
    question BLOB NOT NULL, replies BLOB NOT NULL, record TEXT NOT NULL, outcome TEXT NOT NULL
)""",
    """CREATE TABLE cases (
    number INTEGER PRIMARY KEY, debate INTEGER NOT NULL, name TEXT NOT NULL, model TEXT NOT NULL,
    round INTEGER NOT NULL, seat INTEGER NOT NULL, reward REAL, id INTEGER NOT NULL, mark INTEGER NOT NULL,
    state BLOB NOT NULL
)""",
    "CREATE INDEX debates_by_id ON debates (id, question_key, head_mark)",
    "CREATE INDEX cases_by_name ON cases (name)",
)
"""The statements that make a memory. `debates_by_id` holds all that is read of every debate, so that the scan is short;
an index in SQLite ends with the row's number, so `cases_by_name` is in the order of numbers."""

PUT_META = "INSERT INTO meta VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
Run = Callable[..., sqlite3.Cursor]
"""`execute` of a connection inside a transaction."""
Row = tuple[Any, ...]
Holder = tuple[str, str]
"""An agent's name and a model."""


def mark(*values: object) -> int:
    """A checksum of a row's values in order. It finds damage, not forgery."""
    total = 0
    for value in values:
        data = value if isinstance(value, bytes) else str(value).encode()
        total = crc32(data, crc32(b"%d:" % len(data), total))
    return total


def head_mark(number: int, name: str, key: str) -> int:
    """The same of what is read of every debate; quicker."""
    return crc32(f"{number} {key} {name}".encode())


@dataclass(frozen=True, slots=True)
class Meta:
    """What a memory is, and how much is in it."""

    embedder: str
    dimension: int
    form: str
    debates: int = 0
    cases: int = 0
    last_debate: int = 0
    """The highest number that a debate was ever given."""
    last_case: int = 0
    forgotten: int = 0
    """How often something was forgotten."""
    content: str = "0" * 32
    """XOR of the debates' digests: the order in which they came does not enter it, and one can be taken out again."""

    @property
    def row(self) -> Row:
        """As it is stored."""
        values = astuple(self)
        return (*values, mark(*values))

    @property
    def version(self) -> str:
        """The digest that others know the memory's content by."""
        return digest([self.embedder, self.form, self.content], 16)

    def changed(self, content: str) -> str:
        """The content with a debate of that digest put in or taken out."""
        return f"{int(self.content, 16) ^ int(content, 16):032x}"


def read_meta(run: Run) -> Meta:
    """The one row of `meta`.

    Raises:
        ValueError: it is damaged.
    """
    rows = run("SELECT * FROM meta LIMIT 2").fetchall()
    if len(rows) != 1 or mark(*rows[0][:-1]) != rows[0][-1]:
        raise ValueError("what it says about itself does not fit its checksum")
    return Meta(*rows[0][:-1])


def write_meta(run: Run, meta: Meta) -> None:
    """Put `meta` in the place of what is there."""
    run("DELETE FROM meta")
    run(PUT_META, meta.row)


def read_holders(run: Run, meta: Meta) -> Counter[Holder]:
    """How many cases there are by name and model.

    Raises:
        ValueError: the table is damaged.
    """
    held = Counter[Holder]()
    for name, model, cases, found in run("SELECT name, model, cases, mark FROM holders"):
        if mark(name, model, cases) != found:
            raise ValueError("its list of agents does not fit its checksums")
        held[name, model] = cases
    if held.total() != meta.cases:
        raise ValueError(f"its list of agents has {held.total()} cases and should have {meta.cases}")
    return held


def write_holders(run: Run, held: Counter[Holder], touched: Counter[Holder]) -> None:
    """Store the counts of the holders in `touched`, of which there are now as many cases as `held` says."""
    for name, model in touched:
        cases = held[name, model]
        if cases:
            row = (name, model, cases, mark(name, model, cases))
            run("INSERT OR REPLACE INTO holders VALUES (?, ?, ?, ?)", row)
        else:
            run("DELETE FROM holders WHERE name = ? AND model = ?", (name, model))


def read_heads(run: Run, after: int = 0) -> Iterator[tuple[int, str, str]]:
    """Number, id and question key of the debates whose number is above `after`: by number if it is given, else by id.

    Raises:
        ValueError: one is damaged.
    """
    how = "WHERE number > ? ORDER BY number" if after else "INDEXED BY debates_by_id ORDER BY id"
    statement = f"SELECT number, id, question_key, head_mark FROM debates {how}"  # noqa: S608  (two texts of our own)
    for number, name, key, found in run(statement, (after,) if after else ()):
        if head_mark(number, name, key) != found:
            raise ValueError(f"debate {name}: its checksum does not fit")
        yield number, name, key


def has(run: Run, name: str) -> bool:
    """Whether there is a debate of that id. The index is named, so that damage to the one that keeps ids apart, and
    damage to this one, are each caught by the other."""
    found = run("SELECT 1 FROM debates INDEXED BY debates_by_id WHERE id = ?", (name,)).fetchone()
    return found is not None
