"""The memory in one SQLite file, which any number of processes read and write at once: `sqlite:PATH`.

Search is exact: an agent's vectors are read once into one array, and only what was added since is read again.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from r2mad.errors import StoreError, UsageError
from r2mad.experience import Case, Form, Remembered, leak_key
from r2mad.memory import _rows, _tables
from r2mad.memory._bank import Columns, Shelf, StoredBank, view
from r2mad.memory._file import MemoryFile, create
from r2mad.memory._shapes import check
from r2mad.memory._tables import Meta, Run
from r2mad.protocols import Holder
from r2mad.types import Question

if TYPE_CHECKING:
    import numpy.typing as npt

    from r2mad.experience import Vectors

KEPT = 512
"""Parsed debates kept at hand: agents and rounds are reminded of the same few. Some 40 kB each with long replies."""


def open_sqlite(place: str, embedder: str | None, dimension: int | None, form: Form) -> SqliteMemory:
    """The memory in the file `place`; see `r2mad.memory.open_memory`."""
    if "\0" in place:
        raise UsageError(f"{place!r} is not a place for a memory: no file's name has a null byte")
    try:
        path = Path(place).expanduser()
        missing = not path.exists() and not path.is_symlink()
    except RuntimeError as error:  # no such user
        raise UsageError(f"{place!r} is not a place for a memory: {error}") from error
    except OSError:  # opening it says what is wrong
        missing = False
    if place == ":memory:":
        raise UsageError("a memory is a file, which others can read and which is there tomorrow: name one")
    if missing and embedder is not None and dimension is not None:
        create(path, Meta(embedder, dimension, form))
    store = SqliteMemory(f"sqlite:{place}", MemoryFile(path))
    try:
        _check_kind(store, path, embedder, dimension, form)
    except UsageError:
        store.close()
        raise
    return store


def _check_kind(store: SqliteMemory, path: Path, embedder: str | None, dimension: int | None, form: Form) -> None:
    """Refuse vectors that cannot be compared with those that are there."""
    otherwise = "export it and import it into a new memory"
    if embedder not in (None, store.embedder):
        raise UsageError(
            f"the memory {path} was made with {store.embedder}, not {embedder}: "
            f"open it with its own embedder, or {otherwise}"
        )
    if dimension not in (None, store.dimension):
        raise UsageError(
            f"the memory {path} has vectors of {store.dimension} dimensions ({store.embedder}), not {dimension}: "
            f"open it with its own embedder, or {otherwise}"
        )
    if embedder is not None and form != store.form:
        raise UsageError(
            f"the memory {path} has debate states of the form {store.form!r}, not {form!r}: open it with its own form, "
            f"or {otherwise}"
        )


class SqliteMemory:
    """One memory file: see `r2mad.protocols.MemoryStore`."""

    def __init__(self, url: str, file: MemoryFile) -> None:
        self._url, self._file = url, file
        try:
            self._kind = file.read(_tables.read_meta)
        except StoreError:
            file.close()
            raise
        self._shelf: Shelf | None = None
        self._snapshot: StoredSnapshot | None = None
        self._parsed: OrderedDict[int, Remembered] = OrderedDict()

    @property
    def url(self) -> str:
        """`sqlite:PATH`, as the user wrote it."""
        return self._url

    @property
    def embedder(self) -> str:
        """Name of the embedder that all its vectors come from."""
        return self._kind.embedder

    @property
    def dimension(self) -> int:
        """d of its vectors."""
        return self._kind.dimension

    @property
    def form(self) -> Form:
        """How its debate states were written down."""
        return cast(Form, self._kind.form)

    def snapshot(self) -> StoredSnapshot:
        """Everything that is in it now; the same object as before if nothing was written meanwhile.

        Raises:
            StoreError: the store cannot be read.
        """
        return self._file.read(self._now)

    def _now(self, run: Run) -> StoredSnapshot:
        """The snapshot of this moment, with what was added read into the arrays that are here."""
        meta = _tables.read_meta(run)
        if self._snapshot is not None and self._snapshot.meta == meta:
            return self._snapshot
        shelf = self._shelf
        if shelf is None or shelf.generation != meta.forgotten:
            shelf = Shelf(meta.forgotten)
        shelf.keys.extend(run, meta)
        counts = Counter[str]()
        for (name, _), cases in _tables.read_holders(run, meta).items():
            counts[name] += cases
        for name, columns in shelf.columns.items():
            columns.extend(run, meta.last_case, counts[name])
            if columns.questions is not None:
                columns.extend_questions(run, counts[name])
        self._shelf = shelf
        self._snapshot = StoredSnapshot(self, shelf, meta, counts)
        return self._snapshot

    def bank_of(self, shelf: Shelf, meta: Meta, name: str, count: int) -> StoredBank:
        """The first `count` cases of an agent, up to the last that `meta` knows.

        Raises:
            StoreError: they cannot be read, or something was forgotten before they were asked for.
        """

        def work(run: Run) -> StoredBank:
            columns = shelf.columns.get(name) or Columns(name, meta.dimension)
            if columns.count < count:
                self._still(run, shelf)
                columns.extend(run, meta.last_case, count)
                shelf.columns[name] = columns
            return StoredBank(
                columns,
                count,
                lambda kept, upto: self._questions(shelf, kept, upto),
                lambda number: self._case(shelf, number),
            )

        return self._file.read(work)

    def _questions(self, shelf: Shelf, columns: Columns, count: int) -> Vectors:
        def work(run: Run) -> Vectors:
            if columns.questions is None or columns.asked < count:
                self._still(run, shelf)
                columns.extend_questions(run, count)
            assert columns.questions is not None
            return view(columns.questions, count)

        return self._file.read(work)

    def _still(self, run: Run, shelf: Shelf) -> None:
        """See that nothing was forgotten, and so all is there, of what a shelf was begun with."""
        if _tables.read_meta(run).forgotten != shelf.generation:
            raise StoreError(
                f"something was forgotten from the memory {self._file.path} since this snapshot of it was taken: "
                "take a new one"
            )

    def _case(self, shelf: Shelf, number: int) -> Case:
        def work(run: Run) -> Case:
            found = next(_rows.read_cases(run, "number = ?", (number,), self.dimension), None)
            debate = found and self._debate(run, found[1])
            if not found or not debate:
                if _tables.read_meta(run).forgotten == shelf.generation:
                    raise ValueError(f"case number {number} or its debate is missing")
                raise StoreError(
                    f"the debate of this case was forgotten from the memory {self._file.path} since this "
                    "snapshot of it was taken: take a new one"
                )
            return Case(debate, found[2], found[3])

        return self._file.read(work)

    def _debate(self, run: Run, number: int) -> Remembered | None:
        """A debate, parsed; from those at hand if it is among them."""
        debate = self._parsed.get(number) or _rows.read_debate(run, number, self.dimension, self._where)
        if debate is not None:
            self._parsed[number] = debate
            self._parsed.move_to_end(number)
            if len(self._parsed) > KEPT:
                self._parsed.popitem(last=False)
        return debate

    @property
    def _where(self) -> str:
        return f"the memory {self._file.path}"

    def add(self, debates: Sequence[Remembered]) -> int:
        """Remember debates, all of them or none; those known already are passed over.

        Returns:
            How many were new.

        Raises:
            StoreError: the store cannot be written.
            UsageError: vectors of another dimension, or shapes that do not fit the debate.
        """
        for debate in debates:
            check(debate, self.dimension)
        prepared = [_rows.prepare(debate) for debate in debates]
        now = datetime.now(UTC).isoformat(timespec="milliseconds")

        def work(run: Run) -> int:
            before = meta = _tables.read_meta(run)
            held, touched = _tables.read_holders(run, meta), Counter[_tables.Holder]()
            for one in prepared:
                if _tables.has(run, one.id):
                    continue
                touched += one.store(run, meta.last_debate + 1, meta.last_case + 1, now)
                meta = replace(
                    meta,
                    debates=meta.debates + 1,
                    cases=meta.cases + len(one.cases),
                    last_debate=meta.last_debate + 1,
                    last_case=meta.last_case + len(one.cases),
                    content=meta.changed(one.content),
                )
            if meta != before:
                _tables.write_holders(run, held + touched, touched)
                _tables.write_meta(run, meta)
            return meta.debates - before.debates

        return self._file.write(work) if prepared else 0

    def known(self) -> set[str]:
        """The ids of all debates in it."""
        return set(self._numbers())

    def _numbers(self) -> dict[str, int]:
        """The debates' numbers by id, ascending."""

        def work(run: Run) -> dict[str, int]:
            heads = sorted((number, name) for number, name, _ in _tables.read_heads(run))
            if len({number for number, _ in heads}) != _tables.read_meta(run).debates:
                raise ValueError("some of its debates are missing")
            return {name: number for number, name in heads}

        return self._file.read(work)

    def roster(self) -> tuple[Holder, ...]:
        """Who has cases in it, by name and model."""
        held = self._file.read(lambda run: _tables.read_holders(run, _tables.read_meta(run)))
        return tuple(Holder(name, model, cases) for (name, model), cases in sorted(held.items()))

    def debates(self, ids: Collection[str] | None = None) -> Iterator[Remembered]:
        """Every debate, or those in `ids`, in the order in which they were added; what is added meanwhile is not in it.

        One is read at a time, and no transaction is open between two of them.
        """
        wanted = None if ids is None else set(ids)
        for name, number in self._numbers().items():
            if wanted is None or name in wanted:
                debate = self._read(number)
                if debate is not None:  # forgotten meanwhile
                    yield debate

    def _read(self, number: int) -> Remembered | None:
        return self._file.read(lambda run: _rows.read_debate(run, number, self.dimension, self._where))

    def forget(self, ids: Collection[str]) -> int:
        """Take debates out with all their cases, in one transaction, and tell how many there were.

        Raises:
            StoreError: the store cannot be written.
        """
        wanted = set(ids)

        def work(run: Run) -> int:
            before = meta = _tables.read_meta(run)
            held, touched = _tables.read_holders(run, meta), Counter[_tables.Holder]()
            for number in sorted(number for number, name, _ in _tables.read_heads(run) if name in wanted):
                cases, content = _rows.remove(run, number, self.dimension)
                touched += cases
                meta = replace(
                    meta,
                    debates=meta.debates - 1,
                    cases=meta.cases - cases.total(),
                    content=meta.changed(content),
                )
            if meta != before:
                held.subtract(touched)
                _tables.write_holders(run, held, touched)
                _tables.write_meta(run, replace(meta, forgotten=meta.forgotten + 1))
            return before.debates - meta.debates

        return self._file.write(work) if wanted else 0

    def close(self) -> None:
        """Let go of the file. Safe to call twice."""
        self._file.close()


class StoredSnapshot:
    """A memory as of one version: see `r2mad.protocols.Snapshot`."""

    def __init__(self, store: SqliteMemory, shelf: Shelf, meta: Meta, counts: Counter[str]) -> None:
        self.meta = meta
        self._store, self._shelf, self._counts = store, shelf, counts
        self._keys: npt.NDArray[np.uint64] = view(shelf.keys.keys, shelf.keys.count)
        self._banks: dict[str, StoredBank] = {}

    @property
    def version(self) -> str:
        """A digest of everything in it."""
        return self.meta.version

    def bank(self, name: str) -> StoredBank | None:
        """The cases of the agent of that name, which are read when it is first asked for; None if it has none.

        Raises:
            StoreError: they cannot be read, or something was forgotten before they were asked for.
        """
        count = self._counts[name]
        if not count:
            return None
        if name not in self._banks:
            self._banks[name] = self._store.bank_of(self._shelf, self.meta, name, count)
        return self._banks[name]

    def knows(self, question: Question) -> bool:
        """Whether a debate on the very same question (text and options) is in it."""
        return bool((self._keys == np.uint64(int(leak_key(question), 16))).any())
