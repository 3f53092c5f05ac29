"""The runner: who is served first, what is kept and in which order, and which scores come back."""

from pathlib import Path

import pytest

from r2mad.api import Table, open_table
from r2mad.errors import EndpointError, StoreError
from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.models.scripted import ScriptedModel
from r2mad.settings import Settings
from r2mad.study.records import DEBATES, SCORES, Writer, latest, read
from r2mad.study.runner import run_study
from r2mad.study.scores import Score
from r2mad.types import Item, Question


def _items(count: int) -> list[Item]:
    options = ("the first", "the second", "the third", "the fourth")
    return [
        Item(Question(f"Question number {n}: which of these?", options, id=f"made/{n}"), "ABCD"[n % 4], "made", "dev")
        for n in range(count)
    ]


def _table() -> Table:
    return Table((ScriptedModel(lambda request: "((A))", identity="A"),), Settings(cache=":memory:"))


async def test_debates_begun_earlier_are_served_first(tmp_path: Path) -> None:
    """Three debates share three connections; the first waits for the others only while a round of its own ends."""
    agents, ended = 9, list[str]()
    async with FakeServer(FakeSettings(bias=0.0, adopt=0.0, latency_ms=5.0)) as server:
        settings = Settings(
            base_url=server.base_url, cache=":memory:", max_connections=3, agents=agents, rounds=2, timeout=30.0
        )
        async with open_table("openai/fake", settings) as table:
            await run_study(
                table,
                _items(3),
                ["mad"],
                tmp_path,
                seed=3,
                announce=lambda record, score: ended.append(record.question.id),
            )
        log = [entry.body["messages"] for entry in server.log]
    asked = [next(n for n in range(3) if f"Question number {n}:" in str(messages)) for messages in log]
    assert sorted(asked) == [0] * 2 * agents + [1] * 2 * agents + [2] * 2 * agents
    last_of_first = max(index for index, question in enumerate(asked) if question == 0)
    others = last_of_first + 1 - 2 * agents
    assert others < agents  # served as they come, both others would have had their first round: 2 × agents
    assert ended == ["made/0", "made/1", "made/2"]


async def test_a_record_tells_its_study_and_its_items_set_and_split(tmp_path: Path) -> None:
    await run_study(_table(), _items(2), ["vote"], tmp_path / "tuesday", seed=3)
    for record in latest(tmp_path / "tuesday" / DEBATES).values():
        assert (record.study, record.dataset, record.split) == ("tuesday", "made", "dev")


async def test_a_debate_that_was_not_kept_has_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = Writer.append

    async def full(self: Writer[object], record: object) -> None:
        if self.path.name == DEBATES:
            raise StoreError("the disk is full")
        await append(self, record)

    monkeypatch.setattr(Writer, "append", full)
    with pytest.raises(StoreError, match="the disk is full"):
        await run_study(_table(), _items(2), ["cot"], tmp_path, seed=3)
    assert list(read(Score, tmp_path / SCORES)) == []
    monkeypatch.undo()
    assert len(await run_study(_table(), _items(2), ["cot"], tmp_path, seed=3)) == 2


async def test_only_the_scores_that_were_asked_for_come_back(tmp_path: Path) -> None:
    table, items = _table(), _items(3)
    await run_study(table, items, ["vote", "cot"], tmp_path, seed=3)
    await run_study(table, items, ["cot"], tmp_path, seed=4)
    scores = await run_study(table, items[:2], ["cot"], tmp_path, seed=3)
    assert sorted((score.method, score.seed, score.question) for score in scores) == [
        ("cot", 3, "made/0"), ("cot", 3, "made/1"),
    ]  # fmt: skip
    assert len(list(read(Score, tmp_path / SCORES))) == 9


@pytest.mark.parametrize("settings", [FakeSettings(api_key="right"), FakeSettings(model="other")])
async def test_a_run_that_an_endpoint_refuses_ends_at_once(tmp_path: Path, settings: FakeSettings) -> None:
    """A wrong key is not tried a thousand times; what was refused is on record, and is asked again on resume."""
    items = [Item(Question(f"Question {n}?", ("this", "that"), id=f"q/{n}"), "A") for n in range(200)]
    async with FakeServer(settings) as server:
        wide = Settings(base_url=server.base_url, cache=":memory:", max_connections=4)
        async with open_table("openai/fake", wide) as table:
            with pytest.raises(EndpointError, match=r"401|404"):
                await run_study(table, items, ["cot"], tmp_path, seed=1)
        assert len(server.log) < 30
    assert 1 <= len(latest(tmp_path / DEBATES)) < 30
