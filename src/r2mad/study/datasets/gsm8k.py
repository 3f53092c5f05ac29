"""GSM8K: 1,319 word problems of school arithmetic, the test split.

Only the test split is here, to be evaluated; there is no train split to draw memories from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from r2mad.study.datasets._record import DataSet, Fault, FolderFile, HubFile, Raw, Table
from r2mad.study.datasets._rows import text

MARK = "####"
"""What stands before the answer in upstream's layout; the calculator marks before it are not reliable."""


def read(tables: Sequence[Table], fault: Fault) -> Iterator[Raw]:
    """The items, from either layout (the upstream's has the answer behind `####`, after the solution)."""
    for table in tables:
        for row in table.rows:
            id = text(row, ("id",), fault) if "id" in row.values else f"gsm8k/test/{row.index}"
            answer = text(row, ("answer",), fault).rpartition(MARK)[2].strip()
            yield Raw(row.where, id, text(row, ("question",), fault), answer, "number", split="test")


RECORD = DataSet(
    name="gsm8k",
    title="word problems of school arithmetic",
    items=1319,
    kinds=("number",),
    upstream="OpenAI's GSM8K (grade-school-math), test split",
    licence="MIT",
    note="14 answers have thousands separators; a published re-annotation drops 110 questions as badly posed and "
    "relabels some, gsm8k/test/368 among those disputed",
    split_note="test only",
    train=0,
    read=read,
    files={
        "": FolderFile("gsm8k_test.jsonl", "baad659117fa57b4f16ddde9c44db7d128ddde361e6ed991788162f3308383f0"),
    },
    hub=(HubFile("openai/gsm8k", "main/test-00000-of-00001.parquet", "740312add88f781978c0658806c59bc2815b9866"),),
    # test.jsonl of the code repository, commit 3101c7d5072418e28b9008a6636bde82a006892c
    others=frozenset({"3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14"}),
)
