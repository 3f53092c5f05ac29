"""What all figures share: one look, colours that colour-blind readers can tell apart, and files without a browser.

Charts are Vega-Lite specifications (Altair); `vl-convert-python` turns them into SVG and PNG in this process. Nothing
is fetched, and no font but the reader's own is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import altair as alt
import vl_convert

from r2mad.study.metrics import Cell
from r2mad.study.scores import Score
from r2mad.study.stats import Proportion

Drawn: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart | alt.VConcatChart
Row: TypeAlias = dict[str, Any]
Cells: TypeAlias = Mapping[Cell, Sequence[Score]]

WIDTH = 700
"""Pixels that a figure keeps to."""
PLOT = 410
"""Of these, what is left beside the longest names and values."""
STEP = 18
"""Pixels a row of names takes."""
BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#C98A00", "#56B4E9"
"""Okabe and Ito 2008, the yellow and pink darkened to be seen on white."""
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY)
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
"""Colour is never alone in telling two series apart."""
GREY = "#8a8a8a"
"""Of reference lines; seen on white and on black."""
INK = "#333333"
"""Of words; the page turns it round where it is dark."""
FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif"
PERCENT = ".0%"


def data(rows: Sequence[Row]) -> alt.InlineData:
    """Rows as a chart's own data."""
    return alt.InlineData(values=list(rows))


def layers(*charts: alt.Chart) -> alt.LayerChart:
    """Charts over one another, the first at the back."""
    return alt.LayerChart(layer=list(charts))


def finished(chart: Drawn) -> Drawn:
    """The chart in the house's look; the very one, for each copy of a chart is one of its data."""
    chart.config = alt.Config(
        font=FONT,
        background="white",
        padding=6,
        view=alt.ViewConfig(stroke="#d0d0d0", strokeWidth=1),
        axis=alt.AxisConfig(
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            titlePadding=8,
            labelLimit=210,
            gridColor="#e4e4e4",
            domainColor="#9a9a9a",
            tickColor="#9a9a9a",
            labelColor=INK,
            titleColor=INK,
        ),
        header=alt.HeaderConfig(labelFontSize=13, labelFontWeight="bold", labelColor=INK, titleColor=INK),
        legend=alt.LegendConfig(
            orient="top",
            direction="horizontal",
            title=None,
            labelFontSize=12,
            labelLimit=300,
            columns=3,
            symbolSize=90,
            symbolOpacity=1,
            labelColor=INK,
            titleColor=INK,
        ),
        title=alt.TitleConfig(fontSize=13, anchor="start", color=INK, offset=10),
        mark=alt.MarkConfig(invalid="show"),  # there are none; filters for them would part the data of layers
        text=alt.MarkConfig(color=INK, fontSize=11),
        facet=alt.CompositionConfig(spacing=14),
        concat=alt.CompositionConfig(spacing=18),
    )
    return chart


def to_svg(chart: Drawn) -> str:
    """A chart as SVG."""
    return str(vl_convert.vegalite_to_svg(specification(chart)))


def to_png(chart: Drawn | str, scale: float = 2.0) -> bytes:
    """A chart, or what `to_svg` made of it, as PNG; by default with twice as many pixels each way, for print."""
    return bytes(vl_convert.svg_to_png(chart if isinstance(chart, str) else to_svg(chart), scale=scale))


def specification(chart: Drawn) -> dict[str, Any]:
    """A chart as Vega-Lite. It is not checked again: tests do that, and it takes longer than drawing."""
    return dict(chart.to_dict(validate=False))


def ends(values: Iterable[float], step: float, *, least: float = -math.inf, most: float = math.inf) -> list[float]:
    """The ends of an axis that holds all values: multiples of a step, and apart even for a single value."""
    known = list(values)
    low, high = math.floor(min(known) / step + 1e-9), math.ceil(max(known) / step - 1e-9)
    if low == high:
        low, high = low - 1, high + 1
    return [max(round(low * step, 9), least), min(round(high * step, 9), most)]


def names(column: str, order: Sequence[str]) -> alt.Y:
    """Methods down the side, in the order of the study."""
    axis = alt.Axis(ticks=False, domain=False, grid=True, labelPadding=6)
    return alt.Y(f"{column}:N", sort=list(order), title=None, axis=axis)


def stacked(rows: Sequence[Row], draw: Callable[[Sequence[Row]], alt.LayerChart]) -> Drawn:
    """One panel above the other, each with the names that it has; no heading where there is only one."""
    panels: dict[str, list[Row]] = {}
    for row in rows:
        panels.setdefault(str(row["panel"]), []).append(row)
    if len(panels) == 1:
        return draw(rows)
    return alt.vconcat(*(draw(some).properties(title=name) for name, some in panels.items()))


def small_panels(chart: alt.LayerChart | alt.Chart, order: Sequence[str], *, square: bool = False) -> Drawn:
    """Small panels, one a method, as many side by side as the width allows."""
    labels = list(dict.fromkeys(order))
    columns = min(len(labels), 4)
    width = min(320, (WIDTH - 112) // columns - 16)
    header = alt.Header(title=None, labelFontSize=12, labelLimit=width + 10, labelAnchor="start")
    sized = chart.properties(width=width, height=width if square else max(90, round(width * 0.62)))
    return sized.facet(facet=alt.Facet("panel:N", sort=labels, header=header), columns=columns)


def series(column: str, order: Sequence[str]) -> tuple[alt.Color, alt.Shape]:
    """Colour and shape of a few series, told by one legend; none for a single series."""
    labels = list(dict.fromkeys(order))
    legend = alt.Legend() if len(labels) > 1 else None
    colours = [COLOURS[index % len(COLOURS)] for index in range(len(labels))]
    shapes = [SHAPES[(index + index // len(COLOURS)) % len(SHAPES)] for index in range(len(labels))]
    return (
        alt.Color(f"{column}:N", scale=alt.Scale(domain=labels, range=colours), legend=legend),
        alt.Shape(f"{column}:N", scale=alt.Scale(domain=labels, range=shapes), legend=legend),
    )


Point: TypeAlias = tuple[float, float, str]
"""Where a mark is, in pixels from the upper left corner, and its name."""


def labelled(
    points: Sequence[Point], width: int, height: int, first: Sequence[str]
) -> Mapping[str, tuple[float, float]]:
    """Where names can stand beside their marks without touching anything; those without room are left out.

    Args:
        points: the marks.
        width: of the plot.
        height: of the plot.
        first: the names that matter most; they are placed before the others.

    Returns:
        By name the place of the left end of its text, half its height down.
    """
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y, _ in points]
    found: dict[str, tuple[float, float]] = {}
    for x, y, name in sorted(points, key=lambda point: point[2] not in first):
        size = 6.4 * len(name) + 2
        tried = [
            (x + 8, y),
            (x - 8 - size, y),
            *((x + dx, y + dy) for dy in (-12, 12, -22, 22) for dx in (4, -size, -size / 2)),
        ]
        for left, middle in tried:
            box = (left, middle - 6, left + size, middle + 6)
            inside = left >= 0 and box[2] <= width + 60 and box[1] >= -8 and box[3] <= height + 6
            if inside and not any(_meet(box, other) for other in taken):
                taken.append(box)
                found[name] = (left, middle)
                break
    return found


def _meet(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def panel(cell: Cell, among: Iterable[Cell]) -> str:
    """What a panel is called: the data set, and the model where there are several."""
    several = len({one.model for one in among}) > 1
    return f"{cell.dataset} · {cell.model}" if several else cell.dataset


def interval(share: Proportion) -> Row:
    """A share with its interval, as the columns of a row."""
    low, high = share.interval
    return {"value": share.share, "low": low, "high": high, "of": f"{share.part} of {share.whole}"}


def shares(title: str, rows: Sequence[Row]) -> alt.X:
    """The axis of shares with intervals."""
    domain = ends([row[end] for row in rows for end in ("low", "high")], 0.1, least=0.0, most=1.0)
    return alt.X("value:Q", title=title, scale=alt.Scale(domain=domain), axis=alt.Axis(format=PERCENT, tickCount=6))


def dots(rows: Sequence[Row], x: alt.X, order: Sequence[str], form: str = PERCENT) -> Drawn:
    """A dot with its interval for each method, and the value beside it; signed numbers have a line at 0."""
    beside = ".1%" if form == PERCENT else form

    def draw(some: Sequence[Row]) -> alt.LayerChart:
        base = alt.Chart(data(some)).encode(y=names("method", order), tooltip=tooltip("method", form))
        zero = base.mark_rule(color=GREY, strokeDash=[4, 3])
        low = alt.X("low:Q", title=x["title"])
        return layers(
            *([zero.encode(x=alt.datum(0), y=alt.value(0), y2=alt.value("height"))] if form.startswith("+") else []),
            base.mark_rule(strokeWidth=2, color=BLUE, opacity=0.55).encode(x=low, x2="high:Q"),
            base.mark_point(filled=True, size=70, color=BLUE, opacity=1).encode(x=x),
            base.mark_text(align="left").encode(x=alt.value(PLOT + 8), text=alt.Text("value:Q", format=beside)),
        ).properties(width=PLOT, height=alt.Step(STEP))

    return finished(stacked(rows, draw))


def tooltip(name: str, form: str, *more: str) -> list[alt.Tooltip]:
    """What is told of a point under the cursor: its names, and the value with its interval."""
    numbers = [
        alt.Tooltip(f"{field}:Q", format=form if form != PERCENT else ".1%") for field in ("value", "low", "high")
    ]
    return [alt.Tooltip(f"{name}:N"), *(alt.Tooltip(f"{one}:N") for one in more), *numbers, alt.Tooltip("of:N")]
