"""AIME 2025: the thirty problems of both contests. Answers are integers from 0 to 999.

The problems are the Mathematical Association of America's. Public copies differ slightly in wording.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from r2mad.study.datasets._record import DataSet, Fault, FolderFile, HubFile, Raw, Table
from r2mad.study.datasets._rows import text
from r2mad.study.datasets.aime24 import answer

_CONTEST = re.compile(r"-(II?)\.jsonl\Z")
"""The contest, which the upstream's files tell by their names alone."""


def read(tables: Sequence[Table], fault: Fault) -> Iterator[Raw]:
    """The items, from either layout (the upstream's is a file for each contest, its problems in order)."""
    for table in tables:
        named = _CONTEST.search(table.name)
        for row in table.rows:
            if named:
                id = f"aime25/{named[1]}-{row.index + 1}"
            else:
                id = text(row, ("id",), fault)
                if not re.fullmatch("aime25/II?-[0-9]{1,2}", id):
                    raise fault(f"{row.where}: {id!r} does not say which problem it is, like aime25/II-3")
            contest = id.removeprefix("aime25/").partition("-")[0]
            question = text(row, ("question", "problem"), fault)
            group = f"2025-{contest}"
            yield Raw(row.where, id, question, answer(row, fault), "number", group=group, split="test")


_REPO, _REVISION = "opencompass/AIME2025", "a6ad95f611d72cf628a80b58bd0432ef6638f958"

RECORD = DataSet(
    name="aime25",
    title="the thirty problems of AIME I and II 2025",
    items=30,
    kinds=("number",),
    upstream="American Invitational Mathematics Examination 2025",
    licence="problems by the Mathematical Association of America; the copies' MIT cannot speak for it",
    note="II-3, II-5 and II-6 have figures as TikZ code; public copies differ in wording",
    split_note="test only",
    train=0,
    read=read,
    files={"": FolderFile("aime25.jsonl", "b0f03a08a8115a871a6c77655d4143ef31dc3211d8db0c1a31842a7e1c109d22")},
    hub=(
        HubFile(
            _REPO,
            "aime2025-I.jsonl",
            _REVISION,
            "b91b3c96f05d9635d2a0692b124ebe023c1ff59cb19c074275e6c4b349d0659e",
        ),
        HubFile(
            _REPO,
            "aime2025-II.jsonl",
            _REVISION,
            "16a2dcfbbf9db1b11f8a69a3ba5e4cac73e3641b19a37e2307e9c12240bbed5e",
        ),
    ),
)
