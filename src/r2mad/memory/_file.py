"""The memory's SQLite file: how it is made, opened, read and written, and what can be wrong with it.

A new memory is made beside its place and then put there in one step, so that a file is either a whole memory or none.
The file is never opened but through SQLite: closing another handle would drop the locks of all that read it here.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from r2mad.errors import FileBusyError, MissingMemoryError, StoreError
from r2mad.memory._tables import APPLICATION, PUT_META, SCHEMA, VERSION, Meta, Run

T = TypeVar("T")

BUSY = 60.0
"""Seconds to wait for other processes' writes; each takes milliseconds, but a slow disk may have many in line."""
NAP = 0.005
"""Seconds between tries where SQLite does not wait by itself: while a file is recovered, or closed by its last user."""
SMALLEST = 512
"""Bytes of the smallest database; SQLite takes what is shorter for an empty one."""
LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
"""SQLite's codes for "not now"."""
REFUSED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
"""SQLite's codes for "you may not", which a file in a folder that cannot be written gives even to a reader."""
ELSEWHERE = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT}
"""Codes that speak of the disk or the machine, and say nothing about the file's content."""
MODES = ("mode=rw", "mode=ro", "mode=ro&immutable=1")
"""Ways to open a file, the best first. The last reads a file to which nobody can add, in a folder without room for the
files that readers share."""


def _code(error: Exception) -> int | None:
    """SQLite's primary code; None where Python's module itself refused."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


class MemoryFile:
    """One open memory file. Safe to use from any thread; one transaction runs at a time.

    Raises:
        StoreError: there is none, it is damaged, is not a memory, was written by a newer version, or cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._database: sqlite3.Connection | None = None
        try:
            size = path.stat().st_size
            regular = path.is_file()
        except FileNotFoundError as error:
            raise MissingMemoryError(f"no memory at {path}: `r2mad remember` builds one") from error
        except OSError as error:
            raise self.unusable(error) from error
        if not regular:
            raise StoreError(f"{path} is a folder or a device, not a memory: name a file")
        if size < SMALLEST:
            what = f"a file of {size} bytes" if size else "an empty file"
            raise StoreError(f"{path} is {what}, not a memory: delete it, or name another file")
        self._open()

    def _open(self) -> None:
        """Open it in the best way that lets it be read."""
        for number, mode in enumerate(MODES):
            try:
                self._connect(mode)
                self.read(self._inspect)
                self._keep_log()
                return
            except StoreError as error:
                self.close()
                refused = isinstance(error.__cause__, sqlite3.Error) and _code(error.__cause__) in REFUSED
                newest_elsewhere = number == 1 and self._log_size()  # in a log that may not be read
                if not refused or newest_elsewhere or number + 1 == len(MODES):
                    raise

    def _connect(self, mode: str) -> None:
        try:
            self._database = _connect(f"{self.path.absolute().as_uri()}?{mode}")
            self._database.execute("PRAGMA synchronous = FULL")  # a debate is announced once it is remembered
        except sqlite3.Error as error:
            raise self.unusable(error) from error
        except UnicodeDecodeError as error:  # what SQLite says of a damaged table quotes it
            raise self.damaged("its tables cannot be read") from error

    def _keep_log(self) -> None:
        """Have readers and a writer not wait for one another again, in a copy that was made without that."""
        assert self._database is not None
        with suppress(sqlite3.Error):  # it works without, and who only reads cannot change it
            if self._database.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                self._database.execute("PRAGMA journal_mode = WAL")

    def _inspect(self, run: Run) -> None:
        """See that it is a memory, of this version, and whole as far as one can tell without reading it all."""
        application, version = run("PRAGMA application_id").fetchone()[0], run("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION:
            raise StoreError(f"{self.path} is {_whose(application)}, not a memory: name another file")
        if version > VERSION:
            raise StoreError(
                f"{self.path} was written by a newer r2mad (schema {version}): update, or name another file"
            )
        parts = {row[0] for row in run("SELECT sql FROM sqlite_master")}
        if version < VERSION or not parts.issuperset(SCHEMA):
            raise self.damaged("its tables are not those of a memory")
        self._check_size(run)

    def _check_size(self, run: Run) -> None:
        """Compare the file's length with the number of pages it says it has.

        While it has a write-ahead log some of the pages may be there, and SQLite looks after them.
        """
        need = run("PRAGMA page_count").fetchone()[0] * run("PRAGMA page_size").fetchone()[0]
        if self.path.stat().st_size < need and not self._log_size():
            raise self.damaged(f"it is {self.path.stat().st_size} bytes long and should be {need}")

    def _log_size(self) -> int:
        """Bytes of the write-ahead log; SQLite puts it beside the file itself, whatever links lead there."""
        log = Path(f"{self.path.resolve()}-wal")
        return log.stat().st_size if log.exists() else 0

    def read(self, work: Callable[[Run], T]) -> T:
        """What `work` reads in one transaction, so that all of it is of one moment.

        Raises:
            StoreError: it cannot be read, or is damaged.
        """
        return self._transact("BEGIN", work)

    def write(self, work: Callable[[Run], T]) -> T:
        """What `work` writes in one transaction; it is on disk when this returns, or nothing of it is.

        Raises:
            StoreError: it cannot be written, or is damaged.
        """
        return self._transact("BEGIN IMMEDIATE", work)

    def _transact(self, begin: str, work: Callable[[Run], T]) -> T:
        give_up = time.monotonic() + BUSY
        with self._lock:
            while True:
                database = self._database
                if database is None:
                    raise StoreError(f"the memory {self.path} is closed")
                try:
                    return _once(database, begin, work)
                except sqlite3.Error as error:
                    if _code(error) not in LOCKED or time.monotonic() > give_up:
                        raise self.unusable(error, begin != "BEGIN") from error
                except (TypeError, ValueError, OverflowError) as error:  # a value of a kind that was never written
                    raise self.damaged(str(error)) from error
                except OSError as error:
                    raise self.unusable(error) from error
                time.sleep(NAP)

    def damaged(self, what: str) -> StoreError:
        """That the content is not what was written, as one line that names the file and what to do."""
        what = " ".join(what.split())
        return StoreError(
            f"the memory {self.path} is damaged ({what}): "
            "put a copy in its place, or build it anew with `r2mad remember`"
        )

    def unusable(self, error: Exception, writing: bool = False) -> StoreError:
        """The error as one line that names the file and what to do."""
        what = str(error.strerror if isinstance(error, OSError) and error.strerror else error)
        code = _code(error)
        if code in REFUSED and not _may(self.path, os.W_OK if writing else os.R_OK):
            what = "you may only read it" if writing else "you may not read it"
        elif code in REFUSED and writing and not _may(self.path.parent, os.W_OK):
            what = "you may not write to its folder"
        if code in LOCKED:
            return FileBusyError(f"the memory {self.path} is being written by another process: try again later")
        if code == sqlite3.SQLITE_NOTADB:
            return StoreError(f"{self.path} is not a memory ({what}): name another file")
        if isinstance(error, sqlite3.DatabaseError) and code not in REFUSED | ELSEWHERE:
            return self.damaged(what)
        verb = "written" if writing else "used"
        return StoreError(f"the memory {self.path} cannot be {verb} ({what}): mend that, or name another file")

    def close(self) -> None:
        """Let go of it. Safe to call twice."""
        with self._lock:
            database, self._database = self._database, None
            if database is not None:
                with suppress(sqlite3.Error):  # what was committed is safe; the log is read by whoever opens it next
                    database.close()


def _may(path: Path, what: int) -> bool:
    return os.access(path, what, effective_ids=os.access in os.supports_effective_ids)


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=BUSY, isolation_level=None, check_same_thread=False)


def _once(database: sqlite3.Connection, begin: str, work: Callable[[Run], T]) -> T:
    """One try of a transaction."""
    database.execute(begin)
    try:
        result = work(database.execute)
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")
        raise
    return result


def _whose(application: int) -> str:
    from r2mad.models._cache_file import APPLICATION as CACHE  # both files look alike from outside

    return "a call cache" if application == CACHE else "a database of another program"


def create(path: Path, meta: Meta) -> None:
    """Make an empty memory at `path`, unless something is there already: another process may have been faster.

    Raises:
        StoreError: it cannot be written there.
    """
    try:
        _make_folder(path.parent)
        with tempfile.TemporaryDirectory(prefix=".r2mad-", dir=path.parent) as folder:
            new = Path(folder) / "memory.db"
            with closing(_connect(new.absolute().as_uri())) as database:
                _fill(database, meta)
            try:
                os.link(new, path)
            except FileExistsError:
                return
            except OSError:  # a file system without links
                if not path.exists():
                    new.rename(path)
            _sync(path.parent)
    except OSError as error:
        what = error.strerror or error
        raise StoreError(f"no memory can be made at {path} ({what}): mend that, or name another file") from error
    except sqlite3.Error as error:
        raise StoreError(f"no memory can be made at {path} ({error}): mend that, or name another file") from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise OSError(errno.ENOTDIR, f"{folder} is not a folder") from error


def _sync(folder: Path) -> None:
    """See that a new file's name is on disk too, before anybody is told of what is in it."""
    with suppress(OSError):  # some file systems do not let a folder be synced
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _fill(database: sqlite3.Connection, meta: Meta) -> None:
    run = database.execute
    run("PRAGMA page_size = 8192")  # several vectors of the usual lengths fit into a page
    run("PRAGMA journal_mode = WAL")  # readers and a writer do not wait for one another
    run("BEGIN IMMEDIATE")
    for statement in SCHEMA:
        run(statement)
    run(f"PRAGMA application_id = {APPLICATION}")
    run(f"PRAGMA user_version = {VERSION}")
    run(PUT_META, meta.row)
    run("COMMIT")
