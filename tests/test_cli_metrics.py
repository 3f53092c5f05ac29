"""`r2mad metrics`: what a person sees, what a script reads, and the calibration that it writes."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from r2mad.api import Table
from r2mad.cli.main import main
from r2mad.models.scripted import open_scripted
from r2mad.settings import Settings
from r2mad.study.abstain import fit, load
from r2mad.study.records import DEBATES, SCORES, Writer, latest
from r2mad.study.runner import run_study
from r2mad.study.scores import Score, latest_scores
from r2mad.types import DebateRecord, Item, Peer, Question
from tests.study.by_hand import OPTIONS, Held, debate

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R2MAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("R2MAD_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.chdir(tmp_path)


def _write(held: Sequence[Held], ungraded: Sequence[Held] = ()) -> str:
    records, scores = Writer[DebateRecord](Path("RUN") / DEBATES), Writer[Score](Path("RUN") / SCORES)
    try:
        records.append_now(*(record for record, _ in [*held, *ungraded]))
        scores.append_now(*(score for _, score in held))
    finally:
        records.close()
        scores.close()
    return "RUN"


def _json(capsys: Capture, *arguments: str, code: int = 0) -> Any:
    assert main(["metrics", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def _refused(capsys: Capture, *arguments: str, code: int) -> str:
    assert main(["metrics", *arguments]) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    return told.err


def _four(method: str = "mad") -> list[Held]:
    """Right, right (of a mask that hides a wrong reply and a right one), wrong, and no answer at all."""
    mask = [Peer(0, verdict="yes"), Peer(1, shown=False, verdict="no"), Peer(2, shown=False, verdict="no")]
    return [
        debate("q1", "AAA", method=method, sure=[[9, 8, None]]),
        debate("q2", "ABA", "AAA", method=method, peers={1: [mask] * 3}),
        debate(
            "q3", "ABB", "BBA", method=method, peers={1: [[Peer(1, confidence=0.7)], [Peer(0, confidence=0.6)], []]}
        ),
        debate("q4", "---", method=method),
    ]


def test_the_text_has_every_number(capsys: Capture) -> None:
    run = _write(_four(), [debate("q5", "AAA")])
    assert main(["metrics", run]) == 0
    out = capsys.readouterr().out
    for line in (
        "RUN: 5 debates, 1 of them not graded",
        "mad: 4 debates on 4 questions",
        "  right answers  50.0% (2 of 4), interval 15.0% to 85.0%",
        "  0 debates failed; of 18 replies 0 failed, 3 had no answer that could be read",
        # .9 and .8 of right ones: (.01 + .04) / 2 = .025, ECE (.1 + .2) / 2
        "    agents, of their own replies             2      1   85%  100%  0.025  0.15  -",
        # .7 of a wrong one, .6 of a right one: (.49 + .16) / 2 = .325, ECE (.7 + .4) / 2; one question, so no interval
        "    memory, of peers' replies                2      0   65%   50%  0.325  0.55  0.00 (0.00 to 1.00)",
        # 1, 1 right, 2/3 wrong: 4/9 / 3 = .148, ECE 2/3 / 3; one pair of questions, so q is .025
        "    the vote, of the group's answer          3      1   89%   67%  0.148  0.22  1.00 (0.03 to 1.00)",
        "    hidden replies that are false (precision)  50.0% (1 of 2), interval 9.5% to 90.5%",
        "    all replies that are false, to compare     33.3% (1 of 3), interval 6.1% to 79.2%",
        "    false replies that are hidden (recall)     100.0% (1 of 1), interval 20.7% to 100.0%",
        "    right replies that are hidden              50.0% (1 of 2), interval 9.5% to 90.5%",
        "    verdict         right  false",
        "    yes                 1      0",
        "    no                  1      1",
        # 1/3, 2/3, 2/3 and 0 (no answer): 5/12; wrong 0, 1/3, 2/3 and 1
        "    at the start: 0.42 different answers a reply (diversity; entropy 0.39), 50% wrong (difficulty)",
        "    none right                   1     0%     0%  +0.0 (+0.0 to +97.5)",
        "    by the winner's share of the votes; area under risk and coverage 0.208, 0 is best",
        "    all              100%   0.00  50.0%, interval 15.0% to 85.0%",
        "    50%               50%   1.00  100.0%, interval 34.2% to 100.0%",
    ):
        assert f"{line}\n" in out
    assert "by the calibrated chance: not known\n      a calibration needs at least 10 graded debates" in out


def test_the_text_is_narrow_and_ascii(capsys: Capture) -> None:
    _write([one for method in ("mad", "mad-m2-s") for one in _four(method)])
    assert main(["metrics", "RUN"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) <= 100
    assert all(line.isascii() for line in lines)


def test_json_has_the_same(capsys: Capture) -> None:
    row = _json(capsys, _write(_four(), [debate("q5", "AAA")]))
    assert (row["run"], row["debates"], row["ungraded"], row["calibrator"]) == ("RUN", 5, 1, None)
    (mad,) = row["methods"]
    assert (mad["method"], mad["right"]["share"], mad["unparsed"]) == ("mad", 0.5, 3)
    assert mad["calibration"]["verbal"]["brier"] == pytest.approx(0.025)
    assert set(mad["calibration"]) == {"verbal", "memory", "group"}
    assert [one["count"] for one in mad["calibration"]["group"]["reliability"]] == [1, 2]
    assert (mad["mask"]["masked_wrong"], mad["mask"]["precision"]["share"], mad["mask"]["judged"]) == (1, 0.5, 3)
    assert [one["debates"] for one in mad["diversity"]["by_hardness"]] == [1, 1, 1, 1]
    assert mad["coverage"]["vote"]["at_50"]["accuracy"] == 1.0
    assert [one["count"] for one in mad["coverage"]["vote"]["points"]] == [2, 3, 4]
    assert "calibrated" not in mad["coverage"]
    assert "at least 10" in mad["unfitted"]


async def _hold(methods: Sequence[str]) -> None:
    items = [Item(Question(f"Number {n}: which?", OPTIONS, id=f"q{n}"), "ABCD"[n % 4]) for n in range(40)]
    table = Table((open_scripted("seeded"),), Settings(cache=":memory:"))
    await run_study(table, items, methods, Path("RUN"), seed=3)


async def test_a_run_that_was_held(capsys: Capture) -> None:
    await _hold(["cot", "mad", "mad-m2-o", "mad-confident"])
    found = {one["method"]: one for one in _json(capsys, "RUN")["methods"]}
    assert list(found) == ["cot", "mad", "mad-confident", "mad-m2-o"]
    assert all("calibrated" in one["coverage"] and one["unfitted"] is None for one in found.values())
    assert [one["diversity"] is None for one in found.values()] == [True, False, False, False]
    assert [one["mask"] is None for one in found.values()] == [True, True, True, False]
    assert [("verbal" in one["calibration"]) for one in found.values()] == [False, False, True, False]
    assert found["mad-m2-o"]["mask"]["judged"] > 0
    for one in found.values():
        assert one["coverage"]["calibrated"]["at_100"]["accuracy"] == one["right"]["share"]
    chosen = _json(capsys, "RUN", "--method", "mad,cot")
    assert [one["method"] for one in chosen["methods"]] == ["cot", "mad"]
    assert (chosen["debates"], chosen["methods"][1]) == (80, found["mad"])
    assert main(["metrics", "RUN", "--method", "cot", "--method", "mad-m2-o"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100


async def test_a_calibration_is_written_for_ask(capsys: Capture) -> None:
    await _hold(["mad", "cot"])
    assert "cot, mad: choose with --method" in _refused(capsys, "RUN", "--calibrate", "c.json", code=2)
    assert not Path("c.json").exists()
    assert main(["metrics", "RUN", "--method", "mad", "--calibrate", "c.json"]) == 0
    assert "the calibration is in c.json" in capsys.readouterr().out
    records = [one for one in latest(Path("RUN") / DEBATES).values() if one.method == "mad"]
    assert load(Path("c.json")) == fit(records, latest_scores(Path("RUN") / SCORES))
    assert _json(capsys, "RUN", "--method", "mad", "--calibrate", "c.json")["calibrator"] == "c.json"


def test_what_cannot_be_calibrated(capsys: Capture) -> None:
    run = _write(_four())
    assert "at least 10 graded debates" in _refused(capsys, run, "--calibrate", "c.json", code=2)
    assert not Path("c.json").exists()


def test_no_run_an_empty_one_and_one_without_grades(capsys: Capture) -> None:
    assert "no run there" in _refused(capsys, "nowhere", code=1)
    assert "no debate of this run has ended yet" in _refused(capsys, _write([]), code=1)
    run = _write([], _four())
    assert "none of its 4 debates is graded" in _refused(capsys, run, code=2)
    assert "no debates by sc, but by mad" in _refused(capsys, run, "--method", "sc", code=2)


def test_a_damaged_run(capsys: Capture) -> None:
    held = _four()
    run = _write([(held[0][0], replace(held[0][1], grades=("1",)))])
    assert "of another debate" in _refused(capsys, run, code=1)
    (Path(run) / SCORES).write_text('{"id": 1}\n')
    assert "scores.jsonl, line 1" in _refused(capsys, run, code=1)
