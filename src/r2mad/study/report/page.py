"""From what was gathered to one HTML page that asks nothing of any network."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from r2mad import __version__
from r2mad.study.figure_kit import specification
from r2mad.study.report import facts
from r2mad.study.report.browse import Browser
from r2mad.study.report.facts import Fact
from r2mad.study.report.gather import Gathered
from r2mad.study.report.pictures import Figure
from r2mad.study.report.safe import embedded, script_hash, visible
from r2mad.study.table_text import Entry, Number, Table, shown

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as the page embeds it."""

    name: str
    section: str
    title: str
    caption: str
    svg: str
    """In base64."""
    width: str
    height: str
    spec: Markup


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page; one that has nothing is left out."""

    id: str
    title: str
    lead: str = ""
    facts: Sequence[Fact] = ()
    figures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    folded: Sequence[Table] = ()
    """Tables that are shown on demand."""
    folded_title: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.facts or self.figures or self.tables or self.folded)


def picture(figure: Figure, svg: str) -> Picture:
    """A figure with its drawing."""
    size = re.search(r'width="([\d.]+)" height="([\d.]+)"', svg)
    spec = specification(figure.chart)
    spec.pop("$schema", None)  # an address that nobody fetches, but that looks as if
    return Picture(
        figure.name,
        figure.section,
        figure.title,
        figure.caption,
        base64.b64encode(svg.encode()).decode(),
        size[1] if size else "",
        size[2] if size else "",
        Markup(embedded(spec)),  # noqa: S704  (escaped for its place)
    )


PLACES = {
    "comparisons": ("pairs", "equal-budget"),
    "misconceptions": ("figure3", "table4"),
    "debate": ("gain", "consensus"),
    "cost": ("cost", "table10"),
    "trust": ("mask-quality",),
    "errors": ("errors", "ties"),
}
"""Which of the study's tables stand in which section; sweeps go by their names, and all others come last."""


def sections(found: Gathered, tables: Sequence[Table], pictures: Sequence[Picture]) -> list[Section]:
    """The parts of the page in order, without those that are empty."""
    placed = {name: [one for id in ids for one in tables if one.id == id] for name, ids in PLACES.items()}
    placed["sweeps"] = [one for one in tables if one.id.startswith("sweep-")]
    known = {one.id for some in placed.values() for one in some}
    drawn = {name: [one for one in pictures if one.section == name] for name in {one.section for one in pictures}}
    made = [
        Section(
            "summary",
            "What was run",
            facts=facts.facts(found),
            tables=_there(facts.sessions(found)),
            folded=_there(facts.compositions(found)),
            folded_title="What the methods are made of",
        ),
        Section(
            "results",
            "Results",
            tables=[facts.results(found, found.measured, "results", "By model, data set and method")],
        ),
        Section(
            "comparisons",
            "Differences",
            "Methods on the same questions, with exact tests; p is corrected by Holm for all pairs of a table.",
        ),
        Section(
            "misconceptions",
            "Shared misconceptions",
            tables=_there(facts.misconceptions(found)),
        ),
        Section("debate", "What debate does"),
        Section("cost", "Cost"),
        Section("trust", "Confidence and masks", tables=_there(facts.calibrations(found))),
        Section("sweeps", "Sweeps"),
        Section("errors", "What went wrong", tables=_there(facts.failures(found))),
        Section(
            "tables",
            "Further tables",
            folded=[one for one in tables if one.id not in known],
            folded_title="The papers' tables, and others",
        ),
    ]
    whole = [
        Section(
            one.id,
            one.title,
            one.lead,
            one.facts,
            drawn.get(one.id, ()),
            [*one.tables, *placed.get(one.id, ())],
            one.folded,
            one.folded_title,
        )
        for one in made
    ]
    return [one for one in whole if not one.empty]


def _there(table: Table | None) -> list[Table]:
    return [] if table is None else [table]


def render(found: Gathered, parts: Sequence[Section], browser: Browser | None) -> str:
    """The page."""
    scripts = list(_scripts(charts=any(one.figures for one in parts), debates=browser is not None))
    if browser:
        parts = [*parts, Section("debates", "Single debates", _told(browser))]
    # styles may stand anywhere, for charts set them; of scripts only these may run, and nothing may be fetched
    hashes = " ".join(map(script_hash, scripts)) or "'none'"
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = _environment().get_template("page.html")
    return page.render(
        name=found.name,
        lead=_lead(found),
        version=__version__,
        policy=policy,
        style=Markup(_file("page.css")),  # noqa: S704  (ours)
        scripts=[Markup(script) for script in scripts],  # noqa: S704  (ours)
        sections=parts,
        browser=browser,
        browser_markup=Markup(_file("debates.html")),  # noqa: S704  (ours)
        browser_index=Markup(browser.index) if browser else "",  # noqa: S704  (escaped for its place)
        browser_chunks=[Markup(chunk) for chunk in browser.chunks] if browser else [],  # noqa: S704  (the same)
        numeric=_numeric,
        shown=shown,
    )


def _lead(found: Gathered) -> str:
    counts = [
        _count(found.debates, "debate"),
        _count(len({cell.method for cell in found.cells}), "method"),
        _count(len({cell.dataset for cell in found.cells}), "data set"),
        _count(len({cell.model for cell in found.cells}), "model"),
        _count(len({score.seed for score in found.run.scores}), "seed"),
    ]
    return ", ".join(counts)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}".replace(",", " ")


def _told(browser: Browser) -> str:
    if not browser.left_out:
        return f"All {_count(browser.embedded, 'debate')}."
    shown_here, left_out = (f"{number:,}".replace(",", " ") for number in (browser.embedded, browser.left_out))
    return (
        f"{shown_here} of {_count(browser.embedded + browser.left_out, 'debate')}; {left_out} left out, for the "
        "page would be too large, or was limited. Those that were lost, rescued, tied, unparsed, failed or degraded "
        "come first."
    )


def _numeric(table: Table, place: int) -> bool:
    """Whether a column is of numbers."""
    entries: list[Entry] = [row[place] for row in table.rows if row[place] is not None]
    return bool(entries) and all(isinstance(entry, (int, float, Number)) for entry in entries)


def _scripts(*, charts: bool, debates: bool) -> Iterator[str]:
    if charts:
        # its names are global in the bundle; in a function they cannot clash with ours
        yield f"(() => {{{_bundle()}\n}})();"
        yield _file("charts.js")
    if debates:
        yield _file("debates.js")


@cache
def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script. Made anew each time it would cost seconds."""
    found = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).replace("\r", "")
    return re.sub(r"</(script)", r"<\\/\1", found, flags=re.IGNORECASE)


def _file(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
    )


def _finalized(value: Any) -> Any:
    """What becomes of each expression of the template: no text reaches a reader with signs that cannot be seen."""
    return visible(value) if type(value) is str else value
