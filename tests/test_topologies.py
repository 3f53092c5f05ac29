"""Topologies: who reads whom, told by the prompts that were sent and not by the code that made them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2mad.context import Context, Fresh, History
from r2mad.errors import ServerFaultError, UsageError
from r2mad.mask import SubjectiveMask
from r2mad.method import Method
from r2mad.methods import METHODS, find_method
from r2mad.models.scripted import Scripted
from r2mad.skew import Everyone, Filter, Graph, Ring
from r2mad.types import DebateRecord, Request
from r2mad.verdict import Never
from tests.staging import asked_in, hold, read_by, said, when

Matrix = tuple[tuple[int, ...], ...]


def _method(part: Filter, agents: int, context: Context | None = None, rounds: int = 3) -> Method:
    return Method("t", "", "", agents, rounds, skew=(part,), context=context or History(), stop=Never())


def _script(request: Request) -> Scripted:
    return f"{said(request.agent, when(request))} (({'ABCD'[request.agent % 4]}))"


async def _readers(method: Method) -> tuple[DebateRecord, list[set[int]]]:
    """For each agent whose replies it was sent in the last turn; the same in every later round."""
    record, requests = await hold(_script, method)
    assert len(requests) == method.calls == method.agents * method.rounds
    found = [
        [read_by(asked_in(requests, t)[agent], method.agents, t - 1) for agent in range(method.agents)]
        for t in range(1, method.rounds)
    ]
    assert all(one == found[0] for one in found)
    for t in range(1, method.rounds):
        views = record.rounds[t].views
        assert [{peer.agent for peer in view.peers if peer.shown} for view in views] == found[0]
    return record, found[0]


@pytest.mark.parametrize("agents", range(3, 11))
async def test_on_the_ring_each_agent_reads_its_predecessor(agents: int) -> None:
    _, reads = await _readers(_method(Ring(), agents))
    assert reads[0] == {agents - 1}
    assert reads[1:] == [{agent} for agent in range(agents - 1)]
    _, reads = await _readers(_method(Ring(), agents, Fresh()))
    assert reads == [{agent, (agent - 1) % agents} for agent in range(agents)]


@pytest.mark.parametrize(
    ("context", "two", "one"), [(History(), [{1}, {0}], [set()]), (Fresh(), [{0, 1}, {0, 1}], [{0}])]
)
async def test_two_on_a_ring_read_each_other_and_one_alone_nobody(
    context: Context, two: list[set[int]], one: list[set[int]]
) -> None:
    for part in (Ring(), Everyone()):
        assert (await _readers(_method(part, 2, context)))[1] == two
        assert (await _readers(_method(part, 1, context)))[1] == one


@pytest.mark.parametrize("agents", [3, 4, 7, 10])
async def test_everyone_reads_all_the_others(agents: int) -> None:
    everybody = set(range(agents))
    _, reads = await _readers(_method(Everyone(), agents))
    assert reads == [everybody - {agent} for agent in range(agents)]
    _, reads = await _readers(_method(Everyone(), agents, Fresh()))
    assert reads == [everybody] * agents


GRAPHS: dict[str, Matrix] = {
    "star": ((0, 1, 1, 1), (1, 0, 0, 0), (1, 0, 0, 0), (1, 0, 0, 0)),
    "chain": ((0, 0, 0), (1, 0, 0), (0, 1, 0)),
    "two pairs": ((0, 1, 0, 0), (1, 0, 0, 0), (0, 0, 0, 1), (0, 0, 1, 0)),
    "nobody": ((0, 0, 0), (0, 0, 0), (0, 0, 0)),
    "all": ((1, 1, 1), (1, 1, 1), (1, 1, 1)),
    "one": ((0,),),
}


@pytest.mark.parametrize("matrix", GRAPHS.values(), ids=GRAPHS)
async def test_row_i_of_a_graph_says_whom_agent_i_reads(matrix: Matrix) -> None:
    rows = [{peer for peer, reads in enumerate(row) if reads} for row in matrix]
    _, reads = await _readers(_method(Graph(matrix), len(matrix)))
    assert reads == [row - {agent} for agent, row in enumerate(rows)]  # the diagonal is the context's matter
    _, reads = await _readers(_method(Graph(matrix), len(matrix), Fresh()))
    assert reads == [row | {agent} for agent, row in enumerate(rows)]


async def test_a_ring_and_the_complete_graph_as_matrices_are_the_same_debates() -> None:
    ring = tuple(tuple(int(peer == (agent - 1) % 5) for peer in range(5)) for agent in range(5))
    whole = tuple(tuple(int(peer != agent) for peer in range(5)) for agent in range(5))
    for part, matrix in ((Ring(), ring), (Everyone(), whole)):
        for context in (History(), Fresh()):
            record, _ = await _readers(_method(part, 5, context))
            same, _ = await _readers(_method(Graph(matrix), 5, context))
            assert [one.views for one in record.rounds] == [one.views for one in same.rounds]


async def test_who_reads_nobody_is_told_so_and_goes_on_from_its_own() -> None:
    _, requests = await hold(_script, _method(Graph(GRAPHS["chain"]), 3, rounds=2))
    first = asked_in(requests, 1)[0]
    assert "There is no reply of another participant" in first.messages[-1].content
    assert any(said(0, 0) in message.content for message in first.messages if message.role == "assistant")
    _, requests = await hold(_script, _method(Graph(GRAPHS["chain"]), 3, Fresh(), rounds=2))
    first = asked_in(requests, 1)[0]
    assert "Your own reply before:" in first.messages[-1].content


async def test_a_predecessor_that_failed_leaves_its_successor_with_nothing_new() -> None:
    def script(request: Request) -> Scripted:
        return ServerFaultError("down") if request.agent == 0 and when(request) == 0 else _script(request)

    record, requests = await hold(script, _method(Ring(), 4, rounds=2))
    assert [read_by(asked_in(requests, 1)[agent], 4, 0) for agent in range(4)] == [{3}, set(), {1}, {2}]
    assert [(peer.agent, peer.shown, peer.verdict) for peer in record.rounds[1].views[1].peers] == [(0, False, "error")]


async def test_a_mask_behind_a_topology_judges_only_what_somebody_reads() -> None:
    """Nobody reads agents 1 and 2 but themselves: with History impossible, with Fresh they still see their own."""

    def script(request: Request) -> Scripted:
        if request.kind == "judge":
            return "NO" if said(0, 0) in request.messages[-1].content else "YES"
        return _script(request)

    star = Graph(((0, 0, 0), (1, 0, 0), (1, 0, 0)))
    method = replace(_method(star, 3, Fresh(), rounds=2), skew=(star, SubjectiveMask()))
    record, requests = await hold(script, method)
    assert record.calls["judge"] == 3
    assert [read_by(asked_in(requests, 1)[agent], 3, 0) for agent in range(3)] == [set(), {1}, {2}]
    assert asked_in(requests, 1)[0].messages == asked_in(requests, 0)[0].messages  # left with nothing


async def test_the_sparse_method_has_6_agents_and_18_calls() -> None:
    method = METHODS["mad-sparse"]
    assert (method.agents, method.rounds, method.calls) == (6, 3, 18)
    assert method.skew == (Ring(),)
    record, requests = await hold(_script, method)
    assert len(requests) == 18
    assert len({agent.name for agent in record.agents}) == 6
    _, reads = await _readers(replace(method, stop=Never()))
    assert reads == [{5}, {0}, {1}, {2}, {3}, {4}]
    assert find_method("mad-sparse").sized(agents=4, rounds=2).calls == 8


@pytest.mark.parametrize(
    "matrix",
    [
        (),
        ((),),
        ((0, 1),),
        ((0,), (1,)),
        ((0, 1), (1,)),
        ((0, 1, 0), (1, 0, 0)),
        ((0, 2), (1, 0)),
        ((0, -1), (1, 0)),
        "ab",
        None,
        7,
        ((0, "x"), (1, 0)),
        ((0, None), (1, 0)),
        (0, 1),
    ],
)
def test_what_is_no_square_of_0_and_1_is_refused(matrix: Any) -> None:
    with pytest.raises(UsageError, match="matrix"):
        Graph(matrix)


def test_a_matrix_of_weights_is_refused() -> None:
    wrong: Any = ((0, 0.7), (0.7, 0))
    with pytest.raises(UsageError, match="matrix"):
        Graph(wrong)


def test_lists_and_truth_values_make_the_same_graph() -> None:
    lists: Any = [[0, 1], [1, 0]]
    truths: Any = [[False, True], [True, False]]
    assert Graph(lists) == Graph(truths) == Graph(((0, 1), (1, 0)))
    assert hash(Graph(lists)) == hash(Graph(truths))
    methods = [_method(Graph(matrix), 2) for matrix in (lists, truths)]
    assert methods[0].composition == methods[1].composition


def test_a_graph_for_another_number_of_agents_is_refused() -> None:
    with pytest.raises(UsageError, match="for 3 agents, not 4"):
        _method(Graph(GRAPHS["chain"]), 4)
    with pytest.raises(UsageError, match="for 3 agents, not 5"):
        _method(Graph(GRAPHS["chain"]), 3).sized(agents=5)


@settings(deadline=None)  # other jobs share the machine
@given(
    st.integers(1, 10).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 1), min_size=n, max_size=n), min_size=n, max_size=n)
    )
)
def test_every_square_of_0_and_1_is_taken_as_it_is(rows: list[list[int]]) -> None:
    given_rows: Any = rows
    graph = Graph(given_rows)
    assert [list(row) for row in graph.reads] == rows
    assert graph.size == len(rows)
