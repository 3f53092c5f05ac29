"""The front door in Python."""

from collections.abc import Sequence

import pytest

import r2mad
from r2mad import Question, UsageError, debate, debate_sync
from r2mad.api import open_table
from r2mad.errors import BadQuestionError
from r2mad.models.scripted import ScriptedModel
from r2mad.protocols import ChatModel
from r2mad.settings import Settings
from r2mad.types import Reply, Round, Suggestions

CHOICE = Question("Which?", ["this", "that"])  # type: ignore[arg-type]  # a list does as well as a tuple


async def test_debate_with_a_model_of_ones_own() -> None:
    model = ScriptedModel(lambda request: "((B))")
    record = await debate(CHOICE, model=model, cache=":memory:", seed=1)
    assert (record.answer, record.method, record.seed) == ("B", "mad", 1)
    assert len(model.requests) == 3


async def test_a_string_is_an_open_question() -> None:
    record = await debate(
        "Who?", model=ScriptedModel(lambda request: "The answer is: me"), method="cot", cache=":memory:"
    )
    assert (record.answer, record.question.kind) == ("me", "text")


async def test_settings_by_name() -> None:
    model = ScriptedModel(lambda request: "no idea")
    record = await debate(
        CHOICE,
        model=model,
        cache=":memory:",
        agents=4,
        rounds=2,
        temperature=0.5,
        max_tokens=9,
        extra_body={"top_k": 2},
    )
    assert len(model.requests) == 8
    sampling = model.requests[0].sampling
    assert (sampling.temperature, sampling.max_tokens, sampling.extra_body) == (0.5, 9, {"top_k": 2})
    assert record.agents[0].sampling == sampling
    with pytest.raises(UsageError, match="no setting 'temprature'"):
        await debate(CHOICE, model=model, temprature=1)


async def test_more_models_than_agents_make_more_agents() -> None:
    models: Sequence[ChatModel] = [ScriptedModel(lambda request: "((A))") for _ in range(5)]
    record = await debate(CHOICE, model=models, method="vote", cache=":memory:")
    assert record.votes == {"A": 5.0}
    with pytest.raises(UsageError, match="cot has one agent, and 5 models were given"):
        await debate(CHOICE, model=models, method="cot", cache=":memory:")
    with pytest.raises(UsageError, match="5 models for 3 agents"):
        await debate(CHOICE, model=models, method="mad", agents=3, cache=":memory:")


async def test_an_observer_hears_the_debate() -> None:
    heard: list[Reply | Round] = []
    await debate(
        CHOICE,
        model=ScriptedModel(lambda request: "((A))"),
        cache=":memory:",
        observe=lambda _, what: heard.append(what),
    )
    assert [type(what) for what in heard] == [Reply, Reply, Reply, Round]


def test_debate_sync() -> None:
    record = debate_sync(CHOICE, model=ScriptedModel(lambda request: "((A))"), cache=":memory:")
    assert record.answer == "A"


async def test_debate_sync_inside_a_loop_says_what_to_do() -> None:
    with pytest.raises(UsageError, match="await debate"):
        debate_sync(CHOICE, model="scripted/always-A")


async def test_a_callers_model_is_not_closed_and_ours_is() -> None:
    class Own(ScriptedModel):
        closed = 0

        async def aclose(self) -> None:
            self.closed += 1

    model = Own(lambda request: "((A))")
    async with open_table(model, Settings(cache=":memory:")) as table:
        await table.hold(CHOICE, "cot")
    assert model.closed == 0


def test_public_names() -> None:
    assert r2mad.__all__ == [
        "DebateRecord", "Item", "METHODS", "Method", "ModelError", "Question", "R2madError", "Reply", "Round",
        "StoreError", "UsageError", "debate", "debate_sync", "open_memory", "__version__",
    ]  # fmt: skip
    for name in r2mad.__all__:
        assert getattr(r2mad, name) is not None
    assert set(r2mad.__all__) <= set(dir(r2mad))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = r2mad.nonsense


@pytest.mark.parametrize(
    "changes", [{"timeout": float("nan")}, {"top_p": 0}, {"max_connections": 0}, {"max_retries": -1}, {"rounds": 0}]
)
def test_settings_out_of_range(changes: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="out of range"):
        Settings().changed(**changes)


async def test_0_is_a_seed_like_any_other() -> None:
    models = [ScriptedModel(lambda request: "((A))") for _ in range(2)]
    records = [await debate(CHOICE, model=model, method="vote", cache=":memory:", seed=0) for model in models]
    assert [record.seed for record in records] == [0, 0]
    asked = [sorted(request.seed for request in model.requests) for model in models]
    assert asked[0] == asked[1]


class _Choosy(ScriptedModel):
    """A model that suggests a pack."""

    def __init__(self, prompts: str | None) -> None:
        super().__init__(lambda request: "((A))")
        self.suggestions = Suggestions(prompts=prompts)


@pytest.mark.parametrize(
    ("suggested", "taken"),
    [
        (["tiny", "tiny"], "tiny"),
        (["tiny", "economics"], "general"),
        (["economics", "tiny"], "general"),
        (["tiny", None], "general"),
        ([None, "tiny"], "general"),
        ([None, None], "general"),
    ],
)
async def test_a_pack_is_taken_only_if_all_models_suggest_it(suggested: list[str | None], taken: str) -> None:
    models = [_Choosy(prompts) for prompts in suggested]
    record = await debate(CHOICE, model=models, method="vote", cache=":memory:")
    assert record.prompts.startswith(f"{taken}:")
    record = await debate(CHOICE, model=models, method="vote", cache=":memory:", prompts="facts")
    assert record.prompts.startswith("facts:")


async def test_a_model_that_suggests_nothing_keeps_the_debate_to_the_usual_pack() -> None:
    plain = ScriptedModel(lambda request: "((A))")
    record = await debate(CHOICE, model=[_Choosy("tiny"), plain], method="vote", cache=":memory:")
    assert record.prompts.startswith("general:")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"agents": "3"}, "wrong kind"),
        ({"temperature": "hot"}, "wrong kind"),
        ({"model": None}, "no model"),
        ({"model": [None]}, "no model"),
        ({"method": None}, "a method is"),
        ({"seed": "x"}, "a seed is"),
        ({"extra_body": {"a": float("nan")}}, "not JSON"),
        ({"extra_body": "[" * 20_000}, "not JSON"),
        ({"extra_body": '{"a": "\\ud800"}'}, "not JSON"),
        ({"cache": "~no-such-user/x"}, "no-such-user"),
    ],
)
async def test_what_is_of_the_wrong_kind_is_said_to_be(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        await debate(CHOICE, **{"model": "scripted/always-A", "cache": ":memory:", **arguments})  # type: ignore[arg-type]


async def test_a_question_is_a_text_or_a_question() -> None:
    with pytest.raises(UsageError, match="not int"):
        await debate(7, model="scripted/always-A")  # type: ignore[arg-type]
    with pytest.raises(BadQuestionError, match="sequence of texts"):
        Question("q", options="Yes")  # type: ignore[arg-type]
