"""Whole studies: what they hold, how they grow, resume, stop at a cap, and what they say of themselves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from r2mad.errors import UsageError
from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.settings import Settings
from r2mad.study.config import MemoryPlan, Price, Seat, Sweep, Team, TrainPlan
from r2mad.study.estimate import estimate
from r2mad.study.metrics import cells
from r2mad.study.plan import make_plan
from r2mad.study.records import DEBATES, ITEMS, SCORES, latest, read
from r2mad.study.runner import Gate
from r2mad.study.scores import Score
from r2mad.study.studies import SESSIONS, Session, read_study
from r2mad.types import DebateRecord, Item
from tests.study.trying import config as _config
from tests.study.trying import run as _run


async def test_every_cell_is_held_once_and_told(tmp_path: Path, fake: FakeServer) -> None:
    config = _config(
        fake, datasets=("starter:test", "simulated:test"), methods=("cot", "sc-3", "mad", "r2mad"), seeds=(1, 2)
    )
    said: list[str] = []
    outcome = await _run(config, tmp_path, say=said.append)
    assert outcome.complete
    found = cells(outcome.scores)
    assert {(cell.dataset, cell.method): len(scores) for cell, scores in found.items()} == {
        (dataset, method): 8 for dataset in ("starter", "simulated") for method in config.methods
    }
    assert {score.seed for score in outcome.scores} == {1, 2}
    assert all(score.model == "openai/fake" for score in outcome.scores)
    assert len(said) == 2  # a memory for each data set
    assert len(list((tmp_path / "memories").glob("*.db"))) == 2
    study = read_study(tmp_path / "try")
    assert study is not None
    assert study["served"] == {"openai/fake": ["fake"]}
    assert study["questions"] == {"starter:test": 4, "simulated:test": 4}
    assert study["versions"]["r2mad"]
    assert study["hardware"]["cores"]
    (session,) = read(Session, tmp_path / "try" / SESSIONS)
    assert (session.held, session.left, session.ended) == (64, 0, "done")
    assert session.calls == sum(s.calls - s.shared for s in outcome.scores)


async def test_the_same_command_asks_nothing_and_a_grown_one_only_what_is_new(tmp_path: Path, fake: FakeServer) -> None:
    config = _config(fake)
    await _run(config, tmp_path)
    before = len(fake.log)
    again = await _run(config, tmp_path)
    assert (len(fake.log), again.session.held) == (before, 0)
    more = await _run(replace(config, methods=("cot", "mad", "vote"), limit=6, seeds=(1, 3)), tmp_path)
    assert more.complete
    assert len(more.scores) == 3 * 6 * 2
    kept = [record.id for record in read(DebateRecord, tmp_path / "try" / DEBATES)]
    assert len(set(kept)) == len(kept) == 36
    fewer = await _run(replace(config, limit=2), tmp_path)
    assert (len(fewer.scores), fewer.session.held) == (4, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"settings": Settings(cache=":memory:", temperature=0.3)},
        {"memory": MemoryPlan(limit=9)},
        {"train": TrainPlan("starter:train", 9)},
        {"shard": (1, 2)},
    ],
)
async def test_a_folder_held_under_other_settings_is_refused(
    tmp_path: Path, fake: FakeServer, change: dict[str, Any]
) -> None:
    await _run(_config(fake), tmp_path)
    before = len(fake.log)
    if "settings" in change:
        change = {"settings": replace(change["settings"], base_url=fake.base_url)}
    with pytest.raises(UsageError, match="of its own"):
        await _run(_config(fake, **change), tmp_path)
    assert len(fake.log) == before


async def test_a_server_that_moved_goes_on_with_the_same_folder(tmp_path: Path) -> None:
    for round_ in range(2):
        async with FakeServer() as server:
            outcome = await _run(_config(server, limit=2 + round_), tmp_path)
            assert outcome.session.held == (4, 2)[round_]


async def test_no_key_is_ever_written(tmp_path: Path) -> None:
    async with FakeServer(FakeSettings(api_key="sesame-open")) as server:
        settings = Settings(base_url=server.base_url, cache=":memory:", api_key="sesame-open")
        await _run(_config(server, settings=settings), tmp_path)
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"sesame" not in path.read_bytes(), path


async def test_a_cap_on_tokens_ends_a_study_before_it_is_passed(tmp_path: Path, fake: FakeServer) -> None:
    config = _config(fake, methods=("mad",), limit=40)
    whole = await _run(config, tmp_path / "whole")
    tokens = sum(score.tokens - score.shared_tokens for score in whole.scores)
    cap = tokens // 2
    settings = replace(config.settings, max_connections=4)
    capped = replace(config, max_tokens_total=cap, settings=settings)
    outcome = await _run(capped, tmp_path)
    assert not outcome.complete
    assert "the cap on what the study may take" in outcome.session.ended
    used = sum(score.tokens - score.shared_tokens for score in outcome.scores)
    assert cap / 2 < used <= cap
    assert all(score.stopped != "partial" for score in outcome.scores)
    calls = len(fake.log)
    await _run(capped, tmp_path)  # the cap is the study's, and not the session's
    assert len(fake.log) == calls
    rest = await _run(replace(capped, max_tokens_total=None), tmp_path)
    assert rest.complete


async def test_a_cap_on_cost_needs_prices_and_holds(tmp_path: Path, fake: FakeServer) -> None:
    config = _config(fake, methods=("mad",), limit=30, max_cost=0.02)
    with pytest.raises(UsageError, match="needs \\[prices\\]"):
        await _run(config, tmp_path)
    assert fake.log == []
    outcome = await _run(replace(config, prices={"openai/fake": Price(1.0, 2.0)}), tmp_path)
    assert "the cap on what the study may take" in outcome.session.ended
    from r2mad.study.studies import cost

    assert 0.015 < outcome.session.paid <= 0.02
    assert sum(cost(score, {"openai/fake": Price(1.0, 2.0)}) for score in outcome.scores) <= outcome.session.paid


async def test_a_gate_that_is_shut_lets_what_is_under_way_end(tmp_path: Path, fake: FakeServer) -> None:
    gates: list[Gate] = []

    def announce(record: DebateRecord, score: Score) -> None:
        gates[0].close("interrupted")

    config = _config(fake, limit=40, settings=Settings(base_url=fake.base_url, cache=":memory:", max_connections=3))
    outcome = await _run(config, tmp_path, announce=announce, begun=lambda left, total, gate: gates.append(gate))
    assert outcome.session.ended == "interrupted"
    assert 1 <= outcome.session.held <= 4
    assert outcome.session.left == 80 - outcome.session.held
    assert (await _run(config, tmp_path)).complete


async def test_failed_debates_are_asked_again_and_count_until_then(tmp_path: Path) -> None:
    async with FakeServer(FakeSettings(faults={"500": 1.0})) as server:
        settings = Settings(base_url=server.base_url, cache=":memory:", max_retries=0)
        config = _config(server, settings=settings, methods=("vote",))
        outcome = await _run(config, tmp_path)
        assert (outcome.session.left, outcome.complete) == (4, False)
        assert [score.stopped for score in outcome.scores] == ["failed"] * 4
        server.settings = FakeSettings()
        outcome = await _run(config, tmp_path)
        assert outcome.complete
        assert len(outcome.scores) == 4
        assert not any(score.stopped == "failed" for score in outcome.scores)


async def test_shards_are_the_study(tmp_path: Path, fake: FakeServer) -> None:
    whole = make_plan(_config(fake, limit=10)).items["starter:test"]
    parts = [make_plan(_config(fake, limit=10, shard=(n, 3))).items["starter:test"] for n in (1, 2, 3)]
    assert sorted(item.question.id for part in parts for item in part) == sorted(i.question.id for i in whole)
    assert [len(part) for part in parts] == [4, 3, 3]


async def test_sweeps_are_methods_of_their_own(tmp_path: Path, fake: FakeServer) -> None:
    sweeps = (
        Sweep("r2mad", "k", (1, 2)),
        Sweep("r2mad", "memory_limit", (3,)),
        Sweep("mad", "agents", (2, 4)),
        Sweep("r2mad", "high", (0.7,)),
        Sweep("mad-diverse", "candidates", (5,)),
        Sweep("icl-cot", "k", (2,)),
        Sweep("r2mad", "memory", ("simulated:train",)),
    )
    outcome = await _run(_config(fake, methods=("mad",), sweeps=sweeps, limit=2), tmp_path)
    assert outcome.complete
    names = {score.method for score in outcome.scores}
    assert names == {
        "mad", "r2mad[k=1]", "r2mad[k=2]", "r2mad[memory_limit=3]", "mad[agents=2]", "mad[agents=4]", "r2mad[high=0.7]",
        "mad-diverse[candidates=5]", "icl-cot[k=2]", "r2mad[memory=simulated:train]",
    }  # fmt: skip
    records = {record.method: record for record in latest(tmp_path / "try" / DEBATES).values()}
    assert len(records["mad[agents=4]"].agents) == 4
    memories = {name: record.memory.version for name, record in records.items() if record.memory}
    assert len(set(memories.values())) == 3  # the usual one, the small one, the foreign one
    assert len(records["mad-diverse[candidates=5]"].rounds[0].candidates) == 5


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        (Sweep("mad", "k", (1,)), "nothing that a sweep of k could vary"),
        (Sweep("cot", "agents", (2,)), "by definition"),
        (Sweep("r2mad", "k", ("many",)), "whole numbers of at least 1, not 'many'"),
        (Sweep("r2mad", "k", (0,)), "whole numbers of at least 1, not 0"),
        (Sweep("nope", "k", (1,)), "no method 'nope'"),
        (Sweep("mad", "memory_limit", (1,)), "nothing that a sweep"),
    ],
)
def test_a_sweep_that_fits_nothing_is_refused(sweep: Sweep, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_plan(_config(None, sweeps=(sweep,)))


async def test_agents_may_have_models_and_sampling_of_their_own(tmp_path: Path) -> None:
    team = Team("openai/a + openai/b", (Seat("openai/a", temperature=0.2), Seat("openai/b", extra_body={"top_k": 9})))
    async with FakeServer(FakeSettings(model="a,b")) as server:
        outcome = await _run(_config(server, teams=(team,), methods=("mad",)), tmp_path)
        sent = {(entry.body["model"], entry.body["temperature"], entry.body.get("top_k")) for entry in server.log}
    assert sent == {("a", 0.2, None), ("b", 1.0, 9)}
    assert {score.model for score in outcome.scores} == {"openai/a + openai/b"}


async def test_a_mask_is_chosen_on_training_items_alone(tmp_path: Path, fake: FakeServer) -> None:
    config = _config(fake, methods=("mad-m2-auto", "mad-m2-s"))
    said: list[str] = []
    outcome = await _run(config, tmp_path, say=said.append)
    assert outcome.complete
    assert any("the automatic mask is" in line for line in said)
    with pytest.raises(UsageError, match="are among the training items"):
        await _run(replace(config, name="leak", train=TrainPlan("starter:test", 41)), tmp_path)


async def test_a_memory_that_knows_the_questions_is_refused(tmp_path: Path, fake: FakeServer) -> None:
    config = _config(fake, methods=("r2mad",), memory=MemoryPlan("starter:test", 2))
    with pytest.raises(UsageError, match="are in the memory"):
        await _run(config, tmp_path)
    assert (await _run(replace(config, allow_leak=True), tmp_path)).complete


async def test_the_estimate_has_the_calls_and_is_near_the_tokens(tmp_path: Path) -> None:
    """Of debates that never end early; words stand for tokens on the fake server, four letters do in an estimate."""
    methods = ("cot", "sc-3", "mad", "mad-m2-s", "mad-m2-o", "mad-sparse", "mad-judge", "mad-confident")
    async with FakeServer(FakeSettings(bias=0, adopt=0, reply_tokens=100)) as server:
        config = _config(server, datasets=("simulated:test",), methods=methods, limit=6)
        rows = {row.method: row for row in await estimate(config, 100)}
        outcome = await _run(config, tmp_path)
    for cell, scores in cells(outcome.scores).items():
        row = rows[cell.method]
        assert row.debates == len(scores)
        assert sum(score.calls for score in scores) <= row.calls
        tokens = sum(score.tokens for score in scores)
        if sum(score.calls for score in scores) == row.calls:
            assert 0.5 < (row.prompt_tokens + row.completion_tokens) / tokens < 2.5, cell.method
    assert rows["cot"].cost is None
    priced = replace(config, prices={"openai/fake": Price(1.0, 3.0)})
    (cot, *_) = await estimate(priced, 100)
    assert cot.cost == pytest.approx((cot.prompt_tokens + 3 * cot.completion_tokens) / 1e6)


async def test_two_data_sets_that_share_a_question_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="share the question"):
        make_plan(_config(None, datasets=("starter:test", "starter:all")))
    with pytest.raises(UsageError, match="named twice"):
        make_plan(_config(None, datasets=("starter:test", "starter")))  # a study evaluates the test split


async def test_nothing_is_made_where_the_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        await _run(_config(None, methods=("nope",)), tmp_path)
    assert list(tmp_path.iterdir()) == []


async def test_the_files_of_a_run_are_those_that_are_documented(tmp_path: Path, fake: FakeServer) -> None:
    await _run(_config(fake), tmp_path)
    assert {path.name for path in (tmp_path / "try").iterdir()} == {
        "study.json", "debates.ids", SESSIONS, ITEMS, DEBATES, SCORES
    }  # fmt: skip
    assert len(list(read(Item, tmp_path / "try" / ITEMS))) == 4
    assert json.loads((tmp_path / "try" / "study.json").read_text())["schema"] == 1


async def test_a_size_for_all_leaves_alone_what_has_a_size_by_definition(tmp_path: Path, fake: FakeServer) -> None:
    settings = Settings(base_url=fake.base_url, cache=":memory:", agents=4, rounds=2)
    config = _config(fake, settings=settings, methods=("cot", "sc-3", "vote", "mad", "icl-cot", "r2mad"))
    rows = {row.method: row.calls for row in await estimate(config, 100)}
    assert rows == {"cot": 4, "sc-3": 12, "vote": 16, "mad": 32, "icl-cot": 4, "r2mad": 36}
    outcome = await _run(config, tmp_path)
    assert outcome.complete
    assert {score.method: score.agents for score in outcome.scores} == {
        "cot": 1, "sc-3": 1, "vote": 4, "mad": 4, "icl-cot": 1, "r2mad": 4
    }  # fmt: skip
    assert max(len(score.grades) for score in outcome.scores) == 2


async def test_the_methods_of_one_study_share_what_they_ask_alike(tmp_path: Path, fake: FakeServer) -> None:
    """The five methods of the paper's Table 1 make at most 0.8 of the calls that they make in five studies."""
    methods, limit = ("cot", "sc", "mad", "mad-m2-o", "r2mad"), 12
    settings = Settings(base_url=fake.base_url, cache=":memory:", logprobs=True)
    fake.settings = FakeSettings(bias=0.5, adopt=0.3)
    config = _config(fake, methods=methods, limit=limit, settings=settings)
    together = await _run(config, tmp_path / "one")
    apart = 0
    for method in methods:
        alone = await _run(replace(config, methods=(method,), name=method), tmp_path / "apart")
        apart += alone.session.calls
    assert together.session.calls <= 0.8 * apart
    assert together.session.calls == sum(score.calls - score.shared for score in together.scores)
