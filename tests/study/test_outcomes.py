"""How a debate turned out: by gold, verifier, function and feedback; what follows from each, and what does not."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2mad.errors import ServerFaultError, UsageError
from r2mad.models.scripted import ScriptedModel
from r2mad.study.outcomes import (
    Checker,
    Feedback,
    Gold,
    Verifier,
    load_checker,
    outcome_of,
    read_feedback,
)
from r2mad.types import AgentInfo, DebateRecord, Failure, Item, Question, Reply, Round

QUESTION = Question("Which?", ("left", "right", "up"), id="q")
LATE = Failure("timeout", "late")
ITEM = Item(QUESTION, "A", "made", "train")


def _record(*rounds: str, answer: str | None = "A", question: Question = QUESTION) -> DebateRecord:
    """A debate from one sign a reply: an answer, `-` for none, `x` for a failed one."""
    held = tuple(
        Round(
            t,
            0.5,
            tuple(
                Reply(i, answer=sign if sign in "ABC" else None, error=LATE if sign == "x" else None)
                for i, sign in enumerate(signs)
            ),
        )
        for t, signs in enumerate(rounds)
    )  # fmt: skip
    agents = tuple(AgentInfo(f"agent {i}", "scripted/x") for i in range(len(rounds[0])))
    return DebateRecord(
        id="d",
        method="mad",
        seed=1,
        question=question,
        agents=agents,
        prompts="p",
        rounds=held,
        answer=answer,
        votes={},
        tie=False,
        tied=(),
        stopped="rounds",
        degraded=False,
        confidence=None,
        calls={},
        usage={},
        seconds=0.0,
        started="",
    )


async def test_gold_knows_all_but_what_failed() -> None:
    outcome = await Gold()(_record("AB-", "xBA"), ITEM)
    assert outcome is not None
    assert outcome.correct == ((True, False, False), (None, False, True))
    assert outcome.rewards == (None, 0.0, 1.0)  # the last reply counts, and of a failed one nothing is known
    assert (outcome.answer, outcome.source) == ("A", "gold")
    assert await Gold()(_record("AB-"), None) is None


async def test_gold_compares_by_equivalence() -> None:
    question = Question("How much?", kind="math", id="m")
    record = _record("AB", question=question)
    replies = (Reply(0, answer="\\frac{1}{2}"), Reply(1, answer="0.51"))
    record = replace(record, rounds=(Round(0, 0.5, replies),))
    outcome = await Gold()(record, Item(question, "0.5"))
    assert outcome is not None
    assert outcome.rewards == (1.0, 0.0)


def test_feedback_that_an_answer_is_wrong_says_nothing_of_others() -> None:
    outcome = outcome_of(_record("AB-", "ABB"), "feedback", {"A": 0.0, "B": None})
    assert outcome is not None
    assert outcome.correct == ((False, None, False), (False, None, None))
    assert outcome.rewards == (0.0, None, None)


@pytest.mark.parametrize(
    ("value", "rewards", "correct"),
    [
        (1.0, (1.0, 0.0, 0.0), (True, False, False)),
        (0.0, (0.0, None, 0.0), (False, None, False)),
        (0.7, (0.7, None, 0.0), (None, None, False)),  # a value between is a reward, and no verdict
    ],
)
async def test_feedback(value: float, rewards: tuple[float | None, ...], correct: tuple[bool | None, ...]) -> None:
    for id in ("d", "q"):
        outcome = await Feedback({id: (value, None)})(_record("AB-"), None)
        assert outcome is not None
        assert outcome.rewards == rewards
        assert outcome.correct == (correct,)
        assert outcome.answer == ("A" if value == 1.0 else None)


async def test_feedback_on_a_named_answer_and_on_other_debates() -> None:
    outcome = await Feedback({"d": (1.0, "B")})(_record("AB-"), None)
    assert outcome is not None
    assert outcome.rewards == (0.0, 1.0, 0.0)
    assert await Feedback({"other": (1.0, None)})(_record("AB-"), None) is None
    assert await Feedback({"d": (1.0, None)})(_record("---", answer=None), None) is None


@pytest.mark.parametrize("named", ["B", "b", "(B)", "right", " RIGHT "])
async def test_an_option_may_be_named_by_letter_or_text(named: str) -> None:
    """Unknown is not wrong: a name that is not understood must not make every answer wrong."""
    outcome = await Feedback({"d": (1.0, named)})(_record("AB-"), None)
    assert outcome is not None
    assert (outcome.rewards, outcome.answer) == ((0.0, 1.0, 0.0), "B")
    with pytest.raises(UsageError, match="none of its options"):
        await Feedback({"d": (1.0, "sideways")})(_record("AB-"), None)


async def test_a_verifier_is_asked_once_an_answer_and_may_be_unsure() -> None:
    model = ScriptedModel(
        {f"<reply>\n({x}": said for x, said in (("A", "I checked.\nYES"), ("B", "NO."), ("C", "Hm.\nNOT SURE"))}
    )
    outcome = await Verifier(model)(_record("ABA", "CBA"), None)
    assert outcome is not None
    assert outcome.correct == ((True, False, True), (None, False, True))
    assert outcome.rewards == (None, 0.0, 1.0)
    assert outcome.source == "verifier:scripted/custom"
    assert len(model.requests) == 3
    assert all(request.kind == "judge" and request.sampling.temperature == 0.0 for request in model.requests)
    assert await Verifier(ScriptedModel({"": "Hard to say."}))(_record("ABA"), None) is None


async def test_a_verifier_that_fails_is_an_error() -> None:
    with pytest.raises(ServerFaultError):
        await Verifier(ScriptedModel([ServerFaultError("503"), ServerFaultError("503")]))(_record("AB"), None)


async def test_a_function_of_the_users() -> None:
    async def check(question: Question, answer: str) -> float | None:
        assert question is QUESTION
        return {"A": 1, "B": False, "C": 0.25}[answer]

    outcome = await Checker(check, "mine")(_record("ABC"), None)
    assert outcome is not None
    assert (outcome.rewards, outcome.correct) == ((1.0, 0.0, 0.25), ((True, False, None),))
    assert await Checker(lambda question, answer: None, "mine")(_record("ABC"), None) is None


@pytest.mark.parametrize("check", [lambda q, a: 1 / 0, lambda q, a: "yes", lambda q, a: 1.5, lambda q, a: float("nan")])
async def test_a_function_that_fails_is_named(check: Callable[[Question, str], object]) -> None:
    with pytest.raises(UsageError, match="mine"):
        await Checker(check, "mine")(_record("ABC"), None)


def test_a_function_is_loaded_by_its_place(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text("def right(question, answer):\n    return answer == 'A'\nnumber = 3\n")
    checker = load_checker(f"{tmp_path}/checks.py:right")
    assert checker.check(QUESTION, "A") is True
    assert checker.source == "python:checks.py:right"
    assert load_checker("operator:eq").check(QUESTION, "A") is False
    for wrong in (
        "right",
        ":right",
        f"{tmp_path}/checks.py:",
        f"{tmp_path}/none.py:right",
        "no.such:f",
        "operator:none",
    ):
        with pytest.raises(UsageError):
            load_checker(wrong)
    (tmp_path / "exits.py").write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(UsageError, match="SystemExit"):
        load_checker(f"{tmp_path}/exits.py:right")
    (tmp_path / "typed.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass One:\n    x: int\n"
        "def right(question, answer):\n    return One(1).x\n"
    )
    assert load_checker(f"{tmp_path}/typed.py:right").check(QUESTION, "A") == 1
    with pytest.raises(UsageError, match="not a function"):
        load_checker(f"{tmp_path}/checks.py:number")


def test_feedback_is_read_from_csv(tmp_path: Path) -> None:
    path = tmp_path / "said.csv"
    path.write_text("\ufeffdebate,question,value,answer\nd1,,1,\n,q2,0.25,B\nd1,,0,\n", encoding="utf-8")
    assert read_feedback(path).lines == {"d1": (0.0, None), "q2": (0.25, "B")}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "column"),
        ("debate\nd1\n", "column"),
        ("value\n1\n", "column"),
        ("debate,value\nd1,good\n", "line 2.*'good'"),
        ("debate,value\nd1,1\nd2,\n", "line 3"),
        ("debate,value\nd1,1.5\n", "1.5"),
        ("debate,value\nd1,nan\n", "nan"),
        ("debate,value\n,1\n", "line 2"),
    ],
)
def test_feedback_that_says_nothing_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "said.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=problem):
        read_feedback(path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_feedback(tmp_path / "none.csv")


@given(
    st.lists(st.sampled_from("ABC-x"), min_size=3, max_size=3), st.sampled_from("ABC"), st.sampled_from([0.0, 0.5, 1.0])
)
def test_what_is_known_never_contradicts_itself(signs: list[str], about: str, value: float) -> None:
    """Two agents with one answer have one reward; a reward of 1 or 0 agrees with ζ of the last round."""
    outcome = outcome_of(_record("".join(signs)), "x", {a: value if a == about else None for a in "ABC"})
    assert outcome is not None
    for sign, reward, right in zip(signs, outcome.rewards, outcome.correct[-1], strict=True):
        same = {r for s, r in zip(signs, outcome.rewards, strict=True) if s == sign}
        assert len(same) == 1
        if right is not None:
            assert reward == float(right)
