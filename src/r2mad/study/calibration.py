"""Whether stated confidence can be believed: of what was said with 70 %, how much was right?

Three confidences stand in the records: what a model says of its own reply (`verbal`; Demystifying Multi-Agent Debate),
what an agent's memory says of a peer's reply (`memory`; c of Eq. 11 in Remember and Reweight), and what the vote says
of the group's answer (`group`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

from r2mad.elicit import HIGHEST
from r2mad.study.graded import graded
from r2mad.study.scores import Score
from r2mad.study.stats import Proportion, separation
from r2mad.types import DebateRecord, Separation

BINS = 10
"""Of equal width. Guo et al. 2017 take 15; 10 suit confidences that are stated in tenths."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Confidences beside how it turned out."""

    confidence: tuple[float, ...]
    """In [0, 1]."""
    right: tuple[bool, ...]
    cluster: tuple[str, ...]
    """The question of each."""
    missing: int = 0
    """Where there was no confidence though there could have been."""
    fold: tuple[int, ...] = ()
    """Which calibrator each is from, where several were needed: only those of one can be put in order."""

    def __len__(self) -> int:
        return len(self.confidence)


def verbal(records: Iterable[DebateRecord], scores: Iterable[Score]) -> Pairs:
    """What each reply says of itself, over ten, against whether its answer is right.

    Replies that failed are left out; one without an answer is not right. One that says nothing is missing, in debates
    that asked for it: whose composition says so, or in which any reply says how sure it is.
    """
    found = _Collected()
    for one in graded(records, scores):
        replies = [pair for index in range(len(one.record.rounds)) for pair in one.replies(index)]
        said = [reply.verbal_confidence for reply, _ in replies]
        if "VerbalConfidence" not in one.record.composition and all(value is None for value in said):
            continue
        for value, (_, right) in zip(said, replies, strict=True):
            found.add(None if value is None else value / HIGHEST, right, one.record.question.id)
    return found.pairs()


def memory(records: Iterable[DebateRecord], scores: Iterable[Score]) -> Pairs:
    """What each agent's memory says of each peer that it was shown, against whether that peer's reply was right.

    A reply counts once for each agent that was shown it, since each has a memory of its own. One without an estimate
    is missing, in debates in which any has one. Replies that failed are not shown.
    """
    found = _Collected()
    for one in graded(records, scores):
        shown: list[tuple[float | None, bool]] = []
        for index in range(1, len(one.record.rounds)):
            right = {reply.agent: correct for reply, correct in one.replies(index - 1)}
            peers = [peer for view in one.record.rounds[index].views for peer in view.peers if peer.shown]
            shown += [(peer.confidence, right[peer.agent]) for peer in peers if peer.agent in right]
        if any(value is not None for value, _ in shown):
            for value, correct in shown:
                found.add(value, correct, one.record.question.id)
    return found.pairs()


def group(records: Iterable[DebateRecord], scores: Iterable[Score]) -> Pairs:
    """The winner's share of the votes against whether the group's answer is right.

    A debate without an answer has no share, and is missing.
    """
    found = _Collected()
    for one in graded(records, scores):
        found.add(one.record.confidence, one.score.correct, one.record.question.id)
    return found.pairs()


class _Collected:
    """Pairs in the making."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, bool, str]] = []
        self._missing = 0

    def add(self, confidence: float | None, right: bool, cluster: str) -> None:
        if confidence is None:
            self._missing += 1
        else:  # sums of shares may leave [0, 1] by a rounding
            self._rows.append((min(max(confidence, 0.0), 1.0), right, cluster))

    def pairs(self) -> Pairs:
        confidence, right, cluster = zip(*self._rows, strict=True) if self._rows else ((), (), ())
        return Pairs(confidence, right, cluster, self._missing)


def brier(confidence: Sequence[float], right: Sequence[bool]) -> float | None:
    """Brier's score (Brier 1950): the mean of (confidence − 1 or 0)². 0 is best; ¼ is what ½ for everything gives.

    None of nothing.

    Raises:
        ValueError: not as many confidences as outcomes, or one outside [0, 1].
    """
    _check(confidence, right)
    squares = [(sure - good) ** 2 for sure, good in zip(confidence, right, strict=True)]
    return fsum(squares) / len(squares) if squares else None


@dataclass(frozen=True, slots=True)
class Bin:
    """Confidences from `low` up to but not including `high`; the last bin includes 1."""

    low: float
    high: float
    count: int
    confidence: float
    """Their mean."""
    right: float
    """The share of them that was right; calibrated if it equals the mean."""
    interval: tuple[float, float]
    """Wilson's of that share at 95 %, as if they were independent."""


def reliability(confidence: Sequence[float], right: Sequence[bool], bins: int = BINS) -> tuple[Bin, ...]:
    """The reliability diagram (DeGroot and Fienberg 1983), as a table: bins of equal width, lowest first, none empty.

    Raises:
        ValueError: see `brier`; or fewer than one bin.
    """
    _check(confidence, right)
    if bins < 1:
        raise ValueError(f"{bins} bins hold nothing")
    # 0.29 · 100 is 28.999…, and 29 is meant
    places = np.minimum(np.floor(np.round(np.asarray(confidence, dtype=float) * bins, 9)).astype(int), bins - 1)
    held: dict[int, list[tuple[float, bool]]] = {}
    for place, sure, good in zip(places.tolist(), confidence, right, strict=True):
        held.setdefault(place, []).append((sure, bool(good)))
    found = []
    for place, rows in sorted(held.items()):
        share = Proportion(sum(good for _, good in rows), len(rows))
        mean = fsum(sure for sure, _ in rows) / len(rows)
        ends = place / bins, (place + 1) / bins
        found.append(Bin(*ends, len(rows), mean, share.part / share.whole, share.interval))
    return tuple(found)


def expected_calibration_error(confidence: Sequence[float], right: Sequence[bool], bins: int = BINS) -> float | None:
    """ECE (Naeini et al. 2015): how far the share of right answers is from the mean confidence, in the mean over bins.

    Σ_b n_b/n·|right_b − confidence_b|. 0 is best. None of nothing. It is never below 0, so a small sample shows some
    error even where there is none. ECE² <= Brier's score, by Jensen's inequality.

    Raises:
        ValueError: see `reliability`.
    """
    found = reliability(confidence, right, bins)
    total = sum(one.count for one in found)
    return fsum(one.count * abs(one.right - one.confidence) for one in found) / total if total else None


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far confidences can be believed."""

    count: int
    missing: int
    """Where none was stated; nothing below counts them."""
    confidence: float | None
    """The mean."""
    right: float | None
    """The share that was right; below the mean is over-confident."""
    brier: float | None
    ece: float | None
    reliability: tuple[Bin, ...]
    auc: Separation | None
    """How well confidence tells right from wrong, whatever its scale; None where all are right, or all wrong. Of
    confidences of several folds only those of one fold are compared."""


def assess(pairs: Pairs, *, bins: int = BINS, seed: int = 0, draws: int = 2000) -> Calibration:
    """All measures of calibration at once.

    Args:
        pairs: from `verbal`, `memory`, `group`, or `r2mad.study.abstain.crossed`.
        bins: of `reliability` and of the ECE.
        seed: of the bootstrap of `auc`.
        draws: how many.
    """
    size = len(pairs)
    return Calibration(
        count=size,
        missing=pairs.missing,
        confidence=fsum(pairs.confidence) / size if size else None,
        right=sum(pairs.right) / size if size else None,
        brier=brier(pairs.confidence, pairs.right),
        ece=expected_calibration_error(pairs.confidence, pairs.right, bins),
        reliability=reliability(pairs.confidence, pairs.right, bins),
        auc=separation(
            pairs.confidence, pairs.right, pairs.cluster, stratum=pairs.fold or None, seed=seed, draws=draws
        ),
    )


def _check(confidence: Sequence[float], right: Sequence[bool]) -> None:
    if len(confidence) != len(right):
        raise ValueError(f"{len(confidence)} confidences and {len(right)} outcomes are not pairs")
    if not all(0.0 <= sure <= 1.0 for sure in confidence):
        raise ValueError("a confidence is outside [0, 1]")
