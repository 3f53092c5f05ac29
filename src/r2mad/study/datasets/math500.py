"""MATH500: 500 problems of competition mathematics, chosen by OpenAI from the test split of MATH.

Answers are LaTeX, written in many ways (`\\frac43`, `10,\\!080`, `90^\\circ`, `x=5`); `58,500` is a number and `1,-2` a
list. Levels go from 1 to 5. The papers hold out level 5 and take the others for training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from r2mad.study.datasets import _source
from r2mad.study.datasets._record import DataSet, Fault, FolderFile, HubFile, Raw, Row, Table
from r2mad.study.datasets._rows import text

HARDEST = 5
"""The level that is the test split."""


def read(tables: Sequence[Table], fault: Fault) -> Iterator[Raw]:
    """The items, from either layout (the upstream's has `problem` and `unique_id`)."""
    for table in tables:
        for row in table.rows:
            yield Raw(
                row.where,
                text(row, ("unique_id", "id"), fault),
                text(row, ("problem", "question"), fault),
                text(row, ("answer",), fault),
                "math",
                group=text(row, ("subject",), fault),
                split="test" if _level(row, fault) == HARDEST else "train",
            )


def levels(path: str | Path | None = None) -> dict[str, int]:
    """The level of each problem, 1 to 5, by the question's id.

    Raises:
        R2madError: see `r2mad.study.datasets.load`.
    """
    found = _source.find(RECORD, "", path)
    return {
        text(row, ("unique_id", "id"), found.fault): _level(row, found.fault)
        for table in found.tables()
        for row in table.rows
    }


def _level(row: Row, fault: Fault) -> int:
    said = text(row, ("level",), fault).removeprefix("Level ")
    if said not in ("1", "2", "3", "4", "5"):
        raise fault(f"{row.where}: a level is 1 to 5, not {said!r}")
    return int(said)


RECORD = DataSet(
    name="math500",
    title="500 problems of competition mathematics in seven subjects and five levels",
    items=500,
    kinds=("math",),
    upstream="OpenAI's choice (PRM800K) of the MATH data set's test problems",
    licence="MIT (PRM800K and MATH); many of the problems are Art of Problem Solving's",
    note="golds mix conventions, and give or leave out units and degrees without rule; 42 questions hold figures as "
    "Asymptote code, one says 'as shown' and has none",
    split_note="test is level 5 (134), train levels 1 to 4; the authors' scripts do the same",
    train=366,
    schemes=("paper", "official"),
    read=read,
    files={
        "": FolderFile("math500.jsonl", "3e9fed37f413d6d1f336b166af0789e45f99b2f3069f32ac4043741dc7ee10fa"),
    },
    hub=(
        HubFile(
            "HuggingFaceH4/MATH-500",
            "test.jsonl",
            "6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be",
            "35dc41080a3680858b27fa7e0533d2d547825316fc5dafe5d316f4ccc5a06132",
        ),
    ),
)
