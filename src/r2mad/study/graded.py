"""Debates beside their grades: what every metric of a run begins with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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
    found = [Graded(record, known[record.id]) for record in records if record.id in known]
    for one in found:
        if [len(row.replies) for row in one.record.rounds] != [len(signs) for signs in one.score.grades]:
            raise StoreError(f"the score of debate {one.record.id} is of another debate: its rounds or replies differ")
    return found


def by_method(found: Iterable[Graded]) -> dict[str, list[Graded]]:
    """The debates of each method, methods in order of their names."""
    groups: dict[str, list[Graded]] = {}
    for one in found:
        groups.setdefault(one.record.method, []).append(one)
    return dict(sorted(groups.items()))
