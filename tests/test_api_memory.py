"""What the front door makes of settings that concern the memory: which method, embedder, key, snapshot."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from r2mad.api import fitted, open_embedding, open_table, spec
from r2mad.errors import AuthenticationError, StoreError, UsageError
from r2mad.experience import Form
from r2mad.memory import open_memory
from r2mad.methods import find_method
from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.opening import Reminded
from r2mad.retrieval import Retrieval, state_text
from r2mad.settings import Settings
from r2mad.study.outcomes import Feedback
from r2mad.study.remember import open_shelf, remember, remember_records
from r2mad.study.runner import run_study
from r2mad.types import Item, Question
from tests.doubles import WordEmbedder
from tests.memory.filled import fill
from tests.memory.made import made

ITEMS = [Item(Question(f"Which is {n}?", ("left", "right"), id=f"t/{n}"), "A", "made", "train") for n in range(4)]


def test_k_gamma_and_compat_reach_the_retrieval() -> None:
    method = find_method("r2mad")
    assert fitted(method, Settings()) is method
    assert fitted(method, Settings(k=2)).retrieval == Retrieval(k=2)
    assert fitted(method, Settings(gamma=0.0)).retrieval == Retrieval(gamma=0.0)
    assert fitted(method, Settings(compat="official")).retrieval == Retrieval(k=1, form="official")
    assert fitted(method, Settings(compat="official", k=4)).retrieval == Retrieval(k=4, form="official")
    assert fitted(find_method("icl-cot"), Settings(k=5)).opening == Reminded(Retrieval("similarity", k=5))
    assert fitted(find_method("mad"), Settings(k=5)) == find_method("mad")


@pytest.mark.parametrize(
    ("known", "opened"),
    [
        ("openai/bge-m3/1024", "openai/bge-m3"),
        ("openai/org/name/64", "openai/org/name"),
        ("wordllama/256", "wordllama"),
    ],
)
def test_a_memorys_embedder_is_opened_by_its_name(known: str, opened: str) -> None:
    assert spec(known) == opened


def test_where_a_file_is_only_the_user_knows() -> None:
    with pytest.raises(UsageError, match="--embedder gguf/PATH"):
        spec("gguf/abc/384")


async def test_the_models_key_is_not_sent_to_the_embedders_host() -> None:
    async with FakeServer() as models, FakeServer(FakeSettings(api_key="secret")) as vectors:
        settings = Settings(
            base_url=models.base_url,
            api_key="secret",
            embedder="openai/fake",
            embedder_base_url=vectors.base_url,
            max_retries=0,
        )
        with pytest.raises(AuthenticationError):
            await open_embedding(settings)
        embedder = await open_embedding(settings.changed(embedder_api_key="secret"))
        assert embedder.name == "openai/fake/64"
        await embedder.aclose()
        assert vectors.log
        assert models.log == []


async def test_an_embedder_may_have_a_key_of_its_own_at_the_models_host() -> None:
    async with FakeServer(FakeSettings(api_key="vectors")) as server:
        settings = Settings(base_url=server.base_url, api_key="models", embedder="openai/fake", max_retries=0)
        with pytest.raises(AuthenticationError):
            await open_embedding(settings)
        await (await open_embedding(settings.changed(embedder_api_key="vectors"))).aclose()


async def _build(path: Path, items: list[Item]) -> str:
    url, settings = f"sqlite:{path}", Settings(cache=":memory:")
    async with open_table("scripted/seeded", settings) as table, open_shelf(url, settings) as shelf:
        await remember(table, items, shelf)
    return url


async def test_a_table_reads_the_memory_as_it_was_until_it_is_refreshed(tmp_path: Path) -> None:
    url = await _build(tmp_path / "m.db", ITEMS[:1])
    async with open_table("scripted/seeded", Settings(cache=":memory:", memory=url)) as table:
        assert table.memory is not None
        await _build(tmp_path / "m.db", ITEMS[:2])
        assert not table.memory.snapshot.knows(ITEMS[1].question)
        fresh = table.refreshed()
        assert fresh.memory is not None
        assert fresh.memory.snapshot.knows(ITEMS[1].question)
        assert fresh.memory.snapshot.version != table.memory.snapshot.version
        scene, _ = table.prepare(ITEMS[3].question, "r2mad", seed=1)
        assert scene.memory is table.memory
        scene, _ = table.prepare(ITEMS[3].question, "mad", seed=1)
        assert scene.memory is None
    async with open_table("scripted/seeded", Settings(cache=":memory:")) as table:
        assert table.refreshed() is table
        for method in ("r2mad", "icl-cot"):
            with pytest.raises(UsageError, match=f"{method} needs a memory"):
                table.prepare(ITEMS[0].question, method)


async def test_what_a_table_opened_it_closes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    class Told(WordEmbedder):
        async def aclose(self) -> None:
            closed.append("embedder")

    url, words = fill([made(1)], str(tmp_path / "m.db")), Told(8)
    monkeypatch.setattr("r2mad.api.open_embedder", lambda name, options: words)
    async with open_table("scripted/seeded", Settings(cache=":memory:", memory=url)) as table:
        assert table.store is not None
        assert closed == []
        store = table.store
    with pytest.raises(StoreError):
        store.known()
    assert closed == ["embedder"]


async def test_a_store_that_the_caller_opened_is_the_callers_to_close(tmp_path: Path) -> None:
    url = await _build(tmp_path / "m.db", ITEMS[:1])
    store = open_memory(url)
    try:
        async with open_table("scripted/seeded", Settings(cache=":memory:"), store) as table:
            assert table.store is store
        assert len(store.known()) == 1
    finally:
        store.close()


@pytest.mark.parametrize("form", ["paper", "official"])
async def test_states_are_embedded_in_the_form_of_the_memory(form: Form, tmp_path: Path) -> None:
    settings = Settings(cache=":memory:", compat="official" if form == "official" else "")
    async with (
        open_table("scripted/seeded", settings) as table,
        open_shelf(f"sqlite:{tmp_path / 'm.db'}", settings) as shelf,
    ):
        await remember(table, ITEMS[:1], shelf)
        (kept,) = shelf.store.debates()
        for (t, i), state in kept.states.items():
            before = kept.record.rounds[t - 1]
            text = state_text(kept.record.question, before.replies[i], before.summary, before.consensus, form)
            (vector,) = await shelf.embedder.embed([text])
            assert np.allclose(state, vector, atol=1e-6)


async def test_a_debate_that_failed_is_not_remembered_though_it_had_a_round(tmp_path: Path) -> None:
    record = made(1).record
    good, failed = record, replace(record, id="f" * 16, stopped="failed")
    async with open_shelf(f"sqlite:{tmp_path / 'm.db'}", Settings()) as shelf:
        told: list[tuple[int, str]] = []
        judge = Feedback({good.id: (1.0, None), failed.id: (1.0, None)})
        built = await remember_records(
            [failed, good], shelf, judge, announce=lambda built, one: told.append((built.done, one.id))
        )
        assert (built.failed, built.added, shelf.store.known()) == (1, 1, {good.id})
        assert sorted(told) == [(1, failed.id), (2, good.id)]


@pytest.mark.parametrize(("built", "read", "word"), [("paper", "official", "without"), ("official", "paper", "with")])
async def test_a_memory_of_the_other_form_is_refused_with_what_to_do(
    built: str, read: str, word: str, tmp_path: Path
) -> None:
    settings, url = Settings(cache=":memory:"), f"sqlite:{tmp_path / 'm.db'}"
    forms = {"paper": settings, "official": settings.changed(compat="official")}
    async with open_shelf(url, forms[built]) as shelf:
        assert shelf.store.form == built
    with pytest.raises(UsageError, match=f"run {word} --compat official"):
        async with open_table("scripted/seeded", forms[read].changed(memory=url)):
            pass


async def test_a_study_refuses_a_memory_that_knows_none_of_its_agents(tmp_path: Path) -> None:
    async with open_shelf(f"sqlite:{tmp_path / 'm.db'}", Settings()):
        pass
    settings = Settings(cache=":memory:", memory=f"sqlite:{tmp_path / 'm.db'}")
    async with open_table("scripted/seeded", settings) as table:
        for method in ("r2mad", "icl-cot"):
            with pytest.raises(UsageError, match="no cases of these agents"):
                await run_study(table, ITEMS, ["mad", method], tmp_path / "run", seed=1)
        assert not (tmp_path / "run").exists()
        await run_study(table, ITEMS, ["mad"], tmp_path / "run", seed=1)


async def test_a_leak_is_found_whatever_the_kind_of_the_question(tmp_path: Path) -> None:
    """Each kind has its own pack; that any one of them is in the memory is enough, wherever it stands in the list."""
    number = Item(Question("How many?", kind="number", id="n"), "3", "made", "train")
    url = await _build(tmp_path / "m.db", [*ITEMS[:1], number])
    new = [replace(item, question=replace(item.question, text="New?", id="new")) for item in ITEMS[:1]]
    async with open_table("scripted/seeded", Settings(cache=":memory:", memory=url)) as table:
        for items in ([*new, number], [number, *new]):
            with pytest.raises(UsageError, match=r"1 of 2 questions are in the memory .*first: n"):
                await run_study(table, items, ["r2mad"], tmp_path / "run", seed=1)
