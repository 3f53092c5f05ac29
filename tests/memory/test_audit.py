"""What an audit finds, on memories that are wrong in a known way."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2mad.experience import Outcome, Remembered
from r2mad.memory import audit as module
from r2mad.memory.audit import Audit, Finding, audit
from r2mad.types import Item, Question
from tests.memory.made import made

MIXED = (1.0, 0.0, 1.0)


def _judged(
    number: int,
    question: Question | None = None,
    *,
    answers: Sequence[str | None] = ("a", "b", "a"),
    right: Sequence[bool | None] = (True, False, True),
    rewards: Sequence[float | None] = MIXED,
    truth: str | None = "a",
) -> Remembered:
    """A debate whose agents say the same in each round, judged as given."""
    debate = made(number, question=question)
    rounds = tuple(
        replace(one, replies=tuple(replace(reply, answer=answers[reply.agent]) for reply in one.replies))
        for one in debate.record.rounds
    )
    outcome = Outcome("gold", tuple(rewards), (tuple(right),) * len(rounds), truth)
    return replace(debate, record=replace(debate.record, rounds=rounds), outcome=outcome)


def _named(debate: Remembered, *names: str) -> Remembered:
    agents = tuple(replace(agent, name=name) for agent, name in zip(debate.record.agents, names, strict=True))
    return replace(debate, record=replace(debate.record, agents=agents))


def _sound(count: int = 6, start: int = 0) -> list[Remembered]:
    """Debates with which nothing is wrong: each agent is now right, now wrong, with one model."""
    rewards = (MIXED, (0.0, 1.0, 0.0))
    return [
        made(number, dataset="made", split="train", rewards=rewards[number % 2], models=("fake/one",))
        for number in range(start, start + count)
    ]


def _of(found: Audit, kind: str) -> list[Finding]:
    return [finding for finding in found.findings if finding.kind == kind]


def _only(found: Audit, kind: str) -> Finding:
    (finding,) = _of(found, kind)
    return finding


def test_nothing_is_wrong_with_a_sound_memory() -> None:
    found = audit(_sound())
    assert found.findings == ()
    assert found.clean
    assert found.forget == ()
    assert (found.debates, found.cases) == (6, 36)


def test_nothing_at_all() -> None:
    assert audit([]) == Audit(0, 0, (), ())


def test_experience_is_counted_by_agent_data_set_and_source() -> None:
    feedback = made(1, dataset="", split="", rewards=(0.5, None, 1.0), failed=[(1, 0)])
    feedback = replace(feedback, outcome=replace(feedback.outcome, source="feedback"))
    rows = {
        (row.agent, row.dataset, row.source): (row.cases, row.known, row.share)
        for row in audit([made(0, rewards=MIXED), made(2, rewards=(0.0, 0.0, 0.0)), feedback]).experiences
    }
    assert rows == {
        ("Ann", "", "feedback"): (1, 1, 0.5),
        ("Ann", "made", "gold"): (4, 4, 0.5),
        ("Ben", "", "feedback"): (2, 0, None),
        ("Ben", "made", "gold"): (4, 4, 0.0),
        ("Cyd", "", "feedback"): (2, 2, 1.0),
        ("Cyd", "made", "gold"): (4, 4, 0.5),
    }


def test_questions_of_an_evaluation_split_are_found_however_they_are_written() -> None:
    asked = Question("Which  way is\nNorth?", ("up", "Down", "left"))
    item = Item(Question("which way is north?", ("down", "left", "up")), "C", "compass", "test")
    debates = [*_sound(), made(90, question=asked, rewards=MIXED), made(91, question=asked, rewards=MIXED)]
    finding = _only(audit(debates, [item]), "overlap")
    ids = tuple(debate.record.id for debate in debates[6:])
    assert (finding.weight, finding.count, finding.debates, finding.forget) == ("wrong", 1, ids, ids)
    assert finding.text == "compass:test: 1 question in 2 debates"
    assert finding.examples == (asked.text,)


def test_the_same_text_with_other_options_is_told_apart() -> None:
    options = {"north": ("up", "down"), "south": ("up", "left"), "east": ("right", "left")}
    items = [Item(Question("Which is true?", options[key]), "A", "compass", "test") for key in ("north", "east")]
    south = made(92, question=Question("Which is true?", options["south"]), rewards=MIXED)
    found = audit([*_sound(), south], items)
    assert not _of(found, "overlap")
    finding = _only(found, "same-text")
    assert (finding.weight, finding.count, finding.debates, finding.forget) == ("note", 1, (south.record.id,), ())
    east = made(93, question=Question("Which is true?", options["east"]), rewards=MIXED)
    found = audit([*_sound(), east], items)  # an item itself is not also another's twin
    assert not _of(found, "same-text")
    assert _only(found, "overlap").count == 1


def test_different_right_answers_contradict_and_equivalent_ones_do_not() -> None:
    half = Question("What is half of one?", kind="math")

    def told(number: int, truth: str | None) -> Remembered:
        return _judged(number, half, answers=("0.5", "2", "0.5"), truth=truth)

    same = audit([told(1, "0.5"), told(2, "\\frac12"), told(3, None)])
    assert not _of(same, "contradiction")
    assert _only(same, "repeated").count == 1
    finding = _only(audit([told(1, "0.5"), told(2, "\\frac12"), told(4, "2")]), "contradiction")
    assert "different right answers" in finding.text
    assert finding.weight == "wrong"
    assert len(finding.forget) == 3  # nobody can say which of them is true


def test_an_answer_judged_both_ways_contradicts() -> None:
    asked = Question("Who?")
    one = _judged(1, asked, truth=None)
    other = _judged(2, asked, answers=("A ", "c", None), right=(False, True, None), truth=None)
    finding = _only(audit([one, other]), "contradiction")
    assert "judged right and wrong" in finding.text
    assert finding.debates == (one.record.id, other.record.id)
    agreeing = _judged(3, asked, answers=("A", "b", None), truth=None)
    assert not _of(audit([one, agreeing]), "contradiction")
    assert not _of(audit([one, _judged(4, Question("Whom?"), answers=("b", "a", "c"), truth=None)]), "contradiction")


def test_rewards_speak_where_replies_were_not_judged() -> None:
    asked = Question("Who?")
    unjudged = {"right": (None, None, None), "truth": None}
    one = _judged(1, asked, rewards=(1.0, 0.4, None), **unjudged)  # type: ignore[arg-type]
    other = _judged(2, asked, rewards=(0.0, 0.6, 0.0), **unjudged)  # type: ignore[arg-type]
    assert _of(audit([one, other]), "contradiction")
    vague = _judged(3, asked, rewards=(0.5, 0.6, None), **unjudged)  # type: ignore[arg-type]
    assert not _of(audit([one, vague]), "contradiction")


def test_banks_without_contrast() -> None:
    debates = [made(number, rewards=(1.0, 0.0, None), models=("fake/one",)) for number in range(3)]
    found = audit(debates)
    assert [finding.text for finding in _of(found, "no-contrast")] == [
        "Ann: 6 cases, all right",
        "Ben: 6 cases, all wrong",
    ]
    assert _only(found, "no-outcome").text == "Cyd: of 6 cases no outcome is known"
    assert {finding.weight for finding in found.findings if finding.kind.startswith("no-")} == {"wrong"}
    assert found.forget == ()  # nothing that one could take out would help
    halves = audit([made(1, rewards=(0.5, 0.5, 0.5))])
    assert "all rewarded 0.5" in _of(halves, "no-contrast")[0].text


def test_debates_of_unknown_outcome_are_counted() -> None:
    unknown = made(70, rewards=(None, None, None), models=("fake/one",))
    finding = _only(audit([*_sound(), unknown]), "unknown-outcome")
    assert (finding.weight, finding.debates, finding.forget) == ("note", (unknown.record.id,), (unknown.record.id,))
    assert audit([*_sound(), unknown]).clean


def test_models_mixed_under_one_name() -> None:
    debates = [*_sound(), made(71, rewards=MIXED, models=("fake/two",))]
    found = audit(debates)
    assert [finding.text for finding in _of(found, "mixed-models")] == [
        f"{name}: cases of several models, fake/one (12), fake/two (2)" for name in ("Ann", "Ben", "Cyd")
    ]
    assert found.clean


def test_two_agents_of_one_name_share_a_bank() -> None:
    debate = _named(made(1, rewards=(1.0, 0.0, 1.0), models=("fake/one",)), "Ann", "Ann", "Ann")
    found = audit([debate])
    assert not _of(found, "no-contrast")
    assert [row.cases for row in found.experiences] == [6]


def _turned(debate: Remembered, towards: Remembered, cosine: float) -> Remembered:
    """The debate with a question vector of that cosine to the other's."""
    base = towards.question.astype(np.float64)
    away = debate.question - (debate.question @ base) * base
    vector = cosine * base + np.sqrt(1 - cosine**2) * away / np.linalg.norm(away)
    return replace(debate, question=vector.astype(np.float32))


def test_near_duplicates_leave_the_first_and_repeats_are_counted_apart() -> None:
    debates = _sound(8)
    debates[3] = _turned(debates[3], debates[0], 0.981)
    debates[5] = _turned(debates[5], debates[0], 0.979)
    debates.append(made(50, question=debates[3].record.question, rewards=MIXED, models=("fake/one",)))
    debates[8] = replace(debates[8], question=debates[3].question)
    found = audit(debates)
    ids = [debate.record.id for debate in debates]
    near, again = _only(found, "near-duplicate"), _only(found, "repeated")
    assert (near.weight, near.count) == ("warning", 1)
    assert near.debates == (ids[0], ids[3], ids[8])
    assert near.forget == (ids[3], ids[8])
    assert (again.weight, again.debates, again.forget) == ("note", (ids[3], ids[8]), (ids[8],))
    assert not found.clean
    assert found.forget == near.forget
    assert audit([debate for debate in debates if debate.record.id not in found.forget]).findings == ()


def test_a_question_without_content_is_like_nothing() -> None:
    debates = [replace(debate, question=np.zeros(8, np.float32)) for debate in _sound(4)]
    assert audit(debates).findings == ()


@given(st.integers(0, 60), st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
def test_near_is_what_comparing_all_pairs_finds(count: int, block: int, tile: int, seed: int) -> None:
    """Greedily, in the memory's order: a question goes if it is near to an earlier one that stays."""
    drawn = np.random.default_rng(seed)
    few = drawn.standard_normal((5, 16))
    vectors = (few[drawn.integers(0, 5, count)] + 0.06 * drawn.standard_normal((count, 16))).astype(np.float32)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    asked = [module._Asked(Question("?"), vector) for vector in vectors]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        patch.setattr(module, "TILE", tile)
        found = module._near(asked)
    gone: set[int] = set()
    for index in range(count):
        gone |= {index} if any(units[index] @ units[one] >= 0.98 for one in range(index) if one not in gone) else set()
    assert set(found) == gone
    assert list(found) == sorted(found)
    assert all(early < late and early not in gone for late, early in found.items())
    assert all(units[late] @ units[early] >= 0.98 - 1e-6 for late, early in found.items())


def test_findings_come_worst_first() -> None:
    debates = _sound(4)
    debates[2] = _turned(debates[2], debates[1], 0.999)
    twin = made(60, question=debates[0].record.question, rewards=MIXED, models=("fake/two",))
    found = audit([*debates, twin], [Item(debates[3].record.question, "a", "made", "test")])
    weights = [finding.weight for finding in found.findings]
    assert weights == sorted(weights, key=["wrong", "warning", "note"].index)
    assert {"overlap", "near-duplicate", "repeated", "mixed-models"} <= {finding.kind for finding in found.findings}
