"""Grading one debate beside its item."""

import pytest

from r2mad import engine
from r2mad.methods import find_method
from r2mad.models.scripted import ScriptedModel
from r2mad.prompts import load_pack
from r2mad.scene import Agent, Scene
from r2mad.study.scores import Score, grade
from r2mad.types import Item, Question

QUESTION = Question("Which way?", ("left", "right", "straight on", "back"), id="way")


async def _score(said: str, gold: str, seed: int = 1) -> Score:
    """A plain vote of as many agents as `said` has letters, graded."""
    method, pack = find_method("vote").sized(agents=len(said)), load_pack("general")
    model = ScriptedModel({agent: f"(({letter}))" for agent, letter in enumerate(said)})
    agents = tuple(Agent(persona, model) for persona in pack.roster(len(said)))
    return grade(await engine.run(Scene(QUESTION, agents, pack, seed), method), Item(QUESTION, gold))


@pytest.mark.parametrize(
    ("said", "gold", "expected"),
    [
        ("AB", "A", 1 / 2),
        ("AB", "B", 1 / 2),
        ("ABC", "C", 1 / 3),
        ("AABB", "B", 1 / 2),
        ("AB", "D", 0.0),
        ("AABBC", "C", 0.0),
        ("AAB", "A", 1.0),
        ("AAB", "B", 0.0),
    ],
)
async def test_a_tie_is_expected_to_be_right_as_often_as_its_answers_are(said: str, gold: str, expected: float) -> None:
    scores = [await _score(said, gold, seed) for seed in range(12)]
    assert all(score.expected == pytest.approx(expected) for score in scores)
    assert {score.tie for score in scores} == {said in ("AB", "ABC", "AABB", "AABBC")}
    assert {score.correct for score in scores} == ({True, False} if 0.0 < expected < 1.0 else {expected == 1.0})
