"""The figures that the papers print, to stand beside our own.

    figure = published("table1").figure("openai/Qwen/Qwen2.5-7B-Instruct", "r2mad", "mmlu-pro:economics")

Each knows how many questions it is from, if the paper lets one know, and so its own sampling interval: that of 211
questions is 12 points wide. They were copied by hand into `published.json`, with what is odd about them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from r2mad.errors import UnknownNameError
from r2mad.study.yardsticks import within

FILE = Path(__file__).parent / "published.json"
AVERAGE = "average"
"""Stands for a data set, and for a model where a table averages over these, in figures that are means of others."""
LAST_DIGIT = 0.0005
"""Half of the last digit that the paper on R2-MAD prints."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One printed number."""

    table: str
    model: str
    """As the paper names it."""
    method: str
    """As the paper's row is called here; see `Published.row`."""
    dataset: str
    """As we name it; `average` for a mean over several."""
    what: str
    """`accuracy`, `recomputed` (an average that follows from its cells, where the printed one does not),
    `correct_to_wrong`, `wrong_to_correct`, `debate_tokens`, `summary_tokens`, `seconds`, or `tokens` (relative)."""
    value: float
    """Shares are fractions."""
    n: int | None
    """Questions that it is from; None if that is not known, and for averages."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's at 95 %, as of a single run; None if n is not known."""
        if self.n is None:
            return None
        found = within(0, 0, self.value, self.n)
        return None if found.theirs_low is None or found.theirs_high is None else (found.theirs_low, found.theirs_high)

    @property
    def fits(self) -> bool | None:
        """Whether it is a multiple of 1/n, but for rounding; one that is not cannot be from n questions asked once."""
        if self.n is None:
            return None
        return abs(round(self.value * self.n) / self.n - self.value) <= LAST_DIGIT + 1e-9


@dataclass(frozen=True, slots=True)
class Published:
    """One table of a paper."""

    table: str
    title: str
    paper: str
    """Its title."""
    source: str
    split: str
    """The split that it is of; empty where the paper has its own choice of questions."""
    protocol: Mapping[str, Any]
    """How the paper held its debates, by the names of our settings where we have them."""
    notes: tuple[str, ...]
    """What is odd about it, or left open."""
    columns: Mapping[str, str]
    """Our data sets' names to what the paper calls them."""
    rows: Mapping[str, str]
    """Our methods' names to its rows, where these differ."""
    figures: tuple[Figure, ...]

    def row(self, method: str) -> str:
        """The row that one of our methods belongs in, whether the table has it or not."""
        return self.rows.get(method, method)

    def figure(self, model: str, method: str, dataset: str, what: str = "accuracy") -> Figure | None:
        """The number for one of our cells, or None if the paper has none.

        Args:
            model: our model string, or `average`.
            method: our method's name; variants such as `r2mad[k=1]` are nobody's but ours.
            dataset: our data set's name, whatever scheme it is split by, or `average`.
            what: see `Figure.what`.
        """
        row, bare = self.row(method), dataset.partition("@")[0]
        for one in self.figures:
            if (one.method, one.dataset, one.what) == (row, bare, what) and is_model(model, one.model):
                return one
        return None


def published(table: str) -> Published:
    """One table: `table1` to `table10`, `figure3`, or `mad-m2` for the main one of the paper on masking.

    Raises:
        UnknownNameError: there is no such table.
    """
    known = _read()
    if table not in known:
        raise UnknownNameError(f"no published table {table!r}; there are: {', '.join(known)}")
    return known[table]


def names() -> tuple[str, ...]:
    """The tables there are."""
    return tuple(_read())


def is_model(ours: str, theirs: str) -> bool:
    """Whether a model of ours is the one that a paper means: its string ends in that name, whatever the case.

    The name must be all that stands behind a slash: `openai/Qwen/Qwen2.5-7B-Instruct` is `Qwen2.5-7B-Instruct`, and
    neither a quantised copy of it nor `MyQwen2.5-7B-Instruct` is.
    """
    wanted = _served().get(theirs, theirs).lower()
    return ours.lower() == wanted or ours.lower().endswith(f"/{wanted}")


@cache
def _data() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def _served() -> dict[str, str]:
    """Names that a paper shortens, and what their models are called in full."""
    return dict(_data()["models"])


@cache
def _read() -> dict[str, Published]:
    data = _data()
    figures: dict[str, list[Figure]] = {name: [] for name in data["tables"]}
    for table, model, method, dataset, what, value in data["figures"]:
        about = data["tables"][table]
        counted = what == "accuracy" and about.get("counted", True)
        n = data["papers"][about["paper"]]["n"].get(dataset) if counted else None
        figures[table].append(Figure(table, model, method, dataset, what, float(value), n))
    found = {}
    for name, about in data["tables"].items():
        paper = data["papers"][about["paper"]]
        found[name] = Published(
            table=name,
            title=about["title"],
            paper=paper["title"],
            source=paper["source"],
            split=paper["split"],
            protocol=dict(paper["protocol"]),
            notes=(*about.get("notes", ()), *paper["notes"]),
            columns=dict(paper["columns"]),
            rows=dict(about.get("methods", {})),
            figures=tuple(figures[name]),
        )
    return found
