"""Which line of feedback speaks, of which answers, and with what seed a verifier is asked."""

from dataclasses import replace
from pathlib import Path

from r2mad.models.scripted import ScriptedModel
from r2mad.study.outcomes import Feedback, Verifier, read_feedback
from r2mad.types import Question, Reply, Round
from tests.study.test_outcomes import _record


async def test_feedback_on_the_debate_goes_before_that_on_its_question() -> None:
    outcome = await Feedback({"d": (1.0, "B"), "q": (1.0, "A")})(_record("AB-"), None)
    assert outcome is not None
    assert (outcome.rewards, outcome.answer) == ((0.0, 1.0, 0.0), "B")


def test_a_line_with_both_ids_speaks_of_the_debate(tmp_path: Path) -> None:
    path = tmp_path / "said.csv"
    path.write_text("debate,question,value\nd1,q1,1\n")
    assert read_feedback(path).lines == {"d1": (1.0, None)}


async def test_feedback_speaks_of_every_answer_that_is_the_same() -> None:
    record = _record("AB", question=Question("How much?", kind="math", id="m"), answer="0.5")
    replies = (Reply(0, answer="\\frac{1}{2}"), Reply(1, answer="0.5"), Reply(2, answer="0.7"))
    agents = (*record.agents, replace(record.agents[0], name="agent 2"))
    record = replace(record, agents=agents, rounds=(Round(0, 2 / 3, replies),))
    for value, rewards in ((1.0, (1.0, 1.0, 0.0)), (0.0, (0.0, 0.0, None))):
        outcome = await Feedback({"d": (value, None)})(record, None)
        assert outcome is not None
        assert outcome.rewards == rewards


async def test_a_verifiers_calls_have_seeds_of_their_own_that_hang_on_its_seed() -> None:
    seeds = []
    for seed in (1, 2, 1):
        model = ScriptedModel({"": "YES"})
        await Verifier(model, seed=seed)(_record("ABC"), None)
        seeds.append([request.seed for request in model.requests])
    assert len({*seeds[0], *seeds[1]}) == 6
    assert seeds[0] == seeds[2]
