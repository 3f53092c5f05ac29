"""The cache: what is shared, what is kept, and what a damaged file says."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import r2mad
from r2mad.errors import ServerFaultError, StoreError, UsageError
from r2mad.models import CachedModel, CallCache, ScriptedModel
from r2mad.models._cache_file import VERSION
from r2mad.models.cached import call_key
from r2mad.types import Completion, Message, Request, Sampling, Usage

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(r2mad.__path__[0]).parent)}


def ask(text: str = "x", seed: int = 1, agent: int = 0, sample: int = 0) -> Request:
    return Request((Message("user", text),), Sampling(), seed, agent, sample)


def echo(seconds: float = 0.0) -> ScriptedModel:
    return ScriptedModel(
        lambda request: f"{request.messages[-1].content}/{request.seed}", "scripted/echo", "echo", seconds
    )


async def test_a_hit_is_the_first_reply_whole() -> None:
    whole = Completion("text \ud800 é", "why", "length", -1.5, -1.0, Usage(1, 2, 3, 4), 2.5, model="m")
    model = CachedModel(ScriptedModel([whole]), CallCache())
    assert await model.complete(ask()) == whole
    assert await model.complete(ask()) == replace(whole, cached=True)
    assert (model.cache.hits, model.cache.misses, len(model.cache)) == (1, 1, 1)
    assert (model.name, model.identity) == (model.uncached.name, model.uncached.identity)
    await model.aclose()
    model.cache.close()
    model.cache.close()


def test_the_key_holds_all_that_decides_a_reply() -> None:
    base = ask()
    others = [
        ask("y"),
        ask(seed=2),
        ask(agent=1),
        ask(sample=1),
        replace(base, messages=(Message("system", "x"),)),
        replace(base, messages=(Message("user", ""), Message("user", "x"))),
        *(
            replace(base, sampling=Sampling(**how))
            for how in (
                {"temperature": 0.5},
                {"top_p": 0.5},
                {"max_tokens": 5},
                {"logprobs": True},
                {"extra_body": {"a": 1}},
            )
        ),
    ]
    keys = {call_key("m", request) for request in [base, *others]} | {call_key("n", base)}
    assert len(keys) == len(others) + 2
    assert call_key("m", replace(base, kind="judge")) == call_key("m", base)
    assert call_key("m", replace(base, sampling=Sampling(temperature=1))) == call_key("m", base)
    ordered = [replace(base, sampling=Sampling(extra_body=body)) for body in ({"a": 1, "b": 2}, {"b": 2, "a": 1})]
    assert call_key("m", ordered[0]) == call_key("m", ordered[1])
    with pytest.raises(UsageError):
        call_key("m", replace(base, sampling=Sampling(extra_body={"a": object()})))
    assert call_key("m", base) == "a09d6f7e4f100b8aeb83a1b29641801f"  # a change here forgets every user's cache


async def test_calls_in_flight_are_shared() -> None:
    inner = echo(0.05)
    model = CachedModel(inner, CallCache())
    got = await asyncio.gather(*(model.complete(ask()) for _ in range(5)), model.complete(ask("z")))
    assert [one.cached for one in got] == [False, True, True, True, True, False]
    assert len({one.text for one in got[:5]}) == 1
    assert len(inner.requests) == 2


async def test_errors_reach_all_who_wait_and_are_not_kept() -> None:
    inner = ScriptedModel([ServerFaultError("down"), "up"], seconds=0.02)
    model = CachedModel(inner, CallCache())
    got = await asyncio.gather(*(model.complete(ask()) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in got] == [ServerFaultError] * 3
    assert len(model.cache) == 0
    assert (await model.complete(ask())).text == "up"


async def test_a_broken_reply_is_not_kept_and_a_cut_one_is() -> None:
    model = CachedModel(
        ScriptedModel([Completion("", finish_reason=""), Completion("a", finish_reason="length")]), CallCache()
    )
    await model.complete(ask())
    await model.complete(ask())
    assert (await model.complete(ask())) == Completion("a", finish_reason="length", cached=True)


@pytest.mark.parametrize("who", [0, 1])
async def test_who_is_cancelled_leaves_the_call_to_the_others(who: int) -> None:
    inner = echo(0.05)
    model = CachedModel(inner, CallCache())
    tasks = [asyncio.create_task(model.complete(ask())) for _ in range(3)]
    await asyncio.sleep(0.01)
    tasks[who].cancel()
    got = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(got[who], asyncio.CancelledError)
    assert [one.text for one in got if isinstance(one, Completion)] == ["x/1", "x/1"]
    assert len(inner.requests) == 1


async def test_a_call_that_nobody_waits_for_is_cancelled() -> None:
    ended: list[str] = []

    async def slow(request: Request) -> str:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "done"

    model = CachedModel(ScriptedModel(slow), CallCache())
    tasks = [asyncio.create_task(model.complete(ask())) for _ in range(2)]
    await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    again = asyncio.create_task(model.complete(ask()))  # does not inherit the cancellation
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (await again).text == "done"
    assert ended == ["cancelled"]


async def test_older_entries_are_read_or_not(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "calls.db"
    with CallCache(path) as cache:
        await CachedModel(echo(), cache).complete(ask())
    with CallCache(path) as cache:
        inner = echo()
        assert (await CachedModel(inner, cache).complete(ask())).cached
        assert not inner.requests
    with CallCache(path, read_older=False) as cache, CallCache(path, read_older=False) as other:
        inner = echo()
        model = CachedModel(inner, cache)
        assert not (await model.complete(ask())).cached
        await CachedModel(echo(), other).complete(ask())  # another run's entry does not displace this run's
        assert (await model.complete(ask())).cached
        assert len(inner.requests) == 1
        assert len(cache) == 3


WRITER = """
import asyncio, sys
from r2mad.models import CachedModel, CallCache, ScriptedModel
from r2mad.types import Message, Request, Sampling
async def main(path, first, count):
    model = CachedModel(ScriptedModel(lambda request: "word " * 400, "s", "s"), CallCache(path))
    for seed in range(first, first + count):
        await model.complete(Request((Message("user", "x"),), Sampling(), seed))
        if seed == first + 20:
            print("going", flush=True)
asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""


def writer(path: Path, first: int, count: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WRITER, str(path), str(first), str(count)]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)


def test_several_processes_write_one_file(tmp_path: Path) -> None:
    processes = [writer(tmp_path / "calls.db", first * 100, 100) for first in range(3)]  # all create it at once
    for process in processes:
        with process:
            process.communicate(timeout=60)
        assert process.returncode == 0
    with CallCache(tmp_path / "calls.db") as cache:
        assert len(cache) == 300


def test_a_process_killed_while_it_writes_leaves_a_whole_file(tmp_path: Path) -> None:
    with writer(tmp_path / "calls.db", 0, 10_000_000) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "going\n"
        time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    with CallCache(tmp_path / "calls.db") as cache:
        assert len(cache) > 20
        database = sqlite3.connect(tmp_path / "calls.db")
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        database.close()


def check_unusable(path: Path, match: str) -> None:
    with pytest.raises(StoreError, match=match) as caught:
        CallCache(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    path.write_bytes(b"not a database, by no means" * 100)
    check_unusable(path, "is damaged .*: delete it, or name another file")
    assert path.read_bytes().startswith(b"not a database")  # nothing of it was touched


async def test_a_file_damaged_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    with CallCache(path) as cache:
        model = CachedModel(ScriptedModel(lambda request: "word " * 2000, identity="s"), cache)
        for seed in range(20):
            await model.complete(ask(seed=seed))
    raw = bytearray(path.read_bytes())
    raw[4096:] = b"\xff" * (len(raw) - 4096)
    path.write_bytes(raw)
    with CallCache(path) as cache, pytest.raises(StoreError, match="is damaged"):
        await CachedModel(ScriptedModel(lambda request: "new", identity="s"), cache).complete(ask())


async def test_a_damaged_entry_is_asked_for_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "calls.db"
    with CallCache(path) as cache:
        await CachedModel(echo(), cache).complete(ask())
    for broken in ('{"text": ', "[]", '{"usage": [1, 2, 3, 4, 5]}', '{"usage": null, "zzz": 1}'):
        database = sqlite3.connect(path)
        with database:
            database.execute("UPDATE calls SET completion = ?", (broken,))
        database.close()
        with CallCache(path) as cache:
            assert not (await CachedModel(echo(), cache).complete(ask())).cached
    assert caplog.text.count("is damaged; the call is made again") == 4


def test_a_newer_schema(tmp_path: Path) -> None:
    CallCache(tmp_path / "calls.db").close()
    database = sqlite3.connect(tmp_path / "calls.db")
    database.execute(f"PRAGMA user_version = {VERSION + 1}")
    database.close()
    check_unusable(tmp_path / "calls.db", r"newer r2mad \(schema 2\): update")


def test_another_program_s_database(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "mine.db")
    database.execute("CREATE TABLE precious (x)")
    database.close()
    check_unusable(tmp_path / "mine.db", "not a call cache")


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "directory").mkdir()
    check_unusable(tmp_path / "file" / "calls.db", "cannot be used")
    check_unusable(tmp_path / "directory", "cannot be used")


async def test_a_full_disk_loses_no_reply(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with CallCache(tmp_path / "calls.db") as cache:
        cache._file._database.execute("PRAGMA query_only = 1")  # as good as full
        inner = echo()
        model = CachedModel(inner, cache)
        for seed in (1, 2, 1, 2):
            assert (await model.complete(ask(seed=seed))).text == f"x/{seed}"
    assert len(inner.requests) == 2
    assert caplog.text.count("kept in memory for this run") == 1


async def test_a_hit_and_a_miss_are_cheap(tmp_path: Path) -> None:
    with CallCache(tmp_path / "calls.db") as cache:
        model = CachedModel(ScriptedModel(lambda request: "word " * 300, identity="s"), cache)
        requests = [ask("word " * 1000, seed) for seed in range(200)]
        spent = []
        for _ in range(2):
            start = time.process_time()
            for request in requests:
                await model.complete(request)
            spent.append((time.process_time() - start) / 200)
    assert max(spent) < 0.002  # about 0.15 and 0.08 ms; generous, as the machine is shared
