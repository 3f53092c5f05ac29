"""The objective mask by hand, and what any mask took out is in no prompt that a server got (MAD-M²)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from r2mad import engine
from r2mad.context import Fresh
from r2mad.errors import ServerFaultError, UsageError
from r2mad.mask import ObjectiveMask, kept_by_score
from r2mad.method import Method
from r2mad.methods import find_method
from r2mad.models import ModelOptions, open_model
from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.models.scripted import Scripted
from r2mad.scene import Agent, Scene, call_seed
from r2mad.skew import Everyone, Ring
from r2mad.types import Completion, DebateRecord, Question, Request, Sampling
from r2mad.verdict import Never
from tests.staging import PACK, asked_in, hold, read_by, said, when


def _objective(part: ObjectiveMask | None = None, agents: int = 3, rounds: int = 2) -> Method:
    skew = (Everyone(), part or ObjectiveMask())
    return Method("o", "", "", agents, rounds, skew=skew, context=Fresh(), stop=Never())


def _scored(
    sampled: Sequence[float | None], top: Sequence[float | None] | None = None
) -> Callable[[Request], Completion]:
    """Agent i's replies have these mean log-probabilities in every round."""

    def script(request: Request) -> Completion:
        assert request.kind == "debate"  # the mask asks nobody
        agent = request.agent
        text = f"{said(agent, when(request))} (({'ABCD'[agent % 4]}))"
        return Completion(text, mean_logprob=sampled[agent], mean_top_logprob=(top or sampled)[agent])

    return script


def _kept(record: DebateRecord, round_index: int = 1) -> set[int]:
    """The replies that were shown on; the same for all agents."""
    shown = {frozenset(p.agent for p in view.peers if p.shown) for view in record.rounds[round_index].views}
    (one,) = shown
    return set(one)


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ({0: -0.5, 1: -0.2, 2: -0.9}, {1}),  # perplexities 1.65, 1.22, 2.46
        ({0: -0.2, 1: -0.5, 2: -0.9}, {0}),
        ({0: -0.9, 1: -0.5, 2: -0.2}, {2}),
        ({0: -0.5, 1: -0.2, 2: -0.2}, {1}),  # of equals the first agent's
        ({0: -1.0, 1: -1.0, 2: -1.0}, {0}),
        ({0: -3.0, 1: -2.0}, {1}),
        ({0: -3.0}, {0}),
        ({0: -9999.0, 1: -3.0, 2: -9999.0}, {1}),  # exp(9999) is no float
        ({0: -9999.0, 1: -9998.0}, {1}),
        ({0: -9999.0, 1: -9999.0}, {0}),
        ({0: -math.inf, 1: -9999.0}, {1}),
        ({0: -800.0, 1: -750.0}, {1}),  # both perplexities overflow
        ({0: 0.0, 1: -1e-12}, {0}),  # both round to a perplexity of 1
        ({0: None, 1: -5.0, 2: None}, {1}),
        ({0: None, 1: -5.0, 2: -4.0}, {2}),
        ({0: None, 1: None}, {0, 1}),
        ({2: -2.0, 4: -1.0}, {4}),
        ({}, set()),
    ],
)
def test_the_reply_of_lowest_perplexity_is_kept(scores: dict[int, float | None], kept: set[int]) -> None:
    assert kept_by_score(scores) == kept


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ({0: -1.0, 1: -2.0, 2: -3.0}, {0, 1}),  # the median itself stays
        ({0: -1.0, 1: -2.0, 2: -3.0, 3: -4.0}, {0, 1}),  # median −2.5
        ({0: -3.0, 1: -1.0}, {1}),
        ({0: -2.0, 1: -2.0, 2: -2.0}, {0, 1, 2}),
        ({0: -2.0, 1: -2.0}, {0, 1}),
        ({0: -2.0}, {0}),
        ({0: -2.0, 1: -2.0, 2: -2.0, 3: -5.0}, {0, 1, 2}),
        ({0: -9999.0, 1: -1.0, 2: -2.0}, {1, 2}),
        ({0: None, 1: -1.0, 2: -2.0, 3: -3.0}, {1, 2}),  # who has no score does not move the median
        ({0: None, 1: None, 2: -3.0}, {2}),
        ({0: None}, {0}),
    ],
)
def test_all_replies_above_the_median_are_kept(scores: dict[int, float | None], kept: set[int]) -> None:
    assert kept_by_score(scores, "above-median") == kept


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ((-0.5, -0.2, -0.9), {1}),
        ((-0.2, -0.2, -0.2), {0}),
        ((-1.0, -0.5), {1}),
        ((-1.0,), {0}),
        ((-9999.0, -9999.0, -50.0), {2}),
        ((-4.0, -3.0, -2.0, -1.0, -5.0), {3}),
    ],
)
async def test_one_reply_is_shown_to_all_and_its_author_alike(scores: tuple[float, ...], kept: set[int]) -> None:
    record, requests = await hold(_scored(scores), _objective(agents=len(scores), rounds=3))
    assert sum(record.calls.values()) == len(requests) == 3 * len(scores)
    for t in (1, 2):
        assert _kept(record, t) == kept
        for agent, request in asked_in(requests, t).items():
            text = request.messages[-1].content
            assert read_by(request, len(scores), t - 1) == kept
            assert ("Your own reply before:" in text) == (agent in kept)
        for view in record.rounds[t].views:
            assert [peer.score for peer in view.peers] == list(scores)
            assert [peer.verdict for peer in view.peers] == [
                "kept" if agent in kept else "masked" for agent in range(len(scores))
            ]
    assert not record.degraded
    assert record.judgements == ()


async def test_above_the_median_by_the_likeliest_tokens_is_what_the_authors_code_does() -> None:
    sampled, top = (-0.1, -0.9, -0.8, -0.7), (-0.9, -0.1, -0.2, -0.8)
    part = ObjectiveMask("above-median", "top-token")
    record, _ = await hold(_scored(sampled, top), _objective(part, agents=4))
    assert _kept(record) == {1, 2}
    assert [peer.score for peer in record.rounds[1].views[0].peers] == list(top)
    record, _ = await hold(_scored(sampled, top), _objective(ObjectiveMask(score="top-token"), agents=4))
    assert _kept(record) == {1}
    record, _ = await hold(_scored(sampled, top), _objective(agents=4))
    assert _kept(record) == {0}


async def test_a_reply_without_a_log_probability_is_masked() -> None:
    record, requests = await hold(_scored((None, -2.0, -3.0)), _objective())
    assert _kept(record) == {1}
    assert [(p.verdict, p.score) for p in record.rounds[1].views[0].peers] == [
        ("unscored", None), ("kept", -2.0), ("masked", -3.0),
    ]  # fmt: skip
    assert all(read_by(request, 3, 0) == {1} for request in asked_in(requests, 1).values())
    assert not record.degraded


async def test_where_no_reply_has_one_nobody_is_masked_and_the_record_says_why() -> None:
    record, requests = await hold(_scored((None, None, None)), _objective(rounds=3))
    for t in (1, 2):
        assert _kept(record, t) == {0, 1, 2}
        assert all(read_by(request, 3, t - 1) == {0, 1, 2} for request in asked_in(requests, t).values())
    assert record.degraded
    assert record.calls["judge"] == 0
    assert [(note.purpose, note.round) for note in record.judgements] == [("mask", 0), ("mask", 1)]
    for note in record.judgements:
        assert note.error is not None
        assert "log-prob" in note.error.message
    assert not record.failures


async def test_the_mean_that_is_missing_may_be_the_other_ones() -> None:
    """A server may send the sampled tokens' and not the likeliest ones'."""
    record, _ = await hold(_scored((-1.0, -2.0), (None, None)), _objective(ObjectiveMask(score="top-token"), agents=2))
    assert _kept(record) == {0, 1}
    assert record.degraded
    record, _ = await hold(_scored((-1.0, -2.0), (None, None)), _objective(agents=2))
    assert _kept(record) == {0}
    assert not record.degraded


async def test_a_failed_reply_is_not_shown_and_does_not_count() -> None:
    scored = _scored((-1.0, -2.0, -3.0))

    def script(request: Request) -> Scripted:
        if request.agent == 0 and when(request) == 0:
            raise ServerFaultError("down")
        return scored(request)

    record, _ = await hold(script, _objective())
    assert _kept(record) == {1}
    assert [peer.verdict for peer in record.rounds[1].views[2].peers] == ["error", "kept", "masked"]
    record, _ = await hold(script, _objective(ObjectiveMask("above-median")))
    assert _kept(record) == {1}  # the median of −2 and −3


async def test_who_fails_is_no_score_and_the_rest_without_one_are_shown() -> None:
    unscored = _scored((None, None, None))

    def script(request: Request) -> Scripted:
        return ServerFaultError("down") if request.agent == 0 and when(request) == 0 else unscored(request)

    record, _ = await hold(script, _objective())
    assert _kept(record) == {1, 2}
    assert [peer.verdict for peer in record.rounds[1].views[0].peers] == ["error", "unscored", "unscored"]


async def test_behind_a_topology_each_agent_keeps_the_best_of_what_it_may_read() -> None:
    """One mask for all would leave agents with nothing, whose predecessor and self are not the best of all."""
    method = replace(_objective(), skew=(Ring(), ObjectiveMask()))
    record, _ = await hold(_scored((-3.0, -1.0, -2.0)), method)
    shown = [[peer.agent for peer in view.peers if peer.shown] for view in record.rounds[1].views]
    assert shown == [[2], [1], [1]]


@pytest.mark.parametrize(("keep", "score"), [("highest", "sampled"), ("lowest", "mean"), ("", "")])
def test_an_objective_mask_of_no_kind_is_refused(keep: Any, score: Any) -> None:
    with pytest.raises(UsageError, match="objective mask"):
        ObjectiveMask(keep, score)


_ROADS = Question("Which road?", tuple(f"road {number}" for number in range(10)), id="roads")


def _texts(body: Mapping[str, Any]) -> str:
    return "\n".join(message["content"] for message in body["messages"])


@pytest.mark.parametrize("name", ["mad-m2-s", "mad-m2-s-strict", "mad-m2-o"])
async def test_what_was_masked_is_in_no_prompt_and_what_was_kept_is_in_all(name: str) -> None:
    """From the record we know what was masked; from the server's log, what was sent."""
    method = replace(find_method(name).sized(agents=4), stop=Never())
    seen = Counter[str]()
    async with FakeServer(FakeSettings(bias=0.2)) as server:
        model = open_model("openai/fake", ModelOptions(base_url=server.base_url))
        try:
            agents = tuple(Agent(p, model, Sampling(logprobs=method.needs_logprobs)) for p in PACK.roster(4))
            for seed in range(20):
                server.reset()
                record = await engine.run(Scene(_ROADS, agents, PACK, seed), method)
                seats = {call_seed(seed, _ROADS.id, agent, t, 0): (agent, t) for agent in range(4) for t in range(3)}
                bodies = {seats[log.body["seed"]]: log.body for log in server.log if log.body["seed"] in seats}
                assert len(bodies) == 12
                assert len(server.log) - len(bodies) == record.calls["judge"] == (0 if name == "mad-m2-o" else 8)
                if len({reply.text for one in record.rounds[:2] for reply in one.replies}) == 8:
                    seen += _compared(record, bodies)  # or a reply would stand in for another
        finally:
            await model.aclose()
    assert seen["debates"] > 10
    assert min(seen["masked"], seen["kept"], seen["own masked"]) > 20  # there was something to find
    assert (seen["alone"] > 0) == (name == "mad-m2-s-strict") or name == "mad-m2-s"


def _compared(record: DebateRecord, bodies: Mapping[tuple[int, int], Mapping[str, Any]]) -> Counter[str]:
    """Every view against what was sent; how often each thing was met."""
    seen = Counter(debates=1)
    for t in (1, 2):
        before = {reply.agent: reply.text for reply in record.rounds[t - 1].replies}
        for view in record.rounds[t].views:
            text = _texts(bodies[view.agent, t])
            shown = {peer.agent: peer.shown for peer in view.peers}
            assert shown == {peer.agent: peer.shown for peer in record.rounds[t].views[0].peers}
            for peer in range(4):
                assert (before[peer] in text) == shown[peer]
                seen["kept" if shown[peer] else "masked"] += 1
            seen["own masked"] += not shown[view.agent]
            if not any(shown.values()):
                assert bodies[view.agent, t]["messages"] == bodies[view.agent, 0]["messages"]
                seen["alone"] += 1
            if t == 2:  # nor does anything older come back
                assert not any(reply.text in text for reply in record.rounds[0].replies)
    return seen
