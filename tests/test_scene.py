"""Calls to models: what is kept of a reply, what stands in for one that failed, and how calls are counted."""

from r2mad import engine
from r2mad.errors import ServerFaultError
from r2mad.methods import find_method
from r2mad.models.scripted import Scripted, ScriptedModel
from r2mad.prompts import load_pack
from r2mad.scene import Agent, Scene, call_seed
from r2mad.study.records import dump, load
from r2mad.types import CallKind, Completion, DebateRecord, Message, Question, Reply, Usage

QUESTION = Question("Which way?", ("left", "right", "straight on", "back"), id="way")


def _scene(model: ScriptedModel, agents: int = 1) -> Scene:
    pack = load_pack("general")
    return Scene(QUESTION, tuple(Agent(persona, model) for persona in pack.roster(agents)), pack, seed=1)


async def _hold(model: ScriptedModel, name: str = "cot") -> DebateRecord:
    method = find_method(name)
    return await engine.run(_scene(model, method.agents), method)


async def test_all_that_a_model_sends_back_is_recorded() -> None:
    sent = Completion(
        "((A))",
        reasoning="because",
        finish_reason="length",
        mean_logprob=-0.5,
        mean_top_logprob=-0.25,
        usage=Usage(11, 7, 5, 3),
        seconds=1.5,
        cached=True,
    )
    model = ScriptedModel([sent])
    record = await _hold(model)
    assert record.rounds[0].replies == (
        Reply(
            0, text="((A))", reasoning="because", answer="A", class_=0, finish_reason="length", mean_logprob=-0.5,
            mean_top_logprob=-0.25, usage=Usage(11, 7, 5, 3), seconds=1.5, cached=True, seed=model.requests[0].seed,
        ),
    )  # fmt: skip
    assert record.usage == {"debate": Usage(11, 7, 5, 3)}


async def test_half_a_surrogate_pair_in_a_reply_does_not_keep_it_from_the_record() -> None:
    sent = Completion("\ud83d ((A)) \ud83d\ude00", reasoning="\udc00 hm", finish_reason="st\ud800op")
    record = await _hold(ScriptedModel([sent]))
    reply = record.rounds[0].replies[0]
    assert (reply.text, reply.reasoning) == ("\ufffd ((A)) \U0001f600", "\ufffd hm")
    assert reply.finish_reason == "st\ufffdop"
    assert load(DebateRecord, dump(record)) == record


async def test_a_failed_reply_keeps_its_seed() -> None:
    said: dict[int, Scripted] = {0: "((A))", 1: ServerFaultError("down"), 2: RuntimeError("oops")}
    model = ScriptedModel(said)
    record = await _hold(model, "vote")
    seeds = [reply.seed for reply in record.rounds[0].replies]
    assert seeds == [request.seed for request in sorted(model.requests, key=lambda request: request.agent)]
    assert seeds == [call_seed(1, QUESTION.id, agent, 0, 0) for agent in range(3)]


async def test_calls_of_each_kind_have_seeds_and_counts_of_their_own() -> None:
    usages: dict[CallKind, Usage] = {"debate": Usage(1, 2), "summary": Usage(30, 40), "judge": Usage(500, 600)}
    model = ScriptedModel(lambda request: Completion("((A))", usage=usages[request.kind]))
    scene = _scene(model)
    for kind in ("debate", "summary", "judge", "judge"):
        await scene.call(kind, 0, (Message("user", "well?"),), round_index=1)
    assert scene.ledger.usage == {**usages, "judge": Usage(1000, 1200)}
    assert scene.ledger.by_kind() == {"debate": 1, "summary": 1, "judge": 2}
    assert [request.kind for request in model.requests] == ["debate", "summary", "judge", "judge"]
    seeds = [request.seed for request in model.requests]
    assert len(set(seeds)) == 3
    assert seeds[2] == seeds[3]
