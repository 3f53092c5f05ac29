"""All that a report tells, from a run's files: what was run, its numbers, its debates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from r2mad.errors import StoreError
from r2mad.study.metrics import Cell, Metrics, cells, measure, misconceived, within
from r2mad.study.records import read
from r2mad.study.report.browse import Asked, Browser, Packer
from r2mad.study.report.trust import Gathering, Trust
from r2mad.study.runs import Run, load_runs, method_names
from r2mad.study.scores import Score
from r2mad.study.studies import SESSIONS, Session

PAGE = 25_000_000
"""Bytes that a page may have; browsers are slow with more."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the page is rendered from."""

    run: Run
    sessions: tuple[Session, ...]
    cells: dict[Cell, list[Score]]
    """In the order of tables: models and data sets as they first appear, methods as the study names them."""
    measured: tuple[Metrics, ...]
    """One a cell, in that order."""
    subset: tuple[Metrics, ...]
    """The same on the shared misconceptions; empty where `mad` was not run, or there are none."""
    trust: Trust | None
    """None where debates were not read."""
    browse: Callable[[int], Browser] | None
    """From the room there is, in bytes."""

    @property
    def name(self) -> str:
        """What the study is called."""
        config = (self.run.study or {}).get("config", {})
        return str(config.get("name") or self.run.path.resolve().name)

    @property
    def debates(self) -> int:
        """How many are counted."""
        return len(self.run.scores)


def gather(folders: Sequence[Path], *, debates: bool = True, limit: int | None = None, page: int = PAGE) -> Gathered:
    """Read a run, or the shards of one.

    Args:
        folders: its folders.
        debates: whether to read single debates, for the browser and for calibration; tables need only the scores.
        limit: most debates that the browser is given.
        page: bytes that the page may have.

    Raises:
        StoreError: there is no run, nothing in it has ended yet, or a file is damaged.
        UsageError: the folders are not of one study.
    """
    run = load_runs(folders)
    if not run.scores:
        raise StoreError(f"{run.path}: no debate of this run has ended yet")
    found = _ordered(run)
    chosen = misconceived(run.scores)
    on_subset = cells(within(run.scores, chosen))
    trust, packer = None, None
    if debates:
        packer = Packer(run.scores, limit, page)
        trust = _read(run, packer)
    items = run.items()
    shared: set[Asked] = {(*where, *asked) for where, some in chosen.items() for asked in some}
    return Gathered(
        run=run,
        sessions=tuple(one for folder in run.folders for one in read(Session, folder / SESSIONS)),
        cells=found,
        measured=tuple(measure(cell, scores) for cell, scores in found.items()),
        subset=tuple(measure(cell, on_subset[cell]) for cell in found if cell in on_subset),
        trust=trust,
        browse=None if packer is None else lambda room: packer.browser(items, shared, room),
    )


def _ordered(run: Run) -> dict[Cell, list[Score]]:
    found = cells(run.scores)
    rank = {name: place for place, name in enumerate(method_names(run.study) if run.study else ())}
    models = {name: place for place, name in enumerate(dict.fromkeys(cell.model for cell in found))}
    sets = {name: place for place, name in enumerate(dict.fromkeys(cell.dataset for cell in found))}
    order = sorted(found, key=lambda cell: (models[cell.model], sets[cell.dataset], rank.get(cell.method, len(rank))))
    return {cell: found[cell] for cell in order}


def _read(run: Run, packer: Packer) -> Trust:
    """Go through the debates once, for what can be measured and for the browser."""
    known = {score.id: score for score in run.scores}
    gathering = Gathering()
    for record in run.records():
        gathering.add(record, known[record.id])
        packer.add(record)
    return gathering.finished()
