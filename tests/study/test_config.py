"""A study's file: everything it may say, and every mistake named with its line before anything runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from r2mad.errors import UsageError
from r2mad.settings import Settings
from r2mad.study.config import MemoryPlan, Price, Seat, StudyConfig, Sweep, TrainPlan, read_config, team_of

WHOLE = """
name = "whole"
datasets = ["starter:test"]
methods = ["cot", "mad"]
models = ["openai/a"]
seeds = [1, 2]
limit = 10
max_tokens_total = 1000
max_cost = 5
allow_leak = true

[settings]
base_url = "http://localhost:8000/v1"
temperature = 0.5
agents = 4

[memory]
dataset = "starter:train"
limit = 20

[train]
limit = 7

[[sweep]]
method = "r2mad"
k = [1, 3]

[[model]]
agents = [{ model = "openai/b" }, { model = "openai/c", temperature = 0.1, extra_body = { top_k = 5 } }]

[prices."openai/a"]
input = 0.1
output = 1

[columns."mine.csv"]
question = "q"
"""


def _read(tmp_path: Path, text: str, given: Settings | None = None) -> StudyConfig:
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    return read_config(path, given)


def test_a_whole_file(tmp_path: Path) -> None:
    config = _read(tmp_path, WHOLE)
    assert config.name == "whole"
    assert (config.datasets, config.methods, config.seeds) == (("starter:test",), ("cot", "mad"), (1, 2))
    assert config.teams[0] == team_of("openai/a")
    assert config.teams[1].seats == (Seat("openai/b"), Seat("openai/c", 0.1, extra_body={"top_k": 5}))
    assert config.teams[1].name == "openai/b + openai/c"
    assert (config.settings.base_url, config.settings.temperature, config.settings.agents) == (
        "http://localhost:8000/v1",
        0.5,
        4,
    )
    assert config.memory == MemoryPlan("starter:train", 20)
    assert config.train == TrainPlan(None, 7)
    assert config.sweeps == (Sweep("r2mad", "k", (1, 3)),)
    assert config.prices == {"openai/a": Price(0.1, 1)}
    assert (config.limit, config.max_tokens_total, config.max_cost, config.allow_leak) == (10, 1000, 5.0, True)
    assert config.columns == {"mine.csv": {"question": "q"}}


def test_the_least_a_file_must_say(tmp_path: Path) -> None:
    config = _read(tmp_path, 'datasets = "starter"\nmethods = "cot"\nmodels = "openai/a"\n')
    assert (config.name, config.datasets, config.seeds) == ("study", ("starter",), (1,))


def test_flags_take_precedence_over_the_file(tmp_path: Path) -> None:
    config = _read(tmp_path, WHOLE, Settings(temperature=0.9, max_connections=3))
    assert (config.settings.temperature, config.settings.max_connections, config.settings.agents) == (0.9, 3, 4)


@pytest.mark.parametrize(
    ("broken", "line", "said"),
    [
        ('dataset = ["starter"]', 1, "did you mean datasets"),
        ('methods = ["cot", 3]', 1, "methods must be a text"),
        ("seeds = [1, 2.5]", 1, "seeds must be a whole number"),
        ("seeds = [true]", 1, "seeds must be a whole number"),
        ('limit = "ten"', 1, "limit must be a whole number"),
        ("[settings]\ntemprature = 1", 2, "did you mean temperature"),
        ("[settings]\ntemperature = -1", 2, "out of range"),
        ('[settings]\ntemperature = "hot"', 2, "wrong kind"),
        ("[memory]\nlimit = 1.5", 2, "limit must be a whole number"),
        ("[memory]\nurls = 1", 2, "did you mean url"),
        ("[[sweep]]\nmethod = 'r2mad'", 1, "a sweep needs a method and one list"),
        ("[[sweep]]\nmethod = 'r2mad'\nk = 3", 3, "must be a list of values"),
        ("[[sweep]]\nmethod = 'r2mad'\nkay = [3]", 3, "no key 'kay'"),
        ("[[model]]\nagents = []", 1, "needs agents"),
        ("[[model]]\nagents = [{ modell = 'x' }]", 2, "did you mean model"),
        ("[[model]]\nagents = [{ temperature = 1.0 }]", 2, "missing"),
        ("sweep = 3", 1, "written as"),
        ("[prices.x]\ninput = 'much'", 2, "input must be a number"),
    ],
)
def test_every_mistake_is_named_with_its_line(tmp_path: Path, broken: str, line: int, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        _read(tmp_path, broken)
    assert f"study.toml, line {line}:" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("datasets = [", "end of document"),
        ("", "at least one data set"),
        ('datasets = "starter"\nmodels = "a/b"', "at least one method"),
        ('datasets = "starter"\nmethods = "cot"', "at least one model"),
        ('datasets = ["starter", "starter"]\nmethods = "cot"\nmodels = "a/b"', "names one twice"),
        ('datasets = "starter"\nmethods = "cot"\nmodels = "a/b"\nseeds = [1, 1]', "names one twice"),
        ('datasets = "starter"\nmethods = "cot"\nmodels = ["a/b", "a/b"]', "could not tell them apart"),
        ('datasets = "starter"\nmethods = "cot"\nmodels = "a/b"\nlimit = 0', "--limit 0 is out of range"),
        ('datasets = "starter"\nmethods = "cot"\nmodels = "a/b"\nmax_cost = 0', "--max-cost"),
    ],
)
def test_what_is_missing_or_double_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        _read(tmp_path, text)
    assert "study.toml" in str(caught.value)


def test_no_file_no_text_and_a_huge_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_config(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"binary\.toml"):
        read_config(tmp_path / "binary.toml")
    (tmp_path / "huge.toml").write_bytes(b"#" * 2_000_000)
    with pytest.raises(UsageError, match="larger than"):
        read_config(tmp_path / "huge.toml")


def test_the_identity_is_that_of_the_debates() -> None:
    config = StudyConfig("", ("starter",), ("cot",), (team_of("openai/a"),))
    same = [
        replace(config, limit=3),
        replace(config, shard=(2, 3)),
        replace(config, max_cost=1.0),
        replace(config, settings=Settings(base_url="http://elsewhere/v1", api_key="k", max_connections=3)),
    ]
    assert {one.identity for one in same} == {config.identity}
    others = [
        replace(config, methods=("mad",)),
        replace(config, seeds=(2,)),
        replace(config, settings=Settings(temperature=0.1)),
        replace(config, memory=MemoryPlan(limit=3)),
    ]
    assert len({config.identity, *(one.identity for one in others)}) == 5


def test_a_shard_that_is_none() -> None:
    with pytest.raises(UsageError, match="--shard 3/2"):
        StudyConfig("", ("starter",), ("cot",), (team_of("openai/a"),), shard=(3, 2))
