"""Train and test: which items are which, the same in every process and on every machine.

`paper` takes three in four (rounded) for training, by the order of a hash of the questions' ids: the order of the file
does not matter. `official` does what the papers' authors' published scripts do: it shuffles the file's order with
Python's generator at seed 42 and cuts at int(0.75 · n), which is why their tables have cells in multiples of 1/243.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from r2mad.types import digest

SPLITS = ("train", "test")
WHOLE = "all"
SCHEMES = ("paper", "official")
OFFICIAL_SEED = 42
"""The seed in the authors' scripts."""


def train_size(count: int) -> int:
    """Three in four of `count`, rounded to the nearest, halves up."""
    return (3 * count + 2) // 4


def paper(ids: Sequence[str]) -> set[str]:
    """The ids of the train split: the first three in four by the hash of the id."""
    ordered = sorted(ids, key=lambda id: (digest(["split/1", id]), id))
    return set(ordered[: train_size(len(ids))])


def official(ids: Sequence[str]) -> set[str]:
    """The ids of the train split as the authors' scripts draw it; `ids` in the file's order."""
    shuffled = list(ids)
    random.Random(OFFICIAL_SEED).shuffle(shuffled)  # noqa: S311  (theirs, to the letter; nothing here is secret)
    return set(shuffled[: int(0.75 * len(ids))])


def train_ids(ids: Sequence[str], scheme: str) -> set[str]:
    """The ids of the train split of one part, in the file's order, by a scheme."""
    return official(ids) if scheme == "official" else paper(ids)
