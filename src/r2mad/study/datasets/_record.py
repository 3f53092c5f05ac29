"""What is known of a data set before it is read, and the records between a file's row and an `Item`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from r2mad.errors import R2madError
from r2mad.study.datasets.splits import train_size
from r2mad.types import AnswerKind, Item


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a data set repository of the hub, in the upstream's own format."""

    repo: str
    path: str
    revision: str | None
    """The commit that it is taken from; None: not pinned, for want of a hash of ours."""
    sha256: str | None = None
    """Its hash; None where we know none, and then only the number of items is checked."""


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file of the folder that `R2MAD_DATA` names."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file, as it stands there."""

    where: str
    """File and line, for messages."""
    index: int
    """The how-manieth row it is, from 0."""
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one file, read as they are asked for."""

    name: str
    """The file's name, for sets that have several."""
    rows: Iterable[Row]


@dataclass(frozen=True, slots=True)
class Raw:
    """One item before it is checked."""

    where: str
    id: str
    question: str
    gold: str
    """As `Item.gold`: of a choice, the letter."""
    kind: AnswerKind
    options: tuple[str, ...] = ()
    group: str = ""
    part: str = ""
    """Splits are drawn within each part, so a part alone has the same split as the whole."""
    split: str = ""
    """The item's split, where the set itself says so and nothing is drawn."""


Fault = type[R2madError]
"""What a bad row raises: a `UsageError` in a file that the user named, a `StoreError` in one that we know."""
Reader = Callable[[Sequence[Table], Fault], Iterator[Raw]]


@dataclass(frozen=True, slots=True)
class DataSet:
    """One set: where it comes from, what may be done with it, and what to know about it."""

    name: str
    title: str
    items: int
    kinds: tuple[AnswerKind, ...]
    upstream: str
    licence: str
    note: str = ""
    """Defects and conventions worth knowing before a number is believed."""
    split_note: str = ""
    """How train and test come about."""
    train: int | None = None
    """Items of the train split; by default three in four of each category, rounded."""
    schemes: tuple[str, ...] = ("paper",)
    """Ways to split it that can be asked for: `paper`, and `official` where the authors' published scripts have one."""
    categories: Mapping[str, int] = field(default_factory=dict)
    """Items of each part that can be named after a colon."""
    instead: str = ""
    """What else to try where it is not here."""
    made: Callable[[], list[Item]] | None = None
    """Gives the items of a set that needs no file from elsewhere."""
    read: Reader | None = None
    """Turns the rows of its files into items, whether they are laid out as in `files` or as in `hub`."""
    files: Mapping[str, FolderFile] = field(default_factory=dict)
    """Its file in the folder `R2MAD_DATA`, by category; "" for the whole set."""
    hub: tuple[HubFile, ...] = ()
    others: frozenset[str] = frozenset()
    """sha256 of further copies known to be good."""

    @property
    def splits(self) -> dict[str, int]:
        """Items of each split, by the default scheme."""
        sizes = tuple(self.categories.values()) or (self.items,)
        train = sum(map(train_size, sizes)) if self.train is None else self.train
        return {"train": train, "test": self.items - train}

    @property
    def revision(self) -> str | None:
        """The upstream commit that the hub's file is taken from; None: not pinned, or not from the hub."""
        return self.hub[0].revision if self.hub else None

    @property
    def sha256(self) -> dict[str, str]:
        """The hashes that are checked, by file."""
        known = {one.name: one.sha256 for one in self.files.values()}
        return known | {f"{one.repo}/{one.path}": one.sha256 for one in self.hub if one.sha256}
