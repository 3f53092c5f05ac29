"""Rows for an analysis of one's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from r2mad.errors import UsageError
from r2mad.study.frame import to_frame, to_rows
from r2mad.study.runs import Run, load_run
from r2mad.types import Peer
from tests.study.by_hand import debate
from tests.study.runs_by_hand import write_run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    peers = {1: [[Peer(1, confidence=0.75, label="high", weight=1.5), Peer(2, shown=False, verdict="no")], []]}
    held = [debate("q1", "AB-", "AAx", method="r2mad[k=1]", peers=peers), debate("q2", "A", method="cot")]
    return load_run(write_run(tmp_path / "RUN", held))


def test_a_row_a_debate(run: Run) -> None:
    one, two = to_rows(run)
    assert one.keys() == two.keys()
    assert (one["method"], one["base"], one["what"], one["value"]) == ("r2mad[k=1]", "r2mad", "k", "1")
    assert (two["base"], two["what"], two["value"]) == ("cot", None, None)
    assert (one["question"], one["correct"], one["rounds"], one["grades"]) == ("q1", True, 2, "10- 11x")
    assert one["consensus_first"] == pytest.approx(1 / 3)
    assert one["consensus_last"] == pytest.approx(2 / 3)


def test_a_row_a_reply(run: Run) -> None:
    rows = to_rows(run, "replies")
    assert [(row["question"], row["round"], row["agent"], row["answer"], row["right"]) for row in rows] == [
        ("q1", 0, 0, "A", True), ("q1", 0, 1, "B", False), ("q1", 0, 2, None, False),
        ("q1", 1, 0, "A", True), ("q1", 1, 1, "A", True), ("q1", 1, 2, None, None),
        ("q2", 0, 0, "A", True),
    ]  # fmt: skip
    assert [row["error"] for row in rows][5] == "timeout"
    assert {row["agent_model"] for row in rows} == {"fake/one"}


def test_a_row_a_peer(run: Run) -> None:
    one, two = to_rows(run, "peers")
    assert (one["round"], one["agent"], one["peer"], one["confidence"], one["label"]) == (1, 0, 1, 0.75, "high")
    assert (one["peer_answer"], one["peer_right"], one["shown"]) == ("B", False, True)
    assert (two["peer"], two["shown"], two["verdict"], two["peer_answer"], two["peer_right"]) == (
        2, False, "no", None, False,
    )  # fmt: skip


def test_a_frame_has_the_same(run: Run) -> None:
    pytest.importorskip("pandas")
    frame = to_frame(run)
    assert list(frame["method"]) == ["r2mad[k=1]", "cot"]
    assert frame.groupby("base").correct.mean().to_dict() == {"cot": 1.0, "r2mad": 1.0}
    assert len(to_frame(run, "replies")) == 7


def test_without_pandas_the_message_says_how_to_get_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        to_frame(run)
    assert len(to_rows(run)) == 2


def test_an_unknown_kind_is_told(run: Run) -> None:
    with pytest.raises(UsageError, match="debates, replies, peers"):
        to_rows(run, "turns")  # type: ignore[arg-type]
