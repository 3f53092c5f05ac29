"""AIME 2024: the thirty problems of both contests. Answers are integers from 0 to 999, some with zeros in front.

The problems are the Mathematical Association of America's; solutions are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from r2mad.study.datasets._record import DataSet, Fault, FolderFile, HubFile, Raw, Row, Table
from r2mad.study.datasets._rows import text

_PROBLEM = re.compile(r"(?:\A|AIME_|20[0-9]{2}-)(II?)(?:_Problems/Problem_|-)([0-9]{1,2})\Z")
"""Contest and number, as they end a page's address, `2024-II-4`, or `II-4`."""


def read(tables: Sequence[Table], fault: Fault) -> Iterator[Raw]:
    """The items in contest order, from either layout (the upstream's tells the problem by the page it came from)."""
    found = [_raw(row, fault) for table in tables for row in table.rows]
    yield from (raw for _, raw in sorted(found, key=lambda one: one[0]))


def _raw(row: Row, fault: Fault) -> tuple[tuple[str, int], Raw]:
    said = text(row, ("url", "ID", "id"), fault)
    match = _PROBLEM.search(said.removeprefix("aime24/"))
    if match is None:
        raise fault(f"{row.where}: {said!r} does not say which problem it is")
    contest, number = match[1], int(match[2])
    raw = Raw(
        row.where,
        f"aime24/{contest}-{number}",
        text(row, ("question", "problem", "Problem"), fault),
        answer(row, fault),
        "number",
        group=f"2024-{contest}",
        split="test",
    )
    return (contest, number), raw


def answer(row: Row, fault: Fault) -> str:
    """The answer, an integer from 0 to 999; a sign of degrees, which one public copy has, is left out."""
    said = text(row, ("answer", "Answer"), fault).strip().removesuffix(r"^\circ")
    if not re.fullmatch("[0-9]{1,3}", said):
        raise fault(f"{row.where}: an answer is an integer from 0 to 999, not {said!r}")
    return said


RECORD = DataSet(
    name="aime24",
    title="the thirty problems of AIME I and II 2024",
    items=30,
    kinds=("number",),
    upstream="American Invitational Mathematics Examination 2024",
    licence="problems by the Mathematical Association of America; the copies' MIT cannot speak for it",
    note="seven answers have zeros in front (025) and are compared as integers; II-15 has a figure as code",
    split_note="test only",
    train=0,
    read=read,
    files={"": FolderFile("aime24.jsonl", "25e35e24acecdaa0b1139ffc91610ad863ff5cc91ef039c13d64a3dd76fcf4a4")},
    hub=(
        HubFile(
            "HuggingFaceH4/aime_2024",
            "data/train-00000-of-00001.parquet",
            "2fe88a2f1091d5048c0f36abc874fb997b3dd99a",
            "26139847601a5037c237d5928b195e7260ca8074cf4f264b794af42847f79ccf",
        ),
    ),
)
