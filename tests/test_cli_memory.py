"""`r2mad memory` info, list, show, audit and forget: what a person sees, and what a script reads."""

import io
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from r2mad.cli.main import main
from r2mad.experience import Case, Remembered
from r2mad.study.datasets import load
from r2mad.study.records import DEBATES, SCORES, Writer
from r2mad.study.scores import Score, grade
from r2mad.types import DebateRecord, Item, MemoryInfo, Question, Retrieved, View
from tests.memory.filled import everything, fill, sound, version
from tests.memory.made import made

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R2MAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("R2MAD_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.chdir(tmp_path)


def _json(capsys: Capture, *arguments: str, code: int = 0) -> Any:
    assert main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


# info, list, show


def test_info(capsys: Capture) -> None:
    feedback = replace(sound(3, dataset="", split=""), outcome=replace(sound(3).outcome, source="feedback"))
    url = fill([sound(1), sound(2), feedback, made(4, models=("fake/two",), agents=1, rewards=(1.0,))])
    assert main(["memory", "info", url]) == 0
    out = capsys.readouterr().out
    for line in (
        "memory     sqlite:m.db",
        "embedder   words/8, 8 numbers a vector",
        "form       paper",
        f"version    {version(url)}",
        "data sets  made:train 2, none named 1, made:dev 1",
        "sources    gold 3, feedback 1",
        "cases      20",
        "        6  Ann, by fake/one",
        "        2  Ann, by fake/two",
    ):
        assert f"{line}\n" in out
    assert re.search(r"^size       [0-9.]+ MB$", out, re.MULTILINE)
    assert re.search(r"^debates    4, added from 20\S+ to 20\S+$", out, re.MULTILINE)
    row = _json(capsys, "memory", "info", url)
    assert (row["debates"], row["dimension"], row["version"]) == (4, 8, version(url))
    assert row["bytes"] == Path("m.db").stat().st_size
    assert {"name": "Cyd", "model": "fake/one", "cases": 6} in row["agents"]


def test_an_empty_memory(capsys: Capture) -> None:
    url = fill([])
    for verb in ("info", "list", "audit", "export"):
        assert main(["memory", verb, url]) == 0
    out = capsys.readouterr().out
    assert "debates    0\n" in out
    assert "0 debates, 0 cases" in out
    assert _json(capsys, "memory", "list", url) == []
    assert main(["memory", "audit", url, "--strict"]) == 0
    assert main(["memory", "forget", url, "--source", "gold"]) == 0
    assert "no debate is to go" in capsys.readouterr().out


def test_list_is_one_line_a_debate(capsys: Capture) -> None:
    debates = [sound(1, rewards=(1.0, None, 0.25)), sound(2, question=Question("Two\nlines \x1b[2J " + "long " * 50))]
    url = fill(debates)
    assert main(["memory", "list", url]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        rf"{debates[0].record.id}  20\d\d-\S+  made:train  gold  1 \? 0\.25  Question number 1\?", first
    )
    assert "\x1b" not in second
    assert "Two lines" in second
    assert second.endswith(" …")


def test_list_can_be_narrowed(capsys: Capture) -> None:
    feedback = replace(sound(3), outcome=replace(sound(3).outcome, source="feedback"))
    debates = [sound(1), sound(2, split="dev"), feedback, sound(4, dataset="other")]
    url = fill(debates)

    def listed(*filters: str) -> list[int]:
        ids = [debate.record.id for debate in debates]
        return [ids.index(row["id"]) + 1 for row in _json(capsys, "memory", "list", url, *filters)]

    assert listed() == [1, 2, 3, 4]
    assert listed("--dataset", "made") == [1, 2, 3]
    assert listed("--dataset", "made:train") == [1, 3]
    assert listed("--source", "feedback") == [3]
    assert listed("--question", "NUMBER 2") == [2]
    assert listed("--question", "made/4") == [4]
    assert listed("--limit", "2") == [3, 4]
    assert listed("--limit", "1", "--dataset", "made:train", "--source", "gold") == [1]
    assert listed("--dataset", "nothing") == []


def test_show_finds_a_debate_by_any_of_its_names(capsys: Capture) -> None:
    debates = [sound(number) for number in range(1, 5)]
    url = fill(debates)
    debate = debates[2]
    case = Case(debate, 2, 1).id
    for name in (debate.record.id, debate.record.id[:12], case, case[:12], "made/3"):
        assert main(["memory", "show", url, name]) == 0
        assert f"Debate {debate.record.id}, mad" in capsys.readouterr().out
    row = _json(capsys, "memory", "show", url, case)
    assert row["record"]["id"] == debate.record.id
    assert {"id": case, "round": 2, "agent": 1} in row["cases"]
    assert len(row["cases"]) == 6


def test_show_tells_who_was_right(capsys: Capture) -> None:
    debate = made(1, question=Question("Which\x1b[2J way?", ("left", "right")), rewards=(1.0, None, 0.5))
    replies = debate.record.rounds[2].replies
    hurt = replace(debate.record.rounds[2], replies=(replace(replies[0], answer=None), *replies[1:]))
    debate = replace(debate, record=replace(debate.record, rounds=(*debate.record.rounds[:2], hurt)))
    verdicts = (*debate.outcome.correct[:2], (None, True, False))
    debate = replace(debate, outcome=replace(debate.outcome, correct=verdicts))
    assert main(["memory", "show", fill([debate]), debate.record.id]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "(A) left\n  (B) right\n" in out
    assert "Right answer: a0, by gold; the group's: a0\n" in out
    assert "Ann, by fake/one: reward 1\n  Ben, by fake/two: reward not known\n  Cyd, by fake/one: reward 0.5\n" in out
    last = out.split("Round 2\n")[1].splitlines()
    assert last[0] == f"  Ann: no answer, not judged  case {Case(debate, 2, 0).id}"
    assert last[1].endswith(f", right  case {Case(debate, 2, 1).id}")
    assert last[2].endswith(f", wrong  case {Case(debate, 2, 2).id}")
    assert "case" not in out.split("Round 0\n")[1].split("Round 1\n")[0]


# audit


def _leaky() -> tuple[list[Remembered], list[str]]:
    """A memory with two questions of starter's test split, and the ids of the debates on them."""
    items = load("starter:test")[:2]
    leaks = [sound(50 + index, question=item.question, dataset="starter") for index, item in enumerate(items)]
    return [*(sound(number, dataset="starter") for number in range(6)), *leaks], [one.record.id for one in leaks]


def test_audit_holds_a_memory_against_the_other_splits_of_its_data_sets(capsys: Capture) -> None:
    debates, leaks = _leaky()
    url = fill(debates)
    assert main(["memory", "audit", url]) == 0
    out = capsys.readouterr().out
    assert "8 debates, 48 cases; held against starter:test\n" in out
    assert "wrong    overlap: starter:test: 2 questions in 2 debates\n" in out
    assert re.search(r"^ +16 +16 +50%  Ann, starter, gold$", out, re.MULTILINE)
    assert "nothing is wrong" not in out
    assert main(["memory", "audit", url, "--strict"]) == 1
    capsys.readouterr()
    found = _json(capsys, "memory", "audit", url, "--strict", code=1)
    assert (found["clean"], found["forget"], found["against"]) == (False, leaks, ["starter:test"])
    assert found["findings"][0]["kind"] == "overlap"
    assert found["retrieved"] is None


def test_audit_against_what_one_names(capsys: Capture) -> None:
    debates, _ = _leaky()
    url = fill([replace(one, record=replace(one.record, dataset="unknown")) for one in debates])
    assert main(["memory", "audit", url, "--strict", "--against", "starter:train"]) == 0
    assert "held against starter:train\n" in capsys.readouterr().out
    assert main(["memory", "audit", url, "--strict", "--against", "starter:train", "--against", "starter"]) == 1
    capsys.readouterr()
    assert main(["memory", "audit", url, "--strict"]) == 0  # nobody knows its data set, and it says so
    out, err = capsys.readouterr()
    assert "held against no data set" in out
    assert "not held against unknown: no data set 'unknown'" in err
    assert "nothing is wrong" in out


def test_a_warning_counts_if_strict(capsys: Capture) -> None:
    debates = [sound(number) for number in range(6)]
    debates[4] = replace(debates[4], question=debates[1].question)
    url = fill(debates)
    assert main(["memory", "audit", url]) == 0
    assert "warning  near-duplicate: 1 question nearly the same as another, in 1 debate\n" in capsys.readouterr().out
    assert main(["memory", "audit", url, "--strict"]) == 1


@pytest.mark.parametrize("rewards", [(1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (None, None, None)])
def test_a_memory_without_contrast_is_wrong(rewards: tuple[float | None, ...], capsys: Capture) -> None:
    url = fill([sound(number, rewards=rewards) for number in range(3)])
    assert main(["memory", "audit", url, "--strict"]) == 1
    assert "wrong    no-" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["ids", "json", "pipe"])
def test_what_an_audit_finds_can_be_forgotten(form: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    debates, leaks = _leaky()
    url = fill(debates)
    if form == "ids":
        assert main(["memory", "audit", url, "--ids", "bad.txt"]) == 0
        first, *ids = Path("bad.txt").read_text().splitlines()
        assert (first, ids) == ("# overlap: starter:test: 2 questions in 2 debates", leaks)
    else:
        Path("bad.txt").write_text(json.dumps(_json(capsys, "memory", "audit", url)))
    if form == "pipe":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("bad.txt").read_bytes())))
    capsys.readouterr()
    assert main(["memory", "forget", url, "--ids", "-" if form == "pipe" else "bad.txt", "--yes"]) == 0
    assert capsys.readouterr().out.endswith("forgot 2 debates\n")
    assert {debate.record.id for debate in everything(url)} == {one.record.id for one in debates} - set(leaks)
    assert main(["memory", "audit", url, "--strict"]) == 0


def _run(folder: Path, cases: Sequence[str]) -> Path:
    """A run of two debates, the first of which was reminded of these cases and ended right."""
    records, scores = Writer[DebateRecord](folder / DEBATES), Writer[Score](folder / SCORES)
    for number, right in ((80, True), (81, False)):
        record = made(number).record
        view = View(0, retrieved=tuple(Retrieved(case, 0.9, 1.0) for case in cases) if right else ())
        rounds = (record.rounds[0], replace(record.rounds[1], views=(view,)))
        record = replace(record, rounds=rounds, memory=MemoryInfo("sqlite:m.db", "v", 4))
        records.append_now(record)
        scores.append_now(grade(record, Item(record.question, "a0" if right else "b")))
    records.close()
    scores.close()
    return folder


def test_audit_of_a_run_shows_what_was_retrieved(capsys: Capture, tmp_path: Path) -> None:
    debates = [sound(number) for number in range(6)]
    url = fill(debates)
    here, gone = Case(debates[3], 1, 0).id, "0" * 16
    run = _run(tmp_path / "run", [here, here, gone])
    assert main(["memory", "audit", url, "--run", str(run)]) == 0
    out = capsys.readouterr().out
    assert "2 debates of the runs had a memory; 0 of them are not graded\n" in out
    assert re.search(rf"^ +2 +1  1/1, 21% to 100% +0/1, 0% to 79% +{here} Question number 3\?$", out, re.MULTILINE)
    assert f"{gone} (not in this memory)" in out
    found = _json(capsys, "memory", "audit", url, "--run", str(run))["retrieved"]
    assert (found["debates"], found["versions"]) == (2, ["v"])
    first, second = found["cases"]
    assert (first["case"], first["debate"], first["times"]) == (here, debates[3].record.id, 2)
    assert first["with_it"]["share"] == 1.0
    assert (second["case"], second["debate"]) == (gone, None)


# forget


def test_forget_shows_what_would_go_and_takes_it(capsys: Capture) -> None:
    feedback = [
        replace(sound(number), outcome=replace(sound(number).outcome, source="feedback")) for number in range(20, 33)
    ]
    url = fill([sound(1), sound(2), *feedback])
    assert main(["memory", "forget", url, "--source", "feedback", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("13 debates to go, with 78 cases\n")
    assert out.endswith("and 3 more\n")
    assert out.count("Question number") == 10
    assert len(everything(url)) == 15
    assert main(["memory", "forget", url, "--source", "feedback", "--yes"]) == 0
    assert capsys.readouterr().out.endswith("forgot 13 debates\n")
    assert len(everything(url)) == 2


def test_of_several_filters_all_must_hold(capsys: Capture) -> None:
    question = Question("Who  is it?", id="q")
    debates = [sound(1, question=question), sound(2, question=question, split="dev"), sound(3, split="dev")]
    url = fill(debates)
    for filters, going in (
        (["--question", "Who is\n it?"], {0, 1}),
        (["--question", "q"], {0, 1}),
        (["--question", "Who is"], set()),
        (["--dataset", "made:dev"], {1, 2}),
        (["--dataset", "made"], {0, 1, 2}),
        (["--dataset", "made:dev", "--question", "q"], {1}),
        (["--dataset", "made:dev", "--question", "q", "--source", "feedback"], set()),
        (["--older-than", "1h"], set()),
        (["--older-than", "2w"], set()),
        (["--older-than", "0d"], {0, 1, 2}),
        (["--older-than", "2020-01-31"], set()),
        (["--older-than", "2999-01-31T12:00:00+02:00", "--question", "q"], {0, 1}),
    ):
        assert main(["memory", "forget", url, *filters, "--dry-run"]) == 0, filters
        out = capsys.readouterr().out
        assert {index for index in range(3) if debates[index].record.id in out} == going, filters


def test_forget_by_ids_tells_of_those_it_does_not_know(capsys: Capture) -> None:
    debates = [sound(1), sound(2)]
    url = fill(debates)
    Path("ids.txt").write_text(f"\ufeff# of mine\n\n{debates[0].record.id}  # the first\nnothing\n", "utf-8")
    assert main(["memory", "forget", url, "--ids", "ids.txt", "--yes"]) == 1
    out, err = capsys.readouterr()
    assert "no debate 'nothing'" in err
    assert out.endswith("forgot 1 debate\n")
    assert [debate.record.id for debate in everything(url)] == [debates[1].record.id]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 0), ("YES\n", 0, 0), ("n\n", 1, 1), ("", 1, 1)])
def test_forget_asks_on_a_terminal(
    answer: str, code: int, left: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = fill([sound(1)])
    monkeypatch.setattr(sys, "stdin", _Terminal(answer))
    assert main(["memory", "forget", url, "--source", "gold"]) == code
    assert "Forget 1 debate? They cannot be brought back. [y/N]" in capsys.readouterr().err
    assert len(everything(url)) == left


def test_help_teaches(capsys: Capture) -> None:
    assert main(["memory", "--help"]) == 0
    text = capsys.readouterr().out
    for verb in ("info", "audit", "list", "show", "forget", "export", "import"):
        assert verb in text
        assert main(["memory", verb, "--help"]) == 0
    text = capsys.readouterr().out
    for flag in ("--against", "--strict", "--older-than", "--dry-run", "--vectors", "--embedder", "--limit"):
        assert flag in text
    assert "evaluation split in it, contradicting outcomes" in re.sub(r"[\s│]+", " ", text)
