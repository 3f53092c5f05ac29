"""What guards a study: what it refuses, what it does not count twice, and what no flag can undo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from r2mad.cli.main import main
from r2mad.errors import FileBusyError, UsageError
from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.settings import Settings
from r2mad.study.config import MemoryPlan, Seat, Sweep, Team
from r2mad.study.metrics import cells
from r2mad.study.plan import make_plan
from r2mad.study.records import DEBATES, Writer, latest
from r2mad.study.runs import load_run
from r2mad.types import DebateRecord
from tests.study.trying import config as _config
from tests.study.trying import run as _run


async def test_no_setting_undoes_what_a_sweep_varies(tmp_path: Path, fake: FakeServer) -> None:
    settings = Settings(base_url=fake.base_url, cache=":memory:", k=1, gamma=0.5)
    sweeps = (Sweep("r2mad", "k", (1, 3)), Sweep("r2mad", "gamma", (0.0, 1.0)))
    plan = make_plan(_config(fake, settings=settings, methods=("r2mad",), sweeps=sweeps))
    found = {v.method.name: v.method.retrieval for v in plan.variants}
    assert {name: (part.k, part.gamma) for name, part in found.items() if part} == {
        "r2mad": (1, 0.5),
        "r2mad[k=1]": (1, 0.5),
        "r2mad[k=3]": (3, 0.5),
        "r2mad[gamma=0.0]": (1, 0.0),
        "r2mad[gamma=1.0]": (1, 1.0),
    }
    outcome = await _run(_config(fake, settings=settings, methods=("mad",), sweeps=sweeps[:1], limit=2), tmp_path)
    assert outcome.complete
    shown: dict[str, int] = {}
    for record in latest(tmp_path / "try" / DEBATES).values():
        for view in record.rounds[1].views if len(record.rounds) > 1 else ():
            shown[record.method] = max(shown.get(record.method, 0), len(view.retrieved))
    assert shown.get("r2mad[k=3]", 3) == 3
    assert shown.get("r2mad[k=1]", 1) == 1


def test_a_sweep_of_memories_and_a_memory_that_is_given_contradict(tmp_path: Path) -> None:
    for change in ({"memory": MemoryPlan(url="sqlite:x.db")}, {"settings": Settings(memory="sqlite:x.db")}):
        with pytest.raises(UsageError, match="builds its memories"):
            make_plan(_config(None, sweeps=(Sweep("r2mad", "memory_limit", (3,)),), **change))


async def test_tables_count_a_question_once_whatever_the_folder_held_before(tmp_path: Path, fake: FakeServer) -> None:
    config = _config(fake, methods=("cot", "mad"), limit=6)
    await _run(config, tmp_path)
    await _run(replace(config, methods=("cot", "mad", "mad-m2-o")), tmp_path)  # log-probabilities: all held again
    await _run(replace(config, methods=("cot", "mad", "mad-m2-o"), limit=4), tmp_path)
    run = load_run(tmp_path / "try")
    assert len(run.scores) == 3 * 4
    assert run.left_out > 0
    assert {len(scores) for scores in cells(run.scores).values()} == {4}


async def test_a_run_that_is_refused_changes_nothing_of_one_that_is_there(tmp_path: Path, fake: FakeServer) -> None:
    config = _config(fake, methods=("cot", "mad"))
    await _run(config, tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / "try").iterdir()}
    asked = len(fake.log)
    with pytest.raises(UsageError, match="in the memory that would be built"):
        await _run(replace(config, datasets=("starter:train",), methods=("r2mad",)), tmp_path)
    assert len(fake.log) == asked  # the leak is known before a memory is paid for
    async with Writer[DebateRecord](tmp_path / "try" / DEBATES):
        with pytest.raises(FileBusyError):
            await _run(replace(config, methods=("vote",)), tmp_path)
    assert {path.name: path.read_bytes() for path in (tmp_path / "try").iterdir()} == before


async def test_methods_of_one_agent_take_the_first_of_several_models(tmp_path: Path) -> None:
    team = Team("openai/a + openai/b", (Seat("openai/a"), Seat("openai/b")))
    async with FakeServer(FakeSettings(model="a,b")) as server:
        outcome = await _run(_config(server, teams=(team,), methods=("cot", "mad"), limit=2), tmp_path)
    assert outcome.complete
    assert {(s.method, s.model) for s in outcome.scores} == {("cot", "openai/a"), ("mad", "openai/a + openai/b")}


async def test_agents_that_are_sampled_otherwise_are_another_study(tmp_path: Path) -> None:
    async with FakeServer(FakeSettings(model="a,b")) as server:
        team = Team("openai/a + openai/b", (Seat("openai/a"), Seat("openai/b", temperature=0.7)))
        await _run(_config(server, teams=(team,), methods=("mad",), limit=1), tmp_path)
        other = Team(team.name, (Seat("openai/a"), Seat("openai/b", temperature=0.2)))
        with pytest.raises(UsageError, match="another sampling"):
            await _run(_config(server, teams=(other,), methods=("mad",), limit=1), tmp_path)


def test_a_runs_name_stays_below_the_log_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["study", "--dataset", "starter", "--method", "cot", "--model", "scripted/seeded", "--limit", "1"]
    command += ["--log-dir", str(tmp_path), "--display", "none", "--cache", ":memory:"]
    for name in ("../escape", "/abs", ".", "..", "memories", "", "a/b"):
        assert main([*command, "--name", name]) == (2 if name else 0), name
    capsys.readouterr()
    for flags in (["--memory-limit", "0"], ["--memory-limit=-3"], ["--reply-tokens", "0"], ["--shard", "2"]):
        assert main([*command, *flags]) == 2
    assert main([*command, "--base-url", "http://me:sesame@127.0.0.1:9/v1", "--name", "kept"]) == 0
    assert b"sesame" not in b"".join(path.read_bytes() for path in (tmp_path / "kept").iterdir())
