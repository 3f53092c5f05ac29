"""At most two worker processes that read formulas, started when first needed and replaced when they die."""

from __future__ import annotations

import atexit
import json
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

log = logging.getLogger(__name__)

WORKERS = 2
SECONDS = 2.0
"""Processor time that one formula may take."""
_PATIENCE = 5.0 if hasattr(signal, "setitimer") else 1.0
"""How many times SECONDS the parent waits by the clock: the worker counts its own time, but it may be starved."""
_START = 60.0
"""Seconds that a worker may take to start; a busy machine needs many."""
_MOST_LINE = 1 << 20
_PROGRAM = "import sys, json; sys.path[:] = json.loads(sys.argv.pop(1)); from r2mad.answers._worker import main; main()"


class _WorkerLost(Exception):
    """The worker died for a reason that is not the formula's time."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a formula: its key, or no key because it is none (or because it was given up)."""

    key: str | None = None
    given_up: bool = False
    lasting: bool = True
    """Whether it says something about the formula, and not only about this machine today."""


class _Worker:
    """One process and the thread that listens to it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.asked = 0
        # -P: a user's own math.py in the working directory is not imported. A session of its own: Ctrl-C is for the
        # parent, which ends the worker itself. Unbuffered pipes hold no lock that a fork could copy in a locked state.
        self.process = subprocess.Popen(  # noqa: S603 - our own program; the formula only goes to its standard input
            [sys.executable, "-P", "-c", _PROGRAM, json.dumps(sys.path), str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        self.listener = threading.Thread(target=self._listen, name="r2mad-answers", daemon=True)
        self.listener.start()
        try:
            self._await_line(lambda reply: bool(reply.get("ready")), _START)
        except (TimeoutError, _WorkerLost) as error:
            self.close()
            raise ChildProcessError(f"the worker did not start: {error}") from error

    def _listen(self) -> None:
        assert self.process.stdout is not None
        rest = b""
        try:
            while chunk := os.read(self.process.stdout.fileno(), 65536):
                *lines, rest = (rest + chunk).split(b"\n")
                if len(rest) > _MOST_LINE:
                    rest = b""  # no reply of ours is so long
                for line in lines:
                    self.lines.put(line)
        except (OSError, ValueError):
            pass
        self.lines.put(None)

    def ask(self, text: str) -> Verdict:
        """The verdict on one formula.

        Raises:
            _WorkerLost: the process is gone or silent; whether for the formula's sake, its exit code says.
        """
        self.asked += 1
        number = self.asked
        assert self.process.stdin is not None
        line = memoryview(json.dumps({"id": number, "text": text}).encode() + b"\n")
        try:
            while line:
                line = line[self.process.stdin.write(line) or 0 :]
        except (OSError, ValueError) as error:
            raise _WorkerLost(str(error)) from error
        reply = self._await_line(lambda reply: reply.get("id") == number, self.seconds * _PATIENCE)
        key = reply.get("key")
        return Verdict(key=key if isinstance(key, str) else None, given_up=bool(reply.get("given_up")))

    def _await_line(self, wanted: Any, seconds: float) -> dict[str, Any]:
        """The first line that is a reply and the wanted one; anything else that the process prints is skipped."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError from None
            if line is None:
                raise _WorkerLost("the worker is gone")
            try:
                reply = json.loads(line)
            except ValueError:
                continue
            if isinstance(reply, dict) and wanted(reply):
                return reply

    def out_of_time(self) -> bool:
        """Whether the process was ended for the processor time that it took."""
        if not hasattr(signal, "SIGPROF"):
            return False
        try:
            return self.process.wait(timeout=5) == -signal.SIGPROF
        except subprocess.TimeoutExpired:
            return False

    def close(self) -> None:
        """End the process; safe to call twice."""
        self.process.kill()
        self.process.wait()
        self.listener.join(5)  # it meets the end of the output; only then may the pipe's number be used again
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def forget(self) -> None:
        """In a forked child: let go of the parent's worker without ending it."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.returncode = 0  # it is not our child: do not wait for it


class Pool:
    """The workers. Thread-safe: a formula waits for a free place, and no formula keeps one for long."""

    def __init__(self, workers: int = WORKERS, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self.places: queue.LifoQueue[int] = queue.LifoQueue()
        for place in range(workers):
            self.places.put(place)
        self.workers: dict[int, _Worker] = {}
        self.closed = False

    def ask(self, text: str) -> Verdict:
        """The verdict on one formula; never raises, and takes a bounded time."""
        place = self.places.get()
        try:
            for _ in range(2):  # a worker may have been killed by somebody else: that is not the formula's fault
                try:
                    return self._worker(place).ask(text)
                except TimeoutError:
                    self._drop(place)
                    return Verdict(given_up=True)
                except _WorkerLost:
                    worker = self.workers.get(place)
                    timed_out = worker is not None and worker.out_of_time()
                    self._drop(place)
                    if timed_out:
                        return Verdict(given_up=True)
            return Verdict(given_up=True, lasting=False)
        except OSError as error:
            log.warning("no process to read formulas could be started: %s", error)
            return Verdict(given_up=True, lasting=False)
        finally:
            self.places.put(place)

    def _worker(self, place: int) -> _Worker:
        worker = self.workers.get(place)
        if worker is None:
            if self.closed:
                raise OSError("the program is ending")
            worker = self.workers[place] = _Worker(self.seconds)
        return worker

    def _drop(self, place: int) -> None:
        worker = self.workers.pop(place, None)
        if worker is not None:
            worker.close()

    def close(self) -> None:
        """End all workers, and start no more."""
        self.closed = True
        for place in list(self.workers):
            self._drop(place)


_pool = Pool()


def ask(text: str) -> Verdict:
    """The verdict on one formula, from the program's own pool."""
    return _pool.ask(text)


def close() -> None:
    """End the program's workers; the next formula starts one anew. Registered to run at exit."""
    global _pool
    old, _pool = _pool, Pool()
    old.close()


def _at_exit() -> None:
    _pool.close()


def _after_fork() -> None:
    """A forked child starts with a pool of its own: locks and listening threads do not survive a fork."""
    global _pool
    old, _pool = _pool, Pool()
    for worker in old.workers.values():
        worker.forget()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
