"""Whether a debate's outcome and vectors fit the debate and the memory, before anything is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from r2mad.errors import UsageError
from r2mad.experience import Remembered

if TYPE_CHECKING:
    from r2mad.experience import Vectors

SLACK = 1e-3
"""How far a vector's length may be from 1, or from 0 for a text without content: half precision, but no slip."""


def check(debate: Remembered, dimension: int) -> None:
    """See that rewards, verdicts and vectors have the debate's shapes, and vectors the memory's dimension.

    Raises:
        UsageError: something does not fit; the message names the debate and says what.
    """
    try:
        problem = _outcome_problem(debate) or _vector_problem(debate, dimension)
    except (TypeError, ValueError, KeyError) as error:
        problem = f"a value of the wrong kind ({error})"
    if problem:
        raise UsageError(f"debate {debate.record.id} cannot be remembered: {problem}")


def _outcome_problem(debate: Remembered) -> str | None:
    rounds, agents = len(debate.record.rounds), len(debate.record.agents)
    rewards, correct = debate.outcome.rewards, debate.outcome.correct
    if len(rewards) != agents:
        return f"{len(rewards)} rewards for {agents} agents"
    if not all(reward is None or 0.0 <= reward <= 1.0 for reward in rewards):  # not a number is not, either
        return f"a reward is not between 0 and 1: {rewards}"
    if len(correct) != rounds or any(len(row) != agents for row in correct):
        return f"verdicts on {[len(row) for row in correct]} replies for {rounds} rounds of {agents} agents"
    return None


def _vector_problem(debate: Remembered, dimension: int) -> str | None:
    rounds, agents = len(debate.record.rounds), len(debate.record.agents)
    for index, seat in debate.states:
        if not 1 <= index < rounds or not 0 <= seat < agents:
            return (
                f"a state of agent {seat} in round {index}, of {agents} agents and {rounds} rounds, round 0 having none"
            )
    named: list[tuple[str, Vectors, tuple[int, ...]]] = [
        ("the question", debate.question, (dimension,)),
        ("the replies", debate.replies, (rounds, agents, dimension)),
        *((f"state {place}", state, (dimension,)) for place, state in debate.states.items()),
    ]
    for what, value, shape in named:
        array = np.asarray(value, np.float32)
        if array.shape != shape:
            return f"vectors of {what} have the shape {array.shape} and should have {shape}"
        lengths = np.linalg.norm(array.astype(np.float64), axis=-1)
        if not np.all((np.abs(lengths - 1.0) <= SLACK) | (lengths <= SLACK)):  # not a number is neither
            return f"a vector of {what} has a length that is neither 1 nor 0"
    return None
