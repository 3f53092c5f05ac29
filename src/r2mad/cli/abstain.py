"""Whether `ask` gives an answer at all: how sure the group is, and how sure it must be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from r2mad.cli.common import complain

if TYPE_CHECKING:
    from r2mad.study.abstain import Calibrator
    from r2mad.types import DebateRecord


def load_calibration(path: Path | None) -> Calibrator | None:
    """The calibration in a file, or None without one.

    Raises:
        StoreError: it cannot be read.
    """
    if path is None:
        return None
    from r2mad.study.abstain import load

    return load(path)


def weighed(record: DebateRecord, calibrator: Calibrator | None, least: float | None) -> DebateRecord:
    """The record with its calibrated confidence, and with the answer marked as withheld if that is under `least`."""
    if record.answer is None:
        return record
    calibrated = calibrator(record) if calibrator else None
    if calibrator and calibrator.method != record.method:
        complain(f"the calibration is of {calibrator.method}, and this is {record.method}: its chances may be off")
    models = tuple(sorted({agent.model for agent in record.agents}))
    if calibrator and calibrator.models != models:
        complain(f"the calibration is of {', '.join(calibrator.models)}, and this is {', '.join(models)}")
    elif calibrator and calibrator.method == record.method and calibrator.composition not in ("", record.composition):
        complain(f"the calibration is of another {record.method}: {calibrator.composition}")
    sure = record.confidence if calibrated is None else calibrated
    return replace(record, calibrated=calibrated, abstained=least is not None and (sure is None or sure < least))
