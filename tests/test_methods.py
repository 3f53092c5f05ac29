"""The table of methods: names, sizes, and calls counted at a real server."""

import asyncio

import pytest

from r2mad.api import open_table
from r2mad.errors import UnknownNameError, UsageError
from r2mad.method import Method
from r2mad.methods import METHODS, find_method
from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.settings import Settings
from r2mad.study.masking import with_choice
from r2mad.study.remember import open_shelf, remember
from r2mad.types import Item, MaskChoice, Question

POLICIES = (
    "random",
    "similarity",
    "positive-only",
    "diversity-only",
    "fixed-0.25",
    "fixed-0.50",
    "fixed-0.75",
    "pos-neg",
)
CALLS = {"cot": 1, "sc": 9, "sc-3": 3, "sc-6": 6, "sc-9": 9, "vote": 3, "mad": 9, "icl-cot": 1}
CALLS |= dict.fromkeys(["r2mad", *(f"r2mad-{part}" for part in ("no-confidence", "no-memory", *POLICIES))], 11)
MASKS = dict.fromkeys(["mad-m2-s", "mad-m2-s-strict", "mad-m2-auto"], 15)
POOLS = dict.fromkeys(["mad-diverse", "mad-diverse-confident", "mad-diverse-random", "mad-low-diversity"], 16)
CALLS |= {**MASKS, "mad-m2-o": 9, **POOLS, "mad-confident": 9, "mad-confident-weighted": 9, "mad-sparse": 18}
CALLS |= {"mad-selective": 9, "mad-judge": 10, "r2mad-doubt": 11, "r2mad-selective": 11}
"""The design's table for 3 agents and 3 rounds: 1, m, n, nT; with memory nT + (T − 1); subjective masks nT + n(T − 1);
diverse openings c + n(T − 1); a judge one more."""


def test_the_formula_of_each_method() -> None:
    assert {name: method.calls for name, method in METHODS.items()} == CALLS
    assert find_method("mad").sized(agents=5, rounds=4).calls == 20
    assert find_method("vote").sized(agents=7).calls == 7
    assert find_method("r2mad").sized(agents=5, rounds=4).calls == 23


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A memory of three debates."""
    url = f"sqlite:{tmp_path_factory.mktemp('memory') / 'm.db'}"
    items = [Item(Question(f"Old {n}?", tuple(f"option {n}" for n in range(10)), id=f"old/{n}"), "A") for n in range(3)]

    async def build() -> None:
        settings = Settings(cache=":memory:")
        async with open_table("scripted/seeded", settings) as table, open_shelf(url, settings) as shelf:
            await remember(table, items, shelf)

    asyncio.run(build())
    return url


def _decided(name: str) -> Method:
    """The method, with its mask chosen if it chooses: the subjective one, which is the dearer."""
    method = find_method(name)
    return with_choice(method, MaskChoice("subjective", "to be counted")) if method.needs_choice else method


@pytest.mark.parametrize("name", METHODS)
async def test_each_method_makes_the_calls_of_the_table(name: str, memory: str) -> None:
    async with FakeServer(FakeSettings(bias=0.0, adopt=0.0)) as server:
        settings = Settings(base_url=server.base_url, no_cache=True, cache=":memory:", memory=memory)
        async with open_table("openai/fake", settings) as table:
            # Answers are drawn from many options without any lean, so a debate all but never ends early.
            question = Question("Which?", tuple(f"option {n}" for n in range(26)), id=f"calls/{name}")
            record = await table.hold(question, _decided(name), seed=5)
        assert record.stopped == "rounds"
        summaries = 2 if name.startswith("r2mad") else 0
        judged = 6 if name in MASKS else name == "mad-judge"
        assert record.calls == {"debate": CALLS[name] - summaries - judged, "summary": summaries, "judge": judged}
        assert len(server.log) == CALLS[name] + find_method(name).needs_logprobs  # tried once, before the debate


def test_unknown_names_help() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean mad"):
        find_method("madd")
    with pytest.raises(UnknownNameError, match="There are: cot"):
        find_method("sc-0")
    assert find_method("sc-17").calls == 17


def test_what_defines_a_method_cannot_be_changed() -> None:
    with pytest.raises(UsageError, match="cot has 1 agent by definition"):
        find_method("cot").sized(agents=3)
    with pytest.raises(UsageError, match="by definition"):
        find_method("vote").sized(rounds=2)
    assert find_method("cot").sized(agents=1) is find_method("cot")
    with pytest.raises(UsageError, match="at least 1"):
        find_method("mad").sized(agents=0)


def test_every_method_says_what_it_is() -> None:
    for method in METHODS.values():
        assert method.summary
        assert method.source
        assert method.composition.startswith(f"{method.agents} agent")
