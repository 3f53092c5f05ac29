"""Data sets: a file each, with where it comes from, its licence, and how it is split.

`load("starter")` gives all items of a set, `load("starter:test")` those of one split, `load("mmlu-pro:law:test")` those
of a category, `load("my.csv:test?question=q&answer=key")` those of a file; the module `names` has the grammar.

Benchmarks are not shipped: their files are named by the user, lie in the folder `R2MAD_DATA`, or are fetched from the
hub at a pinned revision, and their hashes are checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from r2mad.errors import UsageError
from r2mad.study.datasets import _source, aime24, aime25, gsm8k, math500, mmlu_pro, simulated, starter, truthfulqa
from r2mad.study.datasets._items import build
from r2mad.study.datasets._record import DataSet
from r2mad.study.datasets.files import load_file, parse_mapping
from r2mad.study.datasets.names import Name, parse
from r2mad.study.datasets.splits import SCHEMES, SPLITS
from r2mad.types import Item

__all__ = ["DATASETS", "SCHEMES", "SPLITS", "DataSet", "Name", "load", "load_file", "names", "parse_name", "with_split"]

DATASETS: dict[str, DataSet] = {
    record.name: record
    for record in (
        starter.RECORD,
        simulated.RECORD,
        math500.RECORD,
        mmlu_pro.RECORD,
        mmlu_pro.SAMPLE,
        truthfulqa.RECORD,
        gsm8k.RECORD,
        aime24.RECORD,
        aime25.RECORD,
    )
}


def names() -> list[str]:
    """The names of the sets there are; of those with categories, each category's too."""
    return [
        name for one in DATASETS.values() for name in (one.name, *(f"{one.name}:{part}" for part in one.categories))
    ]


def parse_name(name: str) -> Name:
    """A data set's name taken apart; nothing is opened.

    Raises:
        UsageError: see `load`.
    """
    return parse(name, DATASETS)


def with_split(name: str, split: str) -> str:
    """The name of a set's other split, in the same scheme: `x:test@official` and `train` give `x:train@official`.

    Raises:
        UsageError: see `load`.
    """
    return parse_name(name).of(split).text


def load(
    name: str, path: str | Path | None = None, *, columns: Mapping[str, str | list[str]] | None = None
) -> list[Item]:
    """The items of a set, or of one of its splits, in their fixed order.

    Args:
        name: as in `r2mad.study.datasets.names`: `math500:test`, `mmlu-pro:economics:train@official`, `my.csv:test`.
        path: a benchmark's file, or a folder that has it by the name we know.
        columns: for a file of the user's, which column is what; beside what the name says behind `?`.

    Raises:
        UnknownNameError: no such set, category, split or scheme; the message lists those there are.
        UsageError: the set has no such split; its file is nowhere to be had; a bad row in a file that the user named.
        StoreError: a known file is damaged, or is another version.
    """
    asked = parse_name(name)
    if not asked.known:
        if path is not None:
            raise UsageError(f"{name!r} is a file already; a path goes with the name of a known set")
        mapping = {**(columns or {}), **parse_mapping(asked.query)}
        items = load_file(asked.base, mapping, dataset=asked.dataset, scheme=asked.scheme)
    else:
        if columns:
            raise UsageError(f"{asked.base} has its own columns; a mapping is for a file of yours")
        items = _known(asked, DATASETS[asked.base], path)
    chosen = [item for item in items if asked.split in ("", item.split)]
    if not chosen:
        raise UsageError(f"{asked.dataset} has no {asked.split} split: all {len(items)} of its items are the other")
    return chosen


def _known(asked: Name, record: DataSet, path: str | Path | None) -> list[Item]:
    if asked.path and path is not None:
        raise UsageError(f"{asked.text!r} names a file already; leave the path {path} out")
    path = asked.path or path
    if record.made:
        if path is not None:
            raise UsageError(f"{record.name} comes with r2mad; it has no file to be given")
        return record.made()
    if asked.split and not record.splits[asked.split]:
        other = next(split for split in SPLITS if record.splits[split])
        raise UsageError(f"{record.name} has no {asked.split} split, only {other}")
    found = _source.find(record, asked.category, path)
    assert record.read is not None  # a set is either made or read
    raws = record.read(found.tables(), found.fault)
    if asked.category:
        raws = (raw for raw in raws if raw.part == asked.category)
    items = build(raws, asked.dataset, asked.scheme, found.fault)
    _source.checked(asked.dataset, len(items), record.categories.get(asked.category, record.items), found)
    return items
