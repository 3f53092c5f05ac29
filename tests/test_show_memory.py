"""What a person is shown of a memory: a line an agent as it goes, the cases in a transcript, and the end."""

import re
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from r2mad.cli.show import LiveView, show_answer, show_transcript, view_lines
from r2mad.experience import Case, Outcome, Remembered
from r2mad.scene import Scene
from r2mad.types import DebateRecord, Failure, MemoryInfo, Peer, Question, Reply, Retrieved, Round, View
from tests.doubles import ListSnapshot
from tests.memory.made import NAMES, made

Capture = pytest.CaptureFixture[str]
LOST = Failure("server-fault", "503 from\n the embedder \x1b[2J")
CHOICE = Question("Which way out?", ("left", "right"), "choice", id="way")


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")


def _lines(*views: View) -> list[str]:
    return view_lines(Round(1, 0.5, (), views), list(NAMES))


@pytest.mark.parametrize(
    ("reward", "fared"), [(1.0, "right"), (0.0, "wrong"), (None, "not known"), (0.25, "rated 0.25")]
)
def test_a_case_is_told_with_how_alike_it_is_and_how_it_fared(reward: float | None, fared: str) -> None:
    assert _lines(View(1, retrieved=(Retrieved("c", 0.456, reward),))) == [f"Ben was reminded of 1 case (0.46 {fared})"]


def test_only_what_was_chosen_is_told_and_not_every_candidate() -> None:
    cases = tuple(Retrieved(f"c{n}", n / 10, 1.0) for n in range(5))
    assert _lines(View(0, candidates=cases, retrieved=cases[3:])) == [
        "Ann was reminded of 2 cases (0.30 right, 0.40 right)"
    ]


def test_peers_are_told_with_labels_and_confidence_and_those_without_are_not() -> None:
    known = Peer(2, confidence=0.9, label="high"), Peer(0, confidence=0.5)
    peers = (*known, Peer(1), Peer(3, confidence=0.0, label="low"))
    assert _lines(View(1, peers=peers)) == ["Ben confidence in Cyd high (0.90), Ann unlabelled (0.50), Dov low (0.00)"]


def test_a_line_has_both_parts_and_an_agent_of_whom_there_is_nothing_has_none() -> None:
    both = View(2, retrieved=(Retrieved("c", 1.0, 0.0),), peers=(Peer(0, confidence=0.1, label="low"),))
    assert _lines(View(0), both, View(1, peers=(Peer(0), Peer(2)))) == [
        "Cyd was reminded of 1 case (1.00 wrong); confidence in Ann low (0.10)"
    ]


def test_what_could_not_be_remembered_is_said_instead_and_cannot_steer_the_terminal() -> None:
    (line,) = _lines(View(0, forgot=LOST, retrieved=(Retrieved("c", 1.0, 1.0),)))
    assert line == "Ann could not remember: 503 from the embedder \ufffd[2J"


def _record(debate: Remembered, before: Sequence[Sequence[Case]], question: Question | None = None) -> DebateRecord:
    """A debate whose agent i was reminded of before[i] before its last round."""
    last = debate.record.rounds[-1]
    views = tuple(
        View(seat, retrieved=tuple(Retrieved(case.id, 0.5, case.reward) for case in cases))
        for seat, cases in enumerate(before)
    )
    rounds = (*debate.record.rounds[:-1], replace(last, views=views))
    return replace(debate.record, rounds=rounds, question=question or debate.record.question)


def _transcript(record: DebateRecord, memory: ListSnapshot | None, capsys: Capture) -> list[str]:
    show_transcript(record, memory)
    return capsys.readouterr().out.splitlines()


def _old(number: int, right: str | None, **more: Any) -> Remembered:
    """A remembered debate on a question of its own, about which the right answer is known, or not."""
    found = made(number, rewards=(1.0, 0.0, 0.0), **more)
    return replace(found, outcome=Outcome("gold", found.outcome.rewards, found.outcome.correct, right))


def test_a_transcript_tells_each_case_once_under_the_round_it_was_recalled_in(capsys: Capture) -> None:
    one, two = _old(1, "B", question=CHOICE), _old(2, None)
    first, second = Case(one, 1, 0), Case(two, 2, 0)
    other = Case(two, 1, 1)
    record = _record(made(9), [[first, second], [other], []])
    out = _transcript(record, ListSnapshot([one, two]), capsys)
    told = [line for line in out if line.startswith("    case ")]
    assert told == [
        f"    case {first.id}: Which way out? Right: B  right",
        f"    case {second.id}: Question number 2? Right: not known",
        f"    case {other.id}: Question number 2? Right: not known",
    ]
    assert out.index(told[0]) > next(n for n, line in enumerate(out) if line.startswith("Round 2:"))
    assert "  Ann was reminded of 2 cases (0.50 right, 0.50 right)" in out
    assert "  Ben was reminded of 1 case (0.50 wrong)" in out
    assert not any(line.startswith("  Cyd was") for line in out)
    same = _record(made(9), [[first, first], [], []])
    assert sum(line.startswith("    case ") for line in _transcript(same, ListSnapshot([one]), capsys)) == 1


def test_a_case_is_looked_for_in_its_own_agents_bank(capsys: Capture) -> None:
    """What the memory forgot since, or what is another agent's, is left out; the line of the agent stays."""
    one, gone = _old(1, "a0"), _old(3, "a0")
    record = _record(made(9), [[Case(gone, 1, 0)], [Case(one, 1, 0)], [Case(one, 1, 2)]])
    out = _transcript(record, ListSnapshot([one]), capsys)
    assert [line for line in out if "case " in line and "Right:" in line] == [
        f"    case {Case(one, 1, 2).id}: Question number 1? Right: a0"
    ]
    assert sum("was reminded of 1 case" in line for line in out) == 3
    assert not any("Right:" in line for line in _transcript(record, ListSnapshot([]), capsys))
    assert not any("Right:" in line for line in _transcript(record, None, capsys))


def test_a_transcript_has_options_replies_failures_and_whose_summary_it_was(capsys: Capture) -> None:
    record = made(4, question=CHOICE).record
    failed = Reply(1, error=Failure("timeout", "late \x1b[2J"))
    silent = Reply(2, text="<think>hm</think>I cannot tell.\nReally.")
    opening = replace(
        record.rounds[0], replies=(record.rounds[0].replies[0], failed, silent), summary="Dynamic: One.\nInsight: Two."
    )
    second = replace(record.rounds[1], summary="Three.", plain=Failure("summary", "it names numbers"), consensus=2 / 3)
    out = _transcript(replace(record, rounds=(opening, second)), None, capsys)
    assert out[:3] == ["(A) left", "(B) right", "Round 0: 33% hold the most popular answer"]
    assert "Round 1: 67% hold the most popular answer" in out
    where = out.index("  Ben: failed")
    assert "\x1b" not in out[where + 1]
    assert out[where + 2 : where + 5] == ["  Cyd: no answer", "    I cannot tell.", "    Really."]
    assert out[where + 5] == "  summed up: Dynamic: One. Insight: Two."
    assert out[-1] == "  summed up (from the tally): Three."


def _shown(record: DebateRecord, capsys: Capture) -> list[str]:
    show_answer(record, None)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        (0, "0 cases of these agents (none, so it ran as it would without a memory)"),
        (1, "1 case of these agents"),
        (12, "12 cases of these agents"),
    ],
)
def test_the_answer_says_which_memory_was_read(cases: int, said: str, capsys: Capture) -> None:
    record = replace(made(4).record, memory=MemoryInfo("sqlite:m.db", "v1", cases))
    assert f"Memory: sqlite:m.db, {said}" in _shown(record, capsys)
    assert not any(line.startswith("Memory") for line in _shown(made(4).record, capsys))


def test_the_answer_says_that_the_debate_is_degraded(capsys: Capture) -> None:
    record = made(4).record
    failed = replace(record.rounds[0], replies=(Reply(0, error=LOST), *record.rounds[0].replies[1:]))
    record = replace(record, rounds=(failed, *record.rounds[1:]), degraded=True)
    assert "Degraded: round 0, Ann: server-fault" in _shown(record, capsys)
    assert not any(line.startswith("Degraded") for line in _shown(made(4).record, capsys))


def test_the_live_view_tells_what_was_remembered(capsys: Capture) -> None:
    table = SimpleNamespace(agents=[SimpleNamespace(persona=SimpleNamespace(name=name)) for name in NAMES[:3]])
    view, quiet = LiveView("plain"), LiveView("none")
    view._scene = quiet._scene = cast(Scene, table)
    settled = replace(made(4).record.rounds[1], views=(View(0, retrieved=(Retrieved("c", 0.5, 1.0),)),))
    view.observe(1, settled)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "  Ann was reminded of 1 case (0.50 right)"
    assert re.match(r"round 1 over: \d of 3 agree$", lines[1])
    quiet.observe(1, settled)
    assert capsys.readouterr().err == ""
