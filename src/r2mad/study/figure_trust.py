"""Figures of whether a study's confidence and masks can be trusted; see `r2mad.study.figures`."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from r2mad.study.abstain import coverage as curve
from r2mad.study.calibration import Calibration
from r2mad.study.figure_kit import (
    GREY,
    PERCENT,
    Cells,
    Drawn,
    Row,
    data,
    dots,
    ends,
    finished,
    interval,
    layers,
    panel,
    series,
    shares,
    small_panels,
    tooltip,
)
from r2mad.study.mask_quality import MaskQuality

WHOSE = {
    "verbal": "agents, of their own replies",
    "memory": "memory, of peers' replies",
    "group": "the vote, of the group's answer",
}
"""Confidences that may be calibrated, as a reader knows them."""


def calibration(found: Mapping[str, Mapping[str, Calibration]]) -> Drawn | None:
    """Reliability curves, a small panel a method: of what was said with so much confidence, how much was right.

    Args:
        found: by method, by whose confidence it is (see `WHOSE`).
    """
    rows: list[Row] = [
        {
            "panel": method,
            "whose": WHOSE.get(whose, whose),
            "x": one.confidence,
            "value": one.right,
            "low": one.interval[0],
            "high": one.interval[1],
            "of": f"{one.count} replies or answers",
            "count": one.count,
        }
        for method, by in found.items()
        for whose, assessed in by.items()
        for one in assessed.reliability
    ]
    if not rows:
        return None
    there = {row["whose"] for row in rows}
    colour, shape = series("whose", [name for name in (*WHOSE.values(), *sorted(there)) if name in there])
    whole = alt.Scale(domain=[0, 1])
    axis = alt.Axis(format=PERCENT, tickCount=4, labelFlush=True)
    base = alt.Chart(data(rows)).encode(color=colour, tooltip=tooltip("panel", PERCENT, "whose"))
    x = alt.X("x:Q", title="mean confidence", scale=whole, axis=axis)
    ideal = {"x": alt.datum(0), "y": alt.datum(0), "x2": alt.datum(1), "y2": alt.datum(1)}
    chart = layers(
        alt.Chart(base.data).mark_rule(color=GREY, strokeDash=[4, 3]).encode(**ideal),
        base.mark_rule(opacity=0.4).encode(x=x, y=alt.Y("low:Q", title="share right", scale=whole), y2="high:Q"),
        base.mark_line(strokeWidth=1.5).encode(x=x, y=alt.Y("value:Q", title="share right", axis=axis)),
        base.mark_point(filled=True, opacity=1).encode(
            x=x, y="value:Q", shape=shape, size=alt.Size("count:Q", scale=alt.Scale(range=[25, 120]), legend=None)
        ),
    )
    return finished(small_panels(chart, [str(row["panel"]) for row in rows], square=True))


POINTS = 60
"""Of a coverage curve; more could not be seen."""


def coverage(cells: Cells) -> Drawn | None:
    """Accuracy if only the debates with the surest votes are answered: a small panel a method."""
    rows: list[Row] = []
    for cell, scores in cells.items():
        points = curve([one.confidence or 0.0 for one in scores], [one.correct for one in scores])
        chosen = points[:: max(1, len(points) // POINTS)]
        for point in (*chosen, points[-1]) if points and chosen[-1] != points[-1] else chosen:
            low, high = point.interval
            row = {"x": point.coverage, "value": point.accuracy, "low": low, "high": high, "from": point.threshold}
            rows.append({**row, "of": f"{point.count} debates", "panel": cell.method, "series": panel(cell, cells)})
    if not rows:
        return None
    colour, shape = series("series", [row["series"] for row in rows])
    y = alt.Scale(domain=ends([row["value"] for row in rows], 0.1, least=0.0, most=1.0))
    axis = alt.Axis(format=PERCENT, tickCount=4)
    tip = [*tooltip("panel", PERCENT, "series"), alt.Tooltip("from:Q", title="confidence from", format=".2f")]
    base = alt.Chart(data(rows)).encode(
        x=alt.X("x:Q", title="share answered", scale=alt.Scale(domain=[0, 1]), axis=axis),
        y=alt.Y("value:Q", title="share right", scale=y, axis=axis),
        color=colour, tooltip=tip,
    )  # fmt: skip
    chart = layers(base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=35, opacity=1).encode(shape=shape))
    return finished(small_panels(chart, [str(row["panel"]) for row in rows]))


def masks(found: Mapping[str, MaskQuality]) -> Drawn | None:
    """How well masks find false replies.

    Precision is the share of hidden replies that are false; a mask that hides at random has the share of all that are.
    Recall is the share of false replies that are hidden.
    """
    rows: list[Row] = []
    for method, one in found.items():
        for kind, share in (
            ("precision", one.precision),
            ("share false, to compare", one.false),
            ("recall", one.recall),
            ("right ones hidden", one.right_masked),
        ):
            if share.whole:
                rows.append({**interval(share), "method": kind, "panel": method})
    if not rows:
        return None
    order = list(dict.fromkeys(row["method"] for row in rows))
    return dots(rows, shares("share of replies", rows), order)
