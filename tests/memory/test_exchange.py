"""A memory as lines and back: exact with vectors, renewed without, and damage is named by file and line."""

import asyncio
import base64
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2mad.errors import ServerFaultError, StoreError
from r2mad.experience import Outcome, Remembered
from r2mad.memory import open_memory
from r2mad.memory.cases import embed_debate
from r2mad.memory.exchange import Description, Import, Renew, export_lines, read_in
from r2mad.protocols import MemoryStore
from r2mad.types import DebateRecord, Question
from tests.doubles import WordEmbedder
from tests.memory.made import made, same

Lines = list[bytes]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    with closing(_open(tmp_path / "old.db")) as opened:
        yield opened


def _open(path: Path, embedder: str = "words/8", dimension: int = 8) -> MemoryStore:
    return open_memory(f"sqlite:{path}", embedder=embedder, dimension=dimension)


def _odd() -> Remembered:
    """A debate with everything that JSON finds hard."""
    debate = made(7, failed=[(1, 2)], rewards=(0.1, None, 1 / 3), question=Question("Ünïcode 漢\u2028?", ("a", "\n b")))
    first = debate.record.rounds[0]
    hard = replace(first.replies[0], mean_logprob=-math.inf, class_=1, text="\x00\x1b[2J\U0001f600", answer=None)
    rounds = (replace(first, replies=(hard, *first.replies[1:])), *debate.record.rounds[1:])
    agents = tuple(
        replace(agent, sampling=replace(agent.sampling, extra_body={"top_k": 20, "deep": [None, {"x": 1e-9}]}))
        for agent in debate.record.agents
    )
    return replace(debate, record=replace(debate.record, rounds=rounds, agents=agents))


def _no_renewal(record: DebateRecord, outcome: Outcome) -> Any:
    raise AssertionError(f"{record.id} was to be taken as it is")


def _renewing(embedder: WordEmbedder) -> Renew:
    async def renew(record: DebateRecord, outcome: Outcome) -> Remembered:
        return await embed_debate(record, outcome, embedder)

    return renew


def _read(lines: Sequence[bytes], store: MemoryStore, renew: Renew = _no_renewal, **more: Any) -> Import:
    source = Import(lines, "file.jsonl")
    asyncio.run(read_in(source, store, renew, **more))
    return source


def _with_vectors(store: MemoryStore, number: int = 5) -> Lines:
    store.add([*(made(index) for index in range(number - 1)), _odd()])
    return list(export_lines(store, vectors=True))


def test_with_vectors_all_comes_back_to_the_last_bit(store: MemoryStore, tmp_path: Path) -> None:
    lines = _with_vectors(store)
    with closing(_open(tmp_path / "new.db")) as new:
        source = _read(lines, new)
        assert (source.read, source.added, source.complete) == (5, 5, True)
        assert new.snapshot().version == store.snapshot().version
        assert list(map(same, store.debates(), new.debates())) == [True] * 5
        assert new.roster() == store.roster()
        for old, read in zip(store.debates(), new.debates(), strict=True):
            assert old.question.tobytes() == read.question.tobytes()
            assert old.replies.tobytes() == read.replies.tobytes()
            assert [state.tobytes() for state in old.states.values()] == [one.tobytes() for one in read.states.values()]
        again = [json.loads(line) for line in export_lines(new, vectors=True)]
        assert [{**line, "added": ""} for line in again] == [{**json.loads(line), "added": ""} for line in lines]


def test_the_first_line_describes_the_memory(store: MemoryStore) -> None:
    first, *rest = map(json.loads, _with_vectors(store))
    assert first == {
        "schema": 1,
        "memory": {
            "embedder": "words/8",
            "dimension": 8,
            "form": "paper",
            "version": store.snapshot().version,
            "debates": 5,
            "vectors": True,
        },
    }
    assert [sorted(line) for line in rest] == [["added", "outcome", "record", "schema", "vectors"]] * 5
    assert all(line["added"] for line in rest)
    text = [json.loads(line) for line in export_lines(store)]
    assert text[0]["memory"]["vectors"] is False
    assert [sorted(line) for line in text[1:]] == [["added", "outcome", "record", "schema"]] * 5


def test_text_is_embedded_anew_and_keeps_its_version(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    renew = _renewing(embedder)
    debates = [asyncio.run(_renewed(renew, made(number, failed=[(2, 1)]))) for number in range(4)]
    with closing(_open(tmp_path / "a.db", embedder.name, 64)) as old:
        old.add(debates)
        lines = list(export_lines(old))
        with closing(_open(tmp_path / "b.db", embedder.name, 64)) as new:
            embedder.asked.clear()
            assert _read(lines, new, renew).added == 4
            assert embedder.asked
            assert new.snapshot().version == old.snapshot().version
            assert all(map(same, old.debates(), new.debates()))


async def _renewed(renew: Renew, debate: Remembered) -> Remembered:
    return await renew(debate.record, debate.outcome)


def test_vectors_of_another_embedder_are_not_taken(store: MemoryStore, tmp_path: Path) -> None:
    lines = _with_vectors(store)
    with closing(_open(tmp_path / "new.db", "words/64", 64)) as new:
        embedder = WordEmbedder()
        assert _read(lines, new, _renewing(embedder)).added == 5
        assert embedder.asked
        assert all(len(debate.question) == 64 for debate in new.debates())


def test_states_of_another_form_are_not_taken(store: MemoryStore, tmp_path: Path) -> None:
    lines = _with_vectors(store)
    place = f"sqlite:{tmp_path / 'new.db'}"
    embedder = WordEmbedder(8)
    with closing(open_memory(place, embedder="words/8", dimension=8, form="official")) as new:
        assert _read(lines, new, _renewing(embedder)).added == 5
    assert embedder.asked


def test_twice_adds_nothing_and_embeds_nothing(store: MemoryStore, tmp_path: Path) -> None:
    lines = _with_vectors(store)
    with closing(_open(tmp_path / "new.db")) as new:
        _read(lines, new)
        version = new.snapshot().version
        text = list(export_lines(store))
        assert _read([*text, *text[1:]], new).added == 0  # `_no_renewal` would have raised
        assert new.snapshot().version == version


def test_joined_files_each_describe_their_own(store: MemoryStore, tmp_path: Path) -> None:
    with closing(_open(tmp_path / "other.db", "words/64", 64)) as other:
        other.add([made(number, dimension=64) for number in range(20, 23)])
        lines = [*_with_vectors(store), *export_lines(other, vectors=True)]
    with closing(_open(tmp_path / "new.db")) as new:
        embedder = WordEmbedder(8)
        source = _read(lines, new, _renewing(embedder))
    assert (source.read, source.added, source.complete) == (8, 8, True)


def test_batches_are_announced_and_an_interrupted_import_goes_on(store: MemoryStore, tmp_path: Path) -> None:
    embedder, told = WordEmbedder(8), list[int]()
    store.add([asyncio.run(_renewed(_renewing(embedder), made(number))) for number in range(7)])
    lines = list(export_lines(store))
    with closing(_open(tmp_path / "new.db")) as new:
        source = Import(lines, "file.jsonl")

        def announce(number: int) -> None:
            told.append(number)
            embedder.broken = number == 4

        with pytest.raises(ServerFaultError):
            asyncio.run(read_in(source, new, _renewing(embedder), announce, batch=2))
        assert (told, source.added, len(new.known())) == ([2, 4], 4, 4)
        embedder.broken = False
        assert _read(lines, new, _renewing(embedder), announce=told.append, batch=2).added == 3
        assert new.snapshot().version == store.snapshot().version


def test_a_torn_last_line_is_left_out_and_told(store: MemoryStore, tmp_path: Path) -> None:
    lines = _with_vectors(store)
    for torn in (lines[-1][:-1], lines[-1][:100], b"{"):
        with closing(_open(tmp_path / f"{len(torn)}.db")) as new:
            source = _read([*lines[:-1], torn], new)
            assert (source.read, source.added, source.torn, source.complete) == (4, 4, 6, False)


def test_a_file_whose_end_is_missing_is_not_complete(store: MemoryStore, tmp_path: Path) -> None:
    lines = _with_vectors(store)
    with closing(_open(tmp_path / "new.db")) as new:
        source = _read(lines[:-2], new)
    assert (source.read, source.promised, source.torn, source.complete) == (3, 5, None, False)


def test_a_hand_edited_file(store: MemoryStore, tmp_path: Path) -> None:
    lines = _with_vectors(store)
    edited = [b"\xef\xbb\xbf" + lines[0], b"\n", *(line[:-1] + b"\r\n" for line in lines[1:]), b"  \n"]
    with closing(_open(tmp_path / "new.db")) as new:
        source = Import(edited, "file.jsonl")
        assert source.begin().embedder == "words/8"
        asyncio.run(read_in(source, new, _no_renewal))
        assert (source.read, source.complete) == (5, True)


def _changed(line: bytes, *path: str | int, to: object) -> bytes:
    whole = json.loads(line)
    inner = whole
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = to
    return json.dumps(whole).encode() + b"\n"


HALF = base64.b64encode(np.full(8, 0.1, np.float32).tobytes()).decode()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["schema"], 2, "schema 2 is newer than this r2mad knows (1); update it"),
        (["record", "schema"], 2, "schema 2 is newer"),
        (["record", "rounds"], [], "rounds are not 0, 1 and so on"),
        (["record", "rounds", 1, "index"], 5, "rounds are not 0, 1 and so on"),
        (["record", "rounds", 1, "replies"], [], "not one reply of each agent"),
        (["record", "rounds"], "none", "not a MemoryLine"),
        (["record", "question", "text"], " ", "the question is empty"),
        (["record"], None, "neither a debate"),
        (["outcome"], None, "neither a debate"),
        (["outcome", "rewards"], [1.0], "3 agents need a reward each"),
        (["outcome", "rewards"], [1.0, 0.0, "NaN"], "3 agents need a reward each"),
        (["outcome", "correct"], [[True]], "`correct` needs a row for each round"),
        (["outcome", "correct", 2], [True], "`correct` needs a row for each round"),
        (["vectors", "question"], "%%%", "its vectors are damaged: not base64"),
        (["vectors", "question"], "漢", "its vectors are damaged"),
        (["vectors", "question"], "AAAA", "3 bytes where 8 numbers"),
        (["vectors", "question"], HALF, "a length that is neither 1 nor 0"),
        (["vectors", "question"], base64.b64encode(b"\xff" * 32).decode(), "a length that is neither 1 nor 0"),
        (["vectors", "replies"], HALF, "32 bytes where 3 x 3 x 8 numbers"),
        (["vectors", "states", 0, 0], 9, "a state of agent 0 in round 9"),
        (["vectors", "states"], 4, "not a MemoryLine: vectors.states"),
    ],
)
def test_a_damaged_line_is_named_and_all_above_it_is_kept(
    path: list[str | int], value: object, message: str, store: MemoryStore, tmp_path: Path
) -> None:
    lines = _with_vectors(store)
    lines[3] = _changed(lines[3], *path, to=value)
    with closing(_open(tmp_path / "new.db")) as new:
        source = Import(lines, "file.jsonl")
        with pytest.raises(StoreError) as caught:
            asyncio.run(read_in(source, new, _no_renewal))
        assert str(caught.value).startswith("file.jsonl, line 4: ")
        assert message in str(caught.value).replace("'", "")
        assert (source.added, len(new.known())) == (2, 2)


@pytest.mark.parametrize("line", [b"no JSON\n", b"[]\n", b'"text"\n', b"{}\n", b"\xff\xfe\n", b"{" * 100_000 + b"\n"])
def test_what_is_no_line_of_ours_is_refused(line: bytes, store: MemoryStore) -> None:
    lines = _with_vectors(store)
    with pytest.raises(StoreError, match=r"^file\.jsonl, line 3: "):
        _read([*lines[:2], line, *lines[3:]], store)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "file.jsonl: it is empty"),
        ([b"{"], "file.jsonl: its first line is not whole"),
        ([b"# notes\n"], "file.jsonl, line 1: not a MemoryLine"),
        ([b'{"schema":2,"memory":{"new":1}}\n'], "file.jsonl, line 1: schema 2 is newer"),
        ([b'{"schema":1,"memory":{"embedder":"x"}}\n'], "file.jsonl, line 1: not a MemoryLine: memory.dimension"),
        ([b'{"schema":1,"record":null}\n'], "file.jsonl, line 1: it does not describe a memory"),
        ([b"\n", b"\n"], "file.jsonl: it is empty"),
    ],
)
def test_a_first_line_that_describes_nothing(lines: Lines, message: str) -> None:
    with pytest.raises(StoreError) as caught:
        Import(lines, "file.jsonl").begin()
    assert message in str(caught.value)


def test_an_export_is_of_one_version(tmp_path: Path, store: MemoryStore) -> None:
    store.add([made(number) for number in range(3)])
    lines = export_lines(store)
    version = json.loads(next(lines))["memory"]["version"]
    store.add([made(9)])
    assert len(list(lines)) == 3
    with closing(_open(tmp_path / "new.db")) as new:
        new.add([made(number) for number in range(3)])
        assert new.snapshot().version == version


def test_an_export_from_which_something_was_taken_is_refused(store: MemoryStore) -> None:
    store.add([made(number) for number in range(3)])
    lines = export_lines(store)
    next(lines)
    store.forget([made(1).record.id])
    with pytest.raises(StoreError, match="1 debates were taken out"):
        list(lines)


def test_an_empty_memory(store: MemoryStore, tmp_path: Path) -> None:
    lines = list(export_lines(store))
    assert len(lines) == 1
    with closing(_open(tmp_path / "new.db")) as new:
        source = _read(lines, new)
        assert (source.read, source.complete) == (0, True)
        assert source.about == Description("words/8", 8, "paper", new.snapshot().version, 0)
