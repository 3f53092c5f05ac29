"""Data sets: a file each, with where it comes from, its licence, and how it is split.

`load("starter")` gives all items of a set, `load("starter:test")` those of one split.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from r2mad.errors import UnknownNameError
from r2mad.study.datasets import simulated, starter
from r2mad.types import Item

SPLITS = ("train", "test")


@dataclass(frozen=True, slots=True)
class DataSet:
    """One set, as `r2mad datasets` lists it."""

    name: str
    summary: str
    source: str
    licence: str
    load: Callable[[], list[Item]]


DATASETS: dict[str, DataSet] = {
    one.name: one
    for one in (
        DataSet("starter", starter.SUMMARY, "ships with r2mad", "Apache-2.0, as r2mad itself", starter.load),
        DataSet("simulated", simulated.SUMMARY, "made by r2mad", "Apache-2.0, as r2mad itself", simulated.load),
    )
}


def load(name: str) -> list[Item]:
    """The items of a set, or of one of its splits (`name:split`), in their fixed order.

    Raises:
        UnknownNameError: no such set or split; the message lists those there are.
        StoreError: its file is damaged.
    """
    base, _, split = name.partition(":")
    if base not in DATASETS:
        raise UnknownNameError(f"no data set {base!r}; there are: {', '.join(DATASETS)}")
    if split not in ("", *SPLITS):
        raise UnknownNameError(f"no split {split!r} of {base}; there are: {', '.join(SPLITS)}")
    return [item for item in DATASETS[base].load() if not split or item.split == split]
