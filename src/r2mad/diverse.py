"""The diversity-aware opening (Demystifying Multi-Agent Debate): sample more replies than agents, go on with a spread.

A debate can only find an answer that somebody brings. Higher temperature varies the wording and not the answers, so the
replies are chosen from a larger pool instead. The first n of the pool are what `Independent` would have been.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Literal

import numpy as np

from r2mad.answers import tally_async
from r2mad.errors import UsageError, boundary
from r2mad.opening import Opened, opening_messages
from r2mad.retrieval import DECIMALS, reply_text
from r2mad.scene import Scene
from r2mad.types import Failure, Reply, View, digest

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.floating]

Lean = Literal["diverse", "low-diversity", "random"]

EXHAUSTIVE = 20_000
"""Subsets up to which every one is compared: about a tenth of a second; 3 of 10 are 120, 5 of 15 are 3,003. Above it
they are chosen one after another."""


def spread(
    classes: Sequence[int | None], distance: Sequence[Sequence[float]] | Floats, count: int, *, least: bool = False
) -> list[int]:
    """Choose `count` of c candidates: those with the most distinct answers, ties by the largest smallest distance.

    A candidate without an answer is no answer of its own, and gives way to one with an answer before distances are
    looked at. What is still tied goes to the candidates that were sampled first.

    Args:
        classes: each candidate's class of equivalent answers, None without one, shape [c].
        distance: 1 − cosine of each pair, shape [c, c]; zeros where it is not known.
        count: how many, at most c.
        least: the reverse: of those with the most answers, the fewest distinct ones, ties by the smallest largest
            distance.

    Returns:
        Indices in ascending order.

    Raises:
        ValueError: shapes that do not fit.
    """
    total = len(classes)
    if len(distance) != total or any(len(row) != total for row in distance) or not 0 <= count <= total:
        raise ValueError(f"{count} of {total} candidates with {len(distance)} rows of distances do not fit")
    apart = [[round(float(value), DECIMALS) for value in row] for row in distance]

    def worth(chosen: Iterable[int]) -> tuple[float, int, float]:
        chosen = tuple(chosen)
        answers = [classes[index] for index in chosen if classes[index] is not None]
        pairs = [apart[i][j] for i, j in combinations(chosen, 2)]
        distinct = len(set(answers))
        if least:
            return len(answers), -distinct, -max(pairs, default=0.0)
        return distinct, len(answers), min(pairs, default=0.0)

    if comb(total, count) <= EXHAUSTIVE:
        return list(max(combinations(range(total), count), key=worth))  # of equals max keeps the first
    pool = _of_fewest(classes, count) if least else list(range(total))
    chosen: list[int] = []
    while len(chosen) < count:
        left = [index for index in pool if index not in chosen]
        chosen.append(max(left, key=lambda index: (worth([*chosen, index]), -index)))
    return sorted(chosen)


def _of_fewest(classes: Sequence[int | None], count: int) -> list[int]:
    """The candidates of the largest classes that together have `count`; those without an answer come last."""
    groups: dict[int | None, list[int]] = {}
    for index, label in enumerate(classes):
        groups.setdefault(label, []).append(index)
    pool: list[int] = []
    for label in sorted(groups, key=lambda label: (label is None, -len(groups[label]), groups[label][0])):
        if len(pool) < count:
            pool += groups[label]
    return sorted(pool)


def at_random(total: int, count: int, seed: int, question: str) -> list[int]:
    """`count` of `total` places, every set as likely as any other, by a hash of (seed, question id)."""
    drawn = sorted(range(total), key=lambda index: digest(["opening", seed, question, index]))
    return sorted(drawn[:count])


def seats(authors: Sequence[int], agents: int) -> list[int]:
    """Who goes on with which reply: an agent with the first of its own, the others with what is left, in order.

    Args:
        authors: for each kept reply who gave it.
        agents: n, as many as there are replies.

    Returns:
        For each agent an index into the kept replies.
    """
    taken: dict[int, int] = {}
    for index, author in enumerate(authors):
        taken.setdefault(author, index)
    left = iter([index for index in range(len(authors)) if index not in taken.values()])
    return [taken[agent] if agent in taken else next(left) for agent in range(agents)]


@dataclass(frozen=True)
class Diverse:
    """Samples `candidates` replies, candidate k from agent k mod n as its sample k div n, and keeps one for each agent.

    Args:
        candidates: c, size of the pool; at least n.
        lean: which are kept: "diverse" by `spread`; "low-diversity" its reverse, and "random", to compare with.
    """

    candidates: int = 10
    lean: Lean = "diverse"

    def __post_init__(self) -> None:
        if self.candidates < 1 or self.lean not in ("diverse", "low-diversity", "random"):
            raise UsageError(
                f"an opening keeps 'diverse', 'low-diversity' or 'random' of at least 1 candidate, "
                f"not {self.lean!r} of {self.candidates}"
            )

    @property
    def needs_embedder(self) -> bool:
        """Whether candidates are compared by their vectors."""
        return self.lean != "random"

    def calls(self, agents: int) -> int:
        """c."""
        return self.candidates

    async def __call__(self, scene: Scene) -> Opened:
        """The kept replies by agent, and the pool that they are from."""
        count = len(scene.agents)
        if self.needs_embedder and not (scene.memory or scene.embedder):
            raise UsageError("a diverse opening compares replies by their vectors, and no embedder was given")
        asked = [
            scene.reply(k % count, [opening_messages(scene, k % count)], round_index=0, sample=k // count)
            for k in range(self.candidates)
        ]
        answered = await asyncio.gather(*asked)
        tally = await tally_async([reply.answer for reply, _ in answered], scene.question.kind)
        pool = [replace(reply, class_=label) for (reply, _), label in zip(answered, tally.labels, strict=True)]
        whole = [index for index, reply in enumerate(pool) if not reply.error]
        failure = None
        if len(whole) <= count:  # too few for a choice: those that failed fill the other seats
            broken = [index for index in range(len(pool)) if index not in whole]
            chosen = sorted([*whole, *broken[: count - len(whole)]])
        elif self.lean == "random":
            chosen = [whole[place] for place in at_random(len(whole), count, scene.seed, scene.question.id)]
        else:
            distance, failure = await self._distances(scene, [pool[index] for index in whole])
            labels = [pool[index].class_ for index in whole]
            chosen = [whole[place] for place in spread(labels, distance, count, least=self.lean == "low-diversity")]
        chosen.sort(key=lambda index: (pool[index].error is not None, index))  # what failed takes the seats left over
        kept = [chosen[place] for place in seats([pool[index].agent for index in chosen], count)]
        replies = tuple(replace(pool[index], agent=agent) for agent, index in enumerate(kept))
        return Opened(replies, _views([answered[index][1] for index in kept], failure), tuple(pool), tuple(kept))

    async def _distances(self, scene: Scene, replies: Sequence[Reply]) -> tuple[Floats, Failure | None]:
        """1 − cosine of each pair of replies; zeros, and why, where they cannot be embedded."""
        embedder = scene.memory.embedder if scene.memory else scene.embedder
        assert embedder is not None  # looked for before anything was asked
        vectors = await boundary(embedder.embed([reply_text(reply) for reply in replies]))
        if isinstance(vectors, Failure):
            return np.zeros((len(replies), len(replies))), vectors
        return 1.0 - vectors @ vectors.T, None


def _views(views: Sequence[View], failure: Failure | None) -> tuple[View, ...]:
    return tuple(replace(view, agent=agent, forgot=failure) for agent, view in enumerate(views))
