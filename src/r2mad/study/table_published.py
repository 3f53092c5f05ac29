"""Our numbers beside the printed ones: how far apart, and whether sampling alone may account for it.

A cell of ours is only held against a figure of the same split, so a study of training questions or of whole data sets
has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from r2mad.study.published import AVERAGE, Figure, Published, published
from r2mad.study.scores import Score
from r2mad.study.table_data import Results, accuracy, debating, misconception, plain
from r2mad.study.table_paper import mean_tokens, moves, proportion, relative_tokens
from r2mad.study.table_text import Entry, Number, Table

COLUMNS = ("model", "data set", "method", "what", "ours", "n", "theirs", "their n", "ours − theirs")
INSIDE = ("theirs in ours", "ours in theirs")
READING = (
    "Theirs in ours: whether their figure lies in our 95 % interval; ours in theirs: the reverse. Both are samples, so "
    "figures may well differ; only where neither holds the other must something besides luck be at work.",
    "Their intervals are Wilson's for a single run on their n questions. Where their questions are ours, luck with the "
    "questions is the same for both, and agreement is less of a feat.",
)
FACTOR = "The last column is ours over theirs."
Row = tuple[Entry, ...]


def beside_accuracy(held: Results, table: str, study: Mapping[str, Any] | None) -> Table | None:
    """A printed table of accuracies beside ours, cell by cell, and the averages where we have all their data sets."""
    theirs, rows = published(table), list[Row]()
    for model in held.models:
        for method in plain(held.methods):
            for dataset in held.datasets:
                figure = theirs.figure(model, method, dataset)
                scores = _comparable(held.of(model, dataset, method), theirs)
                if figure and scores:
                    rows.append(
                        _row(model, dataset, method, accuracy(held, model, dataset, method), len(scores), figure)
                    )
            rows += _average_row(held, theirs, model, method)
    return _table(table, theirs, rows, INSIDE, READING, study)


def _average_row(held: Results, theirs: Published, model: str, method: str) -> list[Row]:
    """The averages, if the printed one is over the model's own data sets and we have all of these, whole."""
    figure = theirs.figure(model, method, AVERAGE, "recomputed") or theirs.figure(model, method, AVERAGE)
    there: dict[str, Number] = {}
    for dataset in held.datasets:
        if theirs.figure(model, method, dataset) and _comparable(held.of(model, dataset, method), theirs):
            there[dataset.partition("@")[0]] = accuracy(held, model, dataset, method)
    values = [one.value for one in there.values() if one.value is not None and not one.mark]
    if figure is None or set(there) != set(theirs.columns) or len(values) < len(there):
        return []
    return [_row(model, AVERAGE, method, Number(fmean(values)), None, figure)]


def beside_stances(held: Results, study: Mapping[str, Any] | None) -> Table | None:
    """Tables 4 and 8 beside ours."""
    rows: list[Row] = []
    theirs = published("table4")
    for table in (theirs, published("table8")):
        for model, dataset, there in held.blocks():
            methods = [name for name in plain(there) if debating(held.of(model, dataset, name))]
            subset = misconception(held, model, dataset, methods)
            if subset is None or not subset.pairs:
                continue
            for name in methods:
                moved = moves(subset.scores[name])
                for what, found in (("correct_to_wrong", moved.to_wrong), ("wrong_to_correct", moved.to_right)):
                    figure = table.figure(model, name, dataset, what)
                    if figure and _comparable(subset.scores[name], table):
                        rows.append(_row(model, dataset, name, proportion(found), found.whole, figure))
    return _table("table4", theirs, rows, INSIDE, READING[:1], study)


def beside_misconceptions(held: Results, shown: Sequence[Table], study: Mapping[str, Any] | None) -> Table | None:
    """The values that are quoted of Figure 3 beside ours."""
    theirs, rows = published("figure3"), list[Row]()
    for table in shown:
        for model, dataset, method, n, right, *_ in table.rows:
            cell = str(model), str(dataset), str(method)
            figure = theirs.figure(cell[0], cell[2], cell[1])
            if figure and isinstance(right, Number) and isinstance(n, int) and _comparable(held.of(*cell), theirs):
                rows.append(_row(*cell, right, n, figure))
    return _table("figure3", theirs, rows, INSIDE, READING[:1], study)


def beside_cost(held: Results, study: Mapping[str, Any] | None) -> Table | None:
    """Table 10 beside ours."""
    theirs, rows = published("table10"), list[Row]()
    measures: dict[str, Callable[[Sequence[Score]], float]] = {
        "debate_tokens": lambda scores: mean_tokens(scores, "debate"),
        "summary_tokens": lambda scores: mean_tokens(scores, "summary"),
        "seconds": lambda scores: fmean(one.seconds for one in scores),
    }
    for model, dataset, there in held.blocks():
        for method in plain(there):
            scores = held.of(model, dataset, method)
            for what, measure in measures.items():
                figure = theirs.figure(model, method, dataset, what)
                if figure and figure.value and _comparable(scores, theirs):
                    rows.append(_factor(model, dataset, method, measure(scores), len(scores), figure))
    return _table("table10", theirs, rows, ("ours / theirs",), (FACTOR,), study, factor=True)


def beside_masking(held: Results, study: Mapping[str, Any] | None) -> Table | None:
    """The main table of the paper on masking beside ours: accuracy and relative tokens."""
    theirs, rows = published("mad-m2"), list[Row]()
    for model, dataset, there in held.blocks():
        for method in plain(there):
            scores = held.of(model, dataset, method)
            if figure := theirs.figure(model, method, dataset):
                rows.append(_row(model, dataset, method, accuracy(held, model, dataset, method), len(scores), figure))
            used = theirs.figure(model, method, dataset, "tokens")
            ratio = relative_tokens(held, model, dataset, method)
            if used and ratio.value is not None and method != "mad":
                rows.append(
                    (
                        model,
                        dataset,
                        method,
                        "× tokens",
                        ratio,
                        len(scores),
                        Number(used.value, "plain", digits=2),
                        None,
                        None,
                        None,
                        None,
                    )
                )
    return _table("mad-m2", theirs, rows, INSIDE, READING, study)


def _comparable(scores: Sequence[Score], theirs: Published) -> Sequence[Score]:
    """The scores, if they are all of the split that the paper's figures are of; else none."""
    return scores if all(not theirs.split or one.split in ("", theirs.split) for one in scores) else ()


def _row(model: str, dataset: str, method: str, ours: Number, n: int | None, figure: Figure) -> Row:
    low, high = figure.interval or (None, None)
    mark = "[no multiple of 1/n]" if figure.fits is False else ""
    theirs = Number(figure.value, low=low, high=high, mark=mark)
    apart = None if ours.value is None else Number(ours.value - figure.value, "points")
    return (
        model, dataset, method, figure.what.replace("_", " "), ours, n, theirs, figure.n, apart,
        _inside(figure.value, ours), None if ours.value is None else _inside(ours.value, theirs),
    )  # fmt: skip


def _inside(value: float, within: Number) -> str | None:
    if within.value is None or within.low is None or within.high is None:
        return None
    return "yes" if within.low <= value <= within.high else "no"


def _factor(model: str, dataset: str, method: str, ours: float, n: int, figure: Figure) -> Row:
    digits = 2 if figure.what == "seconds" else 0
    shown = (Number(value, "plain", digits=digits) for value in (ours, figure.value))
    mine, theirs = shown
    ratio = Number(ours / figure.value, "plain", digits=2)
    return model, dataset, method, figure.what.replace("_", " "), mine, n, theirs, ratio


def _table(
    table: str,
    theirs: Published,
    rows: Sequence[Row],
    more: tuple[str, ...],
    reading: tuple[str, ...],
    study: Mapping[str, Any] | None,
    *,
    factor: bool = False,
) -> Table | None:
    if not rows:
        return None
    columns = (*COLUMNS[:7], *more) if factor else (*COLUMNS, *more)
    notes = (f"Theirs: {theirs.paper} ({theirs.source}).", *reading, *theirs.notes, *differences(theirs, study))
    title = f"{theirs.title}: ours beside the published figures"
    return Table(f"{table}-published", title, columns, tuple(rows), notes)


def differences(theirs: Published, study: Mapping[str, Any] | None) -> Iterator[str]:
    """How the study's settings differ from the paper's protocol, as far as both say."""
    settings = (study or {}).get("config", {}).get("settings", {})
    for name, value in theirs.protocol.items():
        ours = settings.get(name)
        same = ours == value or (isinstance(value, str) and value.lower() in str(ours).lower())
        if ours is not None and not same:
            yield f"Ours has {name.replace('_', ' ')} = {ours}, theirs {value}."
