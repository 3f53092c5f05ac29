"""What a report needs of the debates themselves: whether confidence and masks can be believed, and why calls failed.

Debates come one by one and are measured in batches, so that a run of any size takes the memory of one batch.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import fsum

from r2mad.study import calibration
from r2mad.study.calibration import Calibration, Pairs
from r2mad.study.mask_quality import SPOKEN, MaskQuality, Told, qualities
from r2mad.study.scores import Score
from r2mad.study.stats import auc
from r2mad.types import DebateRecord, Separation

BATCH = 400
"""Debates that are measured together."""


@dataclass(frozen=True, slots=True)
class Trust:
    """By method, methods in the order in which they first came."""

    calibrations: dict[str, dict[str, Calibration]]
    """Then by whose confidence it is: `verbal`, `memory`, `group`. The areas have no interval; `r2mad metrics` has."""
    masks: dict[str, MaskQuality]
    failures: dict[str, Counter[str]]
    """How often calls failed, by the error's name."""


@dataclass(slots=True)
class _Held:
    """One method's, in the making."""

    pairs: dict[str, list[Pairs]] = field(default_factory=lambda: {"verbal": [], "memory": [], "group": []})
    masks: list[MaskQuality] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    records: list[DebateRecord] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)


class Gathering:
    """Takes debates one by one; `finished` says what they come to."""

    def __init__(self) -> None:
        self._by_method: dict[str, _Held] = {}

    def add(self, record: DebateRecord, score: Score) -> None:
        """Take one debate.

        Raises:
            StoreError: the score is of another debate.
        """
        held = self._by_method.setdefault(record.method, _Held())
        held.records.append(record)
        held.scores.append(score)
        if len(held.records) >= BATCH:
            _measure(held)

    def finished(self) -> Trust:
        """What all of them come to.

        Raises:
            StoreError: see `add`.
        """
        for held in self._by_method.values():
            _measure(held)
        assessed = {
            name: {whose: _assess(_joined(pairs)) for whose, pairs in held.pairs.items()}
            for name, held in self._by_method.items()
        }
        return Trust(
            calibrations={
                name: {whose: one for whose, one in found.items() if one.count or one.missing}
                for name, found in assessed.items()
            },
            masks={name: _sum(held.masks) for name, held in self._by_method.items() if held.masks},
            failures={name: held.failures for name, held in self._by_method.items()},
        )


def _measure(held: _Held) -> None:
    """Measure what waits, and let go of it."""
    for whose, pairs in held.pairs.items():
        pairs.append(getattr(calibration, whose)(held.records, held.scores))
    held.masks += qualities(held.records, held.scores).values()
    for record in held.records:
        held.failures.update(why.kind for _, _, why in record.failures)
        held.failures.update(f"{note.purpose}: {note.error.kind}" for note in record.judgements if note.error)
        for one in record.rounds:
            held.failures.update(f"memory: {view.forgot.kind}" for view in one.views if view.forgot)
            if one.plain and one.plain.kind != "summary":
                held.failures[f"summary: {one.plain.kind}"] += 1
    held.records.clear()
    held.scores.clear()


def _joined(found: list[Pairs]) -> Pairs:
    return Pairs(
        confidence=tuple(value for one in found for value in one.confidence),
        right=tuple(value for one in found for value in one.right),
        cluster=(),
        missing=sum(one.missing for one in found),
    )


def _assess(pairs: Pairs) -> Calibration:
    """`calibration.assess` without the bootstrap, which takes minutes for a million replies."""
    size, area = len(pairs), auc(pairs.confidence, pairs.right)
    return Calibration(
        count=size,
        missing=pairs.missing,
        confidence=fsum(pairs.confidence) / size if size else None,
        right=sum(pairs.right) / size if size else None,
        brier=calibration.brier(pairs.confidence, pairs.right),
        ece=calibration.expected_calibration_error(pairs.confidence, pairs.right),
        reliability=calibration.reliability(pairs.confidence, pairs.right),
        auc=None if area is None else Separation(area, 0.0, 1.0),
    )


def _sum(found: list[MaskQuality]) -> MaskQuality:
    def told(verdict: str) -> Told:
        same = [one for quality in found for one in quality.verdicts if one.verdict == verdict]
        return Told(verdict, sum(one.right for one in same), sum(one.wrong for one in same))

    verdicts = [told(verdict) for verdict in SPOKEN]
    return MaskQuality(
        debates=sum(one.debates for one in found),
        masked_wrong=sum(one.masked_wrong for one in found),
        masked_right=sum(one.masked_right for one in found),
        kept_wrong=sum(one.kept_wrong for one in found),
        kept_right=sum(one.kept_right for one in found),
        unscored=sum(one.unscored for one in found),
        verdicts=tuple(one for one in verdicts if one.right or one.wrong),
    )
