"""The summary of a round: what is taken from a model, what is replaced by the tally's plain line, and why."""

from dataclasses import replace

import pytest

from r2mad.errors import ServerFaultError
from r2mad.models.scripted import ScriptedModel
from r2mad.prompts import load_pack
from r2mad.scene import Agent, Ledger, Scene
from r2mad.summary import plain_line, plain_sentences, read_summary, summed_up
from r2mad.types import Question, Reply, Round

GOOD = "Dynamic: A majority holds one view and one voice objects.\nInsight: The open point is which premise applies."
QUESTION = Question("Which city?", kind="text", id="city")


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\n  {GOOD}  \n",
        "**Dynamic:** A majority holds one view and one voice objects.\n\n"
        "**Insight:** The open point is which premise applies.",
        '"Dynamic: A majority holds one view and one voice objects. Insight: The open point is which premise applies."',
        GOOD.replace("view and", "view\n and").replace(": ", ": [").replace(".", ".]"),
    ],
)
def test_what_keeps_to_the_format_is_taken_in_its_two_lines(text: str) -> None:
    assert read_summary(text) == (GOOD, None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "form"),
        ("The agents agree.", "form"),
        ("Dynamic: All agree.", "form"),
        ("Insight: All agree.\nDynamic: Nobody moved.", "form"),
        (f"Here is the summary:\n{GOOD}", "form"),
        ("Dynamic: 2 of them agree.\nInsight: Open.", "numbers"),
        ("Dynamic: They agree.\nInsight: Half of x² is in doubt.", "numbers"),
        ("Dynamic: They agree.\nInsight: It turns on whether f(x) grows.", "formulas"),
        ("Dynamic: They agree that p = q.\nInsight: Open.", "formulas"),
        ("Dynamic: They agree.\nInsight: The \\frac form is disputed.", "formulas"),
        ("Dynamic: Most chose (B).\nInsight: Open.", "letters"),
        ("Dynamic: Most chose option A.\nInsight: Open.", "letters"),
        ("Dynamic: Most settled on C after all.\nInsight: Open.", "letters"),
        ("Dynamic: Most settled on Lisbon.\nInsight: Open.", "answer"),
        ("Dynamic: Most settled on LISBON, rather.\nInsight: Open.", "answer"),
    ],
)
def test_what_is_tied_to_the_problem_is_refused(text: str, problem: str) -> None:
    found, why = read_summary(text, ["Lisbon", None, "no"])
    assert found is None
    assert why is not None
    assert problem in why


def test_words_that_only_look_like_letters_or_answers_are_no_reason() -> None:
    text = "Dynamic: A majority agrees; I see no move.\nInsight: Lisboners would not mind, but nobody's case is won."
    assert read_summary(text, ["Lisbon", "no"])[1] is None


def _round(index: int, *answers: str | None) -> Round:
    order = list(dict.fromkeys(sorted((a for a in answers if a), key=lambda a: (-answers.count(a), a))))
    replies = tuple(
        Reply(agent, text=f"I say {answer}.", answer=answer, class_=order.index(answer) if answer else None)
        for agent, answer in enumerate(answers)
    )
    most = max((answers.count(answer) for answer in order), default=0)
    return Round(index, most / len(answers), replies)


@pytest.mark.parametrize(
    ("answers", "moved", "expected"),
    [
        (("x", "x", "x"), None, "There is one position, held by three of three.|Everyone has answered alone so far."),
        (
            ("x", "x", "y"),
            0,
            "There are two positions, held by two, one of three.|Nobody moved, so the debate stands still.",
        ),
        (
            ("x", "x", None),
            1,
            "There is one position, held by two of three, and one took no position.|"
            "One moved since the round before, and the debate is closing in on one position.",
        ),
        (
            ("x", "y", "z"),
            2,
            "There are three positions, held by one, one, one of three.|"
            "Two moved since the round before, and the debate is still open.",
        ),
        ((None, None, None), 0, "Nobody holds a position.|Nobody moved, so the debate stands still."),
    ],
)
def test_the_plain_line(answers: tuple[str | None, ...], moved: int | None, expected: str) -> None:
    dynamic, insight = expected.split("|")
    line = plain_sentences(_round(1, *answers), moved)
    assert line == f"Dynamic: {dynamic}\nInsight: {insight}"
    assert read_summary(line) == (line, None)  # it would pass where a model's must


async def test_who_moved_is_found_by_equivalence() -> None:
    rounds = [_round(0, "1/2", "3", None), _round(1, "0.5", "4", "4")]
    assert "Two moved" in await plain_line(rounds, "math")
    assert "Nobody moved" in await plain_line([rounds[1], replace(rounds[1], index=2)], "math")


def _scene(model: ScriptedModel, max_calls: int | None = None) -> Scene:
    pack = load_pack("general")
    other = ScriptedModel(lambda request: "never asked")
    personas = pack.roster(3)
    agents = tuple(Agent(persona, model if index == 0 else other) for index, persona in enumerate(personas))
    return Scene(QUESTION, agents, pack, 1, Ledger(max_calls))


async def test_one_call_to_agent_0_with_question_summary_replies_and_consensus() -> None:
    model = ScriptedModel([GOOD])
    before = replace(_round(0, "Rome", "Rome", "Oslo"), summary="Dynamic: It began.\nInsight: Nothing yet.")
    scene = _scene(model)
    found = await summed_up(scene, [before, _round(1, "Rome", "Rome", None)])
    assert (found.summary, found.plain) == (GOOD, None)
    assert scene.ledger.by_kind() == {"debate": 0, "summary": 1, "judge": 0}
    (request,) = model.requests
    assert (request.kind, request.agent) == ("summary", 0)
    (message,) = request.messages
    for part in ("Which city?", "It began.", "I say Rome.", "67%"):
        assert part in message.content
    assert "Oslo" not in message.content


async def test_a_summary_that_cannot_be_used_is_replaced_and_flagged() -> None:
    found = await summed_up(_scene(ScriptedModel(["Rome has 2 votes."])), [_round(0, "Rome", "Rome", "Oslo")])
    assert found.summary == await plain_line([_round(0, "Rome", "Rome", "Oslo")], "text")
    assert found.plain is not None
    assert found.plain.kind == "summary"


async def test_a_call_that_fails_is_flagged_as_what_it_was() -> None:
    def fails(request: object) -> str:
        raise ServerFaultError("503 from the fake")

    found = await summed_up(_scene(ScriptedModel(fails)), [_round(0, "Rome", "Rome", "Oslo")])
    assert found.plain is not None
    assert (found.plain.kind, found.plain.message) == ("server-fault", "503 from the fake")
    spent = await summed_up(_scene(ScriptedModel([GOOD]), max_calls=0), [_round(0, "Rome", "Rome", "Oslo")])
    assert spent.plain is not None
    assert spent.plain.kind == "budget"
    assert spent.summary == found.summary


async def test_a_pack_without_a_summary_prompt_asks_nobody() -> None:
    model = ScriptedModel([])
    found = await summed_up(replace(_scene(model), pack=load_pack("tiny")), [_round(0, "Rome", "Rome", "Oslo")])
    assert not model.requests
    assert found.summary
    assert found.plain is not None
    assert "no summary prompt" in found.plain.message
