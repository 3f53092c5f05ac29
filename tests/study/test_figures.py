"""Every figure is valid Vega-Lite and can be drawn: of one method, of thirty, and where hardly anything is known."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from altair import VConcatChart

from r2mad.study import calibration, figures
from r2mad.study.calibration import Calibration
from r2mad.study.figure_kit import WIDTH, ends, labelled, specification
from r2mad.study.figures import Cells, Drawn, to_png, to_svg
from r2mad.study.mask_quality import MaskQuality, Told
from r2mad.study.metrics import Cell, Metrics, cells, measure
from r2mad.study.scores import Score
from tests.study.by_hand import debate

HOSTILE = "</script><img src=x onerror=alert(1)>"


def _scores(methods: Sequence[str], datasets: Sequence[str] = ("sums",), models: Sequence[str] = ("m",)) -> list[Score]:
    found = []
    for place, (method, dataset, model) in enumerate(product(methods, datasets, models)):
        for number in range(4):
            rounds = ["AAB", "ABB"] if number == place % 4 else ["ABC", "AAB", "AAA"]
            if method.startswith(("cot", "vote")):
                rounds = rounds[:1]
            _, score = debate(f"q{number}", *rounds, method=method, seed=1 + number % 2)
            score = replace(score, calls=3 * (place + 1), tokens=400 * (place + 1))
            found.append(replace(score, id=f"{method}{dataset}{model}{number}", dataset=dataset, model=model))
    return found


def _all(scores: Sequence[Score], found: dict[str, dict[str, Calibration]]) -> dict[str, Drawn | None]:
    grouped: Cells = cells(scores)
    measured: list[Metrics] = [measure(cell, some) for cell, some in grouped.items()]
    mask = MaskQuality(2, 3, 1, 2, 4, 0, (Told("yes", 1, 2),))
    return {
        "accuracy": figures.accuracy(measured),
        "tokens": figures.cost(measured, "tokens"),
        "calls": figures.cost(measured, "calls"),
        "transitions": figures.transitions(measured, measured[:1]),
        "consensus": figures.consensus(measured),
        "gain": figures.gain(grouped),
        "calibration": figures.calibration(found),
        "coverage": figures.coverage(grouped),
        "sweeps": figures.sweeps(measured),
        "agents": figures.agents(grouped, measured),
        "masks": figures.masks(dict.fromkeys(found, mask)),
    }


def _calibrations(methods: Sequence[str]) -> dict[str, dict[str, Calibration]]:
    pairs = calibration.Pairs((0.2, 0.2, 0.9, 1.0), (False, True, True, True), ("a", "b", "c", "d"))
    return {name: {whose: calibration.assess(pairs, draws=10) for whose in figures.WHOSE} for name in methods}


def _size(svg: str) -> tuple[float, float]:
    found = re.search(r'width="([\d.]+)" height="([\d.]+)"', svg)
    assert found
    return float(found[1]), float(found[2])


def _check(chart: Drawn) -> str:
    chart.to_dict(validate=True)
    svg = to_svg(chart)
    width, height = _size(svg)
    assert 60 < width <= WIDTH + 10
    assert height > 40
    assert to_png(svg, 1.0).startswith(b"\x89PNG")
    return svg


METHODS = ("cot", "vote", "mad", "r2mad", "r2mad[k=1]", "r2mad[k=3]", "mad[agents=3]", "mad[agents=5]")


def test_every_figure() -> None:
    made = _all(_scores(METHODS, ("sums", "facts")), _calibrations(["mad", "r2mad"]))
    for name, chart in made.items():
        assert chart is not None or name == "agents", name
        if chart is not None:
            svg = _check(chart)
            assert "r2mad" in svg or name == "agents"
            assert "NaN" not in svg, name


def test_thirty_methods_and_several_models() -> None:
    names = [f"mad[k={number}]" if number % 3 else f"a-method-of-some-length-{number}" for number in range(30)]
    made = _all(_scores(names, ("sums", "facts"), ("one/model", "another/model")), _calibrations(names))
    for chart in made.values():
        if chart is not None:
            _check(chart)
    svg = to_svg(made["accuracy"]) if made["accuracy"] else ""
    assert all(name in svg for name in names)
    assert "facts · another/model" in svg


def test_one_method_has_no_headings() -> None:
    made = _all(_scores(["mad"]), _calibrations(["mad"]))
    assert made["accuracy"] is not None
    assert not isinstance(made["accuracy"], VConcatChart)
    assert made["sweeps"] is made["agents"] is None
    for chart in made.values():
        if chart is not None:
            assert ">sums<" not in _check(chart)


def test_nothing_gives_no_figure() -> None:
    assert set(_all([], {}).values()) == {None}


@pytest.mark.parametrize("rounds", [["---"], ["xxx"], ["A"], ["AAA", "AAA"], ["BBB", "BBB"], ["AB", "--"]])
def test_hardly_anything_is_known(rounds: list[str]) -> None:
    _, score = debate("q1", *rounds)
    made = _all([score], {"mad": {"group": calibration.assess(calibration.Pairs((), (), ()), draws=10)}})
    assert made["calibration"] is None
    assert made["accuracy"] is not None
    assert made["tokens"] is None  # no tokens were counted
    for chart in made.values():
        if chart is not None:
            _check(chart)


def test_names_are_text() -> None:
    made = _all(_scores([HOSTILE, "mad"], [HOSTILE]), _calibrations([HOSTILE]))
    for chart in made.values():
        if chart is not None:
            assert "<img" not in _check(chart)


def test_gain_is_paired_and_in_points() -> None:
    scores = [debate(f"q{n}", "AAB" if n else "ABB", "AAA")[1] for n in range(4)]
    chart = figures.gain(cells(scores))
    assert chart is not None
    (row,) = _rows(chart)
    assert (row["value"], row["method"]) == (25.0, "mad")
    assert row["low"] < 25 < row["high"]


def _rows(chart: Drawn) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]]
    (rows,) = specification(chart)["datasets"].values()
    return rows


def test_sweeps_are_ordered_by_size() -> None:
    assert figures.swept("r2mad[k=10]") == ("r2mad", "k", "10")
    assert figures.swept("r2mad") is None
    measured = [
        measure(Cell("m", "d", f"r2mad[k={k}]"), [debate("q1", "AAA", method=f"r2mad[k={k}]")[1]]) for k in (10, 9, 1)
    ]
    chart = figures.sweeps(measured)
    assert chart is not None
    text = str(specification(chart))
    assert "['1', '9', '10']" in text


def test_agents_are_counted_by_their_scores() -> None:
    scores = [debate("q1", "AAA", method="mad")[1], debate("q1", "AAAAA", method="mad[agents=5]")[1]]
    grouped = cells(scores)
    chart = figures.agents(grouped, [measure(cell, some) for cell, some in grouped.items()])
    assert chart is not None
    assert sorted(str(row["x"]) for row in _rows(chart)) == ["3", "5"]


def test_axes_hold_their_values() -> None:
    assert ends([0.31, 0.48], 0.1) == [0.3, 0.5]
    assert ends([0.3], 0.1) == [0.2, 0.4]
    assert ends([0.0, 0.0], 0.1, least=0.0, most=1.0) == [0.0, 0.1]
    assert ends([1.0], 0.1, least=0.0, most=1.0) == [0.9, 1.0]


def test_names_do_not_touch() -> None:
    points = [(100.0, 50.0 + n / 10, f"method-{n}") for n in range(12)]
    placed = labelled(points, 500, 250, ["method-11"])
    assert "method-11" in placed
    boxes = [(x, y - 6, x + 6.4 * len(name), y + 6) for name, (x, y) in placed.items()]
    for place, one in enumerate(boxes):
        for other in boxes[:place]:
            assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
