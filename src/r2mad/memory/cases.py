"""From a finished debate and its outcome to what a memory keeps: the cases of Eq. 6 with every vector they need."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from r2mad.errors import UsageError
from r2mad.experience import Form, Outcome, Remembered
from r2mad.protocols import Embedder
from r2mad.retrieval import question_text, reply_text, state_text
from r2mad.summary import UNUSABLE, plain_line
from r2mad.types import DebateRecord, Failure

if TYPE_CHECKING:
    from r2mad.experience import Vectors


def places(record: DebateRecord) -> list[tuple[int, int]]:
    """The cases of a debate as (t, i): every reply of a later round. Round 0 is no experience of debate, and a reply
    that failed is none of anything."""
    return [
        (one.index, reply.agent)
        for one in record.rounds[1:]
        for reply in sorted(one.replies, key=lambda reply: reply.agent)
        if not reply.error
    ]


async def embed_debate(record: DebateRecord, outcome: Outcome, embedder: Embedder, form: Form = "paper") -> Remembered:
    """A debate ready to be remembered. Rounds without a summary get the plain line of their tally first.

    Raises:
        UsageError: not a debate of one reply an agent and round.
        ModelError: the embedder failed.
    """
    agents = len(record.agents)
    for one in record.rounds:
        if sorted(reply.agent for reply in one.replies) != list(range(agents)):
            raise UsageError(
                f"debate {record.id}: round {one.index} has not one reply of each agent, so it has no cases"
            )
    record = await _summarised(record)
    said = {(one.index, reply.agent): reply for one in record.rounds for reply in one.replies}
    cases = places(record)
    texts = [question_text(record.question)]
    texts += [reply_text(said[t, i]) for t in range(len(record.rounds)) for i in range(agents)]
    for t, i in cases:
        before = record.rounds[t - 1]
        texts.append(state_text(record.question, said[t - 1, i], before.summary, before.consensus, form))
    vectors: Vectors = await embedder.embed(texts)
    end = 1 + len(record.rounds) * agents
    return Remembered(
        record,
        outcome,
        question=vectors[0],
        replies=np.ascontiguousarray(vectors[1:end].reshape(len(record.rounds), agents, -1)),
        states=dict(zip(cases, vectors[end:], strict=True)),
    )


async def _summarised(record: DebateRecord) -> DebateRecord:
    rounds = list(record.rounds)
    for index, one in enumerate(rounds[:-1]):
        if one.summary is None:
            line = await plain_line(rounds[: index + 1], record.question.kind)
            rounds[index] = replace(one, summary=line, plain=Failure(UNUSABLE, "the debate was held without summaries"))
    return replace(record, rounds=tuple(rounds))
