"""Debates beside their grades: what every metric of a run begins with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite

from r2mad.errors import StoreError
from r2mad.study.scores import Score
from r2mad.types import DebateRecord, Reply


@dataclass(frozen=True, slots=True)
class Graded:
    """A debate and its score."""

    record: DebateRecord
    score: Score

    def replies(self, index: int) -> Iterator[tuple[Reply, bool]]:
        """Each reply of a round that did not fail, and whether it is right; one without an answer is not."""
        signs = self.score.grades[index]
        for reply, sign in zip(self.record.rounds[index].replies, signs, strict=True):
            if sign != "x":
                yield reply, sign == "1"


def graded(records: Iterable[DebateRecord], scores: Iterable[Score]) -> list[Graded]:
    """The debates that have a score, in the order of the records. One without is left out.

    Raises:
        StoreError: a score is not of the debate whose id it bears: it has other rounds or replies.
    """
    known = {score.id: score for score in scores}
    # a score of a try that failed, beside a debate that was held again since, is none
    found = [Graded(record, known[record.id]) for record in records if record.id in known]
    found = [one for one in found if one.record.stopped == one.score.stopped]
    for one in found:
        if not one.record.rounds or not isfinite(one.record.confidence or 0.0):
            raise StoreError(f"debate {one.record.id} has no rounds, or a confidence that is no number")
        if [len(row.replies) for row in one.record.rounds] != [len(signs) for signs in one.score.grades]:
            raise StoreError(f"the score of debate {one.record.id} is of another debate: its rounds or replies differ")
    return found


def by_method(found: Iterable[Graded]) -> dict[str, list[Graded]]:
    """The debates of each method, in order of their names; kinds of one name are told apart.

    A run may hold a method on several models, or in several compositions (another number of agents, say): what is
    pooled must be one thing, so each is a group, named by what differs.
    """
    rows = list(found)
    kinds: dict[str, dict[tuple[str, str], list[Graded]]] = {}
    for one in rows:
        models = " + ".join(dict.fromkeys(agent.model for agent in one.record.agents))
        key = (models, one.record.composition)
        kinds.setdefault(one.record.method, {}).setdefault(key, []).append(one)
    groups: dict[str, list[Graded]] = {}
    for method, several in sorted(kinds.items()):
        for (models, composition), debates in several.items():
            parts = [models] if len({model for model, _ in several}) > 1 else []
            parts += [composition] if len({made for model, made in several if model == models}) > 1 else []
            groups[f"{method} ({'; '.join(parts)})" if parts else method] = debates
    return groups
