"""The engine against scripted agents: what is asked, what is shown, how a debate ends, what failures do to it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from r2mad import engine
from r2mad.answers import _pool
from r2mad.answers import math as formulas
from r2mad.context import Fresh
from r2mad.errors import ContextOverflowError, ServerFaultError, UsageError
from r2mad.method import Method
from r2mad.methods import find_method
from r2mad.models.scripted import ScriptedModel
from r2mad.opening import Independent
from r2mad.prompts import Persona, load_pack
from r2mad.retrieval import Recall
from r2mad.scene import SILENCE, Agent, Ledger, Scene, nobody
from r2mad.skew import Shown
from r2mad.types import DebateRecord, Peer, Question, Reply, Request, Round, Sampling
from r2mad.verdict import break_tie

QUESTION = Question("Which way?", ("left", "right", "straight on", "back"), id="way")


def _scene(
    script: Callable[[Request], str], method: Method, *, seed: int = 1, max_calls: int | None = None
) -> tuple[Scene, ScriptedModel]:
    model, pack = ScriptedModel(script), load_pack("general")
    agents = tuple(Agent(persona, model) for persona in pack.roster(method.agents))
    return Scene(QUESTION, agents, pack, seed, Ledger(max_calls)), model


async def _hold(
    script: Callable[[Request], str], name: str = "mad", **changes: int
) -> tuple[DebateRecord, ScriptedModel]:
    method = find_method(name).sized(**changes)
    scene, model = _scene(script, method)
    return await engine.run(scene, method), model


def _round_of(request: Request) -> int:
    return sum(message.role == "assistant" for message in request.messages)


def _stubborn(request: Request) -> str:
    return f"I am agent {request.agent}. (({'ABC'[request.agent]}))"


async def test_mad_is_two_rounds_of_reading_everyone_else() -> None:
    record, model = await _hold(_stubborn)
    assert len(model.requests) == 9
    assert record.calls == {"debate": 9, "summary": 0, "judge": 0}
    assert record.stopped == "rounds"
    assert [one.consensus for one in record.rounds] == [pytest.approx(1 / 3)] * 3
    for request in model.requests:
        last = request.messages[-1].content
        for other in range(3):
            shown = f"I am agent {other}." in last
            assert shown == (_round_of(request) > 0 and other != request.agent)


async def test_the_views_tell_who_was_shown() -> None:
    record, _ = await _hold(_stubborn)
    assert [view.peers for view in record.rounds[0].views] == [(), (), ()]
    assert [[peer.agent for peer in view.peers] for view in record.rounds[1].views] == [[1, 2], [0, 2], [0, 1]]
    assert len({view.messages for one in record.rounds for view in one.views}) == 9


async def test_unanimity_ends_a_debate_early() -> None:
    record, model = await _hold(lambda request: "((B))" if _round_of(request) else _stubborn(request))
    assert record.stopped == "unanimity"
    assert (len(record.rounds), len(model.requests)) == (2, 6)
    assert (record.answer, record.votes, record.confidence) == ("B", {"B": 3.0}, 1.0)


async def test_three_replies_without_an_answer_are_not_unanimous_and_not_an_answer() -> None:
    record, model = await _hold(lambda request: "I cannot say.")
    assert len(model.requests) == 9
    assert (record.answer, record.votes, record.stopped, record.confidence) == (None, {}, "rounds", None)
    assert [one.consensus for one in record.rounds] == [0.0, 0.0, 0.0]
    assert all(reply.class_ is None for one in record.rounds for reply in one.replies)


async def test_a_reply_without_an_answer_stays_in_the_denominator() -> None:
    record, _ = await _hold(lambda request: "((B))" if request.agent else "no idea", "vote")
    assert record.rounds[0].consensus == pytest.approx(2 / 3)
    assert record.confidence == pytest.approx(2 / 3)
    assert [reply.class_ for reply in record.rounds[0].replies] == [None, 0, 0]


async def test_a_tie_is_broken_by_seed_and_question_and_recorded() -> None:
    answers, method = set(), find_method("vote")
    for seed in range(40):
        scene, _ = _scene(_stubborn, method, seed=seed)
        record = await engine.run(scene, method)
        again = await engine.run(_scene(_stubborn, method, seed=seed)[0], method)
        assert record.answer == again.answer
        assert record.tie
        assert record.tied == ("A", "B", "C")
        answers.add(record.answer)
    assert answers == {"A", "B", "C"}


async def test_a_tie_does_not_favour_an_agent() -> None:
    """The same answers from other agents end in the same answer."""
    method = find_method("vote")
    outcomes = set()
    for order in ("ABC", "CAB", "BCA"):
        scene, _ = _scene(lambda request, order=order: f"(({order[request.agent]}))", method)  # type: ignore[misc]
        outcomes.add((await engine.run(scene, method)).answer)
    assert len(outcomes) == 1


async def test_a_failed_agent_degrades_the_debate_and_the_round_goes_on() -> None:
    def script(request: Request) -> str:
        if request.agent == 1 and _round_of(request) == 0 and len(request.messages) == 2:
            raise ServerFaultError("503 from the fake")
        return _stubborn(request)

    record, model = await _hold(script)
    assert record.degraded
    (failure,) = {(index, agent, why.kind) for index, agent, why in record.failures if index == 0}
    assert failure == (0, 1, "server-fault")
    first = record.rounds[0]
    assert first.replies[1].finish_reason == "error"
    assert first.consensus == pytest.approx(1 / 3)
    shown = {
        view.agent: [(peer.agent, peer.shown, peer.verdict) for peer in view.peers] for view in record.rounds[1].views
    }
    assert shown[0] == [(1, False, "error"), (2, True, None)]
    for request in model.requests:
        roles = [message.role for message in request.messages]
        assert all(one != two for one, two in pairwise(roles))


async def test_a_debate_in_which_everyone_fails_has_failed_and_asks_no_further() -> None:
    def script(request: Request) -> str:
        raise ServerFaultError("down")

    record, model = await _hold(script)
    assert (record.stopped, record.answer, record.degraded) == ("failed", None, True)
    assert len(model.requests) == 3


async def test_an_error_in_a_users_own_model_is_data_too() -> None:
    def script(request: Request) -> str:
        if request.agent == 0:
            raise ZeroDivisionError("oops")
        return "((A))"

    record, _ = await _hold(script, "vote")
    assert record.rounds[0].replies[0].error is not None
    assert record.rounds[0].replies[0].error.kind == "unexpected"
    assert record.answer == "A"


async def test_too_long_for_the_context_drops_the_oldest_exchanges_and_says_so() -> None:
    limit = 4

    def script(request: Request) -> str:
        if len(request.messages) > limit:
            raise ContextOverflowError("too long", limit=100, prompt_tokens=120)
        return f"{_stubborn(request)} turn {len(request.messages)}"

    record, model = await _hold(script)
    assert not record.degraded
    assert [[view.trimmed for view in one.views] for one in record.rounds] == [[0] * 3, [0] * 3, [1] * 3]
    sent = [request for request in model.requests if request.agent == 0][-1]
    contents = [message.content for message in sent.messages]
    assert "Solve the following problem" in contents[1]  # the question stays
    assert "turn 4" in contents[2]  # the newest own reply stays, the oldest went
    assert len(contents) == 4


async def test_too_long_even_without_any_exchange_is_an_error_of_its_own() -> None:
    def script(request: Request) -> str:
        if _round_of(request) or "Their replies" in request.messages[-1].content:
            raise ContextOverflowError("too long")
        return _stubborn(request)

    record, _ = await _hold(script)
    assert {why.kind for _, _, why in record.failures} == {"context-overflow"}
    assert record.stopped == "failed"


@pytest.mark.parametrize(("cap", "rounds"), [(3, 1), (5, 1), (6, 2), (8, 2), (9, 3)])
async def test_the_budget_of_calls_ends_a_debate_before_a_round_that_would_go_over(cap: int, rounds: int) -> None:
    method = find_method("mad")
    scene, model = _scene(_stubborn, method, max_calls=cap)
    record = await engine.run(scene, method)
    assert len(model.requests) == record.calls["debate"] == 3 * rounds
    assert (len(record.rounds), record.stopped) == (rounds, "rounds" if rounds == 3 else "partial")
    assert record.answer is not None
    assert not record.degraded


async def test_a_budget_too_small_for_the_opening_is_recorded_as_errors() -> None:
    method = find_method("vote")
    scene, model = _scene(_stubborn, method, max_calls=2)
    record = await engine.run(scene, method)
    assert len(model.requests) == 2
    assert [why.kind for _, _, why in record.failures] == ["budget"]


async def test_no_shorter_layout_is_tried_that_is_the_same() -> None:
    def script(request: Request) -> str:
        if len(request.messages) == 2 and "Check these replies" not in request.messages[-1].content:
            if request.agent == 0:
                raise ServerFaultError("down")
            return _stubborn(request)
        raise ContextOverflowError("too long")

    record, model = await _hold(script)
    sent = [request.messages for request in model.requests if request.agent == 0]
    assert len(set(sent)) == len(sent)
    assert record.calls["debate"] == len(model.requests)


def test_a_part_of_ones_own_has_the_same_name_in_every_process() -> None:
    class Patient:
        def __init__(self, rounds: int) -> None:
            self.rounds = rounds

        def __call__(self, rounds: object) -> None:
            return None

    def never(rounds: object) -> None:
        return None

    composed = Method("m", "s", "ours", stop=Patient(2)).composition
    assert "Patient(rounds=2)" in composed
    assert " at 0x" not in composed + Method("m", "s", "ours", stop=never).composition


def test_samples_to_debate_are_refused() -> None:
    with pytest.raises(UsageError, match="several samples"):
        Method("m", "s", "ours", rounds=2, opening=Independent(samples=3))


async def test_reasoning_is_neither_shown_nor_read_for_an_answer() -> None:
    record, model = await _hold(lambda request: f"<think>((A)) secret</think> {_stubborn(request)}")
    assert [reply.answer for reply in record.rounds[0].replies] == ["A", "B", "C"]
    assert all("secret" not in message.content for request in model.requests for message in request.messages)


async def test_a_reply_cut_off_while_reasoning_is_kept_and_shown_as_silence() -> None:
    record, model = await _hold(lambda request: "<think>so far" if request.agent == 0 else "((B))")
    assert record.rounds[0].replies[0].text == "<think>so far"
    assert record.rounds[0].replies[0].answer is None
    shown = [request.messages[-1].content for request in model.requests if request.agent == 1][-1]
    assert SILENCE in shown


async def test_the_observer_hears_every_reply_before_its_round() -> None:
    heard: list[str] = []
    method = find_method("mad")
    scene, _ = _scene(_stubborn, method)
    watched = Scene(
        scene.question, scene.agents, scene.pack, scene.seed, scene.ledger,
        lambda index, what: heard.append(f"{type(what).__name__}{index}"),
    )  # fmt: skip
    await engine.run(watched, method)
    assert heard == [*["Reply0"] * 3, "Round0", *["Reply1"] * 3, "Round1", *["Reply2"] * 3, "Round2"]
    nobody(0, Reply(0))
    assert isinstance(Round(0, 1.0, ()), Round)


async def test_other_numbers_of_agents_and_rounds() -> None:
    record, model = await _hold(lambda request: f"(({'ABCD'[request.agent % 4]}))", agents=5, rounds=4)
    assert len(model.requests) == 20
    assert len({info.name for info in record.agents}) == 5


async def test_self_consistency_is_one_agent_many_samples() -> None:
    record, model = await _hold(lambda request: f"(({'ABB'[request.sample % 3]}))", "sc-6")
    assert record.votes == {"B": 4.0, "A": 2.0}
    assert [(reply.agent, reply.sample) for reply in record.rounds[0].replies] == [(0, sample) for sample in range(6)]
    assert len({request.seed for request in model.requests}) == 6
    assert len(record.rounds[0].views) == 1


async def test_a_fresh_context_shows_an_agent_its_own_reply_beside_its_peers() -> None:
    method = replace(find_method("mad"), context=Fresh())
    scene, model = _scene(_stubborn, method)
    record = await engine.run(scene, method)
    assert [[peer.agent for peer in view.peers] for view in record.rounds[1].views] == [[0, 1, 2]] * 3
    for request in model.requests[3:]:
        (system, turn) = request.messages
        assert (system.role, turn.role) == ("system", "user")
        peers, _, own = turn.content.partition("Your own reply before:")
        for agent in range(3):
            assert (f"I am agent {agent}." in own) == (agent == request.agent)
            assert (f"I am agent {agent}." in peers) == (agent != request.agent)


@dataclass(frozen=True)
class _Sure:
    """Says of one agent's reply that it is sure."""

    agent: int

    async def __call__(self, scene: Scene, previous: Round, shown: Shown, recalled: Sequence[Recall]) -> Shown:
        def labelled(peer: Peer) -> Peer:
            return replace(peer, label="high" if peer.agent == self.agent else None)

        return tuple(tuple(labelled(peer) for peer in peers) for peers in shown)


async def test_a_filters_label_reaches_the_prompt_and_the_record() -> None:
    method = replace(find_method("mad"), skew=(_Sure(2),), rounds=2)
    scene, model = _scene(_stubborn, method)
    record = await engine.run(scene, method)
    assert [[peer.label for peer in view.peers] for view in record.rounds[1].views] == [
        [None, "high"], [None, "high"], [None, None],
    ]  # fmt: skip
    for request in model.requests[3:]:
        last = request.messages[-1].content
        assert last.count("<confidence>") == (request.agent != 2)
        if request.agent != 2:
            assert last.index("I am agent 2.") < last.index("<confidence>high</confidence>")


def test_whatever_makes_a_debate_another_one_changes_its_id() -> None:
    method = find_method("mad")
    scene, _ = _scene(_stubborn, method)
    first, *rest = scene.agents

    def seated(agent: Agent) -> Scene:
        return replace(scene, agents=(agent, *rest))

    others = [
        (scene, replace(method, name="dam")),
        (scene, replace(method, context=Fresh())),
        (seated(replace(first, persona=Persona("newcomer", first.persona.text))), method),
        (seated(replace(first, model=ScriptedModel(_stubborn, "scripted/other"))), method),
        (seated(replace(first, sampling=Sampling(temperature=0.5))), method),
        (seated(replace(first, sampling=Sampling(extra_body={"top_k": 1}))), method),
        (replace(scene, pack=load_pack("economics")), method),
        (replace(scene, seed=2), method),
        (replace(scene, question=Question(QUESTION.text, QUESTION.options, id="other")), method),
    ]
    ids = [engine.debate_id(*other) for other in [(scene, method), *others]]
    assert len(set(ids)) == len(ids)
    elsewhere = replace(scene, ledger=Ledger(7), agents=(replace(first, model=ScriptedModel(_stubborn)), *rest))
    assert engine.debate_id(elsewhere, method) == ids[0]


async def test_a_formula_that_is_given_up_is_named_in_its_round(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = r"\sum_{k=1}^{1000000000}\sqrt{k}"
    monkeypatch.setattr(_pool, "_pool", _pool.Pool(seconds=0.5))
    formulas._memory.clear()
    try:
        method = find_method("vote")
        scene, _ = _scene(lambda request: rf"\boxed{{{'2' if request.agent else endless}}}", method)
        record = await engine.run(replace(scene, question=Question("How much?", kind="math")), method)
    finally:
        _pool.close()
        formulas._memory.clear()
    assert record.rounds[0].undecided == (endless,)
    assert record.answer == "2"
    assert record.rounds[0].consensus == pytest.approx(2 / 3)


def test_a_tie_falls_another_way_for_another_question() -> None:
    """Or else one letter would win every tie of a study, which has one seed."""
    chosen = [break_tie(("A", "B", "C"), 1, f"question {number}") for number in range(300)]
    assert all(chosen.count(letter) > 70 for letter in "ABC")
