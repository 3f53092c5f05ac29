"""The starter set: easy questions that we wrote, to see every part work without a download.

Groups: `everyday` (open, one or two words), `arithmetic` (small sums), `misconceptions`, `economics` and `engineering`
(choices of four). Each fact carries a note of where it stands. It is for trying things out, not for publishing: it is
small, easy, and was written by the authors of the tool that it tries.

Split 3:1 by a hash of the id, so the split is the same everywhere and new items do not move old ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from r2mad.study.datasets._record import DataSet
from r2mad.types import AnswerKind, Item, Question, digest

SUMMARY = "easy questions that we wrote: everyday facts, arithmetic, misconceptions, economics, engineering"
FILE = Path(__file__).with_name("starter.jsonl")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the file."""

    id: str
    group: str
    kind: AnswerKind
    question: str
    answer: str
    source: str
    """Why the answer is right, or where such a fact stands."""
    options: tuple[str, ...] = ()


def split_of(id: str) -> str:
    """`test` for one id in four, by its hash."""
    return "test" if int(digest(["starter/1", id]), 16) % 4 == 0 else "train"


def rows() -> list[Row]:
    """The file as it is.

    Raises:
        StoreError: a line is damaged; the message names it.
    """
    from r2mad.study.records import read  # only when read: naming data sets stays cheap

    return list(read(Row, FILE))


@cache
def _items() -> tuple[Item, ...]:
    return tuple(
        Item(
            Question(row.question, row.options, row.kind, row.id),
            row.answer,
            "starter",
            split_of(row.id),
            row.group,
        )
        for row in rows()
    )


def load() -> list[Item]:
    """All items, in the file's order.

    Raises:
        StoreError: see `rows`.
    """
    return list(_items())


RECORD = DataSet(
    name="starter",
    title=SUMMARY,
    items=165,
    kinds=("choice", "number", "text"),
    upstream="ships with r2mad",
    licence="Apache-2.0, as r2mad itself",
    note="small and easy, and by the authors of the tool that it tries: not for publishing",
    split_note="3:1 by a hash of the id, once and for all",
    train=124,
    made=load,
)
