"""A report's files: the page, the figures, the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from r2mad.errors import StoreError
from r2mad.study.figures import to_png, to_svg
from r2mad.study.report.browse import Browser
from r2mad.study.report.gather import PAGE, Gathered, gather
from r2mad.study.report.page import picture, render, sections
from r2mad.study.report.pictures import drawn
from r2mad.study.tables import all_tables, write_tables

SLACK = 10_000
"""Bytes of the page that say what is left out and hold its chunks together."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was written where."""

    page: Path
    size: int
    """Bytes of the page."""
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]
    found: Gathered
    browser: Browser | None
    """None where debates were not asked for."""


def write_report(
    folders: Sequence[Path],
    out: Path | None = None,
    *,
    debates: bool = True,
    limit: int | None = None,
    page: int = PAGE,
) -> Written:
    """Write a run's report, over what stands there.

    Args:
        folders: the run's folder, or its shards'.
        out: where to; `report` in the first folder if not given.
        debates: whether to read single debates, for the browser, calibration and masks.
        limit: most debates that can be looked at on the page.
        page: bytes that the page may have; debates that no longer fit are left out.

    Raises:
        StoreError: there is no run, nothing in it has ended yet, a file is damaged, or `out` cannot be written.
        UsageError: the folders are not of one study.
    """
    found = gather(folders, debates=debates, limit=limit, page=page)
    out = out or found.run.folders[0] / "report"
    # tables read the debates of methods that mask; a run without folders has none
    tables = all_tables(found.run if debates else replace(found.run, folders=()))
    pictures, files = [], []
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
        for figure in drawn(found):
            svg = to_svg(figure.chart)
            pictures.append(picture(figure, svg))
            files += [out / "figures" / f"{figure.name}{suffix}" for suffix in (".svg", ".png")]
            files[-2].write_text(svg, encoding="utf-8")
            files[-1].write_bytes(to_png(svg))
        parts = sections(found, tables, pictures)
        browser = None
        if found.browse:
            rest = len(render(found, parts, None).encode())
            browser = found.browse(page - rest - SLACK)
        whole = render(found, parts, browser).encode()
        beside = out / "index.part"
        beside.write_bytes(whole)
        beside.replace(out / "index.html")
    except OSError as error:
        raise StoreError(f"{out}: cannot be written: {error.strerror}") from error
    written = write_tables(tables, out / "tables")
    return Written(out / "index.html", len(whole), tuple(files), tuple(written), found, browser)
