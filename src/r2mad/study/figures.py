"""The figures of a study, each a function from its numbers to a chart; `None` where there is nothing to draw.

    svg = to_svg(accuracy(measured))

All but calibration and masks come from scores alone, so a run of a hundred thousand debates is drawn in seconds. Every
figure is at most 700 pixels wide, and takes one method as well as thirty. Intervals are at 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import altair as alt

from r2mad.study.figure_kit import (
    BLUE,
    PERCENT,
    STEP,
    Cells,
    Drawn,
    Row,
    data,
    dots,
    ends,
    finished,
    interval,
    labelled,
    layers,
    names,
    panel,
    series,
    shares,
    small_panels,
    stacked,
    to_png,
    to_svg,
    tooltip,
)
from r2mad.study.figure_trust import WHOSE, calibration, coverage, masks
from r2mad.study.metrics import Cell, Metrics
from r2mad.study.stats import paired

__all__ = [
    "WHOSE",
    "Cells",
    "Drawn",
    "accuracy",
    "agents",
    "calibration",
    "consensus",
    "cost",
    "coverage",
    "gain",
    "masks",
    "panel",
    "sweeps",
    "swept",
    "to_png",
    "to_svg",
    "transitions",
]


def accuracy(measured: Sequence[Metrics]) -> Drawn | None:
    """Accuracy of each method with Wilson's interval, a panel a data set and model."""
    if not measured:
        return None
    cells = [one.cell for one in measured]
    rows = [{**interval(one.right), "method": one.cell.method, "panel": panel(one.cell, cells)} for one in measured]
    return dots(rows, shares("accuracy, share of debates answered right", rows), [one.method for one in cells])


COST_PLOT, COST_HEIGHT = 520, 250


def cost(measured: Sequence[Metrics], of: Literal["tokens", "calls"] = "tokens") -> Drawn | None:
    """What a debate takes against its accuracy; the line joins what no cheaper method reaches."""
    known = [(one, getattr(one, of)) for one in measured if getattr(one, of) and one.right.share is not None]
    if not known:
        return None
    cells = [one.cell for one, _ in known]
    wide = [math.log10(value) for _, value in known]
    xs = [10**end for end in ends([min(wide) - 0.03, max(wide) + 0.03], 0.1)]
    rows = [
        {**interval(one.right), "x": value, "method": one.cell.method, "panel": panel(one.cell, cells)}
        for one, value in known
    ]
    unit = "tokens a debate, read and written" if of == "tokens" else "model calls a debate"
    return finished(stacked(rows, lambda some: _cost(some, xs, f"{unit} (logarithmic)")))


def _cost(rows: Sequence[Row], xs: Sequence[float], title: str) -> alt.LayerChart:
    ys = ends([row["value"] for row in rows], 0.1, least=0.0, most=1.0)
    _name_points(rows, xs, ys)
    x = alt.X(
        "x:Q",
        title=title,
        scale=alt.Scale(type="log", domain=list(xs), nice=False),
        axis=alt.Axis(format="~s", tickCount=6, labelOverlap=True),
    )
    y = alt.Y("value:Q", title="accuracy", scale=alt.Scale(domain=ys), axis=alt.Axis(format=PERCENT, tickCount=5))
    base = alt.Chart(data(rows))
    front = base.transform_filter("datum.best").mark_line(color="#c4c4c4", strokeWidth=1.5, interpolate="step-after")
    tip = [*tooltip("method", PERCENT), alt.Tooltip("x:Q", title=title.split(",")[0], format=",.1f")]
    named = base.transform_filter("isValid(datum.text_x)").mark_text(align="left", baseline="middle")
    return layers(
        front.encode(x=x, y=y),
        base.mark_point(filled=True, size=80, color=BLUE, opacity=0.9).encode(x=x, y=y, tooltip=tip),
        named.encode(x=alt.X("text_x:Q", title=""), y=alt.Y("text_y:Q", title=""), text="method:N"),
    ).properties(width=COST_PLOT, height=COST_HEIGHT)


def _name_points(rows: Sequence[Row], xs: Sequence[float], ys: Sequence[float]) -> None:
    """Add to the rows of one panel which of them are best, and where their names can stand."""
    high = -1.0
    for row in sorted(rows, key=lambda row: (row["x"], -row["value"])):
        row["best"], high = row["value"] > high, max(high, row["value"])
    span = math.log(xs[1] / xs[0])
    points = [
        (
            math.log(row["x"] / xs[0]) / span * COST_PLOT,
            (ys[1] - row["value"]) / (ys[1] - ys[0]) * COST_HEIGHT,
            row["method"],
        )
        for row in rows
    ]
    places = labelled(points, COST_PLOT, COST_HEIGHT, [row["method"] for row in rows if row["best"]])
    for row in rows:
        if row["method"] in places:
            left, middle = places[row["method"]]
            row["text_x"] = xs[0] * math.exp(left / COST_PLOT * span)
            row["text_y"] = ys[1] - middle / COST_HEIGHT * (ys[1] - ys[0])


LOST, RESCUED = "right → wrong (lost)", "wrong → right (rescued)"


def transitions(overall: Sequence[Metrics], subset: Sequence[Metrics] = ()) -> Drawn | None:
    """How often agents' answers turn from one round to the next, over all questions and where most begin wrong."""
    cells = [one.cell for one in overall]
    rows: list[Row] = []
    for where, measured in (("all questions", overall), ("shared misconceptions", subset)):
        for one in measured:
            for kind, share in ((RESCUED, one.transitions.to_right), (LOST, one.transitions.to_wrong)):
                if share.whole:
                    row = {"method": one.cell.method, "panel": panel(one.cell, cells), "where": where, "kind": kind}
                    rows.append({**interval(share), **row})
    if not rows:
        return None
    top = ends([row["high"] for row in rows], 0.1, most=1.0)[1]
    scale, axis = alt.Scale(domain=[0, top]), alt.Axis(format=PERCENT, tickCount=5)
    colour, shape = series("kind", [RESCUED, LOST])
    base = alt.Chart(data(rows)).encode(
        y=names("method", [one.method for one in cells]), color=colour, tooltip=tooltip("method", PERCENT, "kind")
    )
    title = "share of such answers that turn"
    chart = layers(
        base.mark_rule(strokeWidth=2, opacity=0.55).encode(x=alt.X("low:Q", title=title, scale=scale), x2="high:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            x=alt.X("value:Q", title=title, axis=axis), shape=shape
        ),
    ).properties(width=230, height=alt.Step(STEP))
    labels = list(dict.fromkeys(row["panel"] for row in rows))
    wheres = list(dict.fromkeys(row["where"] for row in rows))
    faceted = chart.facet(
        row=alt.Row("panel:N", sort=labels, header=alt.Header(title=None, labels=len(labels) > 1, labelLimit=200)),
        column=alt.Column("where:N", sort=wheres, header=alt.Header(title=None, labelAnchor="start")),
    )
    return finished(faceted)


def consensus(measured: Sequence[Metrics]) -> Drawn | None:
    """Mean consensus of each round, over the debates that held it: a small panel a method."""
    cells = [one.cell for one in measured]
    rows: list[Row] = [
        {"round": index, "value": value, "series": panel(one.cell, cells), "panel": one.cell.method}
        for one in measured
        if len(one.consensus) > 1
        for index, value in enumerate(one.consensus)
    ]
    if not rows:
        return None
    low = ends([row["value"] for row in rows], 0.1, least=0.0, most=1.0)[0]
    colour, shape = series("series", [row["series"] for row in rows])
    base = alt.Chart(data(rows)).encode(
        x=alt.X("round:O", title="round", axis=alt.Axis(labelAngle=0)),
        y=alt.Y(
            "value:Q",
            title="mean consensus",
            scale=alt.Scale(domain=[low, 1]),
            axis=alt.Axis(format=PERCENT, tickCount=4),
        ),
        color=colour,
        tooltip=["panel:N", "series:N", "round:O", alt.Tooltip("value:Q", format=".1%")],
    )
    chart = layers(base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=45, opacity=1).encode(shape=shape))
    return finished(small_panels(chart, [str(row["panel"]) for row in rows]))


def gain(cells: Cells) -> Drawn | None:
    """What debating adds to a plain vote on the opening, in points, ties broken evenly; only where a debate is held."""
    rows: list[Row] = []
    for cell, scores in cells.items():
        if any(len(one.grades) > 1 for one in scores):
            after, before = [one.expected for one in scores], [one.opening for one in scores]
            questions = [one.question for one in scores]
            row: Row = {"method": cell.method, "panel": panel(cell, cells), "of": f"{len(scores)} debates"}
            value = 100 * math.fsum(a - b for a, b in zip(after, before, strict=True)) / len(scores)
            row |= {"value": value, "low": value, "high": value, "sure": len(set(questions)) > 1}
            if row["sure"]:
                found = paired(after, before, questions)
                row |= {"low": max(100 * found.low, -100.0), "high": min(100 * found.high, 100.0)}
            rows.append(row)
    if not rows:
        return None
    title = "debate gain over a vote on round 0, percentage points"
    domain = ends([0.0, *(row[end] for row in rows for end in ("low", "high"))], 5.0)
    x = alt.X("value:Q", title=title, scale=alt.Scale(domain=domain), axis=alt.Axis(format="+d", tickCount=7))
    return dots(rows, x, [cell.method for cell in cells], "+.1f")


def swept(method: str) -> tuple[str, str, str] | None:
    """(base, what, value) of a method named `base[what=value]`; None of another."""
    base, opened, rest = method.removesuffix("]").partition("[")
    what, equals, value = rest.partition("=")
    return (base, what, value) if opened and equals and method.endswith("]") else None


def sweeps(measured: Sequence[Metrics]) -> Drawn | None:
    """Accuracy against what was swept, a panel a method and thing; the number of agents has a figure of its own."""
    found = [(one, known) for one in measured if (known := swept(one.cell.method)) and known[1] != "agents"]
    rows = [_swept_row(one, f"{base}: {what}", value) for one, (base, what, value) in found]
    return _lines(rows, [one.cell for one, _ in found], "value of what is swept")


def agents(cells: Cells, measured: Sequence[Metrics]) -> Drawn | None:
    """Accuracy against the number of agents, of methods that were run with several."""
    rows = []
    for one in measured:
        base, what, _ = swept(one.cell.method) or (one.cell.method, "agents", "")
        if what == "agents":
            rows.append((one, _swept_row(one, base, str(cells[one.cell][0].agents))))
    counts: dict[str, set[str]] = {}
    for _, row in rows:
        counts.setdefault(row["panel"], set()).add(row["x"])
    several = [(one, row) for one, row in rows if len(counts[row["panel"]]) > 1]
    return _lines([row for _, row in several], [one.cell for one, _ in several], "number of agents")


def _swept_row(one: Metrics, where: str, value: str) -> Row:
    return {**interval(one.right), "cell": one.cell, "panel": where, "x": value}


def _lines(rows: Sequence[Row], cells: Sequence[Cell], title: str) -> Drawn | None:
    """Accuracy with intervals against values in their order, numbers by size."""
    if not rows:
        return None
    drawn = [{key: value for key, value in row.items() if key != "cell"} for row in rows]
    for row, cell in zip(drawn, cells, strict=True):
        row["series"] = panel(cell, cells)
    colour, shape = series("series", [row["series"] for row in drawn])
    domain = ends([row[end] for row in drawn for end in ("low", "high")], 0.1, least=0.0, most=1.0)
    values = sorted({row["x"] for row in drawn}, key=_by_size)
    y = alt.Y("value:Q", title="accuracy", scale=alt.Scale(domain=domain), axis=alt.Axis(format=PERCENT, tickCount=5))
    base = alt.Chart(data(drawn)).encode(
        x=alt.X("x:O", title=title, sort=values, axis=alt.Axis(labelAngle=0)), color=colour,
        tooltip=tooltip("panel", PERCENT, "series", "x"),
    )  # fmt: skip
    chart = layers(
        base.mark_rule(strokeWidth=2, opacity=0.4).encode(y=alt.Y("low:Q", title="accuracy"), y2="high:Q"),
        base.mark_line(strokeWidth=2).encode(y=y),
        base.mark_point(filled=True, size=60, opacity=1).encode(y=y, shape=shape),
    )
    faceted = small_panels(chart, [str(row["panel"]) for row in drawn])
    return finished(faceted.resolve_scale(x="independent"))


def _by_size(value: str) -> tuple[float, str]:
    try:
        return float(value), value
    except ValueError:
        return math.inf, value
