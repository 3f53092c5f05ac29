"""All tables of a run: the papers', each beside what the papers print, and those that every study should have.

    for table in all_tables(load_run("logs/table1")):
        print(table.to_markdown())

A table for which the run has nothing is left out. Numbers are made from `scores.jsonl` alone, but for what masks hide,
which is read from the debates of the methods that mask.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from r2mad.errors import StoreError
from r2mad.study import table_ours, table_paper, table_published
from r2mad.study.mask_quality import MaskQuality, qualities
from r2mad.study.metrics import Cell
from r2mad.study.runs import Run
from r2mad.study.table_data import Results, results
from r2mad.study.table_text import Entry, Number, Table
from r2mad.types import DebateRecord

__all__ = ["Entry", "Number", "Table", "all_tables", "write_tables"]

log = logging.getLogger(__name__)


def all_tables(run: Run) -> list[Table]:
    """Every table that the run has something for, in the order of a report. Ids are unique, and do for file names.

    Raises:
        StoreError: the debates of a method that masks cannot be read.
    """
    held = results(run)
    found = [table for table in (*_papers(held, run), *_ours(held)) if table is not None]
    said = _missing(run)
    return _unique([replace(table, notes=(*table.notes, *said)) for table in found])


def _papers(held: Results, run: Run) -> Iterator[Table | None]:
    study = run.study
    yield table_paper.overall(held)
    yield table_published.beside_accuracy(held, "table1", study)
    for id, build in (("table2", table_paper.ablation), ("table3", table_paper.policies)):
        yield from _with_published(held, id, build(held), run)
    yield table_paper.stances(held)
    yield table_published.beside_stances(held, study)
    for id, build in (
        ("table5", table_paper.masks),
        ("table6", table_paper.paths),
        ("table7", table_paper.larger),
        ("table9", table_paper.retrieval_alone),
    ):
        yield from _with_published(held, id, build(held), run)
    yield table_paper.tokens_and_time(held)
    yield table_published.beside_cost(held, study)
    shown = table_paper.misconceptions(held)
    yield from shown
    yield table_published.beside_misconceptions(held, shown, study)
    masked = table_paper.masked_debate(held)
    yield masked
    if masked is not None:
        yield table_published.beside_masking(held, study)
    yield table_paper.masks_found(mask_qualities(run))
    yield from table_paper.sweeps(held)


def _with_published(held: Results, id: str, table: Table | None, run: Run) -> Iterator[Table | None]:
    """A table, and what the paper prints for it; nothing of the latter where the run is not about that."""
    if table is not None:
        yield table
        yield table_published.beside_accuracy(held, id, run.study)


def _ours(held: Results) -> Iterator[Table | None]:
    yield table_ours.pairs(held)
    yield table_ours.gain(held)
    yield table_ours.equal_budget(held)
    yield table_ours.consensus(held)
    yield table_ours.ties(held)
    yield table_ours.seeds(held)
    yield table_ours.groups(held)
    yield table_ours.cost(held)
    yield table_ours.errors(held)


def mask_qualities(run: Run) -> dict[tuple[str, str, str], MaskQuality]:
    """How well each mask found what is false, by (model, data set, method); one pass over the debates that mask.

    Raises:
        StoreError: the debates cannot be read.
    """
    composed = (run.study or {}).get("compositions", {})
    where = {
        score.id: Cell(score.model, score.dataset, score.method)
        for score in run.scores
        if "Mask(" in composed.get(score.method, "") or "m2" in score.method or "mask" in score.method
    }
    if not where:
        return {}
    records: dict[Cell, list[DebateRecord]] = {}
    for record in run.records(set(where)):
        records.setdefault(where[record.id], []).append(record)
    found = {}
    for cell in sorted(records):
        for method, quality in qualities(records[cell], run.scores).items():
            found[cell.model, cell.dataset, method] = quality
    return found


def _missing(run: Run) -> list[str]:
    """What a reader of any of the tables must know of the run as a whole."""
    said = [f"Not there: {', '.join(run.missing)}."] if run.missing else []
    if run.left_out:
        said.append(f"{run.left_out} scores of the folder belong to no cell of its study, and are left out.")
    return said


def _unique(tables: Sequence[Table]) -> list[Table]:
    """The same with ids that do for file names, and of which no two are alike."""
    taken: set[str] = set()
    found = []
    for table in tables:
        stem = re.sub(r"[^A-Za-z0-9._+-]+", "-", table.id).strip("-.") or "table"
        id, number = stem, 1
        while id.lower() in taken:  # some file systems do not tell case apart
            number += 1
            id = f"{stem}-{number}"
        taken.add(id.lower())
        found.append(replace(table, id=id))
    return found


def write_tables(tables: Iterable[Table], folder: Path) -> list[Path]:
    """Write each table as ID.md, ID.csv and ID.tex, over what stands there.

    Returns:
        The files, in order.

    Raises:
        StoreError: the folder cannot be written.
    """
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for table in tables:
            for suffix, text in ((".md", table.to_markdown()), (".csv", table.to_csv()), (".tex", table.to_latex())):
                path = folder / f"{table.id}{suffix}"
                path.write_text(text, encoding="utf-8", newline="")
                written.append(path)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written: {error.strerror}") from error
    return written
