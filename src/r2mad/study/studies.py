"""A whole study: planned, prepared, run, taken up where it was stopped, and told what it was run with.

    RUN/
      study.json       the resolved configuration, versions, hardware, and the models as their servers name them
      debates.ids      the ids of the study's debates as it was last run, one a line: what tables count
    sessions.jsonl   one line for each time the study was run: when, how long, how many debates, why it ended
      items.jsonl, debates.jsonl, scores.jsonl        see `r2mad.study.records`

`study.json` is written anew each time. A study may grow by methods, data sets, models and seeds; a folder of debates
that were held under other settings is refused, since a table must not mix them.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from r2mad import __version__
from r2mad.errors import StoreError, UsageError
from r2mad.scene import Purse
from r2mad.settings import Settings
from r2mad.study.config import Price, StudyConfig
from r2mad.study.plan import Plan, Say, make_plan, opened
from r2mad.study.records import DEBATES, SCORES, Writer, finished, read
from r2mad.study.runner import Announce, Batch, Gate, pending, run_batches
from r2mad.study.scores import Score, latest_scores
from r2mad.types import DebateRecord

STUDY, SESSIONS, IDS = "study.json", "sessions.jsonl", "debates.ids"
SCHEMA = 1
SECRET = ("api_key", "embedder_api_key")
"""Settings that are never written down."""
HOW = ("base_url", "embedder_base_url", "max_connections", "timeout", "max_retries", "cache", "no_cache", *SECRET)
"""Settings that say how an endpoint is reached and not what it is asked; they may change between sessions."""
_USER = re.compile(r"//[^/@\s]+@")
"""A user's name and password in an address."""
LIBRARIES = ("aiohttp", "pydantic", "numpy", "math-verify", "jinja2", "xllamacpp", "wordllama")
"""Whose versions may decide a result."""


@dataclass(frozen=True, slots=True)
class Session:
    """One time that a study was run."""

    started: str
    """UTC, ISO 8601."""
    seconds: float
    held: int
    """Debates that were held."""
    left: int
    """Debates of the study that are still to be held."""
    ended: str
    """`done`, or why not."""
    calls: int
    tokens: int
    """Calls made and tokens read and written, without what was shared or came from the cache."""
    command: str = ""
    paid: float = 0.0
    """Money, by the prices given."""
    largest: tuple[int, float] = (0, 0.0)
    """Tokens, and money, of its largest calls; known where there was a cap."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What running a study came to."""

    scores: list[Score]
    session: Session
    plan: Plan

    @property
    def complete(self) -> bool:
        """Whether every debate was held and none failed."""
        return self.session.left == 0


def _purse(config: StudyConfig, folder: Path) -> Purse | None:
    """What the study may still spend; None for no caps. A session that was killed has told nothing but its scores."""
    if config.max_tokens_total is None and config.max_cost is None:
        return None
    rates = {name: (price.input, price.output) for name, price in config.prices.items()}
    purse = Purse(config.max_tokens_total, config.max_cost, rates)
    sessions, scores = list(read(Session, folder / SESSIONS)), latest_scores(folder / SCORES)
    by_scores = sum(score.tokens - score.shared_tokens for score in scores)
    purse.tokens = max(sum(one.tokens for one in sessions), by_scores)
    purse.paid = max(sum(one.paid for one in sessions), sum(cost(score, config.prices) for score in scores))
    for one in sessions:
        purse.largest = (max(purse.largest[0], one.largest[0]), max(purse.largest[1], one.largest[1]))
    return purse


def cost(score: Score, prices: dict[str, Price] | Any) -> float:
    """Money for a debate by the prices of its models; with several their mean. What was shared is not paid twice."""
    known = [prices[name] for name in score.model.split(" + ") if name in prices]
    if not known or not score.tokens:
        return 0.0
    read = sum(one.prompt for one in score.spent.values())
    written = sum(one.completion for one in score.spent.values())
    made = 1 - score.shared_tokens / score.tokens
    paid = read * sum(one.input for one in known) + written * sum(one.output for one in known)
    return made * paid / len(known) / 1e6


async def run_config(
    config: StudyConfig,
    folder: Path,
    memories: Path,
    *,
    announce: Announce | None = None,
    say: Say = lambda line: None,
    begun: Callable[[int, int, Gate], None] = lambda left, total, gate: None,
    command: str = "",
) -> Outcome:
    """Run a study, or go on with it.

    Args:
        config: what to run.
        folder: the run's folder.
        memories: where memories are kept.
        announce: told of each debate that is on disk.
        say: told what is being prepared.
        begun: told how many debates are left, of how many, and handed the gate, when debates begin.
        command: what the user typed, for the record.

    Raises:
        R2madError: see `r2mad.study.runner.run_batches`; nothing was asked where it is a `UsageError`.
    """
    plan = make_plan(config)
    check_folder(config, folder)
    free = [seat.model for team in config.teams for seat in team.seats if seat.model not in config.prices]
    if config.max_cost is not None and free:
        raise UsageError(f"--max-cost needs [prices] for every model, per million tokens; {free[0]} has none")
    sitting, gate = _Sitting(config, folder, announce), Gate()
    async with opened(plan, memories, say) as batches:
        batches = [replace(batch, table=replace(batch.table, purse=sitting.purse)) for batch in batches]

        def admitted(ids: Sequence[str]) -> None:
            sitting.admit(plan, ids)
            done = finished(folder / DEBATES)
            begun(sum(id not in done for id in ids), plan.debates, gate)

        try:
            scores = await run_batches(
                batches, folder, announce=sitting.count, allow_leak=config.allow_leak, gate=gate, admitted=admitted
            )
        except BaseException as error:
            sitting.end(batches, type(error).__name__, command)
            raise
        return Outcome(scores, sitting.end(batches, gate.why or "done", command), plan)


class _Sitting:
    """One session while it lasts: what it has held and spent so far."""

    def __init__(self, config: StudyConfig, folder: Path, announce: Announce | None) -> None:
        self._config, self._folder, self._announce = config, folder, announce
        self._started, self._clock = datetime.now(UTC), time.perf_counter()
        self.purse = _purse(config, folder)
        self._before = (self.purse.tokens, self.purse.paid) if self.purse else (0, 0.0)
        self._held: list[Score] = []
        self._served: dict[str, set[str]] = {}
        self._admitted = False

    def count(self, record: DebateRecord, score: Score) -> None:
        """A debate is on disk."""
        self._held.append(score)
        for reply in (reply for one in record.rounds for reply in one.replies if reply.model):
            self._served.setdefault(record.agents[reply.agent].model, set()).add(reply.model)
        if self._announce:
            self._announce(record, score)

    def admit(self, plan: Plan, ids: Sequence[str]) -> None:
        """Nothing can refuse it any more, and the folder is ours: only now may its files be written."""
        self._admitted = True
        write_study(self._config, plan, self._folder)
        _replace(self._folder / IDS, "".join(f"{id}\n" for id in ids))

    def end(self, batches: Sequence[Batch], ended: str, command: str) -> Session:
        """Note down what it came to; one that was refused leaves no trace."""
        held, purse, prices = self._held, self.purse, self._config.prices
        session = Session(
            started=self._started.isoformat(timespec="seconds"),
            seconds=round(time.perf_counter() - self._clock, 3),
            held=len(held),
            left=pending(batches, self._folder) if self._admitted else 0,
            ended=ended,
            calls=sum(one.calls - one.shared for one in held),
            tokens=purse.tokens - self._before[0] if purse else sum(one.tokens - one.shared_tokens for one in held),
            command=command,
            paid=purse.paid - self._before[1] if purse else sum(cost(one, prices) for one in held),
            largest=purse.largest if purse else (0, 0.0),
        )
        if self._admitted:
            _note(self._folder, session)
            _tell_served(self._folder, self._served)
        return session


def _tell_served(folder: Path, served: dict[str, set[str]]) -> None:
    """Add to study.json what servers call their models."""
    data = read_study(folder)
    if data is not None and served:
        known = {name: sorted({*data["served"].get(name, []), *found}) for name, found in served.items()}
        _write(folder / STUDY, {**data, "served": {**data["served"], **known}})


def _note(folder: Path, session: Session) -> None:
    writer = Writer[Session](folder / SESSIONS)
    try:
        writer.append_now(session)
    finally:
        writer.close()


def described(config: StudyConfig) -> dict[str, Any]:
    """The configuration as JSON, without what is secret."""
    found: dict[str, Any] = {
        "name": config.name,
        "datasets": list(config.datasets),
        "methods": list(config.methods),
        "models": [{"name": team.name, "agents": [_fields(seat) for seat in team.seats]} for team in config.teams],
        "seeds": list(config.seeds),
        "memory": _fields(config.memory),
        "train": _fields(config.train),
        "sweeps": [_fields(sweep) for sweep in config.sweeps],
        "prices": {name: _fields(price) for name, price in config.prices.items()},
        "limit": config.limit,
        "shard": list(config.shard),
    }
    settings = {one.name: getattr(config.settings, one.name) for one in fields(Settings) if one.name not in SECRET}
    found["settings"] = {
        name: _USER.sub("//…@", value) if isinstance(value, str) else value for name, value in settings.items()
    }
    return found


def _fields(record: Any) -> dict[str, Any]:
    return {
        one.name: list(value) if isinstance(value := getattr(record, one.name), tuple) else value
        for one in fields(record)
    }


def check_folder(config: StudyConfig, folder: Path) -> None:
    """Refuse a folder whose debates were held under other settings.

    Raises:
        UsageError: it is such a folder; the message names what differs.
        StoreError: its study.json is damaged.
    """
    known = read_study(folder)
    if known is None:
        return
    before, now = known["config"], json.loads(json.dumps(described(config)))
    seats = {team["name"]: team["agents"] for team in before.get("models", ())}
    for team in now["models"]:
        if seats.get(team["name"], team["agents"]) != team["agents"]:
            raise UsageError(
                f"{folder} holds {team['name']} with agents of another sampling: give this one a name of its own"
            )
    for what in ("memory", "train"):
        if before.get(what) != now[what]:
            raise UsageError(f"{folder} holds a study with another {what}: give this one a name of its own")
    for name, value in now["settings"].items():
        if name not in HOW and before["settings"].get(name, value) != value:
            was = before["settings"][name]
            raise UsageError(
                f"{folder} holds a study with {name} = {was!r}, not {value!r}: give this one a name of its own"
            )
    if before.get("shard", [1, 1]) != now["shard"]:
        raise UsageError(f"{folder} holds another shard of the study: give this one a folder of its own")


def read_study(folder: Path) -> dict[str, Any] | None:
    """A run's study.json; None where there is none.

    Raises:
        StoreError: it is damaged, or too new.
    """
    path = folder / STUDY
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: cannot be read: {error}") from error
    if type(data) is not dict or type(data.get("config")) is not dict or data.get("schema", 0) > SCHEMA:
        raise StoreError(f"{path}: no study of ours, or one of a newer version")
    return data


def write_study(config: StudyConfig, plan: Plan, folder: Path) -> None:
    """Write study.json, whole or not at all.

    Raises:
        StoreError: the folder cannot be written.
    """
    before = read_study(folder) or {}
    data = {
        "schema": SCHEMA,
        "config": described(config),
        "compositions": {variant.method.name: variant.method.composition for variant in plan.variants},
        "questions": {name: len(items) for name, items in plan.items.items()},
        "versions": versions(),
        "hardware": hardware(),
        "served": before.get("served", {}),
    }
    _write(folder / STUDY, data)


def _write(path: Path, data: Any) -> None:
    _replace(path, json.dumps(data, indent=1, ensure_ascii=False))


def _replace(path: Path, text: str) -> None:
    """Write a file, whole or not at all.

    Raises:
        StoreError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".part")
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from error


def versions() -> dict[str, str]:
    """Versions of this package, Python, and the libraries that may decide a result."""
    found = {"r2mad": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, Any]:
    """What this machine is; where models run elsewhere it says little."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if "SC_PHYS_PAGES" in os.sysconf_names else 0
    return {
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
    }
