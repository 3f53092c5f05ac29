"""`r2mad report`: a run as one page to read, figures to print, tables to cite."""

from __future__ import annotations

import json as json_module
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from r2mad.cli.common import DONE, log_to_stderr, printable
from r2mad.errors import UsageError
from r2mad.settings import home_expanded

if TYPE_CHECKING:
    from r2mad.study.report.write import Written


@dataclass(frozen=True)
class ReportOptions:
    """What to write, and where."""

    out: Path | None = None
    """Folder to write to; `report` in the run's folder if not given."""
    no_debates: bool = False
    """Leave single debates out, and with them calibration and masks: everything comes from scores, which is quick."""
    limit_debates: int | None = None
    """Most single debates on the page, those that were lost, rescued, tied or unparsed first."""
    json: bool = False
    """Print what was written and the numbers of every cell as one JSON object."""


def report(*run: Path, options: Annotated[ReportOptions, Parameter(name="*")] = ReportOptions()) -> int:
    """Write a report of a run: a page for a browser, and all figures and tables as files.

    The page is one file that asks no server for anything, so it can be sent, kept and published as it is. It has the
    debates in it, questions and right answers included: leave them out where these must stay secret.

        r2mad report logs/table1
        r2mad report logs/big --no-debates

    Args:
        run: The run's folder, or the folders of its shards.
    """
    log_to_stderr("warning")
    if not run:
        raise UsageError("name the folder of a run, or those of its shards; `r2mad study` prints it at its end")
    if options.limit_debates is not None and options.limit_debates < 0:
        raise UsageError(f"--limit-debates {options.limit_debates} is out of range")
    try:
        from r2mad.study.report.write import write_report
    except ModuleNotFoundError as error:
        if error.name not in ("altair", "vl_convert"):
            raise
        raise UsageError(f"a report needs {error.name}: pip install 'r2mad[study]'") from error
    written = write_report(
        [home_expanded(one) for one in run],
        home_expanded(options.out) if options.out else None,
        debates=not options.no_debates,
        limit=options.limit_debates,
    )
    if options.json:
        print(json_module.dumps(_described(written), ensure_ascii=False, allow_nan=False))
    else:
        _tell(written)
    return DONE


def _described(written: Written) -> dict[str, object]:
    browser = written.browser
    return {
        "page": str(written.page),
        "bytes": written.size,
        "figures": [str(path) for path in written.figures],
        "tables": [str(path) for path in written.tables],
        "debates": written.found.debates,
        "embedded": browser.embedded if browser else 0,
        "left_out": browser.left_out if browser else written.found.debates,
        "cells": [asdict(one) for one in written.found.measured],
    }


def _tell(written: Written) -> None:
    folder, browser = written.page.parent, written.browser
    embedded = "without single debates"
    if browser:
        embedded = f"with {browser.embedded} of {written.found.debates} debates"
    print(f"Page: {printable(str(written.page))} ({written.size / 1e6:.1f} MB, {embedded})", file=sys.stdout)
    print(f"Figures: {printable(str(folder / 'figures'))} ({len(written.figures)} files)")
    print(f"Tables: {printable(str(folder / 'tables'))} ({len(written.tables)} files)")
