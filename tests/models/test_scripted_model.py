"""The doubles: scripts in all their forms, the models by name, and the babble behind them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import r2mad
from r2mad.errors import ServerFaultError, UnknownNameError, UsageError
from r2mad.models import PROVIDERS, ModelOptions, ScriptedModel, open_model
from r2mad.models._babble import WORDS, Habits, asked, babble
from r2mad.protocols import ChatModel
from r2mad.types import Completion, Message, Request, Sampling

CHOICE = "Which is it?\n(A) one\n(B) two\n(C) three\nEnd with the letter, like this: ((X))"
BOXED = "What is 6 times 7? End like this: The answer is \\boxed{...}."
WORDED = "Who was it? End like this: The answer is: ..."


def ask(text: str = CHOICE, seed: int = 1, agent: int = 0, **how: object) -> Request:
    return Request((Message("user", text),), Sampling(**how), seed, agent)  # type: ignore[arg-type]


async def test_functions_plain_and_async() -> None:
    model = ScriptedModel(lambda request: f"seed {request.seed}")
    assert (await model.complete(ask(seed=7))).text == "seed 7"
    assert model.requests == [ask(seed=7)]

    async def later(request: Request) -> Completion:
        return Completion("whole", finish_reason="length")

    assert await ScriptedModel(later).complete(ask()) == Completion("whole", finish_reason="length")


async def test_exceptions_are_raised_whether_returned_or_thrown() -> None:
    def throw(request: Request) -> str:
        raise ServerFaultError("thrown")

    for script in (throw, lambda request: ServerFaultError("returned"), [ServerFaultError("listed")]):
        with pytest.raises(ServerFaultError):
            await ScriptedModel(script).complete(ask())


async def test_sequences_end_loudly() -> None:
    model = ScriptedModel(["a", "b"])
    assert [(await model.complete(ask())).text for _ in range(2)] == ["a", "b"]
    with pytest.raises(UsageError, match="has 2 replies, and this is call 3"):
        await model.complete(ask())


async def test_mappings_by_text_and_by_agent() -> None:
    by_text = ScriptedModel({"6 times 7": "42", "": "else"})
    assert [(await by_text.complete(ask(text))).text for text in (BOXED, CHOICE)] == ["42", "else"]
    by_agent = ScriptedModel({0: "zero", 1: "one"})
    assert [(await by_agent.complete(ask(agent=agent))).text for agent in (1, 0)] == ["one", "zero"]
    with pytest.raises(UsageError, match="agent 2"):
        await by_agent.complete(ask(agent=2))


async def test_usage_cut_and_logprobs() -> None:
    model = ScriptedModel(lambda request: "one two three")
    got = await model.complete(ask("a b", max_tokens=2, logprobs=True))
    assert (got.text, got.finish_reason) == ("one two", "length")
    assert (got.usage.prompt_tokens, got.usage.completion_tokens) == (2, 2)
    assert got.mean_logprob is not None
    assert got.mean_logprob < 0


def test_identity_tells_scripts_apart() -> None:
    assert ScriptedModel(["a"]).identity == ScriptedModel(["a"]).identity != ScriptedModel(["b"]).identity
    assert ScriptedModel({"a": "b"}).identity != ScriptedModel({"b": "b"}).identity
    assert ScriptedModel(lambda request: "").identity != ScriptedModel(lambda request: "").identity
    assert open_model("scripted/seeded").identity == "scripted/seeded"


async def test_always() -> None:
    model = open_model("scripted/always-B")
    assert isinstance(model, ChatModel)
    assert (await model.complete(ask(CHOICE))).text.endswith("((B)).")
    assert (await model.complete(ask(WORDED))).text.endswith("The answer is: B.")
    assert (await open_model("scripted/always-42").complete(ask(BOXED))).text.endswith("\\boxed{42}.")
    assert model.name == "scripted/always-B"


async def test_seeded_repeats_itself_and_differs_by_seed() -> None:
    model = open_model("scripted/seeded")
    assert await model.complete(ask()) == await model.complete(ask())
    assert len({(await model.complete(ask(seed=seed))).text for seed in range(20)}) > 15


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("gpt-4o", "written provider/name, not 'gpt-4o' .*openai, scripted"),
        ("nobody/x", "no provider 'nobody' .*openai, scripted"),
        ("openai/", "names no model"),
        ("openai/ ", "names no model"),
        ("/x", "no provider ''"),
        ("scripted/none", "seeded, always-TEXT"),
        ("scripted/always-", "seeded, always-TEXT"),
    ],
)
def test_names_that_are_none(name: str, match: str) -> None:
    with pytest.raises(UnknownNameError, match=match):
        open_model(name)


def test_a_key_is_not_in_the_options_repr() -> None:
    assert "sk-1" not in repr(ModelOptions(api_key="sk-1"))


def test_opening_costs_nothing_before_it_is_needed() -> None:
    code = "import sys, r2mad.models as m; m.open_model('scripted/seeded'); print('aiohttp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_environment())
    assert done.stdout == "False\n"
    assert set(PROVIDERS) >= {"openai", "scripted"}


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(r2mad.__path__[0]).parent)}


@pytest.mark.parametrize(
    ("text", "form", "letters"),
    [
        (CHOICE, "choice", "ABC"),
        ("Q?\nA) x\nB) y", "choice", "AB"),
        ("Q?\nA. x\nB. y\n\nLetter?", "choice", "AB"),
        ("Q?\nA: x\nB: y", "choice", "AB"),
        ("A. Smith wrote it. Who was that? (A) is not a list.", "text", ""),
        ("Q?\n(A) x\n(C) y", "text", ""),
        (BOXED, "box", ""),
        (WORDED, "text", ""),
        ("Summarise the debate so far.", "summary", ""),
        ("<question>\nSummarize it: NOT SURE or YES?\n</question>\nThe answer is: ...", "text", ""),
        ("Is this reply right? Answer YES, NO or NOT SURE.", "verdict", ""),
        ("", "text", ""),
    ],
)
def test_what_a_prompt_asks_for(text: str, form: str, letters: str) -> None:
    what = asked([("system", "You are careful."), ("user", text)])
    assert (what.form, what.letters) == (form, letters)


def test_replies_have_the_form_and_length_asked_for() -> None:
    habits = Habits(reply_tokens=40, summary_tokens=25)
    for seed in range(30):
        reply = babble([("user", CHOICE)], seed, habits)
        assert reply.endswith(("((A)).", "((B)).", "((C))."))
        assert len(reply.split()) == 40
    assert any(f"answer is: {word}." in babble([("user", WORDED)], 3, habits) for word in WORDS)
    assert len(babble([("user", "Please summarize.")], 3, habits).split()) == 25
    assert babble([("user", "YES, NO or NOT SURE?")], 3, habits).splitlines()[-1] in ("YES", "NO", "NOT SURE")
    assert babble([("user", CHOICE)], 1, Habits(reply_tokens=0)).startswith("The answer is")


def answers(turns: list[tuple[str, str]], habits: Habits) -> list[str]:
    return [babble(turns, seed, habits)[-4] for seed in range(200)]


def test_most_share_a_favourite_and_some_follow_the_others() -> None:
    opening = answers([("system", "one persona"), ("user", CHOICE)], Habits(bias=0.7))
    favourite = max("ABC", key=opening.count)
    assert 0.65 < opening.count(favourite) / 200 < 0.95
    other = answers([("system", "another"), ("user", CHOICE)], Habits(bias=0.7))
    assert max("ABC", key=other.count) == favourite
    mine = next(letter for letter in "ABC" if letter != favourite)
    turns = [
        ("user", CHOICE),
        ("assistant", f"I say (({mine}))."),
        ("user", f"Others: ((C)) ((C)) (({mine})).\n{CHOICE}"),
    ]
    debated = answers(turns, Habits(adopt=0.5))
    assert debated.count("C") >= 70
    assert set(debated) <= {"C", mine}


@given(st.lists(st.tuples(st.sampled_from(["system", "user", "assistant", "?"]), st.text(max_size=60)), max_size=5))
def test_no_prompt_makes_it_stumble(turns: list[tuple[str, str]]) -> None:
    assert babble(turns, 1, Habits()) == babble(turns, 1, Habits())
