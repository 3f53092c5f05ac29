"""A run from its folders: the study's cells alone, shards as one, the last line of each debate, torn lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from r2mad.errors import StoreError, UsageError
from r2mad.study.records import DEBATES, SCORES, dump
from r2mad.study.runs import dataset_names, expected_questions, load_run, load_runs, method_names
from r2mad.types import Item, Question
from tests.study.by_hand import OPTIONS, Held, debate
from tests.study.runs_by_hand import write_run


def _held(name: str, *rounds: str, dataset: str = "starter", split: str = "test", **more: Any) -> Held:
    record, score = debate(name, *rounds, **more)
    return replace(record, dataset=dataset, split=split), replace(score, dataset=dataset, split=split)


def _study(**changes: Any) -> dict[str, Any]:
    config = {
        "datasets": ["starter:test"],
        "methods": ["mad"],
        "models": [{"name": "fake/one", "agents": [{"model": "fake/one"}]}],
        "seeds": [1],
        "sweeps": [],
        "settings": {"temperature": None, "base_url": "http://a"},
        "shard": [1, 1],
        **changes,
    }
    return {"config": config, "questions": {"starter:test": 2}}


def test_without_a_study_the_whole_folder_counts(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path / "RUN", [_held("q1", "AAA"), _held("q1", "AAA", method="cot")]))
    assert run.study is None
    assert [score.method for score in run.scores] == ["mad", "cot"]
    assert (run.left_out, run.missing, run.folders) == (0, (), (tmp_path / "RUN",))


def test_only_the_studys_cells_count_and_the_rest_is_counted(tmp_path: Path) -> None:
    sweep = [{"method": "mad", "what": "rounds", "values": [2]}]
    kept = [
        _held("q1", "AAA"),
        _held("q2", "BBB"),
        _held("q1", "AAA", method="mad[rounds=2]"),
    ]
    other = [
        _held("q1", "AAA", method="cot"),
        _held("q1", "AAA", seed=2),
        _held("q3", "AAA", split="train"),
        _held("q4", "AAA", dataset="simulated"),
        (lambda pair: (pair[0], replace(pair[1], id="other model", model="fake/two")))(_held("q1", "AAA")),
    ]
    run = load_run(write_run(tmp_path / "RUN", [*kept, *other], study=_study(sweeps=sweep)))
    assert [score.id for score in run.scores] == [score.id for _, score in kept]
    assert run.left_out == len(other)
    assert run.study is not None
    assert method_names(run.study) == ["mad", "mad[rounds=2]"]
    assert dataset_names(run.study) == ["starter"]
    assert expected_questions(run) == {"starter": 2}
    assert {record.id for record in run.records()} == {record.id for record, _ in kept}


def test_a_team_of_two_models_has_the_cells_of_its_first_as_well(tmp_path: Path) -> None:
    """A method with one agent seats only the first."""
    team = [{"name": "fake/one + fake/two", "agents": [{"model": "fake/one"}, {"model": "fake/two"}]}]
    mixed = _held("q1", "AAA")
    mixed = mixed[0], replace(mixed[1], model="fake/one + fake/two")
    alone = _held("q1", "A", method="cot")
    run = load_run(write_run(tmp_path / "RUN", [mixed, alone], study=_study(models=team, methods=["mad", "cot"])))
    assert len(run.scores) == 2


def test_the_last_line_of_a_debate_counts_and_a_torn_one_does_not(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "RUN", [_held("q1", "xxx"), _held("q2", "AAA"), _held("q1", "AAB")])
    with (folder / SCORES).open("ab") as file:
        file.write(dump(_held("q3", "AAA")[1])[:40])
    with (folder / DEBATES).open("ab") as file:
        file.write(dump(_held("q3", "AAA")[0])[:40])
    run = load_run(folder)
    assert sorted((score.question, score.stopped) for score in run.scores) == [("q1", "rounds"), ("q2", "rounds")]
    # in the order of the lines that count: q2's, then q1's second
    assert [(one.question.id, one.stopped) for one in run.records()] == [("q2", "rounds"), ("q1", "rounds")]
    assert [one.question.id for one in run.records({score.id for score in run.scores[1:]})] == ["q2"]


def test_shards_are_one_run(tmp_path: Path) -> None:
    item = Item(Question("Which?", OPTIONS, id="q1"), "A")
    for part, name in ((1, "q1"), (2, "q2")):
        folder = tmp_path / f"RUN-shard-{part}-of-3"
        write_run(folder, [_held(name, "AAA")], items=[item] if part == 1 else [], study=_study(shard=[part, 3]))
    run = load_run(tmp_path / "RUN")
    assert [score.question for score in run.scores] == ["q1", "q2"]
    assert run.missing == ("RUN-shard-3-of-3",)
    assert expected_questions(run) == {"starter": 4}  # two in each shard that is there
    assert [record.question.id for record in run.records()] == ["q1", "q2"]
    assert run.items() == {"q1": item}
    alone = load_run(tmp_path / "RUN-shard-2-of-3")
    assert len(alone.scores) == 1
    assert len(alone.missing) == 2


def test_folders_may_be_named_one_by_one(tmp_path: Path) -> None:
    one = write_run(tmp_path / "a", [_held("q1", "AAA")], study=_study(settings={"base_url": "http://a"}))
    two = write_run(
        tmp_path / "b", [_held("q2", "AAA", method="cot")], study=_study(methods=["cot"], settings={"base_url": "b"})
    )
    run = load_runs([one, two, one])
    assert [score.method for score in run.scores] == ["mad", "cot"]  # an address may differ
    assert run.folders == (one, two)
    hot = write_run(tmp_path / "c", [_held("q3", "AAA")], study=_study(settings={"temperature": 0.3}))
    with pytest.raises(UsageError, match="another temperature"):
        load_runs([write_run(tmp_path / "d", [], study=_study(settings={"temperature": 1.0})), hot])
    with pytest.raises(UsageError, match="another memory"):
        load_runs([one, write_run(tmp_path / "e", [], study=_study(memory={"limit": 3}))])


def test_what_is_no_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no run there"):
        load_run(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="no run there"):
        load_run(tmp_path / "empty")
    for parts in (2, 3):
        write_run(tmp_path / f"RUN-shard-1-of-{parts}", [_held("q1", "AAA")])
    with pytest.raises(UsageError, match="several divisions"):
        load_run(tmp_path / "RUN")
