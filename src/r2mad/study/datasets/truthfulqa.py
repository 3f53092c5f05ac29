"""TruthfulQA: questions that people tend to answer wrongly, as choices with one true option (MC1, file v0).

Upstream puts the true option first in every row, so "always A" would score 100 %: the options are permuted here, by a
hash of the question's id alone, so that a question's order depends on nothing else. Rows with fewer than four or more
than nine options are left out, as in the papers: 664 of 817. A later revision of the file would leave 666.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from r2mad.study.datasets._record import DataSet, Fault, FolderFile, HubFile, Raw, Row, Table
from r2mad.study.datasets._rows import plain, text, texts
from r2mad.types import LETTERS, digest

FEWEST, MOST = 4, 9
"""How many options a question may have."""
GENERATION = "generation"
"""Name of the hub's second file, which has the categories that the first one lacks."""


def order(id: str, count: int) -> list[int]:
    """Which option comes where: a permutation that follows from the question's id alone."""
    return sorted(range(count), key=lambda option: digest(["truthfulqa/options/1", id, option]))


def read(tables: Sequence[Table], fault: Fault) -> Iterator[Raw]:
    """The items, from either layout (the upstream's has `mc1_targets`, with the categories in a second file)."""
    groups: dict[str, str] = {}
    for table in tables[1:]:
        groups |= {text(row, ("question",), fault): text(row, ("category",), fault) for row in table.rows}
    for row in tables[0].rows:
        options, right = _options(row, fault)
        if not FEWEST <= len(options) <= MOST:
            continue
        question = text(row, ("question",), fault)
        id = text(row, ("id",), fault) if "id" in row.values else f"truthfulqa/{row.index}"
        places = order(id, len(options))
        shown = tuple(options[place] for place in places)
        group = text(row, ("category",), fault) if "category" in row.values else groups.get(question, "")
        yield Raw(row.where, id, question, LETTERS[places.index(right)], "choice", shown, group)


def _options(row: Row, fault: Fault) -> tuple[tuple[str, ...], int]:
    """The options in upstream's order, and which of them is the true one."""
    targets = row.values.get("mc1_targets")
    if isinstance(targets, dict):
        if "labels" not in targets:  # as in upstream's own JSON: each option with its label
            targets = {"choices": list(targets), "labels": list(targets.values())}
        options = texts(targets.get("choices"), f"{row.where}: mc1_targets", fault)
        labels = texts(targets.get("labels"), f"{row.where}: mc1_targets", fault)
        if len(labels) != len(options) or labels.count("1") != 1:
            raise fault(f"{row.where}: exactly one option must be labelled 1")
        return options, labels.index("1")
    options = texts(row.values.get("options"), f"{row.where}: options", fault)
    letter = plain(row.values.get("answer"), f"{row.where}: answer", fault)
    if letter not in tuple(LETTERS[: len(options)]):
        raise fault(f"{row.where}: the answer {letter!r} is none of the {len(options)} options")
    return options, LETTERS.index(letter)


_REVISION = "741b8276f2d1982aa3d5b832d3ee81ed3b896490"

RECORD = DataSet(
    name="truthfulqa",
    title="questions with a common misconception, one true option among four to nine",
    items=664,
    kinds=("choice",),
    upstream="TruthfulQA by Lin, Hilton and Evans, multiple choice MC1, file v0, the rows with 4 to 9 options",
    licence="Apache-2.0; its authors ask that it stay out of training corpora",
    note="the true option comes first upstream, so options are permuted here by a hash of the id; it can often be told "
    "from the options alone; a later revision of the file differs",
    split_note="3:1; official: a shuffle with seed 42, cut at int(0.75 n)",
    schemes=("paper", "official"),
    read=read,
    files={
        "": FolderFile("truthfulqa_mc.jsonl", "cf6d5380f94f29a43a164f9d46e742e7461ce1ba59a1b42c12f1b4d7ba30ff50"),
    },
    hub=(
        HubFile(
            "truthfulqa/truthful_qa",
            "multiple_choice/validation-00000-of-00001.parquet",
            _REVISION,
            "23f08e230ca4ed66babf3a72419af7cbde1f3d734dd396ac4cf6d088bd162afd",
        ),
        HubFile("truthfulqa/truthful_qa", f"{GENERATION}/validation-00000-of-00001.parquet", _REVISION),
    ),
)
