"""What is embedded, told and shown, word for word: which round's reply, summary and consensus stand where."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from r2mad import engine
from r2mad.api import open_embedding, open_table
from r2mad.errors import AuthenticationError, ContextOverflowError, ServerFaultError, UsageError
from r2mad.experience import Case, Remembered
from r2mad.memory import open_memory
from r2mad.memory.cases import embed_debate
from r2mad.methods import METHODS, official
from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.models.scripted import ScriptedModel
from r2mad.prompts import load_pack
from r2mad.retrieval import shown_case
from r2mad.scene import Agent, Ledger, Memory, Scene
from r2mad.settings import Settings
from r2mad.skew import Everyone, MemoryConfidence
from r2mad.study.outcomes import outcome_of
from r2mad.study.runner import run_study
from r2mad.summary import summed_up
from r2mad.types import Item, Question, Reply, Request, Round
from tests.doubles import WordEmbedder, memory_of

PACK = load_pack("general")
QUESTION = Question("Which way out?", ("left", "right", "up"), id="way")
OLD = Question("Which way in?", ("left", "right", "up"), id="old")
MARKS = ("first", "second", "third")
"""What tells the rounds apart in replies and summaries."""


def _round_of(request: Request) -> int:
    return sum(message.role == "assistant" for message in request.messages)


def _script(*rounds: str) -> ScriptedModel:
    """Agent i says rounds[t][i] in round t; what is said and summed up names the round."""
    summaries = 0

    def script(request: Request) -> str:
        nonlocal summaries
        if request.kind == "summary":
            summaries += 1
            return f"Dynamic: This was the {MARKS[summaries - 1]} one.\nInsight: Open."
        t = _round_of(request)
        return f"My {MARKS[t]} word. (({rounds[t][request.agent]}))"

    return ScriptedModel(script, identity="one")


def _scene(model: ScriptedModel, memory: Memory | None = None, question: Question = QUESTION) -> Scene:
    agents = tuple(Agent(persona, model) for persona in PACK.roster(3))
    return Scene(question, agents, PACK, 1, Ledger(), memory=memory)


async def _old(embedder: WordEmbedder, *rounds: str) -> Remembered:
    record = await engine.run(_scene(_script(*rounds), question=OLD), replace(METHODS["mad"], summarise=True))
    outcome = outcome_of(record, "gold", {letter: float(letter == "A") for letter in "ABC"}, "A")
    assert outcome is not None
    return await embed_debate(record, outcome, embedder)


def _state(question: str, mark: str, answer: str, consensus: str) -> str:
    said = f"My {mark} word. (({answer}))"
    summary = f"Dynamic: This was the {mark} one.\nInsight: Open."
    return f"{question}\nleft\nright\nup\nOwn position:\n{said}\n{summary}\nConsensus: {consensus}"


async def test_a_cases_state_is_what_stood_before_its_round() -> None:
    """s_i^(t) of Eq. 4 holds z_i, h and Cons of round t − 1: the question, the reply, the summary, the consensus."""
    embedder = WordEmbedder()
    await _old(embedder, "ABB", "AAB", "CCC")
    states = embedder.asked[1 + 9 :]
    assert states == [
        *(_state("Which way in?", "first", answer, "0.67") for answer in "ABB"),
        *(_state("Which way in?", "second", answer, "0.67") for answer in "AAB"),
    ]


async def test_the_present_state_is_written_as_the_remembered_ones_are() -> None:
    embedder = WordEmbedder()
    memory = memory_of([await _old(embedder, "ABB", "AAB", "CCC")], embedder)
    embedder.asked.clear()
    record = await engine.run(_scene(_script("ABC", "AAB", "AAB"), memory), METHODS["r2mad"])
    states = [text for text in embedder.asked if "Own position" in text]
    assert states == [
        *(_state("Which way out?", "first", answer, "0.33") for answer in "ABC"),
        *(_state("Which way out?", "second", answer, "0.67") for answer in "AAB"),
    ]
    balances = [view.trade_off for one in record.rounds[1:] for view in one.views]
    assert balances == pytest.approx([0.7] * 3 + [0.4] * 3)


async def test_a_case_tells_what_the_agent_held_before_and_after() -> None:
    old = await _old(WordEmbedder(), "ABB", "CAB", "AAA")
    told = shown_case(Case(old, 1, 0))
    assert (told.before, told.after) == ("A", "C")
    assert [(held.answer, held.count) for held in told.group] == [("B", 2), ("A", 1)]
    assert "first" in (told.summary or "")
    later = shown_case(Case(old, 2, 1))
    assert (later.before, later.after, len(later.group)) == ("A", "A", 3)
    assert "second" in (later.summary or "")


async def test_the_official_form_weighs_by_its_candidates() -> None:
    embedder = WordEmbedder()
    memory = memory_of([await _old(embedder, "ABB", "ABB", "ABB")], embedder, "official")
    record = await engine.run(_scene(_script("ABB", "ABB", "ABB"), memory), official(METHODS["r2mad"]))
    for view in record.rounds[1].views:
        assert len(view.candidates) == 2
        assert all(peer.confidence in (0.0, 1.0) for peer in view.peers)
        assert {peer.label for peer in view.peers} == {"high" if view.agent == 0 else "low"}  # ζ of the focal agent


async def test_a_label_needs_more_than_the_threshold() -> None:
    embedder = WordEmbedder()
    memory = memory_of([await _old(embedder, "ABB", "ABB", "ABB")], embedder)
    method = replace(METHODS["r2mad"], skew=(Everyone(), MemoryConfidence(high=1.0, low=0.0)))
    record = await engine.run(_scene(_script("ABB", "ABB", "ABB"), memory), method)
    peers = [peer for view in record.rounds[1].views for peer in view.peers]
    assert {peer.confidence for peer in peers} == {0.0, 1.0}
    assert {peer.label for peer in peers} == {None}


async def test_an_empty_memory_is_not_even_embedded_for() -> None:
    for name in ("icl-cot", "r2mad"):
        embedder = WordEmbedder()
        scene = _scene(_script("ABB", "ABB", "ABB"), memory_of([], embedder))
        await engine.run(replace(scene, agents=scene.agents[: METHODS[name].agents]), METHODS[name])
        assert not embedder.asked


async def test_cases_that_did_not_fit_are_not_in_the_conversation_later() -> None:
    embedder = WordEmbedder()
    memory = memory_of([await _old(embedder, "ABB", "ABB", "ABB")], embedder)
    plain, sent = _script("ABB", "ABB", "ABB"), list[Request]()

    async def script(request: Request) -> str:
        nonlocal sent
        in_round_1 = len(sent) < 6  # the replies of rounds 0 and 1
        if in_round_1 and request.kind == "debate" and "<experience>" in request.messages[-1].content:
            raise ContextOverflowError("too long")
        sent += [request] * (request.kind == "debate")
        return (await plain.complete(request)).text

    record = await engine.run(_scene(ScriptedModel(script), memory), METHODS["r2mad"])
    assert [any(view.forgot for view in one.views) for one in record.rounds] == [False, True, False]
    for request in sent:
        if _round_of(request) == 2:
            assert "<experience>" in request.messages[-1].content
            assert not any("<experience>" in message.content for message in request.messages[:-1])


async def test_icl_cot_answers_without_the_cases_where_they_do_not_fit() -> None:
    embedder = WordEmbedder()
    memory = memory_of([await _old(embedder, "ABB", "ABB", "ABB")], embedder)

    def script(request: Request) -> str:
        if "<experience>" in request.messages[-1].content:
            raise ContextOverflowError("too long")
        return "((A))"

    scene = _scene(ScriptedModel(script), memory)
    record = await engine.run(replace(scene, agents=scene.agents[:1]), METHODS["icl-cot"])
    (view,) = record.rounds[0].views
    assert (record.answer, record.degraded) == ("A", True)
    assert view.forgot is not None
    assert view.forgot.kind == "context-overflow"


async def test_what_is_forgotten_under_a_debates_hands_degrades_it(tmp_path: Path) -> None:
    old = await _old(WordEmbedder(), "ABB", "ABB", "ABB")
    store = open_memory(f"sqlite:{tmp_path / 'm.db'}", embedder="words/64", dimension=64)
    try:
        store.add([old])
        memory = Memory(store.url, store.snapshot(), WordEmbedder())

        def watch(index: int, what: object) -> None:
            if isinstance(what, Round) and index == 0:
                store.forget([old.record.id])

        scene = replace(_scene(_script("ABB", "ABB", "ABB"), memory), observe=watch)
        record = await engine.run(scene, METHODS["r2mad"])
    finally:
        store.close()
    assert (record.degraded, len(record.rounds)) == (True, 3)
    assert all(view.forgot and view.forgot.kind == "memory" for view in record.rounds[1].views)


async def test_a_summary_whose_call_failed_degrades_the_debate_and_one_that_was_refused_does_not() -> None:
    embedder = WordEmbedder()
    memory = memory_of([await _old(embedder, "ABB", "ABB", "ABB")], embedder)

    def script(said: str | None) -> ScriptedModel:
        def answer(request: Request) -> str:
            if request.kind == "summary":
                if said is None:
                    raise ServerFaultError("503")
                return said
            return f"(({'ABB'[request.agent]}))"

        return ScriptedModel(answer)

    for said, degraded in ((None, True), ("It is 2 to 1.", False)):
        record = await engine.run(_scene(script(said), memory), METHODS["r2mad"])
        assert record.degraded is degraded
        assert all(one.plain and one.summary for one in record.rounds[:-1])


async def test_a_summary_is_told_the_one_before_it() -> None:
    def settled(index: int, summary: str | None) -> Round:
        return Round(index, 1.0, tuple(Reply(i, text="I agree.", answer="A", class_=0) for i in range(3)), (), summary)

    model = ScriptedModel(["Dynamic: Still.\nInsight: Open."])
    await summed_up(_scene(model), [settled(0, "The oldest one."), settled(1, "The newest one."), settled(2, None)])
    (request,) = model.requests
    assert "The newest one." in request.messages[0].content
    assert "The oldest one." not in request.messages[0].content


async def test_a_study_refuses_a_memory_without_a_case_of_its_agents(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'm.db'}"
    open_memory(url, embedder="wordllama/256", dimension=256).close()
    items: Sequence[Item] = [Item(QUESTION, "A")]
    async with open_table("scripted/seeded", Settings(cache=":memory:", memory=url)) as table:
        with pytest.raises(UsageError, match="no cases of these agents"):
            await run_study(table, items, ["mad", "r2mad"], tmp_path / "run", seed=1)


async def test_the_models_key_is_not_sent_to_an_embedder_elsewhere() -> None:
    async with FakeServer(FakeSettings(api_key="one key")) as server:
        settings = Settings(api_key="one key", embedder="openai/e", embedder_base_url=server.base_url, max_retries=0)
        with pytest.raises(AuthenticationError):
            await open_embedding(settings)
        embedder = await open_embedding(settings.changed(embedder_api_key="one key"))
        await embedder.aclose()
        at_home = settings.changed(embedder_base_url=None, base_url=server.base_url)
        await (await open_embedding(at_home)).aclose()
