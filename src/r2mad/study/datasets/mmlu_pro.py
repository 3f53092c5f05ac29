"""MMLU-Pro: 12,032 questions of 14 fields with three to ten options each.

A category is a set of its own: `mmlu-pro:economics`, and its splits are drawn within it. Questions recur with other
options and another answer, so text and options together are the question. Options may differ in case alone (genotypes).
Backslashes eaten upstream left control characters in some engineering rows; they are kept, and not shown to terminals.

`mmlu-pro-sample` is a hundred questions from each of the twelve fields that the papers leave out, for where only that
sample is at hand. It is a set apart so that no table takes it for the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from r2mad.study.datasets._record import DataSet, Fault, FolderFile, HubFile, Raw, Table
from r2mad.study.datasets._rows import text, texts
from r2mad.study.datasets.names import slug

SIZES = {
    "biology": 717,
    "business": 789,
    "chemistry": 1132,
    "computer-science": 410,
    "economics": 844,
    "engineering": 969,
    "health": 818,
    "history": 381,
    "law": 1101,
    "math": 1351,
    "other": 924,
    "philosophy": 499,
    "physics": 1299,
    "psychology": 798,
}
PAPERS = ("economics", "engineering")
"""The two categories that the papers use."""


def read(tables: Sequence[Table], fault: Fault) -> Iterator[Raw]:
    """The items, from either layout (the upstream's has `question_id`, a number, where ours has `id`)."""
    for table in tables:
        for row in table.rows:
            category = text(row, ("category",), fault)
            options = texts(row.values.get("options"), f"{row.where}: options", fault)
            id = text(row, ("id", "question_id"), fault)
            yield Raw(
                row.where,
                id if id.startswith("mmlu_pro/") else f"mmlu_pro/{id}",
                text(row, ("question",), fault),
                text(row, ("answer",), fault),
                "choice",
                options,
                category,
                slug(category),
            )


UPSTREAM = "TIGER-Lab's MMLU-Pro, test split"
LICENCE = "MIT on the hub; Apache-2.0 for the code repository"
NOTE = (
    "three to ten options, not always ten; the same question recurs with other options; a few keys look wrong and some "
    "questions have two right options (see docs/datasets.md); scanned text with words run together"
)

RECORD = DataSet(
    name="mmlu-pro",
    title="questions of 14 fields with three to ten options; mmlu-pro:economics is one field",
    items=sum(SIZES.values()),
    kinds=("choice",),
    upstream=UPSTREAM,
    licence=LICENCE,
    note=NOTE,
    split_note="3:1 within each category; official: a shuffle with seed 42, cut at int(0.75 n)",
    schemes=("paper", "official"),
    categories=SIZES,
    instead="mmlu-pro-sample has a hundred questions of each category but economics and engineering",
    read=read,
    files={
        "economics": FolderFile(
            "mmlu_pro_economics.jsonl", "2cd718d6b9f0c27d451574f86bd1ddcf8c2d9f65ca9ef2fcc07e66aa8436a3d6"
        ),
        "engineering": FolderFile(
            "mmlu_pro_engineering.jsonl", "f1dc6984e1fa0e8a6aea2a6c2c2f331a28fbdab33d751d2466e6996b23ce392f"
        ),
    },
    hub=(
        HubFile(
            "TIGER-Lab/MMLU-Pro",
            "data/test-00000-of-00001.parquet",
            "b189ec765aa7ed75c8acfea42df31fdae71f97be",
            "0e24a191921c2f453518a537a8b2117bd137e7714d4ef1565e9ba06c1ecb9ad8",
        ),
    ),
)

_SAMPLE = FolderFile("mmlu_pro_other_sample.jsonl", "5a02c19a7b5ca9d1babff75e50029d8b18b03f7e52bbc8baef99f97779b37d54")
_SAMPLED = {name: 100 for name in SIZES if name not in PAPERS}

SAMPLE = DataSet(
    name="mmlu-pro-sample",
    title="a hundred MMLU-Pro questions from each of the twelve fields that the papers leave out",
    items=sum(_SAMPLED.values()),
    kinds=("choice",),
    upstream=UPSTREAM + ", drawn with a seeded generator",
    licence=LICENCE,
    note="a sample, not comparable with published numbers of the categories; " + NOTE,
    split_note="3:1 within each category",
    categories=_SAMPLED,
    read=read,
    files={"": _SAMPLE} | dict.fromkeys(_SAMPLED, _SAMPLE),
)
