"""The diverse opening: the choice by hand and against brute force, and what a debate makes of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2mad import engine
from r2mad.diverse import Diverse, at_random, seats, spread
from r2mad.errors import ServerFaultError, UsageError
from r2mad.method import Method
from r2mad.methods import METHODS, find_method
from r2mad.models import ModelOptions, open_model
from r2mad.models.cached import CachedModel, CallCache
from r2mad.models.fake_server import FakeServer
from r2mad.models.scripted import Scripted, open_scripted
from r2mad.scene import Agent, Scene, call_seed
from r2mad.types import DebateRecord, Question, Request
from tests.doubles import WordEmbedder
from tests.staging import PACK, QUESTION, SEED, asked_in, hold, scene_of, when

Classes = list[int | None]


def _apart(total: int, pairs: dict[tuple[int, int], float] | None = None, default: float = 0.5) -> list[list[float]]:
    """Distances: `default`, but for the pairs given."""
    found = [[0.0 if i == j else default for j in range(total)] for i in range(total)]
    for (i, j), value in (pairs or {}).items():
        found[i][j] = found[j][i] = value
    return found


@pytest.mark.parametrize(
    ("classes", "pairs", "count", "chosen"),
    [
        ([0, 0, 1, 2], {}, 3, [0, 2, 3]),  # three answers there are
        ([0, 0, 0, 1], {}, 2, [0, 3]),
        ([0, 0, 1], {(0, 2): 0.2, (1, 2): 0.9}, 2, [1, 2]),  # the distance says which of the alike
        ([0, 1, 1], {(1, 2): 2.0, (0, 1): 0.1, (0, 2): 0.1}, 2, [0, 1]),  # answers before distances
        ([0, 1, 2, 3], {(0, 1): 0.1, (2, 3): 0.3}, 3, [0, 2, 3]),  # the smallest of the three counts: .3 against .1
        ([0, 1, 2, 3], {(0, 1): 0.0, (0, 2): 2.0, (1, 2): 2.0}, 3, [0, 2, 3]),  # and not their mean
        ([0, 1, 2, 3], {}, 2, [0, 1]),  # all tied: as they were sampled
        ([None, 0, None, 0], {(0, 2): 2.0, (0, 1): 2.0}, 2, [1, 3]),  # no answer is no answer of its own
        ([None, None, 0], {}, 2, [0, 2]),
        ([None, None, 0], {(1, 2): 0.6}, 2, [1, 2]),
        ([None, None, None], {(1, 2): 0.6}, 2, [1, 2]),
        ([None, 0], {}, 1, [1]),
        ([0, 1, 0], {}, 3, [0, 1, 2]),
        ([0, 1, 0], {}, 0, []),
        ([], {}, 0, []),
        ([0, 1, 1], {(0, 1): 0.5000001, (0, 2): 0.5000004}, 2, [0, 1]),  # alike to six decimals
    ],
)
def test_the_most_answers_then_the_farthest_then_the_first(
    classes: Classes, pairs: dict[tuple[int, int], float], count: int, chosen: list[int]
) -> None:
    assert spread(classes, _apart(len(classes), pairs), count) == chosen


@pytest.mark.parametrize(
    ("classes", "pairs", "count", "chosen"),
    [
        ([0, 1, 0, 1, 0], {}, 3, [0, 2, 4]),
        ([0, 1, 0, 1, 0], {(1, 3): 0.1}, 2, [1, 3]),
        ([0, 1, 0], {(0, 1): 0.0}, 2, [0, 2]),  # answers before distances
        ([0, 0, 0, 0], {(0, 1): 0.9, (0, 3): 0.9}, 3, [1, 2, 3]),  # the only three without a pair of .9
    ],
)
def test_the_reverse_takes_the_fewest_answers_then_the_nearest(
    classes: Classes, pairs: dict[tuple[int, int], float], count: int, chosen: list[int]
) -> None:
    assert spread(classes, _apart(len(classes), pairs), count, least=True) == chosen


def _slow(classes: Classes, apart: list[list[float]], count: int, least: bool) -> list[int]:
    """The rule said once more, one criterion after the other."""
    left = list(combinations(range(len(classes)), count))

    def keep(worths: list[float]) -> None:
        nonlocal left
        left = [one for one, worth in zip(left, worths, strict=True) if worth == max(worths)]

    sign = -1 if least else 1
    for what in ("answers", "distinct") if least else ("distinct", "answers"):
        if what == "distinct":
            keep([sign * len({classes[i] for i in one} - {None}) for one in left])
        else:
            keep([sum(classes[i] is not None for i in one) for one in left])
    gaps = [[apart[i][j] for i, j in combinations(one, 2)] or [0.0] for one in left]
    keep([-max(gap) if least else min(gap) for gap in gaps])
    return list(min(left))


@st.composite
def _pools(draw: st.DrawFn) -> tuple[Classes, list[list[float]], int]:
    total = draw(st.integers(0, 8))
    classes = draw(st.lists(st.none() | st.integers(0, 3), min_size=total, max_size=total))
    values = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.75])
    pairs = {(i, j): draw(values) for i, j in combinations(range(total), 2)}
    return classes, _apart(total, pairs), draw(st.integers(0, total))


@settings(deadline=None)  # other jobs share the machine
@given(_pools(), st.booleans())
def test_the_choice_is_what_brute_force_finds(pool: tuple[Classes, list[list[float]], int], least: bool) -> None:
    classes, apart, count = pool
    chosen = spread(classes, apart, count, least=least)
    assert chosen == _slow(classes, apart, count, least)
    assert chosen == spread(
        classes, np.array(apart, np.float32).reshape(len(classes), len(classes)), count, least=least
    )


@settings(max_examples=25, deadline=None)
@given(st.lists(st.none() | st.integers(0, 6), min_size=30, max_size=30), st.integers(5, 25))
def test_among_many_candidates_no_answer_is_left_out_that_could_be_in(classes: Classes, count: int) -> None:
    """Too many subsets to compare them all: one after another."""
    chosen = spread(classes, np.zeros((30, 30)), count)
    assert chosen == sorted(set(chosen))
    assert len(chosen) == count
    there = {one for one in classes if one is not None}
    assert len({classes[i] for i in chosen} - {None}) == min(count, len(there))
    if sum(one is not None for one in classes) >= count:
        assert all(classes[i] is not None for i in chosen)


def test_among_many_candidates_the_reverse_has_the_fewest_answers() -> None:
    chosen = spread([1, *[0] * 29], np.zeros((30, 30)), 5, least=True)
    assert chosen == [1, 2, 3, 4, 5]


def test_shapes_that_do_not_fit_are_refused() -> None:
    for classes, rows, count in (([0, 1], 3, 1), ([0, 1], 2, 3), ([0, 1], 2, -1), ([0], 0, 1)):
        with pytest.raises(ValueError, match="do not fit"):
            spread(classes, _apart(rows), count)
    with pytest.raises(ValueError, match="do not fit"):
        spread([0, 1], [[0.0, 0.0], [0.0]], 1)


def test_a_random_choice_is_the_same_again_and_every_set_as_likely() -> None:
    assert at_random(10, 3, 1, "a") == at_random(10, 3, 1, "a")
    assert at_random(4, 4, 1, "a") == [0, 1, 2, 3]
    sets = Counter(tuple(at_random(5, 2, 7, f"question {number}")) for number in range(2000))
    assert set(sets) == set(combinations(range(5), 2))
    assert all(140 < count < 260 for count in sets.values())  # 200 ± 4.5 standard deviations
    assert len({tuple(at_random(10, 3, seed, "a")) for seed in range(50)}) > 20


@pytest.mark.parametrize(
    ("authors", "agents", "seated"),
    [
        ([0, 1, 2], 3, [0, 1, 2]),
        ([2, 1, 0], 3, [2, 1, 0]),
        ([0, 0, 0], 3, [0, 1, 2]),
        ([1, 1, 0], 3, [2, 0, 1]),
        ([2, 2, 1], 3, [1, 2, 0]),
        ([0], 1, [0]),
    ],
)
def test_an_agent_goes_on_with_the_first_of_its_own(authors: list[int], agents: int, seated: list[int]) -> None:
    assert seats(authors, agents) == seated


@settings(deadline=None)  # other jobs share the machine
@given(st.integers(1, 9).flatmap(lambda n: st.lists(st.integers(0, n - 1), min_size=n, max_size=n)))
def test_every_kept_reply_has_one_seat(authors: list[int]) -> None:
    seated = seats(authors, len(authors))
    assert sorted(seated) == list(range(len(authors)))
    for agent, index in enumerate(seated):
        assert authors[index] == agent or agent not in authors


ANSWERS = "AAABAACAAA"
"""What candidate k says first; k is agent k mod 3, sample k div 3. Only 3 and 6 say B and C, both agent 0's."""


def _line(k: int) -> str:
    """All candidates reason alike, but for 6 and 7, each in words of its own."""
    if k in (6, 7):
        return ("Three boats cross over before noon.", "Nobody ever looked beneath this old bridge today.")[k - 6]
    return "We walk along the river bank to the end and turn there."


def _opens(request: Request, answers: str = ANSWERS) -> str:
    if when(request):
        return f"I stay. (({'ABC'[request.agent]}))"
    k = request.sample * 3 + request.agent
    return f"{_line(k)} (({answers[k]}))"


def _embedder() -> WordEmbedder:
    return WordEmbedder(512)


async def test_the_pool_is_recorded_as_sampled_and_the_kept_are_seated() -> None:
    record, requests = await hold(_opens, "mad-diverse", embedder=_embedder())
    first = record.rounds[0]
    assert [(reply.agent, reply.sample) for reply in first.candidates] == [(k % 3, k // 3) for k in range(10)]
    assert [reply.answer for reply in first.candidates] == list(ANSWERS)
    assert [reply.class_ for reply in first.candidates] == [0, 0, 0, 1, 0, 0, 2, 0, 0, 0]
    assert [r.seed for r in first.candidates] == [call_seed(SEED, QUESTION.id, k % 3, 0, k // 3) for k in range(10)]
    assert first.kept == (3, 7, 6)  # B, the A that is unlike them, C: agent 0 has two, and the first of its own
    assert [reply.agent for reply in first.replies] == [0, 1, 2]
    assert [reply.answer for reply in first.replies] == ["B", "A", "C"]
    for reply, place in zip(first.replies, first.kept, strict=True):
        assert replace(reply, agent=0, class_=None) == replace(first.candidates[place], agent=0, class_=None)
    assert first.consensus == pytest.approx(1 / 3)
    assert record.calls == {"debate": 10 + 6, "summary": 0, "judge": 0}
    assert len(requests) == find_method("mad-diverse").calls == 16
    assert not record.degraded
    assert [(one.candidates, one.kept) for one in record.rounds[1:]] == [((), ())] * 2


async def test_later_rounds_go_on_from_the_kept_replies() -> None:
    record, requests = await hold(
        lambda request: _opens(request) if when(request) else f"{_opens(request)} [{request.agent}.{request.sample}]",
        "mad-diverse",
        embedder=_embedder(),
    )
    kept = [record.rounds[0].candidates[place].text for place in record.rounds[0].kept]
    assert ["[0.1]" in kept[0], "[1.2]" in kept[1], "[0.2]" in kept[2]] == [True] * 3
    for agent, request in asked_in(requests, 1).items():
        (own,) = [message.content for message in request.messages if message.role == "assistant"]
        assert own == kept[agent]
        for peer in range(3):
            assert (kept[peer] in request.messages[-1].content) == (peer != agent)
        everything = "".join(message.content for message in request.messages)
        assert sum(reply.text in everything for reply in record.rounds[0].candidates) == 3


async def test_a_tie_of_answers_is_decided_by_the_embedder() -> None:
    embedder = _embedder()
    record, _ = await hold(_opens, "mad-diverse", embedder=embedder)
    assert embedder.asked == [reply.text for reply in record.rounds[0].candidates]
    embedder = _embedder()
    await hold(lambda request: f"<think>secret</think> {_opens(request)}", "mad-diverse", embedder=embedder)
    assert not any("secret" in text for text in embedder.asked)


async def test_the_arms_to_compare_with() -> None:
    record, _ = await hold(_opens, "mad-low-diversity", embedder=_embedder())
    assert record.rounds[0].kept == (0, 1, 2)  # all A, and word for word the same
    record, _ = await hold(_opens, "mad-diverse-random")  # needs no embedder
    drawn = at_random(10, 3, SEED, QUESTION.id)
    assert sorted(record.rounds[0].kept) == drawn
    assert [drawn[place] for place in seats([k % 3 for k in drawn], 3)] == list(record.rounds[0].kept)


async def test_a_candidate_that_failed_is_not_kept() -> None:
    def script(request: Request) -> Scripted:
        if when(request) == 0 and request.sample * 3 + request.agent in (3, 7):
            return ServerFaultError("down")
        return _opens(request)

    record, _ = await hold(script, "mad-diverse", embedder=_embedder())
    first = record.rounds[0]
    # A and C are left. All A say the same, so any two of them are nearest: the first that were sampled.
    assert first.kept == (0, 1, 6)
    assert {record.rounds[0].candidates[k].error is not None for k in first.kept} == {False}
    assert record.degraded  # a call failed
    assert not record.failures  # no agent's did


@pytest.mark.parametrize(
    ("whole", "kept"),
    [
        ({4, 5, 9}, (9, 4, 5)),  # just enough: agents 1, 2 and 0
        ({4, 5}, (0, 4, 5)),  # a seat for the first that failed
        ({4}, (0, 4, 1)),  # agent 1 goes on with its own that is whole; agent 2 takes what is left
        ({0, 3, 6}, (0, 3, 6)),
    ],
)
async def test_with_too_few_left_what_failed_fills_the_seats(whole: set[int], kept: tuple[int, ...]) -> None:
    def script(request: Request) -> Scripted:
        if when(request) == 0 and request.sample * 3 + request.agent not in whole:
            return ServerFaultError("down")
        return _opens(request)

    record, _ = await hold(script, "mad-diverse", embedder=_embedder())
    assert record.rounds[0].kept == kept
    assert sum(reply.error is None for reply in record.rounds[0].replies) == len(whole)
    assert record.degraded


async def test_a_pool_that_failed_altogether_is_a_failed_debate() -> None:
    record, requests = await hold(lambda request: ServerFaultError("down"), "mad-diverse", embedder=_embedder())
    assert (record.stopped, record.answer, len(requests)) == ("failed", None, 10)


async def test_an_embedder_that_fails_leaves_the_sampling_order_and_is_told() -> None:
    embedder = _embedder()
    embedder.broken = True
    record, _ = await hold(_opens, "mad-diverse", embedder=embedder)
    assert record.rounds[0].kept == (0, 3, 6)  # one of each answer, the first A; agent 0's all
    for view in record.rounds[0].views:
        assert view.forgot is not None
        assert view.forgot.kind == "server-fault"
    assert record.degraded
    assert not record.failures


@pytest.mark.parametrize("name", ["mad-diverse", "mad-low-diversity", "mad-diverse-confident"])
async def test_no_embedder_is_the_callers_mistake(name: str) -> None:
    assert find_method(name).needs_embedder
    with pytest.raises(UsageError, match="embedder"):
        await hold(_opens, name)
    assert not find_method("mad-diverse-random").needs_embedder


async def test_ten_agents_keep_all_ten() -> None:
    method = find_method("mad-diverse").sized(agents=10, rounds=2)
    record, _ = await hold(lambda r: f"(({'ABCD'[r.agent % 4]}))", method, embedder=_embedder())
    assert record.rounds[0].kept == tuple(range(10))
    assert record.calls["debate"] == 20


def test_fewer_candidates_than_agents_and_other_nonsense_are_refused() -> None:
    with pytest.raises(UsageError, match="10 candidates of the opening cannot seat 11 agents"):
        find_method("mad-diverse").sized(agents=11)
    with pytest.raises(UsageError, match="2 candidates"):
        Method("m", "", "", opening=Diverse(2))
    for wrong in ({"candidates": 0}, {"candidates": -1}, {"lean": "most"}, {"lean": ""}):
        arguments: dict[str, Any] = dict(wrong)
        with pytest.raises(UsageError, match="opening keeps"):
            Diverse(**arguments)
    assert Diverse() == METHODS["mad-diverse"].opening


def _opening(record: DebateRecord) -> list[tuple[int, int, str, int]]:
    replies = record.rounds[0].candidates[:3] or record.rounds[0].replies
    return [(reply.agent, reply.sample, reply.text, reply.seed) for reply in replies]


async def test_the_first_candidates_are_mads_own_round_0_and_asked_once() -> None:
    model = open_scripted("seeded")
    with CallCache() as cache:
        agents = tuple(Agent(persona, CachedModel(model, cache)) for persona in PACK.roster(3))
        records = {}
        for name in ("mad", "mad-diverse", "mad-diverse-random", "mad-low-diversity"):
            before = len(model.requests)
            records[name] = await engine.run(
                replace(scene_of(_opens, embedder=_embedder()), agents=agents), METHODS[name]
            )
            opened = [request for request in model.requests[before:] if when(request) == 0]
            assert len(opened) == {"mad": 3, "mad-diverse": 7}.get(name, 0)
    for record in records.values():
        assert _opening(record) == _opening(records["mad"])
    assert len({tuple(record.rounds[0].kept) for record in records.values()}) > 2


async def test_the_server_sees_the_same_first_bodies() -> None:
    question = Question("Which road?", tuple(f"road {number}" for number in range(10)), id="roads")
    bodies: dict[str, list[Any]] = {}
    async with FakeServer() as server:
        model = open_model("openai/fake", ModelOptions(base_url=server.base_url))
        agents = tuple(Agent(persona, model) for persona in PACK.roster(3))
        try:
            for name in ("mad", "mad-diverse"):
                server.reset()
                await engine.run(Scene(question, agents, PACK, 5, embedder=_embedder()), METHODS[name])
                seeds = [call_seed(5, question.id, agent, 0, 0) for agent in range(3)]
                by_seed = {log.body["seed"]: log.body for log in server.log}
                bodies[name] = [by_seed[seed] for seed in seeds]
                tasks = [log for log in server.log if len(log.body["messages"]) == 2]
                assert len(tasks) == (3 if name == "mad" else 10)
                assert not any("n" in log.body for log in server.log)
        finally:
            await model.aclose()
    assert bodies["mad"] == bodies["mad-diverse"]
