"""Which scores are paired with which: two methods on one cell, on a subset of it, and pooled over data sets.

Scores are paired by question *and* seed. What only one of the two has is left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from r2mad.study.comparison import Comparison, compare, correct_all
from r2mad.study.metrics import misconceived, within
from r2mad.study.scores import Score
from r2mad.study.table_data import Results

POOLED = "all data sets"
"""Stands for a data set where several are pooled."""
Key = tuple[str, str, int]
"""Data set, question, seed."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two methods on the same questions of one model."""

    model: str
    dataset: str
    comparison: Comparison
    unpaired: int = 0
    """Answers to questions that both have, under a seed that only one of them has; they are left out."""


def contrast(
    one: Sequence[Score], other: Sequence[Score], names: tuple[str, str], *, expected: bool = False
) -> Contrast:
    """Compare two methods' scores. Several data sets are pooled: pairs are within a data set, and every question
    counts the same, so that the sign-flip test stays exact whatever the data sets' own differences are.

    Args:
        one: the first method's, of one model.
        other: the other's.
        names: of the two.
        expected: score a tie by the chance of being right if it were broken evenly, and not as it was broken.
    """
    first, second = _keyed(one), _keyed(other)
    asked_one, asked_other = ({key[:2] for key in side} for side in (first, second))
    # a question that the other has as well is compared under the seeds of both, or not at all
    left = {key: row for key, row in first.items() if key in second or key[:2] not in asked_other}
    right = {key: row for key, row in second.items() if key in first or key[:2] not in asked_one}
    found = compare(
        _scores(left, expected), _scores(right, expected), correct=(_rights(left), _rights(right)), names=names
    )
    models = {row.model: None for row in (*one, *other)}
    datasets = {row.dataset: None for row in (*one, *other)}
    return Contrast(
        " + ".join(models),
        POOLED if len(datasets) > 1 else "".join(datasets),
        found,
        len(first) - len(left) + len(second) - len(right),
    )


def _keyed(scores: Iterable[Score]) -> dict[Key, Score]:
    return {(one.dataset, one.question, one.seed): one for one in scores}


def _scores(side: dict[Key, Score], expected: bool) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for key in sorted(side):
        found.setdefault(_name(key), []).append(side[key].expected if expected else float(side[key].correct))
    return found


def _rights(side: dict[Key, Score]) -> dict[str, list[bool]]:
    found: dict[str, list[bool]] = {}
    for key in sorted(side):
        found.setdefault(_name(key), []).append(side[key].correct)
    return found


def _name(key: Key) -> str:
    return f"{key[0]} {key[1]}"


def pairwise(
    held: Results, one: str, other: str, *, expected: bool = False, subset: bool = False
) -> tuple[list[Contrast], list[Contrast]]:
    """Two methods wherever both were run: (each model and data set, each model over its data sets if it has several).

    Both lists are corrected by Holm, each as a family of its own: the pooled one says again what the other says.

    Args:
        held: the results.
        one: a method.
        other: another.
        expected: see `contrast`.
        subset: only questions of the shared-misconception subset, and their seeds.
    """
    cells, pooled = [], []
    for model in held.models:
        sides: tuple[list[Score], list[Score]] = [], []
        sets = 0
        for dataset in held.datasets:
            pair = [_on(held, model, dataset, method, subset) for method in (one, other)]
            if all(pair):
                cells.append(contrast(pair[0], pair[1], (one, other), expected=expected))
                sides[0].extend(pair[0])
                sides[1].extend(pair[1])
                sets += 1
        if sets > 1:
            pooled.append(contrast(sides[0], sides[1], (one, other), expected=expected))
    return corrected(cells), corrected(pooled)


def every_pair(
    held: Results, methods: Sequence[str], *, expected: bool = False, subset: bool = False
) -> list[Contrast]:
    """Every pair of methods on every model and data set, all of them one family for Holm's correction."""
    found = []
    for model, dataset, there in held.blocks():
        rows = {name: _on(held, model, dataset, name, subset) for name in there if name in methods}
        for one, other in combinations([name for name in rows if rows[name]], 2):
            found.append(contrast(rows[one], rows[other], (one, other), expected=expected))
    return corrected(found)


def corrected(found: Sequence[Contrast]) -> list[Contrast]:
    """The same as one family."""
    compared = correct_all(one.comparison for one in found)
    return [replace(one, comparison=row) for one, row in zip(found, compared, strict=True)]


def _on(held: Results, model: str, dataset: str, method: str, subset: bool) -> list[Score]:
    scores = held.of(model, dataset, method)
    return within(scores, misconceived(held.of(model, dataset, "mad"))) if subset else list(scores)
