"""What every table is made from: a run's scores by cell, in a fixed order, and shares with intervals that hold.

Under several seeds a question's debates stand or fall together. Intervals then go by the number of independent debates
that would be as uncertain: p(1 − p) over the variance of the mean with questions as clusters, which is never taken to
be fewer than the questions or more than the debates. With a single seed that is Wilson's interval, exactly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from statistics import fmean

from r2mad.methods import METHODS
from r2mad.study.metrics import Cell, cells, misconceived
from r2mad.study.runs import Run, dataset_names, expected_questions, method_names
from r2mad.study.scores import Score
from r2mad.study.stats import ROUNDING, Z95, Proportion
from r2mad.study.table_text import Number

_VARIANT = re.compile(r"(?P<base>.+)\[(?P<what>\w+)=(?P<value>.*)\]", re.DOTALL)
PAPERS_ORDER = ("math500", "mmlu-pro:economics", "mmlu-pro:engineering", "truthfulqa")
"""The data sets of the paper on R2-MAD, as its tables have them."""


@dataclass(frozen=True, slots=True)
class Results:
    """A run's scores, and the order in which tables have its cells."""

    cells: Mapping[Cell, Sequence[Score]]
    models: tuple[str, ...]
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    questions: Mapping[str, int]
    """How many each data set has, in this run."""
    seeds: int
    """How many the study has."""

    def of(self, model: str, dataset: str, method: str) -> Sequence[Score]:
        """One cell's scores; none where it has none."""
        return self.cells.get(Cell(model, dataset, method), ())

    def blocks(self) -> list[tuple[str, str, list[str]]]:
        """(model, data set, its methods) for all that have any, in order."""
        found = []
        for model in self.models:
            for dataset in self.datasets:
                methods = [method for method in self.methods if self.of(model, dataset, method)]
                if methods:
                    found.append((model, dataset, methods))
        return found

    def scores(self) -> Iterable[Score]:
        """All of them."""
        return (score for one in self.cells.values() for score in one)


def results(run: Run) -> Results:
    """A run's scores, ordered as its study has them; without one, by the list of methods and the alphabet."""
    found = cells(run.scores)
    study = run.study
    there = {cell.method for cell in found}
    listed = [name for name in method_names(study) if name in there] if study else []
    known = {name: place for place, name in enumerate(METHODS)}
    rest = sorted(there - set(listed), key=lambda name: (known.get(base_of(name), len(known)), _natural(name)))
    sets = {cell.dataset for cell in found}
    asked = [name for name in PAPERS_ORDER if name in sets] + (dataset_names(study) if study else [])
    models = [team["name"] for team in study["config"].get("models", [])] if study else []
    return Results(
        cells=found,
        models=_ordered(models, {cell.model for cell in found}),
        datasets=_ordered(asked, sets),
        methods=(*listed, *rest),
        questions=expected_questions(run),
        seeds=len((study or {"config": {}})["config"].get("seeds", [])) or len({score.seed for score in run.scores}),
    )


def _ordered(wanted: Iterable[str], there: set[str]) -> tuple[str, ...]:
    first = [name for name in dict.fromkeys(wanted) if name in there]
    return (*first, *sorted(there - set(first)))


def _natural(name: str) -> list[tuple[int, float, str]]:
    """A key by which `sc-9` comes before `sc-10`."""
    parts = re.split(r"(\d+(?:\.\d+)?)", name)
    return [(1, float(part), "") if place % 2 else (0, 0.0, part) for place, part in enumerate(parts)]


@dataclass(frozen=True, slots=True)
class Variant:
    """A method of a sweep, taken apart."""

    base: str
    what: str
    value: str


def variant(method: str) -> Variant | None:
    """The parts of `base[what=value]`; None for a method of another name."""
    match = _VARIANT.fullmatch(method)
    return Variant(match["base"], match["what"], match["value"]) if match else None


def base_of(method: str) -> str:
    """A method's name without what a sweep varied."""
    found = variant(method)
    return found.base if found else method


def plain(methods: Iterable[str]) -> list[str]:
    """Those that are no variants."""
    return [method for method in methods if variant(method) is None]


def debating(scores: Iterable[Score]) -> bool:
    """Whether any of the debates had a second round."""
    return any(len(score.grades) > 1 for score in scores)


def share(by_question: Mapping[str, Sequence[float]]) -> Number:
    """A mean of scores in [0, 1] with its 95 % interval; every score counts the same, questions are independent.

    Args:
        by_question: each question's scores, one a seed.
    """
    values = [value for row in by_question.values() for value in row]
    if not values:
        return Number(None)
    if len(values) == len(by_question) and all(value in (0.0, 1.0) for value in values):
        low, high = Proportion(int(fsum(values)), len(values)).interval
        return Number(fmean(values), low=low, high=high)
    mean = min(1.0, max(0.0, fmean(values)))
    low, high = wilson_of(mean, _worth(by_question, mean, len(values)))
    return Number(mean, low=low, high=high)


def _worth(by_question: Mapping[str, Sequence[float]], mean: float, count: int) -> float:
    """How many independent answers are as uncertain as these."""
    clusters = [fsum(value - mean for value in row) for row in by_question.values() if row]
    if len(clusters) < 2:
        return float(len(clusters))
    variance = len(clusters) / (len(clusters) - 1) * fsum(one * one for one in clusters) / count**2
    if variance <= ROUNDING:  # all alike, which says nothing of seeds; or every question half and half
        return float(len(clusters) if min(mean, 1 - mean) <= ROUNDING else count)
    return min(float(count), max(float(len(clusters)), mean * (1 - mean) / variance))


def wilson_of(mean: float, count: float) -> tuple[float, float]:
    """Wilson's interval of a share, of a number of answers that need not be whole."""
    squared = Z95 * Z95 / count
    centre = (mean + squared / 2) / (1 + squared)
    half = Z95 / (1 + squared) * sqrt(mean * (1 - mean) / count + squared / (4 * count))
    return (0.0 if mean <= 0.0 else centre - half), (1.0 if mean >= 1.0 else centre + half)


def grouped(scores: Iterable[Score], value: Callable[[Score], float]) -> dict[str, list[float]]:
    """A value of each score, by question, in order of seeds."""
    found: dict[str, list[float]] = {}
    for one in sorted(scores, key=lambda one: (one.question, one.seed)):
        found.setdefault(one.question, []).append(value(one))
    return found


def accuracy(held: Results, model: str, dataset: str, method: str) -> Number:
    """One cell's share of right answers; what is missing of it is said."""
    scores = held.of(model, dataset, method)
    number = share(grouped(scores, lambda one: float(one.correct)))
    if not scores:
        return number
    return Number(number.value, low=number.low, high=number.high, mark=partly(held, dataset, scores))


def partly(held: Results, dataset: str, scores: Sequence[Score]) -> str:
    """`[12/134 questions]`, or `[40/402 debates]` under several seeds, if a cell is not whole; else nothing."""
    questions, asked = len({one.question for one in scores}), held.questions.get(dataset, 0)
    if questions < asked:
        return f"[{questions}/{asked} questions]"
    if len(scores) < asked * held.seeds:
        return f"[{len(scores)}/{asked * held.seeds} debates]"
    return ""


@dataclass(frozen=True, slots=True)
class Subset:
    """The same questions for several methods."""

    scores: Mapping[str, Sequence[Score]]
    """By method."""
    pairs: int
    """(question, seed) pairs, the same for each of them."""
    questions: int
    whole: int
    """Pairs that there would be if every method had answered all of them."""


def misconception(held: Results, model: str, dataset: str, methods: Sequence[str]) -> Subset | None:
    """The shared-misconception subset, as far as all methods have answered it; None without `mad`, or if it is empty.

    It goes by the opening of `mad`: see `r2mad.study.metrics.misconceived`.
    """
    there = [method for method in methods if held.of(model, dataset, method)]
    reference = misconceived(held.of(model, dataset, "mad")).get((model, dataset), set())
    if not reference or not there:
        return None
    return common(held, model, dataset, there, reference)


def common(
    held: Results, model: str, dataset: str, methods: Sequence[str], among: set[tuple[str, int]] | None = None
) -> Subset:
    """Several methods' scores on the (question, seed) pairs that all of them have answered."""
    rows = {m: {(one.question, one.seed): one for one in held.of(model, dataset, m)} for m in methods}
    every = set.union(*(set(row) for row in rows.values())) if among is None else among
    pairs = sorted(every.intersection(*(set(row) for row in rows.values())))
    return Subset(
        {method: [row[pair] for pair in pairs] for method, row in rows.items()},
        len(pairs),
        len({question for question, _ in pairs}),
        len(every),
    )
