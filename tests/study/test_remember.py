"""Building a memory on a fake server: what is kept, what is not asked twice, what faults and kills do to it."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from r2mad.api import Table, open_table
from r2mad.errors import EndpointError, ServerFaultError, UsageError
from r2mad.experience import Outcome
from r2mad.memory import open_memory
from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.settings import Settings
from r2mad.study.outcomes import Checker, Feedback, Gold
from r2mad.study.records import DEBATES, latest
from r2mad.study.remember import Built, Shelf, open_shelf, remember, remember_records
from r2mad.study.runner import run_study
from r2mad.types import DebateRecord, Item, Question

OPTIONS = ("the first", "the second", "the third", "the fourth")
QUICK = FakeSettings(reply_tokens=12, summary_tokens=12)


def _items(count: int, split: str = "train") -> list[Item]:
    return [
        Item(Question(f"{split} question {n}: which?", OPTIONS, id=f"{split}/{n}"), "ABCD"[n % 4], "made", split)
        for n in range(count)
    ]


@asynccontextmanager
async def _open(
    server: FakeServer, path: Path, cache: str = ":memory:", **more: Any
) -> AsyncIterator[tuple[Table, Shelf]]:
    settings = Settings(base_url=server.base_url, cache=cache, max_retries=0, **more)
    async with open_table("openai/fake", settings) as table, open_shelf(f"sqlite:{path}", settings) as shelf:
        yield table, shelf


async def test_2n_cases_an_agent_and_none_from_round_0(tmp_path: Path) -> None:
    announced: list[int] = []
    async with FakeServer(replace(QUICK, bias=1.0)) as server, _open(server, tmp_path / "m.db") as (table, shelf):

        def announce(built: Built, record: DebateRecord) -> None:
            announced.append(built.done)
            assert record.id in shelf.store.known()  # it is there before it is told of

        built = await remember(table, _items(10), shelf, announce=announce)
        assert (built.added, built.cases, built.failed) == (10, 60, 0)
        assert announced == list(range(1, 11))
        kinds = Counter(
            "summary" if "Summarise" in entry.body["messages"][-1]["content"] else "debate" for entry in server.log
        )
        assert kinds == {"debate": 90, "summary": 20}  # all rounds, though everybody agrees from the start
        assert {holder.cases for holder in shelf.store.roster()} == {20}
        debates = list(shelf.store.debates())
    assert all(t > 0 for debate in debates for t, _ in debate.states)
    assert {(debate.record.dataset, debate.record.split, debate.outcome.source) for debate in debates} == {
        ("made", "train", "gold")
    }
    assert all(one.plain is None and one.summary for debate in debates for one in debate.record.rounds[:-1])
    for debate in debates:
        gold = "ABCD"[int(debate.record.question.id.split("/")[1]) % 4]
        last = debate.record.rounds[-1].replies
        assert debate.outcome.rewards == tuple(float(reply.answer == gold) for reply in last)


async def test_the_same_command_asks_nothing_twice(tmp_path: Path) -> None:
    async with FakeServer(QUICK) as server:
        async with _open(server, tmp_path / "m.db") as (table, shelf):
            await remember(table, _items(4), shelf)
            version = shelf.store.snapshot().version
        asked = len(server.log)
        async with _open(server, tmp_path / "m.db") as (table, shelf):
            again = await remember(table, _items(4), shelf)
            assert (again.known, again.added, shelf.store.snapshot().version) == (4, 0, version)
            assert len(server.log) == asked
            more = await remember(table, _items(6), shelf)
            assert (more.known, more.added, more.done) == (4, 2, 6)
            other = await remember(table, _items(4), shelf, seed=1)
            assert other.added == 4  # another seed is another debate


async def test_a_debate_that_failed_is_not_kept_and_held_again(tmp_path: Path) -> None:
    async with (
        FakeServer(replace(QUICK, faults={"500": 1.0})) as server,
        _open(server, tmp_path / "m.db") as (table, shelf),
    ):
        built = await remember(table, _items(3), shelf)
        assert (built.failed, built.added, len(shelf.store.known())) == (3, 0, 0)
        server.settings = QUICK
        assert (await remember(table, _items(3), shelf)).added == 3


async def test_a_degraded_debate_has_no_case_of_what_failed(tmp_path: Path) -> None:
    async with (
        FakeServer(replace(QUICK, faults={"500": 0.15}, fault_seed=3)) as server,
        _open(server, tmp_path / "m.db") as (table, shelf),
    ):
        built = await remember(table, _items(12), shelf)
        debates = list(shelf.store.debates())
    lost = sum(bool(z.error) for debate in debates for one in debate.record.rounds[1:] for z in one.replies)
    assert lost > 0
    assert built.cases == 6 * built.added - lost
    for debate in debates:
        for t, row in enumerate(debate.outcome.correct):
            for i, right in enumerate(row):
                assert (right is None) == bool(debate.record.rounds[t].replies[i].error)


async def test_an_endpoint_that_refuses_for_good_ends_the_build(tmp_path: Path) -> None:
    async with (
        FakeServer(replace(QUICK, model="other")) as server,
        _open(server, tmp_path / "m.db", max_connections=1) as (table, shelf),
    ):
        with pytest.raises(EndpointError, match="it would go on like this"):
            await remember(table, _items(20), shelf)
        assert len(server.log) <= 3


async def test_a_judge_that_fails_keeps_what_was_judged_before(tmp_path: Path) -> None:
    calls = 0

    class Flaky:
        source = "flaky"

        async def __call__(self, record: DebateRecord, item: Item | None) -> Outcome | None:
            nonlocal calls
            calls += 1
            if calls == 3:
                raise ServerFaultError("the verifier is down")
            return await Gold()(record, item)

    async with FakeServer(QUICK) as server, _open(server, tmp_path / "m.db", max_connections=1) as (table, shelf):
        with pytest.raises(ServerFaultError):
            await remember(table, _items(5), shelf, judge=Flaky())
        assert len(shelf.store.known()) == 2
        asked = len(server.log)
        built = await remember(table, _items(5), shelf)
        assert (built.known, built.added) == (2, 3)
        assert len(server.log) == asked + 2 * 11  # the third debate's calls are in the cache


async def test_what_would_cut_its_debates_short_is_refused(tmp_path: Path) -> None:
    """A debate without all its rounds would be known for good, and never be held in full."""
    async with FakeServer(QUICK) as server:
        for calls, rounds in ((10, None), (None, 1)):
            async with _open(server, tmp_path / "m.db", max_calls=calls, rounds=rounds) as (table, shelf):
                with pytest.raises(UsageError, match=r"cut it short|at least 2"):
                    await remember(table, _items(2), shelf)
        assert not server.log
        async with _open(server, tmp_path / "m.db", max_calls=11) as (table, shelf):
            assert (await remember(table, _items(2), shelf)).cases == 12


async def test_what_was_known_meanwhile_is_not_counted_as_added(tmp_path: Path) -> None:
    async with FakeServer(QUICK) as server, _open(server, tmp_path / "m.db") as (table, shelf):
        await run_study(table, _items(2), ["mad"], tmp_path / "run", seed=1)
        records = list(latest(tmp_path / "run" / DEBATES).values())
        golds = {item.question.id: item for item in _items(2)}
        built = await remember_records([*records, *records], shelf, Gold(), items=golds)
        assert built.added == len(shelf.store.known()) == sum(len(record.rounds) > 1 for record in records)
        both = await asyncio.gather(*(remember(table, _items(3), shelf) for _ in range(2)))
        assert sum(one.added for one in both) == 3
        assert sum(one.known for one in both) == 3
        # `ask` gives a question an id of its own: it is found by its words
        renamed = [replace(one, id=f"{one.id}-x", question=replace(one.question, id="asked")) for one in records]
        assert (await remember_records(renamed, shelf, Gold(), items=golds)).unjudged == 0


async def test_debates_of_unknown_outcome_are_not_kept(tmp_path: Path) -> None:
    async with FakeServer(QUICK) as server, _open(server, tmp_path / "m.db") as (table, shelf):
        built = await remember(table, _items(3), shelf, judge=Checker(lambda question, answer: None, "none"))
        assert (built.unjudged, built.added) == (3, 0)


async def test_finished_debates_are_remembered_with_outcomes_that_came_later(tmp_path: Path) -> None:
    """A run of several methods: those with debate rounds give cases; those without a summary get the plain line."""
    items = _items(4)
    async with FakeServer(replace(QUICK, bias=0.2)) as server, _open(server, tmp_path / "m.db") as (table, shelf):
        await run_study(table, items, ["mad", "cot", "vote"], tmp_path / "run", seed=1)
        asked = len(server.log)
        records = list(latest(tmp_path / "run" / DEBATES).values())
        mad = [record for record in records if record.method == "mad"]
        feedback = Feedback({record.id: (1.0, None) for record in mad[:3] if record.answer})
        built = await remember_records(records, shelf, feedback)
        assert len(server.log) == asked
        assert (built.added, built.useless, built.unjudged) == (3, 8, 1)
        debates = {debate.record.id: debate for debate in shelf.store.debates()}
        for record in mad[:3]:
            kept = debates[record.id]
            assert len(kept.states) == 3 * (len(record.rounds) - 1)
            assert all(one.summary and one.plain for one in kept.record.rounds[:-1])
            assert kept.outcome.answer == record.answer
        by_gold = await remember_records(records, shelf, Gold(), items={item.question.id: item for item in items})
        assert (by_gold.known, by_gold.added) == (3, 1)


async def test_a_study_writes_nothing_into_the_memory_it_reads(tmp_path: Path) -> None:
    async with FakeServer(QUICK) as server:
        async with _open(server, tmp_path / "m.db") as (table, shelf):
            await remember(table, _items(5), shelf)
            before = (shelf.store.snapshot().version, len(shelf.store.known()))
        settings = Settings(base_url=server.base_url, cache=":memory:", memory=f"sqlite:{tmp_path / 'm.db'}")
        async with open_table("openai/fake", settings) as table:
            scores = await run_study(table, _items(5, "test"), ["mad", "r2mad"], tmp_path / "run", seed=1)
        records = latest(tmp_path / "run" / DEBATES).values()
        store = open_memory(f"sqlite:{tmp_path / 'm.db'}")
        try:
            assert (store.snapshot().version, len(store.known())) == before
        finally:
            store.close()
    assert len(scores) == 10
    assert {record.memory.version for record in records if record.memory} == {before[0]}
    assert {record.method for record in records if record.memory} == {"r2mad"}


async def test_7_a_study_refuses_a_memory_that_knows_its_questions(tmp_path: Path) -> None:
    settings = Settings(cache=":memory:", memory=f"sqlite:{tmp_path / 'm.db'}")
    leaked = _items(3)
    # the same question and options under another id is the same question; with other options it is another one
    renamed = [replace(item, question=replace(item.question, id=f"new/{n}")) for n, item in enumerate(leaked)]
    asked = [item.question for item in leaked]
    turned = [Item(replace(one, options=OPTIONS[::-1], id=f"t/{one.id}"), "A") for one in asked]
    shouted = [Item(replace(one, text=f" {one.text.upper()}  ", id=f"s/{one.id}"), "A") for one in asked]
    other = [
        replace(item, question=replace(item.question, options=OPTIONS[:3], id=f"o/{item.question.id}"))
        for item in leaked
    ]
    async with FakeServer(QUICK) as server:
        async with _open(server, tmp_path / "m.db") as (table, shelf):
            await remember(table, leaked, shelf)
        before = len(server.log)
        async with open_table("openai/fake", settings.changed(base_url=server.base_url)) as table:
            with pytest.raises(UsageError, match="3 of 4 questions are in the memory"):
                await run_study(table, [*renamed, _items(1, "test")[0]], ["r2mad"], tmp_path / "run", seed=1)
            assert len(server.log) == before
            for same in (turned, shouted):  # neither the options' order nor case and spacing make it another question
                with pytest.raises(UsageError, match="3 of 3 questions are in the memory"):
                    await run_study(table, same, ["r2mad"], tmp_path / "run", seed=1)
            assert not latest(tmp_path / "run" / DEBATES)
            await run_study(table, renamed, ["mad"], tmp_path / "mad", seed=1)  # it reads no memory
            await run_study(table, renamed, ["r2mad"], tmp_path / "allowed", seed=1, allow_leak=True)
            await run_study(table, other, ["r2mad"], tmp_path / "other", seed=1)


async def test_1_golds_do_not_reach_a_debate_that_remembers(tmp_path: Path) -> None:
    """Other golds for the evaluated questions, and every request of r2mad stays byte for byte what it was."""
    async with FakeServer(QUICK) as server:
        async with _open(server, tmp_path / "m.db") as (table, shelf):
            await remember(table, _items(6), shelf)
        settings = Settings(base_url=server.base_url, memory=f"sqlite:{tmp_path / 'm.db'}")
        seen = []
        items = _items(6, "test")
        swapped = [replace(item, gold="ABCD"["DCBA".index(item.gold)]) for item in items]
        for name, chosen in (("one", items), ("two", swapped)):
            server.reset()
            async with open_table("openai/fake", settings.changed(cache=":memory:")) as table:
                scores = await run_study(table, chosen, ["r2mad", "icl-cot"], tmp_path / name, seed=3)
            bodies = sorted(json.dumps(entry.body, sort_keys=True) for entry in server.log)
            seen.append((bodies, [score.correct for score in sorted(scores, key=lambda score: score.id)]))
    assert seen[0][0] == seen[1][0]
    assert seen[0][1] != seen[1][1]


async def test_a_memory_of_another_embedder_is_refused(tmp_path: Path) -> None:
    async with FakeServer(QUICK) as server:
        async with _open(server, tmp_path / "m.db") as (table, shelf):
            await remember(table, _items(1), shelf)
        settings = Settings(base_url=server.base_url, cache=":memory:", embedder="openai/fake")
        with pytest.raises(UsageError, match="wordllama/256"):
            async with open_shelf(f"sqlite:{tmp_path / 'm.db'}", settings):
                pass
        with pytest.raises(UsageError, match="wordllama/256"):
            async with open_table("openai/fake", settings.changed(memory=f"sqlite:{tmp_path / 'm.db'}")):
                pass
        memory = settings.changed(memory=f"sqlite:{tmp_path / 'm.db'}", embedder=None, compat="official")
        with pytest.raises(UsageError, match="official"):
            async with open_table("openai/fake", memory):
                pass


async def test_an_embedder_behind_an_endpoint(tmp_path: Path) -> None:
    """Built and read with vectors that a server makes; the memory knows whose they are."""
    async with FakeServer(QUICK) as server:
        async with _open(server, tmp_path / "m.db", embedder="openai/fake") as (table, shelf):
            await remember(table, _items(4), shelf)
            assert (shelf.store.embedder, shelf.store.dimension) == ("openai/fake/64", 64)
        settings = Settings(base_url=server.base_url, cache=":memory:", memory=f"sqlite:{tmp_path / 'm.db'}")
        async with open_table("openai/fake", settings) as table:
            await run_study(table, _items(2, "test"), ["r2mad"], tmp_path / "run", seed=1)
    for record in latest(tmp_path / "run" / DEBATES).values():
        assert record.embedder == "openai/fake/64"
        assert all(view.retrieved for one in record.rounds[1:] for view in one.views)


CHILD = """
import asyncio, sys
from r2mad.api import open_table
from r2mad.settings import Settings
from r2mad.study.remember import open_shelf, remember
from tests.study.test_remember import _items

async def main(url, memory, cache, count, start):
    settings = Settings(base_url=url, cache=cache, max_connections=7)
    async with open_table("openai/fake", settings) as table, open_shelf(memory, settings) as shelf:
        items = _items(start + count)[start:]
        print("ready", flush=True)
        await remember(table, items, shelf, announce=lambda built, record: print(record.id, flush=True))

url, memory, cache, count, start = sys.argv[1:]
asyncio.run(main(url, memory, cache, int(count), int(start)))
"""


def _spawn(url: str, memory: Path, cache: str, count: int, start: int = 0) -> subprocess.Popen[str]:
    source = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source / "src"), str(source)])}
    command = [sys.executable, "-c", CHILD, url, f"sqlite:{memory}", cache, str(count), str(start)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def _content(path: Path) -> tuple[str, int, set[str]]:
    store = open_memory(f"sqlite:{path}")
    try:
        cases = [case for debate in store.debates() for case in debate.states]
        return store.snapshot().version, len(cases), store.known()
    finally:
        store.close()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_build_killed_again_and_again_is_the_undisturbed_one(tmp_path: Path) -> None:
    """40 questions, killed with −9 at 30 random moments and resumed; no finished debate is asked twice."""
    draw = random.Random(11)
    settings = FakeSettings(reply_tokens=12, summary_tokens=12, latency_ms=90)
    with FakeServer.spawn(settings) as server:
        whole = _spawn(server.base_url, tmp_path / "whole.db", ":memory:", 40)
        out, err = whole.communicate(timeout=120)
        assert (whole.returncode, err, len(out.split())) == (0, "", 41)
        server.reset()
        announced: set[str] = set()
        sizes = []
        for _ in range(30):
            child = _spawn(server.base_url, tmp_path / "killed.db", str(tmp_path / "calls.sqlite"), 40)
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            time.sleep(draw.uniform(0.0, 0.7))
            child.send_signal(signal.SIGKILL)
            out, _ = child.communicate(timeout=60)
            announced |= {line for line in out.split("\n")[:-1] if line}
            _, cases, known = _content(tmp_path / "killed.db")
            assert announced <= known
            assert cases == 6 * len(known)
            sizes.append(len(known))
        child = _spawn(server.base_url, tmp_path / "killed.db", str(tmp_path / "calls.sqlite"), 40)
        out, err = child.communicate(timeout=120)
        assert (child.returncode, err) == (0, "")
        asked = Counter(
            json.dumps(entry["body"], sort_keys=True) for entry in server.read_log() if entry["status"] == 200
        )
    assert sum(size < 40 for size in sizes) >= 15  # killed in the middle of the work, and not after it
    assert len(set(sizes)) > 3  # seven debates end together, so sizes come in steps
    assert _content(tmp_path / "killed.db") == _content(tmp_path / "whole.db")
    assert _content(tmp_path / "killed.db")[1] == 240
    # A reply may be lost between the server and the disk: at most those in flight when a kill came.
    assert sum(count - 1 for count in asked.values()) <= 7 * 30


async def test_two_build_and_one_searches_in_one_memory(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    settings = FakeSettings(reply_tokens=12, summary_tokens=12, latency_ms=5)
    with FakeServer.spawn(settings) as server:
        async with open_shelf(f"sqlite:{path}", Settings()):
            pass  # both find it there, or one makes it: either must work; here a reader needs it from the start
        builders = [_spawn(server.base_url, path, ":memory:", 25, start) for start in (0, 15)]
        store, sizes = open_memory(f"sqlite:{path}"), []
        try:
            while any(builder.poll() is None for builder in builders):
                bank = store.snapshot().bank("theorist")
                if bank:
                    sizes.append(len(bank))
                    case = bank.case(len(bank) - 1)
                    assert f"{int(bank.ids[-1]):016x}" == case.id
                await asyncio.sleep(0.01)
        finally:
            store.close()
        for builder in builders:
            _, err = builder.communicate(timeout=60)
            assert (builder.returncode, err) == (0, "")
    assert sizes == sorted(sizes)
    assert len(set(sizes)) > 3
    assert _content(path)[1] == 40 * 6  # ten questions were both's, and are there once
