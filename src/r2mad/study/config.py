"""What a study runs, as one frozen record that a TOML file, the command line and Python all make.

datasets = ["math500:test", "truthfulqa:test"]
methods = ["cot", "sc", "mad", "r2mad"]
models = ["openai/Qwen/Qwen2.5-7B-Instruct"]
seeds = [1, 2, 3]

[settings]                      # any setting of `r2mad ask`
base_url = "http://localhost:8000/v1"

[memory]                        # for methods that remember; every data set's own train split if left out
dataset = "truthfulqa:train"
limit = 200

[train]                         # for mad-m2-auto
dataset = "starter:train"
limit = 20

[[sweep]]                       # one method with each of several values: r2mad[k=1], r2mad[k=3], …
method = "r2mad"
k = [1, 3, 5]

[[model]]                       # agents that differ, beside `models`; tables call them by their models' names
agents = [{ model = "openai/a" }, { model = "openai/b", temperature = 0.7 }]

[prices."openai/Qwen/Qwen2.5-7B-Instruct"]      # per million tokens, for --dry-run and --max-cost
input = 0.1
output = 0.3
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from r2mad.errors import UsageError
from r2mad.settings import Settings
from r2mad.types import digest

LARGEST = 1_000_000
"""Bytes of a study's file; it is written by hand."""
SWEPT = ("k", "gamma", "high", "low", "beta", "agents", "rounds", "candidates", "memory_limit", "memory")
"""What a sweep may vary."""


@dataclass(frozen=True, slots=True)
class Seat:
    """One agent's model where agents differ, and what of its sampling does."""

    model: str
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Team:
    """What speaks for the agents: one model for all, or a seat for each."""

    name: str
    """The models, each once: what tables call it, so that two teams of a study must differ in their models."""
    seats: tuple[Seat, ...]


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The memory of methods that remember."""

    dataset: str | None = None
    """Training items; each data set's own train split if not given."""
    limit: int | None = None
    seed: int = 0
    url: str | None = None
    """A memory that is there already, used as it is."""

    def __post_init__(self) -> None:
        if type(self.limit) is int and self.limit < 1:
            raise UsageError(f"limit = {self.limit} is out of range: at least one debate")


@dataclass(frozen=True, slots=True)
class TrainPlan:
    """The labelled items by which a mask is chosen."""

    dataset: str | None = None
    limit: int = 20

    def __post_init__(self) -> None:
        if type(self.limit) is int and self.limit < 1:
            raise UsageError(f"limit = {self.limit} is out of range: at least one training item")


@dataclass(frozen=True, slots=True)
class Sweep:
    """One method with each of several values of one thing."""

    method: str
    what: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Price:
    """Money for a million tokens, in whatever money."""

    input: float = 0.0
    output: float = 0.0

    def __post_init__(self) -> None:
        if not (self.input >= 0.0 and self.output >= 0.0):
            raise UsageError(f"a price cannot be {self.input} or {self.output}")


@dataclass(frozen=True, slots=True)
class StudyConfig:
    """Methods × data sets × models × seeds, and how they are run."""

    name: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    teams: tuple[Team, ...]
    seeds: tuple[int, ...] = (1,)
    settings: Settings = field(default_factory=Settings)
    memory: MemoryPlan = field(default_factory=MemoryPlan)
    train: TrainPlan = field(default_factory=TrainPlan)
    sweeps: tuple[Sweep, ...] = ()
    prices: Mapping[str, Price] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """For data sets that are files of the user's: which column is what."""
    limit: int | None = None
    """Only the first so many questions of each data set."""
    shard: tuple[int, int] = (1, 1)
    """(i, n): only each n-th question, from the i-th on; shards of one study go to folders of their own."""
    max_tokens_total: int | None = None
    """Tokens, read and written, at which no further debate is begun."""
    max_cost: float | None = None
    """The same in money, by `prices`."""
    allow_leak: bool = False

    def __post_init__(self) -> None:
        for what, named in (
            ("data set", self.datasets),
            ("method", self.methods or self.sweeps),
            ("model", self.teams),
        ):
            if not named:
                raise UsageError(f"a study needs at least one {what}")
        for what, values in (("datasets", self.datasets), ("methods", self.methods), ("seeds", self.seeds)):
            if len(set(values)) < len(values):
                raise UsageError(f"{what} names one twice: {', '.join(map(str, values))}")
        if len({team.name for team in self.teams}) < len(self.teams):
            raise UsageError("two teams have the same models, and tables could not tell them apart")
        if not self.seeds:
            raise UsageError("a study needs at least one seed")
        part, parts = self.shard
        if not 1 <= part <= parts:
            raise UsageError(f"--shard {part}/{parts} is out of range: i/n with i from 1 to n")
        for name, value in (("--limit", self.limit), ("--max-tokens-total", self.max_tokens_total)):
            if value is not None and value < 1:
                raise UsageError(f"{name} {value} is out of range")
        if self.max_cost is not None and not self.max_cost > 0:
            raise UsageError(f"--max-cost {self.max_cost} is out of range")

    @property
    def identity(self) -> str:
        """Digest of what decides the debates: all but limit, shard, caps, prices, and how the endpoint is reached."""
        how = {"base_url", "api_key", "max_connections", "timeout", "max_retries", "cache", "no_cache", "max_calls"}
        how |= {"embedder_base_url", "embedder_api_key", "memory"}
        settings = {
            one.name: _plain(getattr(self.settings, one.name)) for one in fields(Settings) if one.name not in how
        }
        rest = (self.datasets, self.methods, self.teams, self.seeds, self.memory, self.train, self.sweeps, self.columns)
        return digest([settings, _plain(rest)], size=6)


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if hasattr(value, "__dataclass_fields__"):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


def team_of(model: str) -> Team:
    """One model for all agents; `a + b` for several that agents take in turn."""
    return Team(model, tuple(Seat(name.strip()) for name in model.split(" + ")))


_LISTS = ("datasets", "methods", "models", "seeds")
_TABLES = ("settings", "memory", "train", "prices", "columns", "sweep", "model")
_SINGLE = ("name", "limit", "max_tokens_total", "max_cost", "allow_leak")
KEYS = (*_LISTS, *_TABLES, *_SINGLE)


def read_config(path: Path, given: Settings | None = None) -> StudyConfig:
    """A study from its TOML file; `given` are settings of the command line, where its own say nothing.

    Raises:
        UsageError: the file cannot be read, or something in it is wrong; the message names file and line.
    """
    try:
        raw = path.read_bytes()
        if len(raw) > LARGEST:
            raise UsageError(f"{path}: larger than {LARGEST} bytes, so it is no study")
        text = raw.decode()
        data = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: {error}") from error
    reader = _Reader(path, text)
    reader.known(data, KEYS, "")
    values: dict[str, Any] = {"name": reader.text(data, "name") or path.stem}
    for key in ("limit", "max_tokens_total"):
        values[key] = reader.typed(data, key, int)
    values["max_cost"] = reader.typed(data, "max_cost", float)
    values["allow_leak"] = bool(reader.typed(data, "allow_leak", bool))
    values["datasets"], values["methods"] = reader.texts(data, "datasets"), reader.texts(data, "methods")
    values["seeds"] = tuple(reader.listed(data, "seeds", int)) or (1,)
    values["teams"] = (*map(team_of, reader.texts(data, "models")), *reader.teams(data))
    values["settings"] = reader.settings(data, given or Settings())
    values["memory"] = reader.record(data, "memory", MemoryPlan)
    values["train"] = reader.record(data, "train", TrainPlan)
    values["sweeps"] = reader.sweeps(data)
    values["prices"] = {name: reader.record(data["prices"], name, Price) for name in reader.table(data, "prices")}
    values["columns"] = {name: reader.table(data["columns"], name) for name in reader.table(data, "columns")}
    try:
        return StudyConfig(**values)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


class _Reader:
    """Takes values out of parsed TOML; what is wrong is named with the line that it stands in."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._lines = path, text.splitlines()

    def wrong(self, key: str, what: str) -> UsageError:
        name = key.rpartition(".")[2]
        for number, line in enumerate(self._lines, start=1):
            bare = line.strip().replace('"', "").replace("'", "")
            if bare.startswith((f"{name} =", f"{name}=", f"[{key}]", f"[[{key}]]", f"[{name}]", f"[[{name}]]")):
                return UsageError(f"{self._path}, line {number}: {what}")
        inline = re.compile(rf"(?<![\w-]){re.escape(name)}\s*=")  # { model = … }
        for number, line in enumerate(self._lines, start=1):
            if inline.search(line):
                return UsageError(f"{self._path}, line {number}: {what}")
        return UsageError(f"{self._path}: {what}")

    def known(self, table: Mapping[str, Any], names: Sequence[str], where: str) -> None:
        for key in table:
            if key not in names:
                near = difflib.get_close_matches(key, names, n=1)
                hint = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(names)}"
                raise self.wrong(key, f"no key {key!r}{f' in {where}' if where else ''}{hint}")

    def typed(self, table: Mapping[str, Any], key: str, kind: type) -> Any:
        value = table.get(key)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            raise self.wrong(key, f"{key} must be {_NAMES[kind]}, not {value!r}")
        return value

    def text(self, table: Mapping[str, Any], key: str) -> str | None:
        value = self.typed(table, key, str)
        return value if value is None else str(value)

    def listed(self, table: Mapping[str, Any], key: str, kind: type) -> list[Any]:
        values = table.get(key, [])
        values = values if isinstance(values, list) else [values]
        return [self.typed({key: value}, key, kind) for value in values]

    def texts(self, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
        return tuple(self.listed(table, key, str))

    def table(self, table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        value = table.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, f"{key} must be a table, not {value!r}")
        return value

    def record(self, data: Mapping[str, Any], key: str, kind: type) -> Any:
        """A table as one of the frozen records above."""
        table = self.table(data, key)
        self.known(table, [one.name for one in fields(kind)], key)
        for one in fields(kind):
            for name, plain in (("int", int), ("float", float), ("str", str)):
                if str(one.type).startswith(name):
                    self.typed(table, one.name, plain)
        missing = [one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING]
        for name in missing:
            if name not in table:
                raise self.wrong(key, f"{key}: {name} is missing")
        try:
            return kind(**table)
        except (TypeError, UsageError) as error:
            raise self.wrong(key, f"{key}: {error}") from error

    def settings(self, data: Mapping[str, Any], given: Settings) -> Settings:
        table = dict(self.table(data, "settings"))
        self.known(table, [one.name for one in fields(Settings)], "settings")
        usual = Settings()
        said = {one.name for one in fields(Settings) if getattr(given, one.name) != getattr(usual, one.name)}
        for key, value in table.items():
            try:
                given = given if key in said else given.changed(**{key: value})
            except UsageError as error:
                raise self.wrong(key, str(error)) from error
        return given

    def teams(self, data: Mapping[str, Any]) -> list[Team]:
        found = []
        for table in self._tables(data, "model"):
            self.known(table, ("agents",), "model")
            rows = table.get("agents")
            if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
                raise self.wrong("model", "a [[model]] needs agents = [{ model = … }, …]")
            seats = tuple(self.record({"agents": row}, "agents", Seat) for row in rows)
            found.append(Team(" + ".join(dict.fromkeys(seat.model for seat in seats)), seats))
        return found

    def sweeps(self, data: Mapping[str, Any]) -> tuple[Sweep, ...]:
        found = []
        for table in self._tables(data, "sweep"):
            self.known(table, ("method", *SWEPT), "sweep")
            varied = [key for key in table if key != "method"]
            if len(varied) != 1 or "method" not in table:
                raise self.wrong("sweep", f"a sweep needs a method and one list of values: {', '.join(SWEPT)}")
            values = table[varied[0]]
            if not isinstance(values, list) or not values:
                raise self.wrong(varied[0], f"a sweep's {varied[0]} must be a list of values")
            found.append(Sweep(self.text(table, "method") or "", varied[0], tuple(values)))
        return tuple(found)

    def _tables(self, data: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
        rows = data.get(key, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self.wrong(key, f"{key} is written as [[{key}]]")
        return rows


_NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def limited(config: StudyConfig, **changes: Any) -> StudyConfig:
    """The study with flags of the command line over its file."""
    return replace(config, **{name: value for name, value in changes.items() if value is not None})
