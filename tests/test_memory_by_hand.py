"""What a debate asks of its memory, word for word and number for number: a fault here changes results in silence."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from r2mad import engine
from r2mad.errors import ContextOverflowError
from r2mad.experience import Case, Outcome, Remembered, case_id, question_key
from r2mad.memory.cases import embed_debate, places
from r2mad.methods import METHODS, find_method, official
from r2mad.opening import Reminded
from r2mad.retrieval import POLICIES, Recall, Retrieval, Sought, reply_text, shown_case, state_text
from r2mad.skew import MemoryConfidence
from r2mad.summary import plain_line, plain_sentences, read_summary
from r2mad.types import DebateRecord, Failure, Peer, Question, Reply, Request, Round
from tests.doubles import ListBank, ListSnapshot, WordEmbedder, memory_of
from tests.memory.made import made
from tests.test_remembering import NAMES, OLD, QUESTION, SUMMARY, _Fixed, _old, _requests, _says, _scene, _weigh

ASKED = "Which way out of the old harbour?\nleft\nright\nstraight on\nback"
STATES = [f"{ASKED}\nOwn position:\nAgent {i} is for this way. (({x}))\n{SUMMARY}" for i, x in enumerate("ABB")]


async def _run(policy: str, debates: Sequence[Remembered]) -> tuple[DebateRecord, WordEmbedder]:
    embedder = WordEmbedder()
    method = replace(METHODS["r2mad"], retrieval=Retrieval(policy))
    return await engine.run(_scene(_says("A", "B", "B"), memory_of(debates, embedder)), method), embedder


async def _alike(debates: Sequence[Remembered], name: str, text: str, questions: bool = False) -> dict[str, float]:
    """How alike each case of an agent is to a text."""
    bank = ListSnapshot(list(debates)).bank(name)
    assert bank is not None
    (vector,) = await WordEmbedder().embed([text])
    alike = (bank.questions if questions else bank.states) @ vector
    return {case.id: round(float(one), 6) for case, one in zip(bank.cases, alike, strict=True)}


async def test_the_debate_state_is_eq_4_word_for_word() -> None:
    _, embedder = await _run("debate-state", [await _old("A", "B", "B")])
    assert {f"{state}\nConsensus: 0.67" for state in STATES} <= set(embedder.asked)
    own = Reply(0, text="<think>aside</think> Left. ")
    assert state_text(QUESTION, own, None, 0.5) == f"{ASKED}\nOwn position:\nLeft.\n\nConsensus: 0.50"
    assert state_text(QUESTION, own, SUMMARY, 0.5, "official") == f"{ASKED}\nOwn position:\nLeft.\n{SUMMARY}"
    assert reply_text(replace(own, error=Failure("timeout", "late"))) == ""


async def test_each_agent_looks_its_own_state_up_and_records_how_alike_it_is() -> None:
    debates = [await _old("A", "B", "B"), await _old("B", "C", "A", question=replace(OLD, id="x"))]
    record, _ = await _run("nearest", debates)
    for view in record.rounds[1].views:
        alike = await _alike(debates, NAMES[view.agent], f"{STATES[view.agent]}\nConsensus: 0.67")
        assert [case.similarity for case in view.retrieved] == sorted(alike.values(), reverse=True)[:3]
        assert all(case.similarity == alike[case.case] for case in view.retrieved)


async def test_the_policy_of_similar_questions_goes_by_questions_and_records_theirs() -> None:
    other = replace(OLD, text="Who wrote the letter to the old harbour?", id="x")
    debates = [await _old("A", "B", "B"), await _old("B", "C", "A", question=other)]
    record, _ = await _run("similarity", debates)
    for view in record.rounds[2].views:
        alike = await _alike(debates, NAMES[view.agent], ASKED, questions=True)
        assert [case.similarity for case in view.retrieved] == sorted(alike.values(), reverse=True)[:3]
        assert all(case.similarity == alike[case.case] for case in view.retrieved)


async def test_a_reward_that_nobody_knows_is_recorded_as_none() -> None:
    old = await _old("A", "B", "B")
    outcome = Outcome("feedback", (None, 0.5, 0.0), ((None, None, False),) * 3)
    record, _ = await _run("nearest", [replace(old, outcome=outcome)])
    assert [{case.reward for case in view.retrieved} for view in record.rounds[1].views] == [{None}, {0.5}, {0.0}]


async def test_chance_is_drawn_anew_for_each_seed_question_agent_and_round(monkeypatch: pytest.MonkeyPatch) -> None:
    lots: list[int] = []

    def drawn(sought: Sought) -> tuple[list[int], list[int]]:
        lots.append(sought.lot)
        return [0], [0]

    monkeypatch.setitem(POLICIES, "random", drawn)
    memory, method = memory_of([await _old("A", "B", "B")]), replace(METHODS["r2mad"], retrieval=Retrieval("random"))
    scene = _scene(_says("A", "B", "B"), memory)
    for one in (scene, replace(scene, seed=2), replace(scene, question=replace(QUESTION, id="other"))):
        await engine.run(one, method)
    assert len(set(lots)) == len(lots) == 3 * 3 * 2
    await engine.run(scene, method)
    assert lots[18:] == lots[:6]


def test_rewards_stay_with_their_cases_when_candidates_are_sorted_by_name() -> None:
    """By similarity the only case that went well is the last, by name the first."""
    cases = []
    for number in range(3):
        debate = made(number, agents=1, rounds=2, dimension=2, rewards=(0.0,))
        cases.append(Case(debate, 1, 0))
    cases.sort(key=lambda case: case.id)
    for case, degrees in zip(cases, (10, 0, 5), strict=True):
        angle = np.radians(degrees)
        case.debate.states[1, 0] = np.array([np.cos(angle), np.sin(angle)], np.float32)
    outcome = replace(cases[0].debate.outcome, rewards=(1.0,))
    cases[0] = replace(cases[0], debate=replace(cases[0].debate, outcome=outcome))
    bank, state = ListBank(cases), np.array([1.0, 0.0], np.float32)
    recall = Retrieval(k=1)._choose(bank, state, state, 0.5, 0, np.zeros((1, 2), np.float32))
    assert [case.id for case in recall.cases] == [cases[0].id]
    assert [case.case for case in recall.candidates] == [cases[1].id, cases[2].id, cases[0].id]


async def test_the_official_reward_and_pool_are_the_agents_own_and_all_candidates() -> None:
    old = await _old("A", "B", "B")
    rows = ((False,) * 3, (True, False, False), (False, True, False))
    memory = memory_of([replace(old, outcome=replace(old.outcome, rewards=(0.0,) * 3, correct=rows))])
    bank = memory.snapshot.bank(NAMES[1])
    assert bank is not None
    recall = Retrieval(k=1, form="official")._choose(
        bank, bank.states[0], bank.questions[0], 1.0, 0, np.zeros((3, 64), np.float32)
    )
    assert [(case.round, case.seat) for case in recall.cases] == [(2, 1)]  # agent 1 was right in round 2 alone
    assert {(case.round, case.seat) for case in recall.pool} == {(1, 1), (2, 1)}
    assert Retrieval(k=1)._choose(bank, bank.states[0], bank.questions[0], 1.0, 0, bank.states).pool == ()


async def test_before_anybody_has_spoken_relevance_is_all() -> None:
    scene = _scene(_says("A", "B", "B"), memory_of([await _old("A", "B", "B")]))
    assert [recall.trade_off for recall in await Retrieval().at_first(scene)] == [1.0] * 3


def _turning() -> Remembered:
    """A debate in which everybody says something else in every round."""
    debate = made(1)
    answers = (("A", "B", "B"), ("C", "D", "C"), ("E", "F", "G"))
    classes = ((1, 0, 0), (0, 1, 0), (0, 1, 2))
    rounds = tuple(
        replace(
            one,
            summary=f"after {one.index}",
            replies=tuple(
                replace(z, answer=answers[one.index][z.agent], class_=classes[one.index][z.agent]) for z in one.replies
            ),
        )
        for one in debate.record.rounds
    )
    return replace(debate, record=replace(debate.record, rounds=rounds))


def test_a_case_tells_of_its_own_round_and_of_the_one_before() -> None:
    for t, seat, group, before, after in (
        (1, 1, [("B", 2), ("A", 1)], "B", "D"),
        (1, 0, [("B", 2), ("A", 1)], "A", "C"),
        (2, 1, [("C", 2), ("D", 1)], "D", "F"),
    ):
        told = shown_case(Case(_turning(), t, seat))
        assert [(held.answer, held.count) for held in told.group] == group
        assert (told.before, told.after, told.summary) == (before, after, f"after {t - 1}")


async def test_confidence_goes_by_the_cases_round_and_not_by_the_last() -> None:
    old = await _old("A", "B", "B")
    straight = [1.0, 0.0]
    replies = [[[0.0, 0.0]] * 3, [straight] * 3, [straight] * 3]
    case = _Fixed(old, replies, [[None] * 3, [None, True, False], [None, False, True]]).case
    assert [peer.confidence for peer in await _weigh([case], [straight] * 3)] == [1.0, 0.0]


@pytest.mark.parametrize(("high", "low"), [(0.5, 0.5), (0.5, 0.4), (0.6, 0.5)])
async def test_a_confidence_at_a_threshold_has_no_label(high: float, low: float) -> None:
    old = await _old("A", "B", "B")
    replies = [[[0.0, 0.0]] * 3, [[1.0, 0.0]] * 3]
    cases = [_Fixed(old, replies, [[None] * 3, [None, right, right]]).case for right in (True, False)]
    part = MemoryConfidence(high=high, low=low, beta=0.0)
    scene = _scene(_says("A", "B", "B"))
    recall = Recall(cases=tuple(cases), replies=np.array([[1.0, 0.0]] * 3, np.float32))
    ((peer,),) = await part(scene, Round(0, 1.0, ()), ((Peer(1),),), (recall,))
    assert (peer.confidence, peer.label, peer.weight) == (0.5, None, 1.0)


async def test_what_a_summary_thought_is_no_part_of_it_and_each_has_a_seed_of_its_own() -> None:
    def script(request: Request) -> str:
        thought = "<think>12 of them (B)</think>" if request.kind == "summary" else ""
        return thought + _says("A", "B", "B")(request)

    scene = _scene(script, memory_of([await _old("A", "B", "B")]))
    record = await engine.run(scene, METHODS["r2mad"])
    assert [(one.summary, one.plain) for one in record.rounds[:-1]] == [(SUMMARY, None)] * 2
    assert len({request.seed for request in _requests(scene) if request.kind == "summary"}) == 2


def test_half_is_not_closing_in() -> None:
    replies = tuple(Reply(i, answer=x, class_=k) for i, (x, k) in enumerate((("x", 0), ("x", 0), ("y", 1), ("z", 2))))
    assert plain_sentences(Round(1, 0.5, replies), 1).endswith("still open.")
    assert plain_sentences(Round(1, 0.75, replies), 1).endswith("closing in on one position.")


async def test_a_case_is_embedded_by_the_state_before_its_round() -> None:
    """s_i^(t) holds what agent i itself had said, the summary and the consensus of round t−1, and nothing later."""
    debate = _turning()
    rounds = tuple(
        replace(one, consensus=consensus)
        for one, consensus in zip(debate.record.rounds, (2 / 3, 0.5, 1 / 3), strict=True)
    )
    record = replace(debate.record, rounds=rounds)
    said = {(one.index, z.agent): z.text for one in rounds for z in one.replies}
    for form in ("paper", "official"):
        embedder = WordEmbedder()
        kept = await embed_debate(record, debate.outcome, embedder, form)
        assert places(record) == sorted(kept.states) == [(t, i) for t in (1, 2) for i in range(3)]
        for t, i in kept.states:
            text = f"{record.question.text}\nOwn position:\n{said[t - 1, i]}\nafter {t - 1}"
            text += f"\nConsensus: {'0.67' if t == 1 else '0.50'}" if form == "paper" else ""
            (vector,) = await WordEmbedder().embed([text])
            assert np.array_equal(kept.states[t, i], vector)
            (vector,) = await WordEmbedder().embed([said[t, i]])
            assert np.array_equal(kept.replies[t, i], vector)


async def test_a_missing_summary_is_the_plain_line_of_its_own_round() -> None:
    debate = _turning()
    rounds = tuple(replace(one, summary=None) for one in debate.record.rounds)
    kept = await embed_debate(replace(debate.record, rounds=rounds), debate.outcome, WordEmbedder())
    first, second, last = kept.record.rounds
    assert first.summary == plain_sentences(first, None)
    assert second.summary == plain_sentences(second, 3)
    assert last.summary is None
    assert [one.plain is None for one in kept.record.rounds] == [False, False, True]


def test_the_official_icl_cot_is_shown_one_case() -> None:
    assert official(find_method("icl-cot")).opening == Reminded(Retrieval("similarity", k=1))


async def test_what_icl_cot_could_not_remember_is_on_record() -> None:
    embedder = WordEmbedder()
    memory = memory_of([await _old("A", "B", "B")], embedder)
    embedder.broken = True
    record = await engine.run(_scene(_says("A"), memory, agents=1), METHODS["icl-cot"])
    (view,) = record.rounds[0].views
    assert view.forgot is not None
    assert view.forgot.kind == "server-fault"
    assert record.degraded


def _turns(request: Request) -> list[bool]:
    """Of every turn that the user wrote: whether it has cases in it."""
    return ["<experience>" in message.content for message in request.messages if message.role == "user"]


async def test_what_an_agent_was_reminded_of_stays_in_its_context_and_stands_before_the_prompt() -> None:
    scene = _scene(_says("A", "B", "B"), memory_of([await _old("A", "B", "B")]))
    await engine.run(scene, METHODS["r2mad"])
    turns = [_turns(r) for r in _requests(scene) if r.kind == "debate" and r.agent == 1]
    assert [one[-3:] for one in turns] == [[False], [False, True], [False, True, True]]
    scene = _scene(_says("A"), memory_of([await _old("A", "B", "B")]), agents=1)
    await engine.run(scene, METHODS["icl-cot"])
    asked = _requests(scene)[0].messages[-1].content
    assert asked.index("</experience>") < asked.index("Which way out of the old harbour?")


async def test_cases_that_did_not_fit_are_not_in_the_context_later() -> None:
    def script(request: Request) -> str:
        if any(_turns(request)):
            raise ContextOverflowError("too long")
        return _says("A", "B", "B")(request)

    scene = _scene(script, memory_of([await _old("A", "B", "B")]))
    record = await engine.run(scene, METHODS["r2mad"])
    plain = _scene(_says("A", "B", "B"))
    await engine.run(plain, METHODS["mad"])
    sent = [r.messages for r in _requests(scene) if r.kind == "debate" and r.agent == 1 and not any(_turns(r))]
    assert [len(messages) for messages in sent] == [len(r.messages) for r in _requests(plain) if r.agent == 1]
    assert all(view.forgot for one in record.rounds[1:] for view in one.views)


def test_a_case_is_named_by_debate_round_and_agent_for_good() -> None:
    assert case_id("d", 1, 0) == "da592abc0ee4c175"
    assert len({case_id(debate, t, i) for debate in "de" for t in range(4) for i in range(4)}) == 32
    one = Question("Which?", ("left", "right"), id="a")
    assert question_key(one) == question_key(replace(one, id="b"))
    assert question_key(one) != question_key(replace(one, options=("right", "left")))  # (A) is another answer there


def test_an_answer_of_four_letters_is_an_answer() -> None:
    assert read_summary("Dynamic: Most settled on Rome.\nInsight: Open.", ["Rome"]) == (None, "it names an answer")


async def test_who_moved_is_told_of_the_last_round_alone() -> None:
    first, second = (Round(t, 1.0, tuple(Reply(i, answer=x, class_=0) for i in range(3))) for t, x in enumerate("xy"))
    assert "Three moved" in await plain_line([first, second], "text")
    assert "Nobody moved" in await plain_line([first, second, replace(second, index=2)], "text")
