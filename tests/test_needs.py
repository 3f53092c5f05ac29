"""What methods need beyond a model: it is looked for before the first call, and its lack is one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from r2mad import embed
from r2mad.api import Table, debate, open_table
from r2mad.cli.main import main
from r2mad.errors import ConnectionFailedError, UsageError
from r2mad.methods import METHODS
from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.models.scripted import ScriptedModel
from r2mad.settings import Settings
from r2mad.study.runner import run_study
from r2mad.types import Completion, Item, Question
from tests.doubles import WordEmbedder

QUESTION = Question("Which way?", ("left", "right", "straight on"), id="way")
ITEMS = [Item(Question(f"Which way at fork {n}?", ("left", "right", "back"), id=f"fork/{n}"), "A") for n in range(4)]
NEEDY = [name for name, method in METHODS.items() if method.needs_logprobs]


def _asked(server: FakeServer) -> list[str]:
    """The requests that were part of a debate: all but the short try for log-probabilities."""
    return [entry.body["messages"][-1]["content"] for entry in server.log if entry.body["max_tokens"] > 24]


def _settings(server: FakeServer, **more: object) -> Settings:
    return Settings(base_url=server.base_url, cache=":memory:").changed(**more)


async def test_an_endpoint_without_log_probabilities_is_refused_before_the_first_call() -> None:
    assert NEEDY == ["mad-m2-o"]
    async with FakeServer(FakeSettings(ignore_logprobs=True)) as server:
        with pytest.raises(UsageError, match=r"mad-m2-o needs log-probabilities, and openai/fake sends none.*mad-m2-s"):
            await debate(QUESTION, method="mad-m2-o", model="openai/fake", base_url=server.base_url, cache=":memory:")
        assert _asked(server) == []
        assert len(server.log) == 1


async def test_an_endpoint_that_refuses_the_parameter_is_refused_too() -> None:
    async with FakeServer(FakeSettings(refuse_params="logprobs,top_logprobs")) as server:
        with pytest.raises(UsageError, match="sends none"):
            await debate(QUESTION, method="mad-m2-o", model="openai/fake", base_url=server.base_url, cache=":memory:")
        assert _asked(server) == []


async def test_an_endpoint_that_cannot_be_reached_is_said_at_once() -> None:
    with pytest.raises(ConnectionFailedError):
        await debate(
            QUESTION,
            method="mad-m2-o",
            model="openai/fake",
            base_url="http://127.0.0.1:9/v1",
            cache=":memory:",
            max_retries=0,
        )


async def test_a_study_is_refused_as_a_whole_and_leaves_no_file(tmp_path: Path) -> None:
    async with FakeServer(FakeSettings(ignore_logprobs=True)) as server:
        async with open_table("openai/fake", _settings(server)) as table:
            with pytest.raises(UsageError, match="sends none"):
                await run_study(table, ITEMS, ["mad", "mad-m2-o"], tmp_path / "run", seed=1)
        assert _asked(server) == []
    assert not (tmp_path / "run").exists()


async def test_the_try_is_made_once_a_table_and_a_cached_yes_is_believed(tmp_path: Path) -> None:
    async with FakeServer() as server:
        settings = _settings(server, cache=str(tmp_path / "calls.sqlite"))
        for _ in range(2):
            async with open_table("openai/fake", settings) as table:
                for seed in range(2):
                    record = await table.hold(QUESTION, "mad-m2-o", seed=seed)
                    assert not record.degraded
        tries = [entry for entry in server.log if entry.body["max_tokens"] <= 24]
        assert len(tries) == 1
        assert all(entry.body["logprobs"] for entry in server.log)


async def test_a_cached_no_is_asked_again_since_the_server_may_have_been_mended(tmp_path: Path) -> None:
    async with FakeServer(FakeSettings(ignore_logprobs=True)) as server:
        settings = _settings(server, cache=str(tmp_path / "calls.sqlite"))
        async with open_table("openai/fake", settings) as table:
            with pytest.raises(UsageError):
                await table.hold(QUESTION, "mad-m2-o", seed=1)
        server.settings = replace(server.settings, ignore_logprobs=False)
        async with open_table("openai/fake", settings) as table:
            assert (await table.hold(QUESTION, "mad-m2-o", seed=1)).answer


async def test_agents_of_different_models_cannot_be_compared_by_log_probability() -> None:
    async with FakeServer(FakeSettings(model="fake,other")) as server:
        with pytest.raises(UsageError, match="all its agents must be one model"):
            await debate(
                QUESTION,
                method="mad-m2-o",
                model=["openai/fake", "openai/other"],
                base_url=server.base_url,
                cache=":memory:",
            )
        assert server.log == []
        record = await debate(
            QUESTION,
            method="mad-m2-s",
            model=["openai/fake", "openai/other"],
            base_url=server.base_url,
            cache=":memory:",
            seed=3,
        )
        judges = {e.body["model"] for e in server.log if "NOT SURE" in e.body["messages"][-1]["content"]}
        assert judges == {"fake"}  # one mask for all agents: agent 0's model makes it
        assert len({agent.model for agent in record.agents}) == 2


async def test_a_mask_that_chooses_needs_items_to_choose_by() -> None:
    async with FakeServer() as server:
        with pytest.raises(UsageError, match=r"mad-m2-auto chooses its mask .* --train starter:train"):
            await debate(
                QUESTION, method="mad-m2-auto", model="openai/fake", base_url=server.base_url, cache=":memory:"
            )
        assert server.log == []


async def test_a_diverse_opening_opens_an_embedder_of_its_own_and_closes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[WordEmbedder] = []

    class Watched(WordEmbedder):
        closed = False

        async def aclose(self) -> None:
            self.closed = True

    def open_watched(*_: object) -> Watched:
        opened.append(Watched())
        return opened[-1]  # type: ignore[return-value]

    monkeypatch.setattr("r2mad.api.open_embedder", open_watched)
    async with open_table("scripted/seeded", Settings(cache=":memory:")) as table:
        for seed in range(3):
            await table.hold(QUESTION, "mad-diverse", seed=seed)
        await table.hold(QUESTION, "mad", seed=9)
    assert len(opened) == 1
    assert len(opened[0].asked) == 30
    assert opened[0].closed  # type: ignore[attr-defined]


async def test_an_embedder_that_cannot_be_opened_is_said_before_the_first_call() -> None:
    async with FakeServer() as server:
        with pytest.raises(UsageError, match="no-such"):
            await debate(
                QUESTION,
                method="mad-diverse",
                model="openai/fake",
                base_url=server.base_url,
                cache=":memory:",
                embedder="no-such",
            )
        assert server.log == []
    assert embed.DEFAULT == "wordllama"


async def test_all_methods_of_a_study_ask_for_log_probabilities_if_one_reads_them(tmp_path: Path) -> None:
    """Or they would share no reply (common random numbers)."""
    async with FakeServer() as server, open_table("openai/fake", _settings(server)) as table:
        await run_study(table, ITEMS, ["mad", "mad-m2-o", "vote"], tmp_path / "run", seed=1)
        assert all(entry.body.get("logprobs") for entry in server.log)
        openings = [text for text in _asked(server) if text.startswith("Solve the following")]
        assert len(openings) <= 3 * len(ITEMS) + 3 * 2 * len(ITEMS)  # an agent left with nothing is asked anew
        bodies = [json.dumps(entry.body, sort_keys=True) for entry in server.log]
        assert len(set(bodies)) == len(bodies)
        server.reset()
        await run_study(table, ITEMS, ["mad"], tmp_path / "other", seed=1)
        assert not any(entry.body.get("logprobs") for entry in server.log)


async def test_a_model_of_the_users_own_is_tried_like_any_other() -> None:
    silent = ScriptedModel(lambda request: Completion("((A))"))
    with pytest.raises(UsageError, match="scripted/custom sends none"):
        await debate(QUESTION, method="mad-m2-o", model=silent, cache=":memory:")
    assert len(silent.requests) == 1


async def test_equipping_a_table_for_methods_without_needs_asks_nothing() -> None:
    model = ScriptedModel(lambda request: "((A))")
    async with open_table(model, Settings(cache=":memory:")) as table:
        assert isinstance(table, Table)
        await table.equip(*(method for name, method in METHODS.items() if name in ("mad", "mad-m2-s", "mad-sparse")))
    assert model.requests == []


def test_the_command_line_says_it_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["ask", "Why?", "--method", "mad-m2-auto", "--model", "scripted/seeded"])
    assert code == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "--train starter:train" in err


def test_the_list_of_methods_says_what_each_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods", "--json"]) == 0
    needs = {row["name"]: row["needs"] for row in json.loads(capsys.readouterr().out)}
    assert needs["mad"] == []
    assert needs["mad-m2-o"] == ["log-probabilities", "one model"]
    assert needs["mad-m2-auto"] == ["training items"]
    assert needs["r2mad"] == ["memory"]
    assert needs["mad-diverse"] == ["embedder"]
