"""What is held of a memory in this process: agents' cases in arrays that grow, and banks as views of their beginnings.

Cases are only ever added at the end, so a bank is the first c rows of arrays which may have more by now. Once something
has been forgotten a new shelf is begun, and banks of the old one keep its arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from r2mad.memory._rows import FLOAT, UNKNOWN, read_cases
from r2mad.memory._tables import Meta, Run, mark, read_heads

if TYPE_CHECKING:
    import numpy.typing as npt

    from r2mad.experience import Case, Vectors

    Array = npt.NDArray[Any]

GROWTH = 1.25
"""How much longer an array is made when it is full: it is copied seldom, and a fifth of it at most is empty."""
CHUNK = 256
"""Rows that are read at once: enough for numpy to be quick, and little beside the arrays."""
FEW = 500
"""Numbers in one query; SQLite has a limit."""


def _longer(array: Array, used: int, need: int) -> Array:
    """`array` with room for `need` rows: exactly so many at first, since most memories are read and not written."""
    if need <= len(array):
        return array
    room = need if not used else max(need, int(len(array) * GROWTH))
    longer = np.empty((room, *array.shape[1:]), array.dtype)
    longer[:used] = array[:used]
    return longer


def view(array: Array, count: int) -> Array:
    """The first `count` rows, not to be written to."""
    shown = array[:count]
    shown.flags.writeable = False
    return shown


class Columns:
    """All cases of the agents of one name, as far as they were read, in the order of their numbers."""

    def __init__(self, name: str, dimension: int) -> None:
        self.name, self.dimension = name, dimension
        self.count = 0
        self.last = 0
        """The highest case number that was read."""
        self.numbers = np.empty(0, np.int64)
        self.debates = np.empty(0, np.int64)
        self.ids = np.empty(0, np.uint64)
        self.rewards = np.empty(0, np.float32)
        self.states = np.empty((0, dimension), np.float32)
        self.questions: Vectors | None = None
        self.asked = 0
        """Of how many cases the question is here."""

    def extend(self, run: Run, upto: int, total: int) -> None:
        """Read the cases that are not here yet, up to that number; there are `total` with those that are here.

        Raises:
            ValueError: the file is damaged.
        """
        if total <= self.count:
            return
        for name in ("numbers", "debates", "ids", "rewards", "states"):
            setattr(self, name, _longer(getattr(self, name), self.count, total))
        where, values = "name = ? AND number > ? AND number <= ?", (self.name, self.last, upto)
        cases, at = read_cases(run, where, values, self.dimension), self.count
        while chunk := list(islice(cases, CHUNK)):
            end = at + len(chunk)
            if end > total or any(row[6] != self.name for row in chunk):
                raise ValueError(f"cases of {self.name!r} are there that were not added")
            numbers, debates, _, _, rewards, ids, *_, states = zip(*chunk, strict=True)
            self.numbers[at:end], self.debates[at:end] = numbers, debates
            self.ids[at:end] = np.array(ids, np.int64).view(np.uint64)
            known = np.array(rewards, np.float32)
            self.rewards[at:end] = np.where(known == UNKNOWN, np.nan, known)
            self.states[at:end] = np.frombuffer(b"".join(states), FLOAT).reshape(len(chunk), self.dimension)
            at = end
        if at < total:
            raise ValueError(f"{total - at} cases of {self.name!r} are missing")
        self.count, self.last = total, int(self.numbers[total - 1])

    def extend_questions(self, run: Run, count: int) -> None:
        """Read the vectors of the questions of the first `count` cases.

        Raises:
            ValueError: the file is damaged.
        """
        if self.questions is None:
            self.questions = np.empty((0, self.dimension), np.float32)
        if count <= self.asked:
            return
        self.questions = _longer(self.questions, self.asked, count)
        wanted = self.debates[self.asked : count]  # ascending, as a debate's cases were added together
        different = np.unique(wanted)
        for start in range(0, len(different), FEW):
            some = different[start : start + FEW]
            low, high = np.searchsorted(wanted, some[0]), np.searchsorted(wanted, some[-1], "right")
            found = _questions(run, [int(number) for number in some], self.dimension)
            place = np.searchsorted(some, wanted[low:high])
            self.questions[self.asked + low : self.asked + high] = found[place]
        self.asked = count


def _questions(run: Run, numbers: list[int], dimension: int) -> Vectors:
    """Question vectors of some debates, whose numbers ascend."""
    places = ", ".join("?" * len(numbers))
    rows = run(
        f"SELECT number, id, question_mark, question FROM debates WHERE number IN ({places}) ORDER BY number",  # noqa: S608
        numbers,
    ).fetchall()
    if [row[0] for row in rows] != numbers:
        raise ValueError("a debate is missing that cases refer to")
    for number, name, found, blob in rows:
        if len(blob) != FLOAT.itemsize * dimension or mark(number, blob) != found:
            raise ValueError(f"debate {name}: the checksum of its question does not fit")
    return np.frombuffer(b"".join(row[3] for row in rows), FLOAT).reshape(len(numbers), dimension)


class Keys:
    """The question keys of all debates as numbers, in the order in which they were read."""

    def __init__(self) -> None:
        self.count = 0
        self.last = 0
        """The highest debate number that was read."""
        self.keys = np.empty(0, np.uint64)

    def extend(self, run: Run, meta: Meta) -> None:
        """Read the debates that are not here yet.

        Raises:
            ValueError: the file is damaged.
        """
        total = meta.debates
        if total <= self.count:
            return
        keys = _longer(self.keys, self.count, total)
        numbers, at = np.empty(total - self.count, np.int64), self.count
        for number, _, key in read_heads(run, self.last):
            if at == total:
                raise ValueError(f"there are more than the {total} debates that were added")
            numbers[at - self.count], keys[at] = number, int(key, 16)
            at += 1
        if at < total or len(np.unique(numbers)) < len(numbers):
            raise ValueError(f"some of its {total} debates are missing")
        self.keys, self.count, self.last = keys, total, meta.last_debate


class Shelf:
    """Everything that was read since something was last forgotten."""

    def __init__(self, generation: int) -> None:
        self.generation = generation
        """`Meta.forgotten` while it is up to date."""
        self.keys = Keys()
        self.columns: dict[str, Columns] = {}


class StoredBank:
    """M_i as of one version: see `r2mad.protocols.Bank`."""

    def __init__(
        self, columns: Columns, count: int, ask: Callable[[Columns, int], Vectors], fetch: Callable[[int], Case]
    ) -> None:
        self._columns, self._count, self._ask, self._fetch = columns, count, ask, fetch
        self._ids, self._rewards = view(columns.ids, count), view(columns.rewards, count)
        self._states, self._numbers = view(columns.states, count), view(columns.numbers, count)
        self._questions: Vectors | None = None

    def __len__(self) -> int:
        return self._count

    @property
    def ids(self) -> npt.NDArray[np.uint64]:
        """The cases' names as numbers, shape [c]."""
        return self._ids

    @property
    def rewards(self) -> npt.NDArray[np.float32]:
        """r_i(e), shape [c]; NaN where it is not known."""
        return self._rewards

    @property
    def states(self) -> Vectors:
        """Vectors of the debate states, shape [c, d]."""
        return self._states

    @property
    def questions(self) -> Vectors:
        """Vectors of the questions, shape [c, d]; read when first asked for.

        Raises:
            StoreError: they cannot be read, or something was forgotten before they were asked for.
        """
        if self._questions is None:
            self._questions = self._ask(self._columns, self._count)
        return self._questions

    def case(self, index: int) -> Case:
        """One case in full.

        Raises:
            StoreError: it cannot be read, or was forgotten since.
        """
        if not 0 <= index < self._count:
            raise IndexError(f"no case {index} among {self._count}")
        return self._fetch(int(self._numbers[index]))
