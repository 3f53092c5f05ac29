"""`r2mad compare`: two methods, every pair, a subset, shards, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from r2mad.api import Table
from r2mad.cli.main import main
from r2mad.models.scripted import ScriptedModel
from r2mad.settings import Settings
from r2mad.study.runner import run_study
from r2mad.types import Item, Question
from tests.study.by_hand import Held, debate
from tests.study.runs_by_hand import write_run

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R2MAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def _on(dataset: str, held: Sequence[Held], model: str = "fake/one") -> list[Held]:
    moved: dict[str, Any] = {"dataset": dataset, "model": model}
    return [(record, replace(score, id=f"{model} {dataset} {score.id}", **moved)) for record, score in held]


def _both(right: str, wrong: int, count: int, **more: Any) -> list[Held]:
    """`right` is right on all of `count` questions; mad is wrong on the first `wrong` of them."""
    held = [debate(f"q{n}", "BBA" if n < wrong else "AAB", **more) for n in range(count)]
    return [*held, *(debate(f"q{n}", "AAA", method=right, **more) for n in range(count))]


def _json(capsys: Capture, *arguments: str) -> Any:
    assert main(["compare", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def _refused(capsys: Capture, *arguments: str, code: int = 2) -> str:
    assert main(["compare", *arguments]) == code
    told = capsys.readouterr()
    assert told.out == ""
    return told.err


def test_two_methods_by_hand(capsys: Capture) -> None:
    """r2mad is right on ten of ten, mad on two: eight differ, all one way, so p is 2 · ½⁸ = .0078."""
    write_run(Path("RUN"), _on("made", [*_both("r2mad", 8, 10), debate("q99", "AAA")]))
    assert main(["compare", "RUN", "r2mad", "mad"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "fake/one on made\n  On 10 questions (not counted: 1 that only mad answered) r2mad was right 80.0 "
    )
    assert "r2mad is better (p = 0.008)" in out
    assert "Only r2mad was right 8 times, only mad 0 times." in out
    found = _json(capsys, "RUN", "mad", "r2mad")
    (cell,) = found["cells"]
    assert (cell["pairs"], cell["difference"], cell["p"]) == (10, -0.8, pytest.approx(2 / 256))
    assert (cell["only_one"], cell["only_other"], cell["outcome"], cell["only_in_one"]) == (0, 8, "worse", ["made q99"])
    assert found["pooled"] == []


def test_data_sets_are_pooled_question_by_question(capsys: Capture) -> None:
    """8 of 10 and 0 of 2: pooled 8 of 12, and not the mean of the two."""
    write_run(Path("RUN"), [*_on("made", _both("r2mad", 8, 10)), *_on("other", _both("r2mad", 0, 2))])
    found = _json(capsys, "RUN", "r2mad", "mad")
    assert [(cell["dataset"], cell["difference"]) for cell in found["cells"]] == [("made", 0.8), ("other", 0.0)]
    (pooled,) = found["pooled"]
    assert (pooled["dataset"], pooled["pairs"]) == ("all data sets", 12)
    assert pooled["difference"] == pytest.approx(8 / 12)
    assert [cell["family"] for cell in found["cells"]] == [2, 2]
    assert pooled["family"] == 1
    assert len(_json(capsys, "RUN", "r2mad", "mad", "--dataset", "other")["cells"]) == 1


def test_answers_are_paired_by_seed(capsys: Capture) -> None:
    held = [debate("q1", "AAA", seed=seed) for seed in (1, 2)] + [debate("q1", "BBB", method="cot", seed=2)]
    write_run(Path("RUN"), _on("made", [*held, *_both("cot", 0, 6, seed=3), debate("q9", "AAA", seed=4)]))
    (cell,) = _json(capsys, "RUN", "mad", "cot")["cells"]
    # q0 to q5 under seed 3, and q1 under seed 2 too; mad's q1 under seed 1 has no pair, q9 is mad's alone
    assert (cell["pairs"], cell["answers"], cell["unpaired"], cell["only_in_one"]) == (6, 7, 1, ["made q9"])
    assert main(["compare", "RUN", "mad", "cot"]) == 0
    assert "Not counted: 1 answers under a seed that only one of the two has." in capsys.readouterr().out


def test_no_seed_in_common_is_no_comparison(capsys: Capture) -> None:
    write_run(Path("RUN"), _on("made", [debate("q1", "AAA", seed=1), debate("q1", "A", method="cot", seed=2)]))
    (cell,) = _json(capsys, "RUN", "mad", "cot")["cells"]
    assert (cell["pairs"], cell["difference"], cell["outcome"], cell["unpaired"]) == (0, None, "none", 2)


def test_the_subset_is_mads_for_all(capsys: Capture) -> None:
    write_run(Path("RUN"), _on("made", [*_both("r2mad", 3, 10), *_both("cot", 0, 10)[10:]]))
    (cell,) = _json(capsys, "RUN", "r2mad", "cot", "--subset", "misconception")["cells"]
    assert cell["pairs"] == 3
    assert main(["compare", "RUN", "r2mad", "mad", "--subset", "misconception"]) == 0
    assert "fake/one on made, questions of the shared-misconception subset" in capsys.readouterr().out


def test_every_pair_with_holms_correction(capsys: Capture) -> None:
    write_run(Path("RUN"), _on("made", [*_both("r2mad", 8, 10), debate("q0", "A", method="cot")]))
    found = _json(capsys, "RUN")["pairs"]
    assert [tuple(row["names"]) for row in found] == [("cot", "mad"), ("cot", "r2mad"), ("mad", "r2mad")]
    assert found[2]["adjusted"] == pytest.approx(3 * 2 / 256)
    assert main(["compare", "RUN"]) == 0
    out = capsys.readouterr().out
    assert "mad    r2mad     10        −80.0" in out
    assert "0.008     0.023  worse" in out
    assert "not counted, for only one has them: 9 questions" in out
    assert "allows for 3 comparisons" in out


def test_ties_may_be_split_evenly(capsys: Capture) -> None:
    write_run(Path("RUN"), _on("made", [debate("q1", "AB-"), debate("q1", "A", method="cot")]))
    (cell,) = _json(capsys, "RUN", "mad", "cot", "--expected")["cells"]
    assert (cell["one"], cell["other"]) == (0.5, 1.0)
    (cell,) = _json(capsys, "RUN", "mad", "cot")["cells"]
    assert cell["one"] in (0.0, 1.0)


def test_shards_and_further_folders_are_one_run(capsys: Capture) -> None:
    held = _on("made", _both("cot", 2, 4))
    for part in (1, 2):
        rows = [one for one in held if int(one[1].question[1:]) % 2 == part - 1]
        write_run(Path(f"RUN-shard-{part}-of-3"), rows)
    assert main(["compare", "RUN", "mad", "cot", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["cells"][0]["pairs"] == 4
    assert "shards that are not there: RUN-shard-3-of-3" in told.err
    found = _json(capsys, "RUN-shard-1-of-3", "mad", "cot", "--run", "RUN-shard-2-of-3")
    assert found["cells"][0]["pairs"] == 4


def test_a_model_is_named_by_its_end(capsys: Capture) -> None:
    held = _both("cot", 2, 4)
    write_run(Path("RUN"), [*_on("made", held, "openai/Org/Big-7B"), *_on("made", held, "openai/small")])
    assert len(_json(capsys, "RUN", "mad", "cot")["cells"]) == 2
    (cell,) = _json(capsys, "RUN", "mad", "cot", "--model", "big-7b")["cells"]
    assert cell["model"] == "openai/Org/Big-7B"


def test_what_cannot_be_compared_is_told_in_a_line(capsys: Capture) -> None:
    write_run(Path("RUN"), _on("made", _both("r2mad", 1, 3)))
    assert "takes two methods or none" in _refused(capsys, "RUN", "mad")
    assert "no debates by cot there, but by mad, r2mad" in _refused(capsys, "RUN", "mad", "cot")
    assert "with itself" in _refused(capsys, "RUN", "mad", "mad")
    assert "no data set nope, but made" in _refused(capsys, "RUN", "mad", "r2mad", "--dataset", "nope")
    assert "no model gpt, but fake/one" in _refused(capsys, "RUN", "--model", "gpt")
    assert "no run there" in _refused(capsys, "ELSEWHERE", "mad", "r2mad", code=1)
    write_run(Path("OTHER"), _on("made", [debate("q1", "A", method="cot"), debate("q1", "A", method="sc")]))
    assert "chosen by mad's round 0" in _refused(capsys, "OTHER", "cot", "sc", "--subset", "misconception")
    write_run(Path("ONE"), _on("made", [debate("q1", "A", method="cot")]))
    assert "no pair to compare" in _refused(capsys, "ONE")
    write_run(Path("NONE"), [])
    assert "none of its debates is graded" in _refused(capsys, "NONE")


async def _hold(folder: Path) -> None:
    items = [Item(Question(f"Question {n}?", ("this", "that"), id=f"q/{n}"), "AB"[n % 2], "made") for n in range(8)]
    table = Table((ScriptedModel(lambda request: "((A))", identity="A"),), Settings(cache=":memory:"))
    await run_study(table, items, ["cot", "mad"], folder, seed=1)


async def test_a_run_that_was_held(tmp_path: Path, capsys: Capture) -> None:
    await _hold(tmp_path / "RUN")
    (cell,) = _json(capsys, "RUN", "mad", "cot")["cells"]
    assert (cell["pairs"], cell["one"], cell["differing"], cell["outcome"]) == (8, 0.5, 0, "same")
    assert cell["verdict"].startswith("On 8 questions mad and cot scored the same on every one")
