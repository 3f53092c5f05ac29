"""Debates to be remembered, of any size, with vectors drawn from a seed. The same arguments make the same debate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from r2mad.experience import Outcome, Remembered
from r2mad.types import AgentInfo, AnswerKind, DebateRecord, Question, Reply, Round, Usage, View, digest

if TYPE_CHECKING:
    from r2mad.experience import Vectors

NAMES = ("Ann", "Ben", "Cyd", "Dov", "Eve", "Flo", "Gus", "Hal", "Ivy")
"""Agents' names, as many as a debate has agents."""


def made(
    number: int,
    agents: int = 3,
    rounds: int = 3,
    dimension: int = 8,
    names: Sequence[str] = NAMES,
    models: Sequence[str] = ("fake/one", "fake/two"),
    dataset: str = "made",
    split: str = "dev",
    study: str = "",
    rewards: Sequence[float | None] | None = None,
    question: Question | None = None,
    kind: AnswerKind = "text",
    words: int = 3,
    failed: Sequence[tuple[int, int]] = (),
) -> Remembered:
    """Debate number `number`, another for each number.

    Args:
        names: the agents' names; the first `agents` of them are taken.
        models: taken in turns.
        rewards: one an agent; drawn if not given, and now and then not known.
        question: on what; a question of its own if not given.
        words: how long a reply is.
        failed: (round, agent) of replies that have no state.
    """
    drawn = np.random.default_rng(number)

    def units(*shape: int) -> Vectors:
        normal = drawn.standard_normal((*shape, dimension))
        long = np.linalg.norm(normal, axis=-1, keepdims=True)
        return np.asarray(normal / long, np.float32)

    asked = question or Question(f"Question number {number}?", id=f"made/{number}", kind=kind)
    right = drawn.random((rounds, agents)) < 0.5
    if rewards is None:
        rewards = [None if drawn.random() < 0.1 else float(last) for last in right[-1]]
    told = tuple(
        Round(
            index,
            round(1 / agents, 6),
            tuple(
                Reply(
                    seat,
                    text=" ".join(f"w{int(drawn.integers(1000))}" for _ in range(words)),
                    answer=f"a{int(drawn.integers(3))}",
                    usage=Usage(20, words),
                    seconds=0.5,
                    seed=number,
                )
                for seat in range(agents)
            ),
            views=tuple(View(seat) for seat in range(agents)) if index else (),
        )
        for index in range(rounds)
    )
    record = DebateRecord(
        id=digest(["made", number, agents, rounds]),
        method="mad",
        seed=number,
        question=asked,
        agents=tuple(AgentInfo(names[seat], models[seat % len(models)]) for seat in range(agents)),
        prompts="general:0",
        rounds=told,
        answer="a0",
        votes={"a0": 1.0},
        tie=False,
        tied=(),
        stopped="rounds",
        degraded=bool(failed),
        confidence=1.0,
        calls={"debate": rounds * agents},
        usage={"debate": Usage(20, words)},
        seconds=1.5,
        started="2026-01-01T00:00:00.000+00:00",
        study=study,
        dataset=dataset,
        split=split,
    )
    outcome = Outcome("gold", tuple(rewards), tuple(tuple(bool(one) for one in row) for row in right), "a0")
    states = {
        (index, seat): units() for index in range(1, rounds) for seat in range(agents) if (index, seat) not in failed
    }
    return Remembered(record, outcome, units(), units(rounds, agents), states)


def same(one: Remembered, other: Remembered) -> bool:
    """Whether two debates are alike in all but when they were added."""
    return (
        one.record == other.record
        and one.outcome == other.outcome
        and np.array_equal(one.question, other.question)
        and np.array_equal(one.replies, other.replies)
        and one.states.keys() == other.states.keys()
        and all(np.array_equal(state, other.states[place]) for place, state in one.states.items())
    )
