"""Files that are no memory, not ours, too new, or damaged: one line that says so, and never a wrong result."""

import os
import random
import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from r2mad.errors import FileBusyError, StoreError
from r2mad.memory import _file, open_memory
from r2mad.memory._tables import VERSION
from r2mad.models import CallCache
from r2mad.protocols import MemoryStore
from tests.memory.made import made

DEBATES = 8
"""Debates in the file that is damaged: few, so that a bit often hits something that matters."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A memory's file, closed, with a gap where something was forgotten."""
    path = tmp_path_factory.mktemp("whole") / "memory.db"
    with closing(open_memory(f"sqlite:{path}", embedder="e", dimension=8)) as store:
        store.add([made(number) for number in range(DEBATES)])
        store.forget([made(2).record.id])
        store.add([made(DEBATES, names=("Ann", "Ann", "Dov"))])
    assert [each.name for each in path.parent.iterdir()] == ["memory.db"]
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path, whole: bytes) -> Path:
    path = tmp_path / "memory.db"
    path.write_bytes(whole)
    return path


def everything(path: Path) -> object:
    """All that can be asked of a memory, as plain values that can be compared."""
    with closing(open_memory(f"sqlite:{path}")) as store:
        snapshot = store.snapshot()
        banks = []
        for name in ("Ann", "Ben", "Cyd", "Dov", "Eve"):
            bank = snapshot.bank(name)
            if bank is not None:
                cases = [bank.case(index) for index in range(len(bank))]
                arrays = [array.tobytes() for array in (bank.ids, bank.rewards, bank.states, bank.questions)]
                banks.append((name, arrays, [(case.id, case.reward) for case in cases]))
        debates = [
            (
                *(debate.record, debate.outcome, debate.added, debate.question.tobytes(), debate.replies.tobytes()),
                *((place, state.tobytes()) for place, state in debate.states.items()),
            )
            for debate in store.debates()
        ]
        knows = [snapshot.knows(made(number).record.question) for number in range(DEBATES + 2)]
        return (store.embedder, store.dimension, store.form, snapshot.version, store.known(), store.roster()), (
            banks,
            debates,
            knows,
        )


def check_one_line(error: BaseException, path: Path) -> None:
    assert str(path) in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 400


def check_unusable(path: Path, match: str) -> None:
    for kind in ({}, {"embedder": "e", "dimension": 8}):
        with pytest.raises(StoreError, match=match) as caught:
            open_memory(f"sqlite:{path}", **kind)  # type: ignore[arg-type]
        check_one_line(caught.value, path)


def check_right_or_refused(path: Path, right: object) -> bool:
    """Whether it was refused."""
    try:
        found = everything(path)
    except StoreError as error:
        check_one_line(error, path)
        return True
    assert found == right
    return False


def test_bits_that_flip(path: Path, whole: bytes) -> None:
    """Each in a copy of its own: in the header, and anywhere."""
    drawn, right = random.Random(1), everything(path)
    places = [(place, drawn.randrange(8)) for place in range(100)]
    places += [(drawn.randrange(len(whole)), drawn.randrange(8)) for _ in range(250)]
    used = [place for place in range(100, len(whole)) if whole[place]]
    places += [(drawn.choice(used), drawn.randrange(8)) for _ in range(350)]
    refused = 0
    for place, bit in places:
        raw = bytearray(whole)
        raw[place] ^= 1 << bit
        path.write_bytes(raw)
        refused += check_right_or_refused(path, right)
    assert refused > 300  # what is not refused lies in free room, or in an index that nothing was asked of


def test_bits_that_flip_before_something_is_added(path: Path, whole: bytes) -> None:
    """Adding to a damaged file and forgetting from it either fail, or do what they should."""
    debates = [made(3), made(20), made(21, names=("Ben", "Flo", "Ann"))]
    drawn = random.Random(2)

    def write() -> object:
        with closing(open_memory(f"sqlite:{path}")) as store:
            store.add(debates)
            store.forget([made(5).record.id])
        told, rest = everything(path)  # type: ignore[misc]
        return told, [[debate[:2] for debate in rest[1]], rest[0], rest[2]]  # type: ignore[has-type]

    right = write()
    used = [place for place in range(100, len(whole)) if whole[place]]
    for _ in range(120):
        raw = bytearray(whole)
        raw[drawn.choice(used)] ^= 1 << drawn.randrange(8)
        path.write_bytes(raw)
        try:
            assert write() == right
        except StoreError as error:
            check_one_line(error, path)


def test_a_file_cut_short_anywhere(path: Path, whole: bytes) -> None:
    drawn = random.Random(3)
    lengths = {0, 1, 15, 16, 99, 100, 511, 512, 4096, 8191, 8192, 8193, len(whole) - 8192, len(whole) - 1}
    for length in sorted(lengths | {drawn.randrange(len(whole)) for _ in range(60)}):
        path.write_bytes(whole[:length])
        with pytest.raises(StoreError) as caught:
            open_memory(f"sqlite:{path}")
        check_one_line(caught.value, path)
        assert path.stat().st_size == length


def test_a_file_cut_short_while_it_is_open(path: Path, whole: bytes) -> None:
    with closing(open_memory(f"sqlite:{path}")) as store:
        os.truncate(path, len(whole) // 2)
        with pytest.raises(StoreError) as caught:
            list(store.debates())
        check_one_line(caught.value, path)


def test_pages_that_are_noise(path: Path, whole: bytes) -> None:
    right = everything(path)
    for page in range(len(whole) // 8192):
        for filler in (b"\0", b"\xff", random.Random(page).randbytes(1)):
            raw = bytearray(whole)
            raw[page * 8192 : (page + 1) * 8192] = filler * 8192
            path.write_bytes(raw)
            check_right_or_refused(path, right)


@contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as opened, opened:
        yield opened


WRONG = {
    "a state's length": "UPDATE cases SET state = zeroblob(31) WHERE debate = 4",
    "a state's value": "UPDATE cases SET state = zeroblob(32) WHERE debate = 4",
    "a state's kind": "UPDATE cases SET state = 5 WHERE debate = 4",
    "a question's length": "UPDATE debates SET question = zeroblob(36) WHERE number = 4",
    "the replies' length": "UPDATE debates SET replies = x'' WHERE number = 4",
    "a record": "UPDATE debates SET record = substr(record, 1, 100) WHERE number = 4",
    "an outcome": "UPDATE debates SET outcome = '{' WHERE number = 4",
    "a reward": "UPDATE cases SET reward = 2.0 WHERE debate = 4",
    "a reward's kind": "UPDATE cases SET reward = 'much' WHERE debate = 4",
    "a name": "UPDATE cases SET name = 'Ben' WHERE debate = 4 AND name = 'Ann'",
    "a question key": "UPDATE debates SET question_key = '00' WHERE number = 4",
    "a case is missing": "DELETE FROM cases WHERE debate = 4 AND name = 'Ann' AND round = 1",
    "a case too many": "INSERT INTO cases SELECT 13, debate, name, model, round, seat, reward, id, mark, state "
    "FROM cases WHERE debate = 4 LIMIT 1",
    "a debate is missing": "DELETE FROM debates WHERE number = 4",
    "a count": "UPDATE holders SET cases = cases + 1 WHERE name = 'Ann'",
    "a holder is missing": "DELETE FROM holders WHERE name = 'Ann'",
    "the number of debates": "UPDATE meta SET debates = 1",
    "no meta": "DELETE FROM meta",
    "no table": "DROP TABLE cases",
    "no index": "DROP INDEX cases_by_name",
    "not text": "UPDATE debates SET record = CAST(x'ff' AS TEXT) WHERE number = 4",
}


@pytest.mark.parametrize("what", WRONG)
def test_values_that_are_not_what_was_written(path: Path, what: str) -> None:
    with database(path) as opened:
        opened.execute(WRONG[what])
    with pytest.raises(StoreError, match=r"is damaged .*: put a copy in its place, or build it anew") as caught:
        everything(path)
    check_one_line(caught.value, path)
    if "WHERE number = 4" in WRONG[what] and what not in ("a debate is missing"):
        assert made(4 - 1).record.id in str(caught.value)
    if "a state" in what:
        assert made(4 - 1).record.id in str(caught.value)


def test_a_damaged_debate_is_named_wherever_it_is_met(path: Path) -> None:
    with database(path) as opened:
        opened.execute("UPDATE debates SET record = 'null' WHERE number = 5")
    name = made(4).record.id
    with closing(open_memory(f"sqlite:{path}")) as store:
        bank = store.snapshot().bank("Ben")
        assert bank is not None  # its vectors are whole
        for use in (lambda: [bank.case(index) for index in range(len(bank))], lambda: list(store.debates())):
            with pytest.raises(StoreError, match=name):
                use()
        with pytest.raises(StoreError, match=name):
            store.forget([name])
        assert [debate.record.id for debate in store.debates([made(5).record.id])] == [made(5).record.id]


def test_a_newer_schema(path: Path) -> None:
    with database(path) as opened:
        opened.execute(f"PRAGMA user_version = {VERSION + 1}")
    check_unusable(path, rf"newer r2mad \(schema {VERSION + 1}\): update, or name another file")


def test_files_of_others(tmp_path: Path) -> None:
    CallCache(tmp_path / "calls.db").close()
    with database(tmp_path / "mine.db") as opened:
        opened.execute("CREATE TABLE precious (x)")
    (tmp_path / "text").write_text("not a database, by no means " * 100)
    (tmp_path / "short").write_text("x")
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir() if each.is_file()}
    for name, match in {
        "calls.db": "is a call cache, not a memory: name another file",
        "mine.db": "is a database of another program, not a memory: name another file",
        "text": r"is not a memory \(.*\): name another file",
        "short": "is a file of 1 bytes, not a memory: delete it, or name another file",
        "empty": "is an empty file, not a memory: delete it, or name another file",
        "folder": "is a folder or a device, not a memory: name a file",
        "text/memory.db": r"no memory can be made at .*text is not a folder\)|cannot be used \(Not a directory\)",
    }.items():
        check_unusable(tmp_path / name, match)
    assert before == {each.name: each.read_bytes() for each in tmp_path.iterdir() if each.is_file()}
    check_unusable(Path("/dev/null"), "a folder or a device")


def test_a_copy_without_a_log_works_and_gets_one(path: Path) -> None:
    with closing(sqlite3.connect(path)) as opened:
        opened.execute("VACUUM INTO ?", (f"{path}.copy",))
    copy = Path(f"{path}.copy")
    assert everything(copy) == everything(path)
    with closing(sqlite3.connect(copy)) as opened:
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@contextmanager
def nobody() -> Iterator[Path]:
    """An empty folder of somebody who is not root, since root may do everything."""
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid():
            yield Path(folder)
            return
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            os.seteuid(0)


def check_read_only(path: Path, right: object, match: str) -> None:
    assert everything(path) == right
    with closing(open_memory(f"sqlite:{path}", embedder="e", dimension=8)) as store:
        for write in _writes(store):
            with pytest.raises(StoreError, match=match) as caught:
                write()
            check_one_line(caught.value, path)
        assert store.add([]) == 0
    assert everything(path) == right


def _writes(store: MemoryStore) -> list[Callable[[], int]]:
    return [lambda: store.add([made(30)]), lambda: store.forget([made(1).record.id])]


def test_a_file_that_may_only_be_read(path: Path, whole: bytes) -> None:
    right = everything(path)
    with nobody() as folder:
        file = folder / "memory.db"
        file.write_bytes(whole)
        file.chmod(0o444)
        try:
            check_read_only(file, right, r"cannot be written \(you may only read it\)")
            folder.chmod(0o555)
            check_read_only(file, right, r"cannot be written \(you may only read it\)")
            file.chmod(0o644)
            check_read_only(file, right, r"cannot be written \(you may not write to its folder\)")
            file.chmod(0o000)
            check_unusable(file, r"cannot be used \(you may not read it\)")
            folder.chmod(0o000)
            check_unusable(file, "cannot be used .Permission denied")
        finally:
            folder.chmod(0o755)
        folder.chmod(0o555)
        with pytest.raises(StoreError, match=r"no memory can be made at .*Permission denied"):
            open_memory(f"sqlite:{folder}/new.db", embedder="e", dimension=8)
        folder.chmod(0o755)


def test_a_log_that_is_torn_is_read_up_to_there(path: Path, tmp_path: Path) -> None:
    """The state after a crash: the file, and a log whose last transaction is not whole."""
    kinds = [everything(path)]
    crashed = tmp_path / "crashed.db"
    with closing(open_memory(f"sqlite:{path}")) as store:
        for number in (40, 41):
            store.add([made(number)])
            shutil.copy(path, crashed)
            shutil.copy(f"{path}-wal", f"{crashed}-wal")
            kinds.append(everything(crashed))
            crashed.unlink()
        log = Path(f"{path}-wal").read_bytes()
        file = path.read_bytes()
    seen = set()
    for length in range(0, len(log) + 1, 3001):
        crashed.write_bytes(file)
        Path(f"{crashed}-wal").write_bytes(log[:length])
        with suppress(FileNotFoundError):
            Path(f"{crashed}-shm").unlink()
        seen.add(kinds.index(everything(crashed)))
    assert seen == {0, 1} or seen == {0, 1, 2}


def test_a_writer_that_never_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_file, "BUSY", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as hog, closing(open_memory(f"sqlite:{path}")) as store:
        hog.execute("BEGIN IMMEDIATE")
        with pytest.raises(FileBusyError, match="is being written by another process: try again later") as caught:
            store.add([made(50)])
        check_one_line(caught.value, path)
        assert len(store.known()) == DEBATES  # who reads need not wait
        hog.execute("ROLLBACK")
        assert store.add([made(50)]) == 1


def test_a_full_disk(path: Path) -> None:
    with closing(open_memory(f"sqlite:{path}")) as store:
        store._file._database.execute("PRAGMA max_page_count = 1")  # type: ignore[attr-defined]
        before = store.snapshot().version
        with pytest.raises(StoreError, match=r"cannot be written \(database or disk is full\)") as caught:
            store.add([made(number, words=2000) for number in range(60, 70)])
        check_one_line(caught.value, path)
        assert store.snapshot().version == before


def test_vectors_are_little_endian_on_every_machine(path: Path) -> None:
    with database(path) as opened:
        (blob,) = opened.execute("SELECT question FROM debates WHERE number = 1").fetchone()
    assert np.array_equal(struct.unpack("<8f", blob), made(0).question)
