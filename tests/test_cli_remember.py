"""`r2mad remember`, and `ask` with a memory, from the command line against a fake server."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from r2mad.cli.main import main
from r2mad.memory import open_memory
from r2mad.models.fake_server import FakeServer, SpawnedServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.study.records import DEBATES, read
from r2mad.types import DebateRecord

OPTIONS = ["--option", "Yes", "--option", "No"]


@pytest.fixture(scope="module")
def server() -> Iterator[SpawnedServer]:
    with FakeServer.spawn(FakeSettings(model="*", reply_tokens=12, summary_tokens=12)) as running:
        yield running


@pytest.fixture(autouse=True)
def _a_users_machine(server: SpawnedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("R2MAD_CACHE", ":memory:")
    monkeypatch.setenv("R2MAD_LOG_DIR", str(tmp_path / "logs"))


def _remember(*more: str, limit: str = "4") -> int:
    words = ["remember", "starter", "--memory", "sqlite:m.db", "--model", "openai/any", "--limit", limit]
    return main([*words, *more])


def _debates(path: str = "m.db") -> list[tuple[str, str]]:
    store = open_memory(f"sqlite:{path}")
    try:
        return [(debate.record.id, debate.outcome.source) for debate in store.debates()]
    finally:
        store.close()


def test_it_builds_tells_how_far_it_is_and_goes_on(server: SpawnedServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert _remember() == 0
    out, err = capsys.readouterr()
    assert out == "sqlite:m.db: 4 debates added, 24 cases\n"
    assert "[4/4, about 0 s left]" in err
    assert {source for _, source in _debates()} == {"gold"}
    asked = server.health()["requests"]
    assert _remember("--json", "--display", "none", limit="6") == 0
    out, err = capsys.readouterr()
    assert (json.loads(out)["known"], json.loads(out)["added"], err) == (4, 2, "")
    assert server.health()["requests"] == asked + 2 * 11


def test_a_verifier_a_function_and_feedback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = _remember("--outcome", "verifier:openai/judge")
    assert code in (0, 1)  # the fake judge may be unsure of all answers of a debate
    assert {source for _, source in _debates()} == {"verifier:openai/judge"}
    (tmp_path / "check.py").write_text("def right(question, answer):\n    return 1.0 if len(answer) > 1 else 0.0\n")
    assert _remember("--outcome", "check.py:right", "--seed", "1") == 0
    assert "python:check.py:right" in {source for _, source in _debates()}
    capsys.readouterr()
    for question in ("Is water wet?", "Is ice cold?"):
        assert main(["ask", question, *OPTIONS, "--model", "openai/any", "--seed", "3"]) == 0
    records = list(read(DebateRecord, tmp_path / "logs" / "ask" / DEBATES))
    with (tmp_path / "said.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("debate", "value"), (records[0].id, "1")])
    words = ["remember", "--records", "logs/ask", "--outcome", "said.csv", "--memory", "sqlite:said.db"]
    debated = [record for record in records if len(record.rounds) > 1]
    code = main(words)
    out = capsys.readouterr().out
    kept = [record.id for record in debated if record is records[0]]
    assert _debates("said.db") == [(id, "feedback") for id in kept]
    assert code == int(len(kept) < len(debated))  # what nobody judged is not kept, and said
    assert f"{len(kept)} debates added" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["remember", "starter", "--model", "openai/any"], "--memory"),
        (["remember", "starter", "--memory", "sqlite:m.db"], "no model"),
        (["remember", "--memory", "sqlite:m.db", "--model", "openai/any"], "no data set"),
        (["remember", "nothing", "--memory", "sqlite:m.db", "--model", "openai/any"], "no data set 'nothing'"),
        (["remember", "starter", "--memory", "m.db", "--model", "openai/any"], "scheme:place"),
        (["remember", "starter", "--memory", "redis:x", "--model", "openai/any"], "no kind of memory"),
        (["remember", "starter", "--memory", "sqlite:m.db", "--model", "openai/any", "--limit", "0"], "out of range"),
        (["remember", "starter", "--memory", "sqlite:m.db", "--model", "openai/any", "--records", "x"], "--records"),
        (["remember", "--memory", "sqlite:m.db", "--records", "none"], "no such records"),
        (["remember", "starter", "--memory", "sqlite:m.db", "--model", "openai/any", "--outcome", "x"], "--outcome"),
        (["remember", "starter", "--memory", "sqlite:m.db", "--model", "openai/any", "--outcome", "x.csv"], "x.csv"),
        (["remember", "starter", "--memory", "sqlite:m.db", "--model", "openai/any", "--outcome", "x.py:f"], "x.py:f"),
        (["remember", "starter", "--memory", "sqlite:m.db", "--model", "openai/any", "--embedder", "x"], "no embedder"),
        (["ask", "Is it?", *OPTIONS, "--model", "openai/any", "--method", "r2mad"], "needs a memory"),
        (["ask", "Is it?", *OPTIONS, "--model", "openai/any", "--k", "0"], "--k"),
    ],
)
def test_wrong_use_is_one_line_and_makes_nothing(
    words: list[str], said: str, tmp_path: Path, server: SpawnedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = server.health()["requests"]
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert (out, len(err.splitlines())) == ("", 1)
    assert not (tmp_path / "m.db").exists()
    assert server.health()["requests"] == asked


def test_a_place_that_cannot_be_written_costs_no_debate(
    server: SpawnedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("file").write_text("not a folder")
    Path("other.db").write_text("not a memory at all, but as long as the head of one might be" * 20)
    asked = server.health()["requests"]
    for place in ("sqlite:file/m.db", "sqlite:other.db"):
        words = ["remember", "starter", "--memory", place, "--model", "openai/any", "--limit", "1"]
        assert main(words) == 1
        err = capsys.readouterr().err
        assert len(err.splitlines()) == 1
        assert place.removeprefix("sqlite:") in err
    assert server.health()["requests"] == asked


def test_a_build_that_is_interrupted_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def stopped(*arguments: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("r2mad.study.remember.remember", stopped)
    assert _remember() == 130
    assert "goes on from there" in capsys.readouterr().err


def test_debates_that_fail_are_told_and_exit_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeServer.spawn(FakeSettings(model="*", faults={"500": 1.0})) as broken:
        assert _remember("--base-url", broken.base_url, "--max-retries", "0") == 1
    out, err = capsys.readouterr()
    assert "0 debates added, 0 cases; 4 failed" in out
    assert "run the same command again" in err
    assert "failed: 500 from" in err


def test_ask_with_a_memory_is_r2mad_and_shows_what_was_remembered(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeServer.spawn(FakeSettings(model="*", bias=0.0, adopt=0.0, reply_tokens=12, summary_tokens=12)) as server:
        assert _remember("--base-url", server.base_url, limit="70") == 0
        capsys.readouterr()
        options = [word for n in range(10) for word in ("--option", f"way {n}")]
        words = ["ask", "Which way?", *options, "--model", "openai/any", "--memory", "sqlite:m.db", "--seed", "5"]
        assert main([*words, "--base-url", server.base_url]) == 0
    out, err = capsys.readouterr()
    assert "r2mad: mad with experience memory" in err
    assert "theorist was reminded of 3 cases" in err
    assert "confidence in practitioner" in err
    assert re.search(r"^Memory: sqlite:m.db, \d{3} cases of these agents$", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--method", "mad"], "mad reads no memory"),
        (["--prompts", "facts"], "no cases of fact-checker, epistemologist; the others remember"),
        (["--prompts", "tiny"], "it knows generalist, practitioner, theorist; the debate runs without"),
    ],
)
def test_ask_warns_of_a_memory_that_is_of_no_use(
    more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _remember() == 0
    capsys.readouterr()
    words = ["ask", "Which way?", *OPTIONS, "--model", "openai/any", "--memory", "sqlite:m.db", "--display", "none"]
    assert main([*words, *more]) == 0
    out, err = capsys.readouterr()
    assert said in err
    assert ("ran as it would without a memory" in out) == said.endswith("without")


def test_ask_warns_of_a_question_whose_answer_is_in_the_memory(capsys: pytest.CaptureFixture[str]) -> None:
    from r2mad.study.datasets import load

    assert _remember() == 0
    capsys.readouterr()
    question = load("starter:train")[0].question
    words = ["ask", question.text, "--model", "openai/any", "--memory", "sqlite:m.db", "--json"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert "this very question is in the memory" in err
    record = json.loads(out)
    assert (record["method"], record["memory"]["cases"], record["embedder"]) == ("r2mad", 24, "wordllama/256")
