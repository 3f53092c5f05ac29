"""Snapshots: what a debate reads stays as it was, whatever is written meanwhile, and only what is new is read."""

import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2mad.errors import StoreError
from r2mad.memory import _bank, _rows, open_memory
from r2mad.memory.sqlite import KEPT, SqliteMemory
from r2mad.protocols import Bank, Snapshot
from tests.memory.made import made, same


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteMemory]:
    with closing(open_memory(f"sqlite:{tmp_path}/memory.db", embedder="e", dimension=8)) as opened:
        assert isinstance(opened, SqliteMemory)
        yield opened


@pytest.fixture
def other(store: SqliteMemory) -> Iterator[SqliteMemory]:
    """The same memory as another process sees it."""
    with closing(open_memory(store.url)) as opened:
        assert isinstance(opened, SqliteMemory)
        yield opened


def bank(snapshot: Snapshot, name: str = "Ann") -> Bank:
    found = snapshot.bank(name)
    assert found is not None
    return found


def arrays(of: Bank) -> list[np.ndarray[Any, Any]]:
    return [of.ids, of.rewards, of.states, of.questions]


def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of all cases that are read into arrays from now on."""
    seen, read = list[int](), _rows.read_cases

    def watched(*arguments: Any) -> Iterator[Any]:
        for row in read(*arguments):
            seen.append(row[0])
            yield row

    monkeypatch.setattr(_bank, "read_cases", watched)
    return seen


def test_a_snapshot_stays_as_it_was(store: SqliteMemory, other: SqliteMemory) -> None:
    kept = []
    for number in range(60):  # the arrays grow several times, some times of one process, some times of the other
        (store, other)[number % 2].add([made(number)])
        snapshot = store.snapshot()
        kept.append((snapshot, snapshot.version, [array.copy() for array in arrays(bank(snapshot))]))
    versions = {version for _, version, _ in kept}
    assert len(versions) == len(kept)
    for number, (snapshot, version, before) in enumerate(kept):
        assert snapshot.version == version
        now = arrays(bank(snapshot))
        assert len(bank(snapshot)) == 2 * (number + 1)
        assert all(np.array_equal(one, two, equal_nan=True) for one, two in zip(now, before, strict=True))
        assert snapshot.knows(made(number).record.question)
        assert not snapshot.knows(made(number + 1).record.question)
        assert same(bank(snapshot).case(2 * number).debate, made(number))


def test_arrays_cannot_be_written_to(store: SqliteMemory) -> None:
    store.add([made(1)])
    for array in arrays(bank(store.snapshot())):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_nothing_is_read_twice(store: SqliteMemory, other: SqliteMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = rows_read(monkeypatch)
    store.add([made(number) for number in range(10)])
    snapshot = store.snapshot()
    assert not seen  # nobody has asked for an agent
    bank(snapshot)
    assert len(seen) == 20
    bank(snapshot)
    assert store.snapshot() is snapshot
    bank(store.snapshot())
    other.snapshot()
    assert len(seen) == 20
    other.add([made(10)])
    newer = store.snapshot()
    assert newer is not snapshot
    assert len(seen) == 22
    assert len(bank(newer)) == 22
    assert len(bank(newer, "Ben")) == 22
    assert len(seen) == 44
    assert len(set(seen)) == 44


def test_an_agent_first_asked_for_later(store: SqliteMemory, other: SqliteMemory) -> None:
    """By an older snapshot, and by a newer one: each has its own part of the same arrays."""
    store.add([made(1)])
    older = store.snapshot()
    other.add([made(2)])
    newer = store.snapshot()
    other.add([made(3)])
    assert len(bank(older, "Ben")) == 2
    assert len(bank(newer, "Ben")) == 4
    assert len(bank(newer, "Cyd")) == 4
    assert len(bank(older, "Cyd")) == 2
    assert np.array_equal(bank(newer, "Cyd").states[:2], bank(older, "Cyd").states)
    assert np.array_equal(bank(newer, "Cyd").questions[:2], bank(older, "Cyd").questions)
    assert np.shares_memory(bank(newer, "Cyd").states, bank(older, "Cyd").states)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_was_forgotten_stays_in_older_snapshots(store: SqliteMemory, other: SqliteMemory, elsewhere: bool) -> None:
    debates = [made(number) for number in range(4)]
    store.add(debates)
    older = store.snapshot()
    held = bank(older)
    before = [array.copy() for array in arrays(held)]
    held.case(2)  # so that the debate is at hand
    (other if elsewhere else store).forget([debates[1].record.id])
    newer = store.snapshot()
    assert older.version != newer.version
    assert len(bank(newer)) == 6
    assert all(np.array_equal(one, two, equal_nan=True) for one, two in zip(arrays(held), before, strict=True))
    assert older.knows(debates[1].record.question)
    assert not newer.knows(debates[1].record.question)
    assert same(held.case(5).debate, debates[2])
    for index in (2, 3):
        with pytest.raises(StoreError, match=r"this case was forgotten from the memory .*: take a new one"):
            held.case(index)
    with pytest.raises(StoreError, match=r"something was forgotten from the memory .*: take a new one"):
        older.bank("Ben")
    assert older.bank("nobody") is None
    store.add([debates[1]])
    assert store.snapshot().version == older.version
    with pytest.raises(StoreError, match="was forgotten"):
        held.case(2)  # another entry, though of the same debate
    with pytest.raises(StoreError, match="take a new one"):
        older.bank("Ben")


def test_questions_first_asked_for_after_a_forgetting(store: SqliteMemory, other: SqliteMemory) -> None:
    store.add([made(number) for number in range(4)])
    held = bank(store.snapshot())
    other.forget([made(0).record.id])
    with pytest.raises(StoreError, match="something was forgotten"):
        _ = held.questions
    assert bank(store.snapshot()).questions.shape == (6, 8)


def test_more_debates_than_are_kept_at_hand(store: SqliteMemory) -> None:
    debates = [made(number, rounds=2) for number in range(KEPT + 20)]
    store.add(debates)
    held = bank(store.snapshot())
    for index, debate in [*enumerate(debates), *enumerate(debates)]:
        assert same(held.case(index).debate, debate)
    assert len(store._parsed) == KEPT
    assert held.case(5).debate is held.case(5).debate


def test_more_cases_than_are_read_at_once(store: SqliteMemory) -> None:
    debates = [made(number, rounds=2, agents=1) for number in range(_bank.CHUNK + _bank.FEW + 3)]
    store.add(debates[:-1])
    held = bank(store.snapshot())
    assert np.array_equal(held.questions, np.array([debate.question for debate in debates[:-1]]))
    store.add(debates[-1:])
    held = bank(store.snapshot())
    assert np.array_equal(held.states, np.array([debate.states[1, 0] for debate in debates]))
    assert np.array_equal(held.questions, np.array([debate.question for debate in debates]))


def test_loading_holds_little_but_the_vectors(tmp_path: Path) -> None:
    with closing(open_memory(f"sqlite:{tmp_path}/wide.db", embedder="e", dimension=1024)) as store:
        store.add([made(number, dimension=1024, agents=1, rounds=9) for number in range(300)])
    with closing(open_memory(f"sqlite:{tmp_path}/wide.db")) as store:
        tracemalloc.start()
        size = bank(store.snapshot()).states.nbytes
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert size == 2400 * 4096
    assert peak < 1.5 * size


def test_many_threads(store: SqliteMemory) -> None:
    """Whoever looks while others write sees whole debates, as many as the version says."""
    wrong, ended = list[BaseException](), threading.Event()

    def write(first: int) -> None:
        for number in range(first, first + 20):
            store.add([made(number)])

    def look() -> None:
        while not ended.is_set():
            snapshot = store.snapshot()
            sizes = {len(held) for name in ("Ann", "Ben", "Cyd") if (held := snapshot.bank(name))}
            assert sizes in (set(), {2 * snapshot.meta.debates})
            if sizes:
                last = bank(snapshot, "Ben")
                case = last.case(len(last) - 1)
                assert np.array_equal(last.states[-1], case.debate.states[case.round, case.seat])
                assert np.array_equal(last.questions[-1], case.debate.question)

    def guarded(work: Any, *arguments: int) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            wrong.append(error)

    writers = [threading.Thread(target=guarded, args=(write, first * 100)) for first in range(3)]
    readers = [threading.Thread(target=guarded, args=(look,)) for _ in range(3)]
    for thread in writers + readers:
        thread.start()
    for thread in writers:
        thread.join()
    ended.set()
    for thread in readers:
        thread.join()
    assert not wrong
    assert len(bank(store.snapshot())) == 120
