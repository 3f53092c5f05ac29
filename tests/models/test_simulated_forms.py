"""The simulated model beside its answers: summaries, verdicts, names and parameters, other processes, odd prompts."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import r2mad
from r2mad import debate_sync
from r2mad.errors import UnknownNameError, UsageError
from r2mad.models import _world as world
from r2mad.models import open_model
from r2mad.models.simulated import Parameters, SimulatedModel
from r2mad.prompts import ShownReply, load_pack
from r2mad.protocols import ChatModel
from r2mad.study.datasets import load
from r2mad.summary import read_summary
from r2mad.types import Message, Question, Request, Sampling

PACK = load_pack("general")
MISLED = next(item for item in load("simulated:test") if item.group == "misconception")
TOPIC = world.topic(MISLED.question.id.split("/")[1])
MODEL = SimulatedModel()
UNKNOWN = Question("Which of these is it?", ("a stone", "a leaf", "a cloud"))


def ask(*texts: str, seed: int = 1, agent: int = 0, temperature: float = 1.0) -> Request:
    return Request(tuple(Message("user", text) for text in texts), Sampling(temperature), seed, agent)


def peer(letter: str, name: str) -> ShownReply:
    return ShownReply(name, f"I looked at it for long.\nThe answer is (({letter})).")


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("AAA", "All"),
        ("AAB", "minority keeps"),
        ("AABCA", "stands alone"),
        ("ABC", "spread"),
        ("AB", "spread"),
        ("", "No"),
    ],
)
async def test_summaries_have_the_form_asked_for(said: str, word: str) -> None:
    shown = [peer(letter, f"p{place}") for place, letter in enumerate(said)] or [ShownReply("x", "Who knows?")]
    prompt = PACK.summary(MISLED.question, None, shown, 0.5)
    text = (await MODEL.complete(ask(prompt))).text
    assert re.fullmatch(r"Dynamic: .+\nInsight: .+", text)
    assert word in text
    assert not re.search(r"\d|\b[A-Z]\b", text)
    assert read_summary(text, list(said)) == (text, None)
    again = (await MODEL.complete(ask(PACK.summary(MISLED.question, text, shown, 0.5)))).text
    assert again != text
    assert "nobody has been moved" in again
    assert read_summary(again, list(said)) == (again, None)


async def test_verdicts_are_its_own_opinion() -> None:
    what = TOPIC
    agent = next(i for i in range(4) if world.prior(what.name, i, 0.7)[what.held] > 0.5)
    said = {}
    for concept in (what.held, what.true):
        place = MISLED.question.options.index(what.concepts[concept])
        answer = f"({MISLED.question.letters[place]}) {what.concepts[concept]}"
        for temperature in (0.0, 1.0):
            asked = [
                ask(PACK.verify(MISLED.question, answer), seed=seed, agent=agent, temperature=temperature)
                for seed in range(300)
            ]
            verdicts = [(await MODEL.complete(one)).text.splitlines()[-1] for one in asked]
            assert set(verdicts) <= {"YES", "NO"}
            said[concept, temperature] = verdicts.count("YES") / 300
    assert said[what.held, 0.0] == 1.0
    assert said[what.true, 0.0] == 0.0
    assert said[what.held, 1.0] == pytest.approx(0.7, abs=0.1)
    assert said[what.true, 1.0] == pytest.approx(0.18, abs=0.08)
    unclear = await MODEL.complete(ask(PACK.verify(MISLED.question, "something else")))
    assert unclear.text.endswith("NOT SURE")


def test_names_and_parameters() -> None:
    model = open_model("simulated/shared-misconception?prior=0.8&evidence=1&peers=0.4")
    assert isinstance(model, ChatModel)
    assert isinstance(model, SimulatedModel)
    assert model.name == "simulated/shared-misconception?prior=0.8&evidence=1&peers=0.4"
    assert model.parameters == Parameters(0.8, 1.0, 0.4)
    plain = open_model("simulated/shared-misconception")
    assert plain.identity == SimulatedModel().identity != model.identity
    assert open_model("simulated/shared-misconception?prior=0.70").identity == plain.identity


@pytest.mark.parametrize(
    ("query", "match"),
    [
        ("prior=0.39", "prior must be a number from 0.4 to 0.95"),
        ("prior=nan", "prior must be"),
        ("prior=", "prior must be"),
        ("evidence=0.5", "from 1 to 1000, not '0.5'"),
        ("evidence=inf", "evidence must be"),
        ("peers=1", "peers must be"),
        ("share=0.5", "'share' is no parameter.*prior, evidence, peers"),
        ("prior=0.5&prior=0.6", "twice"),
        ("prior=0.5&", "'' is no parameter"),
    ],
)
def test_parameters_that_are_refused(query: str, match: str) -> None:
    with pytest.raises(UsageError, match=match):
        open_model(f"simulated/shared-misconception?{query}")


def test_models_that_there_are_not() -> None:
    with pytest.raises(UnknownNameError, match="simulated: shared-misconception"):
        open_model("simulated/other?prior=0.5")


def test_another_process_draws_the_same() -> None:
    code = (
        "import asyncio\n"
        "from r2mad import debate_sync\n"
        "from r2mad.study.datasets import load\n"
        "for item in load('simulated:test')[:8]:\n"
        "    record = debate_sync(item.question, model='simulated/shared-misconception', seed=5, cache=':memory:')\n"
        "    print([reply.text for one in record.rounds for reply in one.replies])\n"
    )
    outputs = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONPATH": str(Path(r2mad.__path__[0]).parent), "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert outputs.pop().count("The answer is") >= 24


def test_in_a_debate_every_reply_has_an_answer() -> None:
    record = debate_sync(MISLED.question, model="simulated/shared-misconception", seed=3, cache=":memory:")
    assert all(reply.answer in MISLED.question.letters for one in record.rounds for reply in one.replies)


PARTS = (
    "<question>\n",
    "\n</question>\n",
    "<options>\n",
    "(A) x\n(B) y\n",
    "</options>",
    '<reply agent="x">\n',
    "\n</reply>",
    "<experience>\nProblem: ",
    "\n</experience>",
    "((A))",
    "Summarise where this debate stands",
    PACK.task(UNKNOWN),
)


@given(st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=20)), max_size=12), st.integers(0, 3))
async def test_no_prompt_makes_it_stumble(parts: list[str], turns: int) -> None:
    request = ask(*["hello"] * turns, "".join(parts))
    assert await MODEL.complete(request) == await MODEL.complete(request)


async def test_no_message_at_all() -> None:
    assert (await MODEL.complete(ask())).text
