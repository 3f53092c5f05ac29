"""The design's invariants 1, 3, 4, 5 and 6, each against a real server on the loopback interface."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from r2mad.api import open_table
from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.settings import Settings
from r2mad.study.records import DEBATES, SCORES, dump, latest
from r2mad.study.runner import run_study
from r2mad.study.scores import latest_scores, summarise
from r2mad.types import DebateRecord, Item, Question

OPTIONS = ("the first", "the second", "the third", "the fourth")


def _items(count: int) -> list[Item]:
    return [
        Item(Question(f"Question number {n}: which of these?", OPTIONS, id=f"made/{n}"), "ABCD"[n % 4], "made", "test")
        for n in range(count)
    ]


def _settings(base_url: str, **changes: Any) -> Settings:
    return Settings(base_url=base_url, cache=":memory:", **changes)


def _untimed(record: DebateRecord) -> dict[str, Any]:
    """A record without what two runs of the same thing may differ in: times, and who asked first."""
    data: dict[str, Any] = json.loads(dump(record))
    for name in ("seconds", "started", "study"):
        del data[name]
    for one in data["rounds"]:
        for reply in one["replies"]:
            del reply["seconds"], reply["cached"]
    return data


def _log_keys(log: list[dict[str, Any]]) -> list[str]:
    return [json.dumps([entry["messages"], entry["seed"]], sort_keys=True) for entry in log]


async def test_1_no_gold_reaches_the_protocol(tmp_path: Path) -> None:
    """Other golds, and every transcript and every request stay byte for byte what they were."""
    items = _items(12)
    swapped = [replace(item, gold="ABCD"[("ABCD".index(item.gold) + 1) % 4]) for item in items]
    seen = []
    for name, chosen in (("one", items), ("two", swapped)):
        async with FakeServer() as server, open_table("openai/fake", _settings(server.base_url)) as table:
            scores = await run_study(table, chosen, ["mad", "sc-3", "vote", "cot"], tmp_path / name, seed=3)
            bodies = sorted(json.dumps(entry.body, sort_keys=True) for entry in server.log)
        records = {found: _untimed(record) for found, record in latest(tmp_path / name / DEBATES).items()}
        seen.append((records, bodies, [score.correct for score in sorted(scores, key=lambda score: score.id)]))
    assert seen[0][0] == seen[1][0]
    assert seen[0][1] == seen[1][1]
    assert seen[0][2] != seen[1][2]  # the golds did change something: the grades


async def test_3_methods_share_round_0(tmp_path: Path) -> None:
    """`mad` after `sc-9` asks nothing again for agent 0's round 0, and `vote` after `mad` asks nothing at all."""
    items = _items(5)
    async with FakeServer(FakeSettings(bias=0.0)) as server:
        async with open_table("openai/fake", _settings(server.base_url)) as table:
            await run_study(table, items, ["sc-9"], tmp_path, seed=3)
            assert len(server.log) == 5 * 9
            await run_study(table, items, ["mad"], tmp_path, seed=3)
            by_method = {(record.method, record.question.id): record for record in latest(tmp_path / DEBATES).values()}
            asked = sum(sum(by_method["mad", item.question.id].calls.values()) for item in items)
            assert len(server.log) == 5 * 9 + asked - 5  # each mad debate was spared one call
            for item in items:
                first = by_method["mad", item.question.id].rounds[0].replies[0]
                assert first.cached
                assert first.text == by_method["sc-9", item.question.id].rounds[0].replies[0].text
            before = len(server.log)
            await run_study(table, items, ["vote", "cot", "sc-3"], tmp_path, seed=3)
            assert len(server.log) == before
        bodies = [json.dumps(entry.body, sort_keys=True) for entry in server.log]
        assert len(set(bodies)) == len(bodies)
        assert not any("n" in json.loads(body) for body in bodies)


async def test_3_three_agents_stay_three_though_their_prompts_are_the_same(tmp_path: Path) -> None:
    """With one persona for all, the messages are the same; the seeds, and so the replies, are not."""
    (tmp_path / "pack.toml").write_text('[[persona]]\nname = "solo"\ntext = "You reason with care."\n')
    async with FakeServer(FakeSettings(bias=0.0)) as server:
        settings = _settings(server.base_url, prompts=str(tmp_path))
        async with open_table("openai/fake", settings) as table:
            record = await table.hold(_items(1)[0].question, "vote", seed=3)
        assert len(server.log) == 3
        assert len({reply.seed for reply in record.rounds[0].replies}) == 3
        assert len({view.messages for view in record.rounds[0].views}) == 1


@pytest.mark.parametrize("connections", [1, 7])
async def test_4_nothing_depends_on_scheduling(tmp_path: Path, connections: int) -> None:
    items = _items(6)
    runs = []
    for name, width, latency in (("one", 64, 0.0), ("two", connections, 2.0)):
        async with FakeServer(FakeSettings(latency_ms=latency)) as server:
            settings = _settings(server.base_url, max_connections=width)
            async with open_table("openai/fake", settings) as table:
                await run_study(table, items, ["mad", "sc-3"], tmp_path / name, seed=11)
        runs.append({found: _untimed(record) for found, record in latest(tmp_path / name / DEBATES).items()})
    assert runs[0] == runs[1]


async def test_4_a_fresh_seed_is_drawn_and_recorded(tmp_path: Path) -> None:
    async with FakeServer() as server, open_table("openai/fake", _settings(server.base_url)) as table:
        question = _items(1)[0].question
        one, two = await table.hold(question, "vote"), await table.hold(question, "vote")
        assert one.seed != two.seed
        again = await table.hold(question, "vote", seed=one.seed)
    assert _untimed(again)["rounds"] == _untimed(one)["rounds"]


STUDY = """
import asyncio, sys
from pathlib import Path
from r2mad.api import open_table
from r2mad.settings import Settings
from r2mad.study.runner import run_study
from tests.test_invariants import _items

async def main(url, folder):
    settings = Settings(base_url=url, cache=str(Path(folder) / "calls.sqlite"), max_connections=8)
    async with open_table("openai/fake", settings) as table:
        await run_study(table, _items(20), ["mad", "sc-3"], Path(folder) / "run", seed=5,
                        announce=lambda record, score: print(record.id, flush=True))

asyncio.run(main(*sys.argv[1:]))
"""


def _start(url: str, folder: Path) -> subprocess.Popen[str]:
    root = Path(__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.Popen(
        [sys.executable, "-c", STUDY, url, str(folder)], stdout=subprocess.PIPE, text=True, env=environment
    )


@pytest.mark.timeout(240)
def test_5_a_killed_run_takes_up_where_it_was(tmp_path: Path) -> None:
    """Killed with -9 at many moments: what was announced is on disk, nothing is asked twice, nothing is missing."""
    with FakeServer.spawn(FakeSettings(latency_ms=10.0)) as server:
        with _start(server.base_url, tmp_path / "calm") as calm:
            calm.wait()
        server.reset()
        chance, announced, kills = random.Random(5), set[str](), 0
        while True:
            with _start(server.base_url, tmp_path / "killed") as process:
                assert process.stdout is not None
                first = process.stdout.readline()  # import time is over: the moment lies in the run itself
                time.sleep(chance.uniform(0.0, 0.1))
                ended = process.poll() is not None
                if not ended:
                    os.kill(process.pid, signal.SIGKILL)
                    kills += 1
                announced |= set((first + process.stdout.read()).split())
            on_disk = latest(tmp_path / "killed" / "run" / DEBATES)
            assert announced <= set(on_disk)
            if ended:
                assert process.returncode == 0
                break
        assert kills >= 3
        calm_run, killed_run = (latest(tmp_path / name / "run" / DEBATES) for name in ("calm", "killed"))
        assert {k: _untimed(r) for k, r in killed_run.items()} == {k: _untimed(r) for k, r in calm_run.items()}
        lines = (tmp_path / "killed" / "run" / DEBATES).read_text().splitlines()
        assert len(lines) == len(killed_run) == 40
        scores = latest_scores(tmp_path / "killed" / "run" / SCORES)
        assert {score.id for score in scores} == set(killed_run)
        # A call that was in flight when the process died cannot be known; one that came back is never made again.
        answered = [json.dumps(e["body"], sort_keys=True) for e in server.read_log() if e["status"] == 200]
        assert len(answered) - len(set(answered)) <= 8 * kills


async def test_5_a_failed_debate_is_held_again_and_a_finished_one_is_not(tmp_path: Path) -> None:
    items = _items(4)
    async with FakeServer(FakeSettings(faults={"500": 1.0})) as broken:
        settings = _settings(broken.base_url, max_retries=0)
        async with open_table("openai/fake", settings) as table:
            scores = await run_study(table, items, ["vote"], tmp_path, seed=3)
    assert summarise(scores).failed == 4
    # The server has moved meanwhile.
    async with FakeServer() as server, open_table("openai/fake", _settings(server.base_url)) as table:
        scores = await run_study(table, items, ["vote"], tmp_path, seed=3)
        asked = len(server.log)
        again = await run_study(table, items, ["vote"], tmp_path, seed=3)
    assert (summarise(scores).failed, len(scores), asked) == (0, 4, 12)
    assert [asdict(score) for score in again] == [asdict(score) for score in scores]
    assert len(server.log) == asked


async def test_5_resuming_again_and_again_adds_nothing(tmp_path: Path) -> None:
    items, broken = _items(3), FakeSettings(faults={"500": 1.0})
    async with (
        FakeServer(broken) as server,
        open_table("openai/fake", _settings(server.base_url, max_retries=0)) as table,
    ):
        await run_study(table, items, ["vote"], tmp_path, seed=3)
        server.settings = FakeSettings()
        scores = await run_study(table, items, ["vote"], tmp_path, seed=3)
        assert summarise(scores).failed == 0
        files = {name: (tmp_path / name).read_bytes() for name in (DEBATES, SCORES)}
        assert {name: data.count(b"\n") for name, data in files.items()} == {DEBATES: 6, SCORES: 6}
        for _ in range(3):
            assert await run_study(table, items, ["vote"], tmp_path, seed=3) == scores
            assert {name: (tmp_path / name).read_bytes() for name in files} == files


async def test_5_a_debate_without_its_score_is_graded_on_resume(tmp_path: Path) -> None:
    items = _items(3)
    async with FakeServer() as server, open_table("openai/fake", _settings(server.base_url)) as table:
        scores = await run_study(table, items, ["vote"], tmp_path, seed=3)
        (tmp_path / SCORES).write_bytes(b"".join((tmp_path / SCORES).read_bytes().splitlines(keepends=True)[:1]))
        again = await run_study(table, items, ["vote"], tmp_path, seed=3)
    assert sorted(again, key=lambda s: s.id) == sorted(scores, key=lambda s: s.id)


async def test_6_errors_truncated_and_unparsed_replies_stay_in_the_denominator(tmp_path: Path) -> None:
    items = _items(30)
    faults = {"500": 0.15, "truncate": 0.15}
    async with FakeServer(FakeSettings(faults=faults)) as server:
        settings = _settings(server.base_url, max_retries=0)
        async with open_table("openai/fake", settings) as table:
            scores = await run_study(table, items, ["cot", "mad"], tmp_path, seed=3)
    records = latest(tmp_path / DEBATES)
    total = summarise(scores)
    assert total.debates == 60 == len(records)
    replies = [reply for record in records.values() for one in record.rounds for reply in one.replies]
    assert total.replies == len(replies)
    assert total.errors == sum(reply.error is not None for reply in replies) > 0
    assert total.truncated == sum(reply.finish_reason == "length" for reply in replies) > 0
    assert total.unparsed == sum(reply.error is None and reply.answer is None for reply in replies) > 0
    right = sum(score.correct for score in scores)
    assert total.accuracy == right / 60
    for record in records.values():
        for one in record.rounds:
            most = max(
                [
                    0,
                    *(
                        {
                            c: sum(r.class_ == c for r in one.replies)
                            for r in one.replies
                            if (c := r.class_) is not None
                        }.values()
                    ),
                ]
            )
            assert one.consensus == most / len(one.replies)


FAULTS: list[dict[str, float]] = [
    *({name: 0.2} for name in ("429", "500", "hang", "drop", "malformed", "empty", "truncate")),
    dict.fromkeys(("429", "500", "hang", "drop", "malformed", "empty", "truncate"), 0.2 / 7),
]


@pytest.mark.parametrize("faults", FAULTS, ids=lambda faults: "mixed" if len(faults) > 1 else next(iter(faults)))
async def test_every_debate_ends_whatever_the_server_does(tmp_path: Path, faults: dict[str, float]) -> None:
    """50 questions with 20 % of faults: all end, and what failed for good stands in the records."""
    items = _items(50)
    async with FakeServer(FakeSettings(faults=faults, retry_after=0.05)) as server:
        settings = _settings(server.base_url, timeout=0.5, max_retries=1)
        async with open_table("openai/fake", settings) as table:
            scores = await asyncio.wait_for(run_study(table, items, ["mad"], tmp_path, seed=3), 100)
        failed_calls = sum(entry.status != 200 or bool(entry.fault) for entry in server.log)
    records = latest(tmp_path / DEBATES)
    assert len(records) == len(scores) == 50
    assert failed_calls > 20
    for record in records.values():
        assert record.stopped in ("unanimity", "rounds", "failed")
        assert record.degraded == bool(record.failures)
        assert all(why.kind and why.message for _, _, why in record.failures)
    if "truncate" not in faults:
        assert any(record.degraded for record in records.values())
