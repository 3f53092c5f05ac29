"""`r2mad regrade`: nothing where nothing changed, and everything that did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from r2mad.answers import extract
from r2mad.api import Table
from r2mad.cli.main import main
from r2mad.models.scripted import ScriptedModel
from r2mad.settings import Settings
from r2mad.study import regrade as regrading
from r2mad.study.records import DEBATES, ITEMS, SCORES, Writer, dump, latest, read
from r2mad.study.runner import run_study
from r2mad.study.scores import Score, latest_scores
from r2mad.types import AnswerKind, DebateRecord, Item, Question, Request
from r2mad.verdict import break_tie

Capture = pytest.CaptureFixture[str]
METHODS = ("cot", "sc-3", "mad", "mad-confident", "mad-confident-weighted", "mad-judge")


def _said(request: Request) -> str:
    """Agents differ, and one of them writes its answer so that only a friendly reader finds it."""
    if request.kind == "judge":
        return "The group's answer: ((A))"
    return ("I say ((A)).\nConfidence: 8", "I say ((B)).\nConfidence: 3", "Hard to tell @@A@@ today.\nConfidence: 6")[
        request.agent % 3
    ]


def _items(gold: str = "A") -> list[Item]:
    return [Item(Question(f"Question {n}?", ("this", "that", "both"), id=f"q/{n}"), gold, "made") for n in range(3)]


@pytest.fixture
async def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    table = Table((ScriptedModel(_said, identity="said"),), Settings(cache=":memory:"))
    await run_study(table, _items(), METHODS, tmp_path / "RUN", seed=1)
    return tmp_path / "RUN"


@pytest.fixture
def friendly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tomorrow's extractor, which reads @@A@@ as well."""

    def read_more(text: str, kind: AnswerKind, options: Sequence[str] | None = None) -> str | None:
        return extract(text.replace("@@A@@", "((A))"), kind, options)

    monkeypatch.setattr(regrading, "extract", read_more)


def _scores(run: Path) -> dict[tuple[str, str], Score]:
    return {(score.method, score.question): score for score in latest_scores(run / SCORES)}


async def test_an_untouched_run_stays_as_it_is(run: Path, capsys: Capture) -> None:
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    assert main(["regrade", "RUN"]) == 0
    out = capsys.readouterr().out
    assert "RUN: 18 debates graded anew" in out
    assert "Nothing changed; scores.jsonl stays as it is." in out
    # the judge's and the weighted votes
    assert "votes that stand as they were, for they go by more than answers: 6;" in out
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


async def test_a_new_extractor_changes_answers_votes_and_grades(run: Path, friendly: None, capsys: Capture) -> None:
    """Agent 2 said @@A@@: with it, A has two votes of three where A and B were tied."""
    before, debates = _scores(run), (run / DEBATES).read_bytes()
    assert all(before["mad", f"q/{n}"].tie for n in range(3))
    was_wrong = sum(not before["mad", f"q/{n}"].correct for n in range(3))
    assert main(["regrade", "RUN", "--dry-run"]) == 0
    dry = capsys.readouterr().out
    assert "Nothing was written" in dry
    assert _scores(run) == before
    assert main(["regrade", "RUN"]) == 0
    out = capsys.readouterr().out
    assert "scores.jsonl is written anew; the old one is scores.1.jsonl" in out
    # agent 2's reply in each of three rounds of three debates
    line = next(line.split() for line in out.splitlines() if line.startswith("mad  "))
    assert line == ["mad", "3", "9", str(was_wrong), str(was_wrong), "0", "9", "0"]
    assert "agent 2: no answer before, 'A' now" in out
    after = _scores(run)
    assert all(after["mad", f"q/{n}"].correct and not after["mad", f"q/{n}"].tie for n in range(3))
    assert after["mad", "q/0"].grades == ("101",) * 3
    assert after["mad", "q/0"].consensus == pytest.approx((2 / 3,) * 3)
    assert (after["mad", "q/0"].unparsed, before["mad", "q/0"].unparsed) == (0, 3)
    assert after["cot", "q/0"] == before["cot", "q/0"]
    # replies are graded anew where the vote stands
    assert after["mad-judge", "q/0"].grades == ("101",) * 3
    assert after["mad-confident-weighted", "q/0"].answer == before["mad-confident-weighted", "q/0"].answer
    assert (run / DEBATES).read_bytes() == debates
    assert list(read(Score, run / "scores.1.jsonl")) == list(before.values())
    assert main(["regrade", "RUN"]) == 0  # the same again is nothing new
    assert not (run / "scores.2.jsonl").exists()


async def test_a_planted_grade_is_found(run: Path, capsys: Capture) -> None:
    scores = list(read(Score, run / SCORES))
    planted = [
        replace(one, correct=not one.correct) if (one.method, one.question) == ("cot", "q/1") else one for one in scores
    ]
    (run / SCORES).write_bytes(b"".join(dump(one) + b"\n" for one in planted))
    assert main(["regrade", "RUN"]) == 0
    out = capsys.readouterr().out
    assert "cot, question q/1: the group's answer 'A' was wrong, 'A' is right" in out
    line = next(line.split() for line in out.splitlines() if line.startswith("cot  "))
    assert line == ["cot", "3", "0", "0", "1", "0", "0", "0"]
    assert _scores(run) == {(one.method, one.question): one for one in scores}


async def test_new_golds_change_grades_alone(run: Path, capsys: Capture) -> None:
    (run / ITEMS).write_bytes(b"".join(dump(item) + b"\n" for item in _items("B")))
    assert main(["regrade", "RUN"]) == 0
    line = next(line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("cot  "))
    assert line == ["cot", "3", "0", "0", "0", "3", "3", "0"]
    assert _scores(run)["mad", "q/0"].grades == ("01-",) * 3


async def test_debates_without_an_item_keep_their_grades(run: Path, capsys: Capture) -> None:
    before = _scores(run)
    (run / ITEMS).write_bytes(b"".join(dump(item) + b"\n" for item in _items("B")[:1]))
    assert main(["regrade", "RUN"]) == 0
    told = capsys.readouterr()
    assert "12 debates are on questions that items.jsonl lacks" in told.out
    assert "keep their old grades" in told.err
    after = _scores(run)
    assert after["cot", "q/1"] == before["cot", "q/1"]
    assert after["cot", "q/0"] != before["cot", "q/0"]
    assert after.keys() == before.keys()


async def test_a_debate_without_a_grade_gets_one(run: Path, capsys: Capture) -> None:
    lines = (run / SCORES).read_bytes().splitlines(keepends=True)
    (run / SCORES).write_bytes(b"".join(lines[1:]) + lines[0][:30])
    assert main(["regrade", "RUN"]) == 0
    assert "scores.jsonl is written anew" in capsys.readouterr().out
    assert len(_scores(run)) == 18


async def test_a_tie_is_broken_as_the_debate_broke_it(run: Path) -> None:
    for record in latest(run / DEBATES).values():
        now, voted = regrading.read_anew(record)
        assert now == record
        if record.tie and voted:
            assert now.answer == break_tie(now.tied, record.seed, record.question.id)


async def test_a_record_that_does_not_say_its_vote_is_tried(run: Path) -> None:
    record = next(one for one in latest(run / DEBATES).values() if one.method == "mad")
    assert regrading.read_anew(replace(record, composition=""))[1]
    other = replace(record, composition="", answer="C")  # no plurality gives that
    assert regrading.read_anew(other) == (other, False)


async def test_a_study_that_runs_is_left_alone(run: Path, friendly: None, capsys: Capture) -> None:
    before = (run / SCORES).read_bytes()
    async with Writer[DebateRecord](run / DEBATES):
        assert main(["regrade", "RUN"]) == 1
        assert "another process is writing there" in capsys.readouterr().err
    assert (run / SCORES).read_bytes() == before


async def test_shards_are_regraded_one_by_one(run: Path, friendly: None, capsys: Capture) -> None:
    run.rename(run.parent / "NAME-shard-1-of-1")
    assert main(["regrade", "NAME"]) == 0
    assert "NAME-shard-1-of-1: 18 debates" in capsys.readouterr().out
    assert (run.parent / "NAME-shard-1-of-1" / "scores.1.jsonl").exists()


def test_no_run_is_told(tmp_path: Path, capsys: Capture) -> None:
    assert main(["regrade", str(tmp_path)]) == 1
    assert "no run there" in capsys.readouterr().err
