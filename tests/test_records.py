"""Records: what is written comes back, what is torn is cut, and nobody else writes meanwhile."""

import asyncio
import errno
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2mad.errors import FileBusyError, StoreError
from r2mad.study.records import Writer, dump, ensure_writable, finished, latest, load, read, write_items
from r2mad.types import (
    AgentInfo,
    DebateRecord,
    Failure,
    Item,
    MemoryInfo,
    Peer,
    Question,
    Reply,
    Retrieved,
    Round,
    Sampling,
    Usage,
    View,
)

texts = st.text(max_size=20)
maybe_texts = st.none() | texts
floats = st.none() | st.floats(allow_nan=False)
counts = st.integers(0, 2**53)
usages = st.builds(Usage, counts, counts, counts, counts)
replies = st.builds(
    Reply,
    agent=st.integers(0, 9),
    sample=st.integers(0, 9),
    text=texts,
    reasoning=maybe_texts,
    answer=maybe_texts,
    class_=st.none() | st.integers(0, 9),
    mean_logprob=floats,
    mean_top_logprob=floats,
    verbal_confidence=floats,
    usage=usages,
    cached=st.booleans(),
    error=st.none() | st.builds(Failure, texts, texts),
)
cases = st.builds(Retrieved, texts, st.floats(-1, 1), st.floats(0, 1))
peers = st.builds(Peer, st.integers(0, 9), st.booleans(), floats, maybe_texts, floats, maybe_texts)
views = st.builds(
    View, agent=st.integers(0, 9), messages=texts, trimmed=counts, trade_off=floats,
    candidates=st.lists(cases, max_size=2).map(tuple), retrieved=st.lists(cases, max_size=2).map(tuple),
    peers=st.lists(peers, max_size=2).map(tuple),
)  # fmt: skip
rounds = st.builds(
    Round,
    index=st.integers(0, 9),
    consensus=st.floats(0, 1),
    replies=st.lists(replies, max_size=3).map(tuple),
    views=st.lists(views, max_size=2).map(tuple),
    summary=maybe_texts,
    undecided=st.lists(texts, max_size=2).map(tuple),
)
questions = st.builds(Question, texts.filter(str.strip), st.just(()) | st.just(("yes", "no")))
agents = st.builds(AgentInfo, texts, texts, st.just(Sampling(extra_body={"top_k": 3})))
records = st.builds(
    DebateRecord,
    id=texts, method=texts, seed=st.integers(0, 2**63), question=questions,
    agents=st.lists(agents, max_size=2).map(tuple),
    prompts=texts, rounds=st.lists(rounds, max_size=3).map(tuple), answer=maybe_texts,
    votes=st.dictionaries(texts, st.floats(0, 9), max_size=3), tie=st.booleans(),
    tied=st.lists(texts, max_size=2).map(tuple),
    stopped=st.sampled_from(["unanimity", "rounds", "failed"]), degraded=st.booleans(), confidence=floats,
    calls=st.just({"debate": 3, "summary": 0, "judge": 0}), usage=st.just({"debate": Usage(1, 2)}),
    seconds=st.floats(0, 1e6), started=texts, memory=st.none() | st.builds(MemoryInfo, texts, texts),
)  # fmt: skip


def _record(**changes: object) -> DebateRecord:
    fields: dict[str, object] = dict(  # noqa: C408  (reads like the call it stands for)
        id="d1", method="mad", seed=1, question=Question("Why?"), agents=(AgentInfo("theorist", "scripted/x"),),
        prompts="general:0", rounds=(Round(0, 1.0, (Reply(0, text="x", answer="x", class_=0),)),), answer="x",
        votes={"x": 1.0}, tie=False, tied=(), stopped="rounds", degraded=False, confidence=1.0,
        calls={"debate": 1}, usage={}, seconds=0.1, started="2026-01-01T00:00:00.000+00:00",
    )  # fmt: skip
    return DebateRecord(**{**fields, **changes})  # type: ignore[arg-type]  # a test's shorthand


@given(records)
@settings(max_examples=150)
def test_a_record_comes_back_as_it_was(record: DebateRecord) -> None:
    line = dump(record)
    assert b"\n" not in line
    assert load(DebateRecord, line) == record


def test_the_names_on_disk_are_the_documented_ones() -> None:
    data = json.loads(dump(_record()))
    assert set(data) == {
        "schema", "id", "study", "method", "seed", "dataset", "split", "question", "agents", "prompts", "embedder",
        "memory", "rounds", "answer", "votes", "tie", "tied", "stopped", "degraded", "confidence", "calls", "usage",
        "seconds", "started", "composition", "judgements", "choice", "calibrated", "abstained",
    }  # fmt: skip
    reply = data["rounds"][0]["replies"][0]
    assert reply["class"] == 0
    assert {"agent", "sample", "text", "answer", "finish_reason", "mean_logprob", "mean_top_logprob",
            "verbal_confidence", "usage", "seconds", "cached", "error"} <= set(reply)  # fmt: skip
    assert "gold" not in json.dumps(data)


def test_a_log_probability_of_minus_infinity_survives_as_valid_json() -> None:
    record = _record(rounds=(Round(0, 1.0, (Reply(0, mean_logprob=-math.inf),)),))
    json.loads(dump(record), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert load(DebateRecord, dump(record)).rounds[0].replies[0].mean_logprob == -math.inf


def test_a_newer_schema_is_named() -> None:
    line = dump(_record()).replace(b'"schema":1', b'"schema":99')
    with pytest.raises(StoreError, match="schema 99 is newer"):
        load(DebateRecord, line, "here")


async def test_append_and_read(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "debates.jsonl"
    async with Writer[DebateRecord](path) as writer:
        await asyncio.gather(*(writer.append(_record(id=f"d{number}")) for number in range(50)))
    assert sorted(record.id for record in read(DebateRecord, path)) == sorted(f"d{number}" for number in range(50))


async def test_the_last_line_of_an_id_counts(tmp_path: Path) -> None:
    path = tmp_path / "debates.jsonl"
    async with Writer[DebateRecord](path) as writer:
        await writer.append(_record(stopped="failed"))
        await writer.append(_record(id="d2", stopped="failed"))
        await writer.append(_record(answer="y"))
    assert finished(path) == {"d1"}
    assert latest(path)["d1"].answer == "y"


@pytest.mark.parametrize("cut", [1, 2, 40])
async def test_a_torn_tail_is_passed_over_and_then_cut(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "debates.jsonl"
    whole = dump(_record()) + b"\n"
    path.write_bytes(whole + whole[:-cut])
    assert [record.id for record in read(DebateRecord, path)] == ["d1"]
    async with Writer[DebateRecord](path) as writer:
        assert path.read_bytes() == whole
        await writer.append(_record(id="d2"))
    assert [record.id for record in read(DebateRecord, path)] == ["d1", "d2"]


async def test_a_disk_that_fills_up_in_the_middle_of_a_line_leaves_the_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write, written = tmp_path / "debates.jsonl", os.write, list[int]()

    def fills_up(file: int, data: memoryview) -> int:
        if written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(write(file, data[:10]))
        return written[0]

    async with Writer[DebateRecord](path) as writer:
        await writer.append(_record())
        whole = path.read_bytes()
        with monkeypatch.context() as full:
            full.setattr(os, "write", fills_up)
            with pytest.raises(StoreError, match="No space left"):
                await writer.append(_record(id="d2"))
        assert written == [10]
        assert path.read_bytes() == whole
        await writer.append(_record(id="d3"))
    assert [record.id for record in read(DebateRecord, path)] == ["d1", "d3"]


async def test_a_file_that_is_nothing_but_a_torn_line_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "debates.jsonl"
    path.write_bytes(b"x" * 200_000)
    async with Writer[DebateRecord](path):
        assert path.read_bytes() == b""


def test_a_damaged_line_is_named_by_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "debates.jsonl"
    path.write_bytes(dump(_record()) + b"\nnot json\n")
    with pytest.raises(StoreError, match=r"debates\.jsonl, line 2"):
        list(read(DebateRecord, path))


async def test_one_process_writes_a_file_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "debates.jsonl"
    async with Writer[DebateRecord](path):
        with pytest.raises(FileBusyError, match="another process is writing"):
            Writer[DebateRecord](path)
        waiting = asyncio.create_task(Writer[DebateRecord].when_free(path))
        await asyncio.sleep(0.1)
        assert not waiting.done()
    (await waiting).close()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("a file where a folder should be")
    for attempt in (ensure_writable, Writer[DebateRecord]):
        with pytest.raises(StoreError, match="cannot be written"):
            attempt(blocker / "debates.jsonl")


def test_items_of_a_run_stay_the_same(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    one, two = Item(Question("1?", id="a"), "1"), Item(Question("2?", id="b"), "2")
    write_items(path, [one])
    write_items(path, [one, two])
    assert list(read(Item, path)) == [one, two]
    with pytest.raises(StoreError, match="another question or gold"):
        write_items(path, [Item(Question("1?", id="a"), "one")])


@pytest.mark.parametrize("moment", [0.0, 0.01, 0.03, 0.1])
def test_a_killed_writer_leaves_whole_lines_and_at_most_one_torn(tmp_path: Path, moment: float) -> None:
    path = tmp_path / "debates.jsonl"
    code = f"""
import asyncio
from pathlib import Path
from r2mad.study.records import Writer
from r2mad.types import Item, Question
async def main():
    async with Writer[Item](Path({str(path)!r})) as writer:
        print("ready", flush=True)
        for number in range(100000):
            await writer.append(Item(Question("q" * 3000, id=str(number)), "gold"))
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        import time

        time.sleep(moment)
        os.kill(process.pid, signal.SIGKILL)
    seen = [item.question.id for item in read(Item, path)]
    assert seen == [str(number) for number in range(len(seen))]
    Writer[Item](path).close()
    assert [item.question.id for item in read(Item, path)] == seen
