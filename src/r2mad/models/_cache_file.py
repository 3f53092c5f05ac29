"""The cache's SQLite file: opening it, what can be wrong with it, and completions as JSON.

user_version    the schema's version; a newer one is refused
calls           key      digest of all that decides a reply
                run      the `CallCache` object that made the call
                created  Unix time
                model, seed, agent, sample, kind, messages (a digest): for people who look into the file
                completion  JSON
"""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import astuple
from pathlib import Path

from r2mad.errors import StoreError
from r2mad.types import Completion, Request, Usage

VERSION = 1
"""Version of the schema."""
APPLICATION = 0x72324D43
"""SQLite's mark of whose file it is ("r2MC"), so that nobody's other database is taken for a cache."""
BUSY = 10.0
"""Seconds to wait for another process's write; each takes well under a millisecond."""

_SCHEMA = f"""
CREATE TABLE calls (
    key TEXT NOT NULL, run TEXT NOT NULL, created REAL NOT NULL,
    model TEXT NOT NULL, seed INTEGER NOT NULL, agent INTEGER NOT NULL, sample INTEGER NOT NULL, kind TEXT NOT NULL,
    messages TEXT NOT NULL, completion TEXT NOT NULL,
    PRIMARY KEY (key, run)
);
PRAGMA user_version = {VERSION};
PRAGMA application_id = {APPLICATION};
"""
_OWN = "SELECT completion FROM calls WHERE key = ? AND run = ?"
_ANY = "SELECT completion FROM calls WHERE key = ? ORDER BY run = ? DESC, created DESC LIMIT 1"
_PUT = "INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class CacheFile:
    """One open file (or none: `path=None` keeps everything in memory).

    Raises:
        StoreError: it is damaged, is not a cache, was written by a newer version, or cannot be written.
    """

    def __init__(self, path: Path | None, run: str) -> None:
        self.path, self.run = path, run
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            # other threads may use it (one at a time): `debate_sync` in a notebook runs its own loop in a thread
            self._database = sqlite3.connect(
                ":memory:" if path is None else path, timeout=BUSY, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise self.unusable(error) from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._database.close()
            raise self.unusable(error) from error
        except StoreError:
            self._database.close()
            raise

    def _prepare(self) -> None:
        run = self._database.execute
        # the mode is set before the transaction, and only where it differs: setting it needs the file for oneself
        if run("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
            run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")  # a power cut may lose the last calls, a killed process none
        run("BEGIN IMMEDIATE")  # finds out whether it can be written, and lets one process alone create the table
        version, application = run("PRAGMA user_version").fetchone()[0], run("PRAGMA application_id").fetchone()[0]
        tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and application != APPLICATION:
            raise StoreError(f"{self.path} is a database, but not a call cache: name another file")
        if version > VERSION:
            raise StoreError(
                f"{self.path} was written by a newer r2mad (schema {version}): update, or name another file"
            )
        if not tables:
            for statement in _SCHEMA.split(";"):
                run(statement)
        run("COMMIT")

    def unusable(self, error: Exception) -> StoreError:
        """The error as one line that names the file and what to do."""
        what = str(error.strerror if isinstance(error, OSError) and error.strerror else error)
        if isinstance(error, OSError | sqlite3.OperationalError) and "malformed" not in what:
            return StoreError(f"the call cache {self.path} cannot be used ({what}): name another file, or none")
        return StoreError(f"the call cache {self.path} is damaged ({what}): delete it, or name another file")

    def get(self, key: str, read_older: bool) -> str | None:
        """The completion stored for a key: this run's, else the newest of another's if those may be read."""
        try:
            row = self._database.execute(_ANY if read_older else _OWN, (key, self.run)).fetchone()
        except sqlite3.Error as error:
            raise self.unusable(error) from error
        return None if row is None else str(row[0])

    def put(self, key: str, model: str, messages: str, request: Request, completion: str) -> None:
        """Store a completion; it is committed when this returns."""
        seed = request.seed if abs(request.seed) < 2**63 else 0  # SQLite's integers end there; the key has it whole
        row = (
            key,
            self.run,
            time.time(),
            model,
            seed,
            request.agent,
            request.sample,
            request.kind,
            messages,
            completion,
        )
        try:
            self._database.execute(_PUT, row)
        except sqlite3.Error as error:
            raise self.unusable(error) from error

    def count(self) -> int:
        """Number of entries."""
        try:
            return int(self._database.execute("SELECT count(*) FROM calls").fetchone()[0])
        except sqlite3.Error as error:
            raise self.unusable(error) from error

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        self._database.close()


def encode(completion: Completion) -> str:
    """JSON of a completion, without `cached`."""
    usage = completion.usage
    return json.dumps(
        {
            "text": completion.text,
            "reasoning": completion.reasoning,
            "finish_reason": completion.finish_reason,
            "mean_logprob": completion.mean_logprob,
            "mean_top_logprob": completion.mean_top_logprob,
            "usage": [usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens, usage.cached_tokens],
            "seconds": completion.seconds,
            "model": completion.model,
        }
    )


def decode(text: str) -> Completion:
    """The completion that `encode` wrote, marked as cached.

    Raises:
        ValueError: it is no such JSON.
    """
    try:
        fields = json.loads(text)
        usage = Usage(*fields.pop("usage"))
        whole = isinstance(fields["text"], str) and all(isinstance(count, int) for count in astuple(usage))
        if not whole or not isinstance(fields["finish_reason"], str):
            raise ValueError("a field of the wrong kind")
        return Completion(**fields, usage=usage, cached=True)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ValueError("not a completion") from error
