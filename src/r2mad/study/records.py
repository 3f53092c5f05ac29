"""A run on disk. Everything else (tables, viewer, resume, tests) reads these files and nothing more.

    RUN/
      items.jsonl     one `Item` a line: the questions with their golds; the agents never see it
      debates.jsonl   one `DebateRecord` a line, in the order they ended; no gold in it
      scores.jsonl    one `Score` a line, in the same order, so that tables need not read transcripts

A debate that failed is asked again on resume and appended again: of several lines with one id the last counts.
A line is whole once its newline is on disk. A crash can leave a torn last line; a reader passes over it, and the next
writer, which holds the file's lock, cuts it off. One process writes a file at a time.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import logging
import os
import stat
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Generic, TypeVar

from r2mad.errors import FileBusyError, StoreError
from r2mad.serial import dump, load
from r2mad.types import DebateRecord, Item

__all__ = [
    "DEBATES",
    "ITEMS",
    "SCORES",
    "Head",
    "Writer",
    "dump",
    "ensure_writable",
    "finished",
    "latest",
    "load",
    "read",
    "write_items",
]

log = logging.getLogger(__name__)

R = TypeVar("R")

BOM = b"\xef\xbb\xbf"
DEBATES, ITEMS, SCORES = "debates.jsonl", "items.jsonl", "scores.jsonl"


def read(kind: type[R], path: Path) -> Iterator[R]:
    """Every whole line of a JSONL file, in order; nothing if there is no file. A torn last line is passed over.

    Raises:
        StoreError: the file cannot be read, or a whole line is not such a record; the message names file and line.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    log.warning("%s, line %d: not whole (a crash, or still being written); passed over", path, number)
                    return
                line = line.removeprefix(BOM) if number == 1 else line
                if line.strip():  # a hand-edited file may have empty lines, and a mark at its start
                    yield load(kind, line, f"{path}, line {number}")
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class _QuestionHead:
    id: str


@dataclass(frozen=True, slots=True)
class Head:
    """What resuming needs to know of a debate, read without its transcript."""

    id: str
    stopped: str
    question: _QuestionHead


def finished(path: Path) -> set[str]:
    """The ids of the debates in a file that need not be held again: all but those whose last try failed.

    Raises:
        StoreError: see `read`.
    """
    return {id for id, stopped in {head.id: head.stopped for head in read(Head, path)}.items() if stopped != "failed"}


def latest(path: Path, only: Set[str] | None = None) -> dict[str, DebateRecord]:
    """The debates of a file by id, the last line of each id counting; all of them, or those in `only`.

    Raises:
        StoreError: see `read`.
    """
    return {record.id: record for record in read(DebateRecord, path) if only is None or record.id in only}


class Writer(Generic[R]):
    """Appends records to one JSONL file. While it is open no other process can write there.

    `append` returns when the record is on disk (fsync), and not before. Records that arrive while the disk is busy
    are written and synced together, so many debates can end at once without waiting for one another.
    """

    def __init__(self, path: Path) -> None:
        """Open, lock, and cut off what a crash left torn.

        Raises:
            StoreError: the folder cannot be written, or another process holds the file.
        """
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _open_to_append(path, os.O_RDWR)
        except OSError as error:
            raise StoreError(f"{path}: cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            raise FileBusyError(f"{path}: another process is writing there; wait, or choose another folder") from error
        self._closed = False
        self._waiting: list[bytes] = []
        self._flush: asyncio.Task[None] | None = None
        self._cut_torn_line()

    @classmethod
    async def when_free(cls, path: Path, patience: float = 30.0) -> Writer[R]:
        """Open the file as soon as no other process is writing there, but wait no longer than `patience` seconds.

        Raises:
            StoreError: see `Writer`, or the wait was too long.
        """
        give_up = time.monotonic() + patience
        while True:
            try:
                return cls(path)
            except FileBusyError:
                if time.monotonic() > give_up:
                    raise
                await asyncio.sleep(0.05)

    def _cut_torn_line(self) -> None:
        size = end = os.fstat(self._file).st_size
        while end > 0:
            start = max(0, end - 65536)
            found = os.pread(self._file, end - start, start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        if end < size:
            log.warning("%s: cut off %d bytes that a crash left torn", self.path, size - end)
            os.ftruncate(self._file, end)

    async def append(self, record: R) -> None:
        """Write one record and wait until it is on disk.

        Raises:
            StoreError: the disk would not take it (it is full, say).
        """
        self._waiting.append(dump(record) + b"\n")
        if self._flush is None or self._flush.done():
            self._flush = asyncio.create_task(self._sync_all())
        await asyncio.shield(self._flush)

    def append_now(self, *records: R) -> None:
        """`append` for code without an event loop.

        Raises:
            StoreError: see `append`.
        """
        self._write(b"".join(dump(record) + b"\n" for record in records))

    async def _sync_all(self) -> None:
        while self._waiting:
            batch, self._waiting = b"".join(self._waiting), []
            try:
                await asyncio.to_thread(self._write, batch)
            except StoreError:
                self._waiting.clear()  # whoever came meanwhile is told of the failure with the others
                raise

    def _write(self, data: bytes) -> None:
        size = os.fstat(self._file).st_size
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
            os.fsync(self._file)
        except OSError as error:
            with suppress(OSError):  # half a line would tear the file in the middle; the next writer cuts it otherwise
                os.ftruncate(self._file, size)
            raise StoreError(f"{self.path}: cannot be written: {error.strerror}") from error

    async def drain(self) -> None:
        """Wait for what is still being written. A failure was told to those whose records it took."""
        if self._flush is not None:
            await asyncio.wait([self._flush])

    def close(self) -> None:
        """Let go of the file and its lock. Safe to call twice."""
        if not self._closed:
            self._closed = True
            os.close(self._file)

    async def __aenter__(self) -> Writer[R]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.drain()  # a thread may still be writing to the file
        finally:
            self.close()


def _open_to_append(path: Path, mode: int) -> int:
    """Open a regular file; a pipe would make the program wait for its other end."""
    file = os.open(path, mode | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file")
    return file


def ensure_writable(path: Path) -> None:
    """Make the folder of a file and see that the file can be written, before any work is done for it.

    Raises:
        StoreError: it cannot.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(_open_to_append(path, os.O_RDWR))
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from error


def write_items(path: Path, items: Sequence[Item]) -> None:
    """Write a run's items once; a resumed run must have the same.

    Raises:
        StoreError: the folder cannot be written, or it holds other items.
    """
    known = {item.question.id: item for item in read(Item, path)}
    for item in items:
        if known.get(item.question.id, item) != item:
            raise StoreError(f"{path}: {item.question.id} stands there with another question or gold")
    new = [item for item in items if item.question.id not in known]
    if new:
        writer = Writer[Item](path)
        try:
            writer.append_now(*new)
        finally:
            writer.close()
