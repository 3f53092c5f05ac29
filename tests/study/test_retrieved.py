"""Which cases runs retrieved, and how those debates ended, against counts made by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from r2mad.errors import StoreError
from r2mad.study.records import DEBATES, SCORES, Writer
from r2mad.study.retrieved import Share, retrievals
from r2mad.study.scores import Score, grade
from r2mad.study.stats import wilson
from r2mad.types import DebateRecord, Item, MemoryInfo, Retrieved, View
from tests.memory.made import made

MEMORY = MemoryInfo("sqlite:m.db", "v1", 9)
Cases = Mapping[tuple[int, int], Sequence[str]]


def _debate(number: int, cases: Cases, memory: MemoryInfo | None = MEMORY, version: str | None = None) -> DebateRecord:
    """A debate in which agent i of round t was reminded of the cases `cases[t, i]`."""
    record = made(number, rounds=3).record
    rounds = tuple(
        replace(
            one,
            views=tuple(
                View(seat, retrieved=tuple(Retrieved(case, 0.5, 1.0) for case in cases.get((one.index, seat), ())))
                for seat in range(3)
            ),
        )
        for one in record.rounds
    )
    if memory and version:
        memory = replace(memory, version=version)
    return replace(record, rounds=rounds, memory=memory)


def _write(run: Path, debates: Sequence[tuple[DebateRecord, bool | None]]) -> Path:
    """A run's files; a debate whose end is None has no score."""
    records, scores = Writer[DebateRecord](run / DEBATES), Writer[Score](run / SCORES)
    try:
        for record, right in debates:
            records.append_now(record)
            if right is not None:
                scores.append_now(grade(record, Item(record.question, "a0" if right else "other")))
    finally:
        records.close()
        scores.close()
    return run


def test_cases_are_counted_and_their_debates_held_beside_the_others(tmp_path: Path) -> None:
    run = _write(
        tmp_path / "run",
        [
            (_debate(1, {(1, 0): ["c1", "c2"], (2, 1): ["c1"]}), True),
            (_debate(2, {(1, 0): ["c1"]}), False),
            (_debate(3, {(1, 2): ["c2"]}), True),
            (_debate(4, {}), True),
            (_debate(5, {(1, 0): ["c1"]}), None),
            (_debate(6, {}, memory=None), True),
            (_debate(7, {}, memory=replace(MEMORY, cases=0)), True),
        ],
    )
    found = retrievals([run])
    assert (found.debates, found.ungraded, found.versions) == (5, 1, ("v1",))
    first, second = found.uses
    assert (first.case, first.times, first.debates) == ("c1", 4, 3)
    assert (first.with_it, first.without) == (Share(1, 2), Share(2, 2))
    assert (second.case, second.times, second.debates) == ("c2", 2, 2)
    assert (second.with_it, second.without) == (Share(2, 2), Share(1, 2))


def test_the_others_are_of_the_same_runs_only(tmp_path: Path) -> None:
    one = _write(tmp_path / "one", [(_debate(1, {(1, 0): ["c1"]}), True), (_debate(2, {}), False)])
    two = _write(tmp_path / "two", [(_debate(3, {(1, 0): ["c2"]}, version="v2"), True), (_debate(4, {}), True)])
    found = retrievals([one, two, one])
    assert found.versions == ("v1", "v2")
    assert [(use.case, use.with_it, use.without) for use in found.uses] == [
        ("c1", Share(1, 1), Share(0, 1)),
        ("c2", Share(1, 1), Share(1, 1)),
    ]


def test_of_a_debate_that_was_held_again_the_last_counts(tmp_path: Path) -> None:
    failed = replace(_debate(1, {(1, 0): ["c9"]}), stopped="failed")
    run = _write(tmp_path / "run", [(failed, False), (_debate(1, {(1, 0): ["c1"]}), True)])
    (use,) = retrievals([run]).uses
    assert (use.case, use.with_it) == ("c1", Share(1, 1))


def test_a_share_has_wilsons_interval() -> None:
    assert Share(3, 4).share == 0.75
    assert Share(3, 4).interval == wilson(3, 4)
    assert Share().share is None
    assert Share().interval == (0.0, 1.0)


def test_no_run_and_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no run there"):
        retrievals([tmp_path])
    run = _write(tmp_path / "run", [(_debate(1, {}), True)])
    (run / DEBATES).write_text('{"id": 1}\n')
    with pytest.raises(StoreError, match=r"debates\.jsonl, line 1"):
        retrievals([run])
    assert retrievals([]).uses == ()
