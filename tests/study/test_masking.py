"""The automatic mask: it takes the mask that separates right from wrong, keeps the evidence, and never sees a gold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from r2mad.api import open_table
from r2mad.cli.main import main
from r2mad.errors import EndpointError, ModelNotFoundError, ServerFaultError, UsageError
from r2mad.mask import AutoMask, ObjectiveMask, SubjectiveMask
from r2mad.methods import find_method
from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.models.scripted import ScriptedModel
from r2mad.settings import Settings
from r2mad.study.datasets import load
from r2mad.study.masking import choose_mask, refuse_overlap, training, with_choice
from r2mad.study.records import DEBATES, latest
from r2mad.study.runner import run_study
from r2mad.types import Completion, Item, MaskChoice, Question, Request

OPTIONS = ("left", "right", "straight on", "back")
ITEMS = [Item(Question(f"Which way at fork {n}?", OPTIONS, id=f"fork/{n}"), "A") for n in range(12)]


def _model(judges: bool, knows: bool, logprobs: bool = True) -> ScriptedModel:
    """A model that answers A (right) or B by its seed; it may judge well, and its log-probabilities may tell."""

    def script(request: Request) -> Completion:
        text = request.messages[-1].content
        if request.kind == "judge":
            if not judges:
                return Completion("YES" if request.seed % 2 else "NO")
            return Completion("YES" if "((A))" in text.split("<reply>")[-1] else "NO")
        right = request.seed % 3 == 0
        score = (-0.1 if right else -0.9) if knows else -0.5 - request.seed % 7 / 100
        return Completion(
            f"Reply {request.seed}. (({'A' if right else 'B'}))",
            mean_logprob=score if request.sampling.logprobs and logprobs else None,
        )

    return ScriptedModel(script)


async def _choose(model: ScriptedModel, **settings: object) -> MaskChoice:
    async with open_table(model, Settings(cache=":memory:").changed(**settings)) as table:
        return await choose_mask(table, ITEMS)


async def test_the_mask_that_separates_is_chosen_with_its_evidence() -> None:
    subjective = await _choose(_model(judges=True, knows=False))
    assert subjective.chosen == "subjective"
    assert subjective.subjective is not None
    assert subjective.objective is not None
    assert subjective.subjective.auc == 1.0
    assert subjective.objective.auc < 0.9
    assert subjective.objective.low <= subjective.objective.auc <= subjective.objective.high
    assert (subjective.items, subjective.right + subjective.wrong) == (12, 36)
    assert "verdicts separate" in subjective.reason
    objective = await _choose(_model(judges=False, knows=True))
    assert objective.chosen == "objective"
    assert objective.objective is not None
    assert objective.objective.auc == 1.0
    assert "log-probabilities separate" in objective.reason


async def test_without_log_probabilities_or_with_several_models_it_is_the_subjective_one() -> None:
    choice = await _choose(_model(judges=False, knows=True, logprobs=False))
    assert (choice.chosen, choice.objective) == ("subjective", None)
    assert "not possible" in choice.reason
    models = [_model(judges=True, knows=True), _model(judges=True, knows=True)]
    async with open_table(models, Settings(cache=":memory:")) as table:
        assert (await choose_mask(table, ITEMS)).chosen == "subjective"


async def test_replies_that_are_all_wrong_decide_nothing_and_say_so() -> None:
    model = ScriptedModel(lambda request: Completion("YES" if request.kind == "judge" else "((C))", mean_logprob=-0.5))
    choice = await _choose(model)
    assert (choice.right, choice.subjective, choice.objective) == (0, None, None)
    assert "neither mask can be told to be better" in choice.reason


async def test_it_costs_two_calls_an_agent_and_item_and_nothing_the_second_time(tmp_path: Path) -> None:
    async with FakeServer() as server:
        settings = Settings(base_url=server.base_url, cache=str(tmp_path / "calls.sqlite"), agents=4, rounds=2)
        choices = []
        for _ in range(2):
            async with open_table("openai/fake", settings) as table:
                choices.append(await choose_mask(table, ITEMS))
            # the try for log-probabilities comes on top
            assert len(server.log) == 1 + 2 * 4 * len(ITEMS)
        assert choices[0] == choices[1]


async def test_it_cannot_be_chosen_from_nothing() -> None:
    async with open_table(_model(True, True), Settings(cache=":memory:")) as table:
        with pytest.raises(UsageError, match="there are none"):
            await choose_mask(table, [])

    def gone(request: Request) -> Completion:
        raise (
            ModelNotFoundError("404: no such model") if len(request.messages[0].content) > 60 else ServerFaultError("x")
        )

    async with open_table(ScriptedModel(gone), Settings(cache=":memory:", logprobs=False)) as table:
        with pytest.raises((EndpointError, ServerFaultError)):
            await choose_mask(table, ITEMS)


async def test_what_failed_teaches_nothing() -> None:
    def script(request: Request) -> Completion:
        if request.kind == "debate" and "fork 3?" in request.messages[-1].content:
            raise ServerFaultError("503")
        if request.kind == "judge" and request.sample == 2:
            raise ServerFaultError("503")
        right = request.seed % 3 == 0
        return Completion("NOT SURE" if request.kind == "judge" else f"(({'A' if right else 'B'}))", mean_logprob=-0.5)

    choice = await _choose(ScriptedModel(script))
    assert choice.right + choice.wrong == 11 * 2


def test_evaluated_questions_must_not_choose() -> None:
    other = Item(Question("Which  WAY at fork 3?", tuple(reversed(OPTIONS)), id="other"), "D")
    refuse_overlap(ITEMS[:3], ITEMS[3:])
    with pytest.raises(UsageError, match="1 evaluated questions are among the training items"):
        refuse_overlap(ITEMS, [other])


def test_the_choice_is_part_of_a_debate_and_its_evidence_is_not_part_of_its_identity() -> None:
    method = find_method("mad-m2-auto")
    assert method.needs_choice
    one = with_choice(method, MaskChoice("objective", "because"))
    two = with_choice(method, MaskChoice("objective", "for another reason", 12, 3, 4))
    three = with_choice(method, MaskChoice("subjective", "because"))
    assert not one.needs_choice
    assert one.composition == two.composition != three.composition
    assert (one.calls, three.calls) == (9, 15)
    assert (one.needs_logprobs, three.needs_logprobs) == (True, False)
    assert isinstance(AutoMask(one.choice).chosen, ObjectiveMask)
    assert isinstance(AutoMask(three.choice).chosen, SubjectiveMask)
    with pytest.raises(UsageError, match="--train"):
        _ = AutoMask().chosen


@pytest.mark.parametrize(("judges", "knows", "twin"), [(True, False, "mad-m2-s"), (False, True, "mad-m2-o")])
async def test_the_debate_is_the_chosen_masks_and_its_record_says_why(
    judges: bool, knows: bool, twin: str, tmp_path: Path
) -> None:
    model = _model(judges, knows)
    async with open_table(model, Settings(cache=":memory:", logprobs=True)) as table:
        choice = await choose_mask(table, ITEMS[:6])
        method = with_choice(find_method("mad-m2-auto"), choice)
        await run_study(table, ITEMS[6:], [method, twin], tmp_path, seed=4)
    records = list(latest(tmp_path / DEBATES).values())
    ours = {r.question.id: r for r in records if r.method == "mad-m2-auto"}
    twins = {r.question.id: r for r in records if r.method == twin}
    assert len(ours) == len(twins) == 6
    for id, record in ours.items():
        assert record.choice == choice
        assert [[z.text for z in one.replies] for one in record.rounds] == [
            [z.text for z in one.replies] for one in twins[id].rounds
        ]
        assert twins[id].choice is None


def test_on_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    question = load("starter:train")[0].question
    ask = ["ask", question.text, "--model", "scripted/seeded", "--cache", ":memory:", "--log-dir", str(tmp_path)]
    auto = [*ask, "--method", "mad-m2-auto", "--train-limit", "5", "--seed", "1", "--json"]
    assert main([*auto, "--train", "starter:train"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["choice"]["items"] == 5
    assert record["choice"]["chosen"] in ("subjective", "objective")
    assert main([*auto, "--train", "no-such-set"]) == 2
    assert "no data set" in capsys.readouterr().err
    assert main([*ask, "--method", "mad", "--train", "starter", "--display", "none"]) == 0
    assert "so --train is not used" in capsys.readouterr().err


async def test_golds_of_training_items_reach_no_prompt() -> None:
    async with FakeServer(FakeSettings()) as server:
        settings = Settings(base_url=server.base_url, cache=":memory:")
        sent = []
        for gold in "AD":
            server.reset()
            items = [Item(item.question, gold) for item in ITEMS]
            async with open_table("openai/fake", settings) as table:
                await choose_mask(table, items)
            sent.append(sorted(json.dumps(entry.body, sort_keys=True) for entry in server.log))
        assert sent[0] == sent[1]


def test_training_items_are_drawn_from_all_of_a_file_that_is_sorted_by_topic() -> None:
    items = load("starter:train")
    drawn = training(items, 20)
    assert len({item.group for item in drawn}) >= 4
    assert drawn == training(list(reversed(items)), 20)
    assert training(items, 5) == drawn[:5]


async def test_where_only_one_mask_is_possible_nothing_is_asked() -> None:
    models = [_model(judges=True, knows=True), _model(judges=True, knows=True)]
    async with open_table(models, Settings(cache=":memory:")) as table:
        choice = await choose_mask(table, ITEMS)
    assert (choice.chosen, choice.items) == ("subjective", 0)
    assert "different models" in choice.reason
    assert [model.requests for model in models] == [[], []]
