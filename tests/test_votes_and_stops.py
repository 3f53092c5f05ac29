"""Votes that weigh and judge, debates that doubt or are not held, and caps on calls: all worked by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from r2mad.answers import tally
from r2mad.errors import ServerFaultError, UsageError
from r2mad.experience import Case, Outcome, Remembered
from r2mad.memory.cases import embed_debate
from r2mad.method import Method
from r2mad.methods import METHODS, find_method
from r2mad.models.scripted import Scripted
from r2mad.retrieval import Recall
from r2mad.skew import MemoryConfidence
from r2mad.study.outcomes import outcome_of
from r2mad.types import DebateRecord, Failure, Question, Reply, Request, Round
from r2mad.verdict import Never, Selective, UnanimityUnlessDoubted, Verdict, Weighted, break_tie, trust
from tests.doubles import WordEmbedder, memory_of
from tests.staging import QUESTION, hold, said, scene_of, when

OLD = Question("Which way into the old harbour?", ("left", "right", "straight on", "back"), id="old")
SUMMARY = "Dynamic: A majority agrees and one objects.\nInsight: Nobody has met the objection."

Said = list[tuple[str | None, float | None]]
"""Answer and stated confidence of each agent."""


async def _weighted(held: Said, question: Question = QUESTION) -> Verdict:
    replies = tuple(Reply(i, answer=answer, verbal_confidence=sure) for i, (answer, sure) in enumerate(held))
    scene = replace(scene_of(lambda request: ""), question=question)
    return await Weighted()(scene, Round(0, 0.0, replies), tally([answer for answer, _ in held], question.kind))


@pytest.mark.parametrize(
    ("held", "answer", "votes", "confidence"),
    [
        ([("A", 9), ("B", 4), ("B", 4)], "A", {"A": 9, "B": 8}, 9 / 17),  # against the plurality
        ([("A", 7), ("B", 4), ("B", 4)], "B", {"B": 8, "A": 7}, 8 / 15),
        ([("A", 9), ("B", None), ("B", 4)], "B", {"B": 10.5, "A": 9}, 10.5 / 19.5),  # 6.5 for who did not say
        ([("A", 9), ("B", 0), ("B", None)], "A", {"A": 9, "B": 4.5}, 9 / 13.5),
        ([("A", None), ("B", None), ("B", None)], "B", {"B": 2, "A": 1}, 2 / 3),  # nobody said: the plurality
        ([("A", 0), ("B", 0), ("B", 0)], "B", {"B": 2, "A": 1}, 2 / 3),  # nobody is sure: the plurality
        ([("A", 0), ("B", 0), ("B", None)], "B", {"B": 2, "A": 1}, 2 / 3),
        ([("A", 9), (None, 6), ("B", 5)], "A", {"A": 9, "B": 5}, 9 / 20),  # no answer, but in the denominator
        ([("A", 9), (None, None), ("B", 5)], "A", {"A": 9, "B": 5}, 9 / 21),
        ([(None, 10), ("B", 0), ("B", 0)], "B", {"B": 2}, 2 / 3),
        ([("A", 1), ("A", 0), ("B", 0)], "A", {"A": 1, "B": 0}, 1.0),
        ([("A", 10)], "A", {"A": 10}, 1.0),
        ([(None, 7), (None, 8)], None, {}, None),
    ],
)
async def test_votes_are_sums_of_stated_confidence(
    held: Said, answer: str | None, votes: dict[str, float], confidence: float | None
) -> None:
    verdict = await _weighted(held)
    assert verdict.answer == answer
    assert verdict.votes == pytest.approx(votes)
    assert list(verdict.votes) == list(votes)  # most first
    assert verdict.confidence == (None if confidence is None else pytest.approx(confidence))
    assert verdict.tied == ()


@pytest.mark.parametrize(
    "held",
    [
        [("A", 8), ("B", 4), ("B", 4)],
        [("A", 0.1), ("A", 0.2), ("B", 0.3)],  # floats: .1 + .2 is not .3
        [("A", 5), ("B", None), (None, 5)],
        [("A", None), ("B", None), (None, None)],
    ],
)
async def test_a_tie_of_masses_is_declared_and_broken_by_hash_and_no_agents_favour(held: Said) -> None:
    winners = set()
    for number in range(30):
        question = replace(QUESTION, id=f"tie/{number}")
        verdicts = [await _weighted(list(order), question) for order in permutations(held)]
        assert {verdict.answer for verdict in verdicts} == {break_tie(("A", "B"), 1, question.id)}
        assert all(sorted(verdict.tied) == ["A", "B"] for verdict in verdicts)
        winners |= {verdict.answer for verdict in verdicts}
    assert winners == {"A", "B"}


async def test_a_failed_reply_has_the_usual_mass_in_the_denominator() -> None:
    replies = (
        Reply(0, answer="A", verbal_confidence=8.0),
        Reply(1, error=Failure("server-fault", "503")),
        Reply(2, answer="B", verbal_confidence=4.0),
    )
    verdict = await Weighted()(scene_of(lambda request: ""), Round(0, 0.0, replies), tally(["A", None, "B"], "choice"))
    assert verdict.answer == "A"
    assert verdict.confidence == pytest.approx(8 / 18)


async def test_a_weighted_debate_records_masses_and_the_plain_one_heads() -> None:
    def script(request: Request) -> str:
        return f"(({'ABB'[request.agent]}))\nConfidence: {(9, 4, 4)[request.agent]}"

    weighted, _ = await hold(script, "mad-confident-weighted")
    assert (weighted.answer, weighted.votes, weighted.tie) == ("A", {"A": 9.0, "B": 8.0}, False)
    plain, _ = await hold(script, "mad-confident")
    assert (plain.answer, plain.votes) == ("B", {"B": 2.0, "A": 1.0})


def _rules(verdict: Scripted, answers: str = "ABB") -> Callable[[Request], Scripted]:
    def script(request: Request) -> Scripted:
        if request.kind == "judge":
            return verdict
        return f"{said(request.agent, when(request))} (({answers[request.agent]}))"

    return script


@pytest.mark.parametrize(
    ("verdict", "answer", "confidence", "degraded"),
    [
        ("The minority has the better argument. ((A))", "A", 1 / 3, False),
        ("((B))", "B", 2 / 3, False),
        ("Both are wrong: ((C))", "C", 0.0, False),
        ("I cannot decide.", "B", 2 / 3, False),  # unreadable: the plurality stands
        ("((Z))", "B", 2 / 3, False),
        ("<think>((A))", "B", 2 / 3, False),
        (ServerFaultError("503"), "B", 2 / 3, True),
    ],
)
async def test_the_judges_answer_is_the_groups(
    verdict: Scripted, answer: str, confidence: float, degraded: bool
) -> None:
    record, requests = await hold(_rules(verdict), "mad-judge")
    assert (record.answer, record.degraded) == (answer, degraded)
    assert record.confidence == pytest.approx(confidence)
    assert record.votes == {"B": 2.0, "A": 1.0}  # the agents' own
    assert (record.tie, record.tied) == (False, ())
    assert record.calls == {"debate": 9, "summary": 0, "judge": 1}
    (note,) = record.judgements
    assert (note.purpose, note.round, note.about, note.agent) == ("vote", 2, None, 0)
    assert (note.error is not None) == degraded
    (asked,) = [request for request in requests if request.kind == "judge"]
    assert asked is requests[-1]
    text = asked.messages[-1].content
    assert len(asked.messages) == 1
    assert [said(agent, t) in text for t in range(3) for agent in range(3)] == [False] * 6 + [True] * 3
    assert QUESTION.text in text


async def test_a_tie_is_the_judges_to_decide_and_a_hashs_where_it_cannot() -> None:
    record, _ = await hold(_rules("((C))", "ABC"), "mad-judge")
    assert (record.answer, record.tie, record.votes) == ("C", False, {"A": 1.0, "B": 1.0, "C": 1.0})
    record, _ = await hold(_rules("no idea", "ABC"), "mad-judge")
    assert (record.answer, record.tie, record.tied) == (break_tie(("A", "B", "C"), 1, "way"), True, ("A", "B", "C"))


async def test_the_judge_is_not_asked_where_all_agree_and_hears_who_can_be_heard() -> None:
    record, _ = await hold(_rules("((B))", "BBB"), "mad-judge")
    assert (record.stopped, record.calls["judge"], record.confidence) == ("unanimity", 0, 1.0)

    def broken(request: Request) -> Scripted:
        if request.kind == "debate" and request.agent == 1 and when(request) == 2:
            return ServerFaultError("down")
        return _rules("((A))")(request)

    record, requests = await hold(broken, "mad-judge")
    text = requests[-1].messages[-1].content
    assert [said(agent, 2) in text for agent in range(3)] == [True, False, True]
    assert record.answer == "A"
    assert record.confidence == pytest.approx(1 / 3)  # one of three, the failed one among them


async def test_where_nobody_can_be_heard_no_judge_is_asked() -> None:
    record, requests = await hold(lambda request: ServerFaultError("down"), "mad-judge")
    assert (record.stopped, record.answer, len(requests)) == ("failed", None, 3)
    assert record.judgements == ()


async def test_a_judge_of_free_words_agrees_with_those_who_mean_the_same() -> None:
    question = Question("Where?", id="way")
    lines = ("The answer is: the Old Bridge", "The answer is: old bridge.", "The answer is: the harbour")

    def script(request: Request) -> str:
        return (
            "They mean one place.\nThe answer is: The old bridge" if request.kind == "judge" else lines[request.agent]
        )

    record, _ = await hold(script, "mad-judge", question=question)
    assert record.answer == "The old bridge"
    assert record.confidence == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("answers", "enough", "stopped"),
    [
        ("AAB", 0.6, "settled"),
        ("AAB", 2 / 3, "settled"),
        ("AAB", 0.67, "rounds"),
        ("AAB", 1.0, "rounds"),
        ("ABC", 0.6, "rounds"),
        ("AAA", 0.6, "unanimity"),
        ("AAA", 1.0, "unanimity"),
        ("AA-", 0.6, "settled"),  # no answer counts among all
        ("A--", 0.6, "rounds"),
        ("---", 0.6, "rounds"),
        ("AAABB", 0.6, "settled"),
        ("AAABBCC", 0.6, "rounds"),
    ],
)
async def test_a_debate_is_held_only_where_too_few_agree(answers: str, enough: float, stopped: str) -> None:
    method = replace(find_method("mad").sized(agents=len(answers)), stop=Selective(enough))
    record, requests = await hold(lambda request: f"(({answers[request.agent]}))", method)
    assert record.stopped == stopped
    assert len(requests) == len(answers) * (3 if stopped == "rounds" else 1)


async def test_once_held_a_selective_debate_ends_as_any_other() -> None:
    record, _ = await hold(lambda r: f"(({'AAB'[r.agent] if when(r) else 'ABC'[r.agent]}))", "mad-selective")
    assert (record.stopped, len(record.rounds)) == ("rounds", 3)  # later, 60 % is not enough
    record, _ = await hold(lambda r: f"(({'A' if when(r) else 'ABC'[r.agent]}))", "mad-selective")
    assert (record.stopped, len(record.rounds)) == ("unanimity", 2)


@pytest.mark.parametrize("enough", [0.0, -0.5, 1.01, float("nan")])
def test_a_share_that_is_none_is_refused(enough: float) -> None:
    with pytest.raises(UsageError, match="share"):
        Selective(enough)


def _says(*rounds: str) -> Callable[[Request], Scripted]:
    """What the agents say, a word a round; the last one goes on."""

    def script(request: Request) -> str:
        if request.kind == "summary":
            return SUMMARY
        turn = sum(message.role == "assistant" for message in request.messages)
        return f"Agent {request.agent} is for this way. (({rounds[min(turn, len(rounds) - 1)][request.agent]}))"

    return script


async def _old(answers: str, right: str = "A") -> Remembered:
    """A remembered debate in which agent i said answers[i] throughout."""
    method = replace(METHODS["mad"], summarise=True, stop=Never()).sized(agents=len(answers))
    record, _ = await hold(_says(answers), method, question=OLD)
    outcome = outcome_of(record, "gold", {letter: float(letter == right) for letter in "ABCD"}, right)
    assert outcome is not None
    return await embed_debate(record, outcome, WordEmbedder())


async def _doubting(answers: tuple[str, ...], *old: Remembered, method: Method | None = None) -> DebateRecord:
    record, _ = await hold(_says(*answers), method or METHODS["r2mad-doubt"], memory=memory_of(list(old)))
    return record


async def test_what_memory_doubts_is_debated_though_all_agree() -> None:
    """Agent 0 was right then, 1 and 2 wrong. Each pair of an agent and a peer counts: (1 + 1 + 0 + 0 + 0 + 0) / 6."""
    record = await _doubting(("BBB",), await _old("ABB"))
    assert [one.consensus for one in record.rounds] == [1.0, 1.0, 1.0]
    assert [one.trust for one in record.rounds] == [pytest.approx(1 / 3), pytest.approx(1 / 3), None]
    assert record.stopped == "doubted"
    assert record.calls == {"debate": 9, "summary": 2, "judge": 0}
    assert (record.answer, record.degraded) == ("B", False)


async def test_what_memory_trusts_ends_the_debate() -> None:
    """Agents 0 and 1 were right: 4 of the 6 pairs. It cost a summary to find out."""
    record = await _doubting(("AAA",), await _old("AAB"))
    assert [one.trust for one in record.rounds] == [pytest.approx(2 / 3)]
    assert (record.stopped, record.calls) == ("unanimity", {"debate": 3, "summary": 1, "judge": 0})


async def test_the_threshold_of_doubt_is_that_of_the_low_label() -> None:
    old = await _old("ABB")
    for low, stopped in ((0.3, "unanimity"), (0.33, "unanimity"), (0.34, "doubted")):
        stop = UnanimityUnlessDoubted(MemoryConfidence(low=low))
        record = await _doubting(("BBB",), old, method=replace(METHODS["r2mad-doubt"], stop=stop))
        assert record.stopped == stopped


async def test_nothing_to_go_by_is_no_doubt() -> None:
    old = await _old("ABB")
    silent = replace(old, outcome=Outcome("feedback", (None,) * 3, ((None,) * 3,) * 3))
    record = await _doubting(("BBB",), silent)
    assert (record.stopped, record.rounds[0].trust, len(record.rounds)) == ("unanimity", None, 1)
    record = await _doubting(("BBB",))  # no case at all: nothing is even summed up
    assert (record.stopped, record.rounds[0].trust) == ("unanimity", None)
    assert record.calls == {"debate": 3, "summary": 0, "judge": 0}


async def test_where_agents_disagree_memory_is_not_asked_and_the_debate_goes_on() -> None:
    record = await _doubting(("ABB", "BBB"), await _old("AAB"))
    assert [one.trust for one in record.rounds] == [None, pytest.approx(2 / 3)]
    assert (record.stopped, len(record.rounds)) == ("unanimity", 2)
    record = await _doubting(("ABB",), await _old("ABB"))
    assert (record.stopped, [one.trust for one in record.rounds]) == ("rounds", [None] * 3)


async def test_doubt_may_part_them() -> None:
    record = await _doubting(("BBB", "ABB"), await _old("ABB"))
    assert [one.trust for one in record.rounds] == [pytest.approx(1 / 3), None, None]
    assert record.stopped == "doubted"  # it would have ended at once
    assert record.votes == {"B": 2.0, "A": 1.0}


async def test_an_agent_alone_weighs_its_own_reply() -> None:
    method = METHODS["r2mad-doubt"].sized(agents=1)
    record = await _doubting(("B",), await _old("B"), method=method)
    assert (record.stopped, record.rounds[0].trust) == ("doubted", 0.0)
    record = await _doubting(("A",), await _old("A"), method=method)
    assert (record.stopped, record.rounds[0].trust) == ("unanimity", 1.0)


async def test_trust_is_the_mean_of_eq_11_over_who_holds_the_answer() -> None:
    """Agent 0 weighs peer 1 at 1/(1 + .6) = .625 and knows nothing of peer 2, whose answer is another anyway."""
    old = await _old("ABB")
    straight, turned = [1.0, 0.0], [0.6, 0.8]

    def case(replies: list[list[float]], right: bool) -> Case:
        vectors = np.array([[[0.0, 0.0]] * 3, replies], np.float32)
        outcome = Outcome("hand", old.outcome.rewards, ((None,) * 3, (None, right, True)))
        return Case(replace(old, replies=vectors, outcome=outcome), 1, 0)

    cases = (case([straight] * 3, True), case([straight, turned, turned], False))
    recall = Recall(cases=cases, replies=np.array([straight] * 3, np.float32))
    last = Round(0, 2 / 3, (Reply(0, class_=0), Reply(1, class_=0), Reply(2, class_=1)))
    found = await trust(scene_of(_says("ABB")), last, (recall, Recall(), Recall()), MemoryConfidence())
    assert found == pytest.approx(1 / 1.6)
    assert await trust(scene_of(_says("ABB")), last, (), MemoryConfidence()) is None


async def test_a_selective_debate_asks_memory_of_the_opening_only() -> None:
    doubted, trusted = await _old("ABB"), await _old("AAB")
    record = await _doubting(("BBB",), doubted, method=METHODS["r2mad-selective"])
    assert [one.trust for one in record.rounds] == [pytest.approx(1 / 3), None]
    assert (record.stopped, len(record.rounds)) == ("unanimity", 2)  # after the opening, to agree is enough
    record = await _doubting(("AAA",), trusted, method=METHODS["r2mad-selective"])
    assert record.stopped == "unanimity"
    assert record.rounds[0].trust == pytest.approx(2 / 3)
    settled = replace(METHODS["r2mad-selective"], stop=Selective(0.6, MemoryConfidence()))
    record = await _doubting(("AAB",), trusted, method=settled)
    assert (record.stopped, record.rounds[0].trust) == ("settled", 1.0)  # of 0 and 1, who hold A, all is well known
    record = await _doubting(("ABB",), doubted, method=settled)
    assert ([one.trust for one in record.rounds], len(record.rounds)) == ([0.0, None, None], 3)


async def test_doubt_that_kept_an_opening_of_enough_open_to_the_end_is_named() -> None:
    settled = replace(METHODS["r2mad-selective"], stop=Selective(0.6, MemoryConfidence()))
    record = await _doubting(("ABB",), await _old("ABB"), method=settled)
    assert record.stopped == "doubted"


@pytest.mark.parametrize(
    ("name", "cap", "rounds"),
    [
        ("mad-m2-s", 3, 1),
        ("mad-m2-s", 8, 1),  # three replies would be paid for, their judging not
        ("mad-m2-s", 9, 2),
        ("mad-m2-s", 14, 2),
        ("mad-m2-s", 15, 3),
        ("mad-m2-o", 5, 1),
        ("mad-m2-o", 6, 2),
        ("mad-judge", 4, 1),
        ("mad-judge", 6, 1),  # three more replies, but then no judge
        ("mad-judge", 7, 2),
        ("mad-judge", 9, 2),
        ("mad-judge", 10, 3),
    ],
)
async def test_a_cap_ends_a_debate_before_a_round_that_could_not_be_paid(name: str, cap: int, rounds: int) -> None:
    def script(request: Request) -> Scripted:
        if request.kind == "judge":
            return "((A))" if name == "mad-judge" else "YES"
        return f"(({'ABC'[request.agent]}))"

    record, requests = await hold(script, name, max_calls=cap)
    method = METHODS[name]
    judged = 1 if name == "mad-judge" else (rounds - 1) * (method.round_calls - 3)
    assert record.calls == {"debate": 3 * rounds, "summary": 0, "judge": judged}
    assert len(requests) <= cap
    assert (len(record.rounds), record.stopped) == (rounds, "rounds" if rounds == 3 else "partial")
    assert not record.failures
    assert name == "mad-m2-o" or not record.degraded  # the script's replies have no log-probabilities


async def test_a_judge_that_cannot_be_paid_leaves_the_plurality() -> None:
    record, _ = await hold(_rules("((A))"), "mad-judge", max_calls=3)
    assert (record.answer, record.stopped, record.degraded) == ("B", "partial", True)
    (note,) = record.judgements
    assert note.error is not None
    assert note.error.kind == "budget"
