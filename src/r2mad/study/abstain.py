"""Knowing when not to answer: how likely a finished debate is right, told from its record alone.

An answer that three of three agents give is not always right; how often it is depends on the model. `fit` learns that
from debates with known outcomes, together with what memory said of those who held the answer. `coverage` shows what it
is worth to withhold the answers that are least sure.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import exp, fsum, isfinite, log
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from r2mad.answers import equivalent
from r2mad.errors import StoreError, UsageError
from r2mad.serial import dump
from r2mad.serial import load as load_record
from r2mad.study.calibration import Pairs
from r2mad.study.graded import Graded, graded
from r2mad.study.scores import Score
from r2mad.study.stats import ROUNDING, Proportion
from r2mad.types import DebateRecord, Round, digest

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

SCHEMA = 1
LARGEST = 1_000_000
"""Bytes of a calibration file; ours have a few hundred."""
STEEPEST = 1e6
"""No ridge leaves a coefficient near it."""
"""Version of a calibrator's file; another one is refused."""
LEAST = 10
"""Debates that a fit needs; four coefficients from fewer would be made of chance."""
CLIP = 0.02
"""Shares count as at least this and at most 1 − this, for the logit of 0 and of 1 is infinite: as if one in fifty
disagreed with what all agree on."""
RIDGE = 1.0
"""Weight of ½·Σ b², over all coefficients but the intercept: a prior of a unit normal. It keeps coefficients finite
where the data are separable, and is soon outweighed, since it does not grow with the number of debates."""
STEPS = 50
"""Newton steps at most; ten are enough as a rule."""


@dataclass(frozen=True, slots=True)
class Features:
    """What a record says of how likely its answer is right."""

    vote: float
    """`DebateRecord.confidence`, the winner's share; 0 where there is none."""
    memory: float | None
    """Mean memory confidence in the replies that hold the answer; None where nobody's memory said anything of them."""


def features(record: DebateRecord) -> Features:
    """The features of a finished debate. No gold, and no grade, goes into them.

    Memory is asked before a round about the replies of the round before, so its last word counts: the last round with
    any confidence c_{j,i} (Eq. 11 of Remember and Reweight), averaged over all agents i and those peers j whose reply
    is in the class of the group's answer. The class is that of the first reply of that round whose answer is written
    like the group's or, if there is none, is equivalent to it. Where the method has asked memory about the last round
    itself before it ended the debate, that mean is taken (`Round.trust`).
    """
    return Features(record.confidence or 0.0, _memory(record))


def _memory(record: DebateRecord) -> float | None:
    if record.answer is None or not record.rounds:
        return None
    if record.rounds[-1].trust is not None:
        return record.rounds[-1].trust
    for index in range(len(record.rounds) - 1, 0, -1):
        peers = [peer for view in record.rounds[index].views for peer in view.peers if peer.confidence is not None]
        if peers:
            holders = _holders(record, record.rounds[index - 1])
            found = [peer.confidence for peer in peers if peer.confidence is not None and peer.agent in holders]
            return fsum(found) / len(found) if found else None
    return None


def _holders(record: DebateRecord, settled: Round) -> set[int]:
    """The agents whose reply in a round is in the class of the group's answer."""
    written = {reply.class_: reply.answer for reply in reversed(settled.replies) if reply.class_ is not None}
    same = [reply.class_ for reply in settled.replies if reply.answer == record.answer]
    if not same:
        same = [label for label, answer in written.items() if equivalent(answer, record.answer, record.question.kind)]
    return {reply.agent for reply in settled.replies if reply.class_ is not None and reply.class_ in same[:1]}


@dataclass(frozen=True, slots=True)
class Calibrator:
    """How likely a debate of one method, by these models, is right: σ(b · x), fitted on graded debates.

    x is 1, the logit of the vote share, the logit of the memory confidence (0 if there is none), and 1 if there is
    none; shares are clipped to [0.02, 0.98].
    """

    coefficients: tuple[float, float, float, float]
    """b: of the intercept, the vote, the memory, and of its being missing."""
    method: str
    models: tuple[str, ...]
    """Of the agents, in order of their names."""
    debates: int
    """How many it was fitted on, all with an answer."""
    right: int
    """How many of them were right."""
    composition: str = ""
    """The method's parts, its size among them."""
    schema: int = SCHEMA

    def __call__(self, record: DebateRecord) -> float:
        """The chance in [0, 1] that the group's answer is right; 0 without an answer."""
        if record.answer is None:
            return 0.0
        return _sigmoid(fsum(b * x for b, x in zip(self.coefficients, _row(features(record)), strict=True)))

    def save(self, path: Path) -> None:
        """Write it as JSON. What stood there is replaced when all is on disk, and not before.

        Raises:
            StoreError: it cannot be written.
        """
        path = path.resolve()  # a link is followed, not replaced
        if path.exists() and not path.is_file():
            raise StoreError(f"{path}: cannot be written: not a file")
        beside = path.with_name(f".{path.name}.{os.getpid()}.new")
        try:
            with beside.open("xb") as file:
                file.write(dump(self) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except OSError as error:
            raise StoreError(f"{path}: cannot be written: {error.strerror}") from error
        finally:
            with suppress(OSError):
                beside.unlink()


def load(path: Path) -> Calibrator:
    """Read what `Calibrator.save` wrote.

    Raises:
        StoreError: there is no such file, it is damaged or something else, or it is of another schema.
    """
    try:
        if path.exists() and (not path.is_file() or path.stat().st_size > LARGEST):
            raise StoreError(f"{path}: cannot be read: not a file, or too large for a calibration")
        text = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    found = load_record(Calibrator, text, str(path))
    if found.schema != SCHEMA:
        raise StoreError(f"{path}: schema {found.schema} is not one that this r2mad knows ({SCHEMA})")
    if not all(isfinite(value) and abs(value) < STEEPEST for value in found.coefficients):
        raise StoreError(f"{path}: not a Calibrator: a coefficient is not a finite number, or out of all reason")
    return found


def fit(records: Iterable[DebateRecord], scores: Iterable[Score]) -> Calibrator:
    """Fit a calibrator by logistic regression (maximum likelihood with a small ridge, by Newton's method).

    Debates without an answer are left out: they are never right, and are given 0.

    Raises:
        UsageError: fewer than 10 graded debates with an answer, all of them right or all wrong, or of several methods.
    """
    return _fit(graded(records, scores))


def _fit(found: Sequence[Graded]) -> Calibrator:
    found = sorted((one for one in found if one.record.answer is not None), key=lambda one: one.record.id)
    methods = sorted({one.record.method for one in found})
    if len(methods) > 1:
        raise UsageError(f"a calibration is of one method, and these debates are of {', '.join(methods)}")
    if len({(one.record.composition, *(agent.model for agent in one.record.agents)) for one in found}) > 1:
        raise UsageError(
            f"a calibration is of one thing, and {methods[0]} was held by several models or in several sizes"
        )
    right = sum(one.score.correct for one in found)
    if len(found) < LEAST or right in (0, len(found)):
        raise UsageError(
            f"a calibration needs at least {LEAST} graded debates with an answer, some right and some wrong; "
            f"here are {len(found)}, {right} right"
        )
    rows = np.array([_row(features(one.record)) for one in found])
    outcome = np.array([float(one.score.correct) for one in found])
    b = _regress(rows, outcome)
    models = sorted({agent.model for one in found for agent in one.record.agents})
    return Calibrator(
        (b[0], b[1], b[2], b[3]), methods[0], tuple(models), len(found), right, found[0].record.composition
    )


def _row(found: Features) -> list[float]:
    missing = found.memory is None
    return [1.0, _logit(found.vote), 0.0 if found.memory is None else _logit(found.memory), float(missing)]


def _logit(share: float) -> float:
    clipped = min(max(share, CLIP), 1 - CLIP)
    return log(clipped / (1 - clipped))


def _sigmoid(value: float) -> float:
    return 1 / (1 + exp(-value)) if value >= 0 else exp(value) / (1 + exp(value))


def _regress(rows: Floats, outcome: Floats) -> list[float]:
    """Coefficients of the logistic regression; shape of the rows [n, 4]. Steps that would climb are halved."""
    ridge = np.diag([0.0, *[RIDGE] * (rows.shape[1] - 1)])

    def loss(b: Floats) -> float:
        z = rows @ b
        return float(np.logaddexp(0, z).sum() - outcome @ z + b @ ridge @ b / 2)

    b = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(rows @ b, -500, 500)))
        slope = rows.T @ (chance - outcome) + ridge @ b
        bend = (rows * (chance * (1 - chance))[:, None]).T @ rows + ridge
        step = np.linalg.solve(bend, slope)
        size = 1.0
        while loss(b - size * step) > loss(b) and size > ROUNDING:
            size /= 2
        b = b - size * step
        if np.abs(size * step).max() < ROUNDING:
            break
    return [float(value) for value in b]


def votes(records: Iterable[DebateRecord], scores: Iterable[Score]) -> Pairs:
    """The winner's share of every graded debate, 0 without an answer, against whether it is right."""
    found = graded(records, scores)
    return _pairs(found, [min(max(one.record.confidence or 0.0, 0.0), 1.0) for one in found])


def crossed(records: Iterable[DebateRecord], scores: Iterable[Score], folds: int = 5) -> Pairs:
    """Calibrated confidences of a run's own debates, each from a calibrator that did not see its question.

    A question's fold is a hash of its id: the same in every process, and all debates on it are in one. A fold in which
    more is right than elsewhere is told of less by the others, so the folds' confidences cannot be put in one order: it
    would be worse than chance where there is nothing to learn. The pairs bear their folds for that reason.

    Raises:
        UsageError: what is left without a fold cannot be fitted (see `fit`), or fewer than two folds.
    """
    if folds < 2:
        raise UsageError(f"a calibration is checked on at least 2 folds, not {folds}")
    found = graded(records, scores)
    fold = [int(digest(["fold", one.record.question.id]), 16) % folds for one in found]
    fitted = {
        left_out: _fit([one for one, place in zip(found, fold, strict=True) if place != left_out])
        for left_out in sorted(set(fold))
    }
    return _pairs(found, [fitted[place](one.record) for one, place in zip(found, fold, strict=True)], fold)


def _pairs(found: Sequence[Graded], confidence: Sequence[float], fold: Sequence[int] = ()) -> Pairs:
    return Pairs(
        confidence=tuple(confidence),
        right=tuple(one.score.correct for one in found),
        cluster=tuple(one.record.question.id for one in found),
        fold=tuple(fold),
    )


@dataclass(frozen=True, slots=True)
class Point:
    """What comes of answering only where the confidence is at least `threshold`."""

    threshold: float
    """The least confidence that is answered; with several folds, of any of them."""
    count: int
    """Debates that are answered."""
    coverage: float
    """Their share of all."""
    accuracy: float
    """The share of them that is right."""
    interval: tuple[float, float]
    """Wilson's of that share at 95 %."""


def coverage(confidence: Sequence[float], right: Sequence[bool], fold: Sequence[int] = ()) -> tuple[Point, ...]:
    """The accuracy–coverage curve (El-Yaniv and Wiener 2010): a point for each distinct confidence, highest first.

    Equal confidences, to nine decimals, enter together, as no threshold parts them. The last point answers everything:
    its accuracy is the plain one. Empty of nothing.

    Args:
        confidence: one a debate.
        right: whether each of them is right.
        fold: which calibrator each confidence is from, if several: then the same share of each fold is answered at a
            time, as near as equal confidences allow, and each fold has a threshold of its own.

    Raises:
        ValueError: not as many confidences as outcomes, or one that is not a finite number.
    """
    if len(confidence) != len(right) or len(fold) not in (0, len(right)):
        raise ValueError(f"{len(confidence)} confidences and {len(right)} outcomes are not pairs")
    if not all(isfinite(sure) for sure in confidence):
        raise ValueError("a confidence is not a finite number")
    held: dict[float, list[tuple[float, bool]]] = {}
    for level, sure, good in zip(_levels(confidence, fold or [0] * len(right)), confidence, right, strict=True):
        held.setdefault(level, []).append((sure, bool(good)))
    points, hits, count, threshold = [], 0, 0, float("inf")
    for _, rows in sorted(held.items()):
        hits += sum(good for _, good in rows)
        count += len(rows)
        threshold = min(threshold, *(sure for sure, _ in rows))
        share = Proportion(hits, count)
        points.append(Point(threshold, count, count / len(confidence), hits / count, share.interval))
    return tuple(points)


def _levels(confidence: Sequence[float], fold: Sequence[int]) -> list[float]:
    """For each debate the share of its fold that is answered once it is: those at least as sure, over all."""
    rounded = [round(sure, 9) for sure in confidence]
    found: dict[tuple[int, float], float] = {}
    for place in set(fold):
        values = sorted((sure for sure, own in zip(rounded, fold, strict=True) if own == place), reverse=True)
        for rank, sure in enumerate(values, start=1):
            found[place, sure] = round(rank / len(values), 9)  # the last of equals counts
    return [found[place, sure] for place, sure in zip(fold, rounded, strict=True)]


@dataclass(frozen=True, slots=True)
class Area:
    """An accuracy–coverage curve in a few numbers."""

    aurc: float
    """Area under the risk–coverage curve, the mean risk over coverages; 0 is best."""
    at_50: Point
    """The first point that answers at least 50 %; its own coverage may be more."""
    at_80: Point
    at_100: Point


def area(points: Sequence[Point]) -> Area | None:
    """The area under the risk–coverage curve (AURC; Geifman and El-Yaniv 2017), and the accuracy at three coverages.

    Each debate counts the risk, 1 − accuracy, of the point at which it enters; without equal confidences that is the
    usual sum over ranks. None of no point.
    """
    if not points:
        return None
    before = [0.0, *(point.coverage for point in points)]
    aurc = fsum((point.coverage - last) * (1 - point.accuracy) for point, last in zip(points, before, strict=False))

    def at(share: float) -> Point:
        return next((point for point in points if point.coverage >= share - ROUNDING), points[-1])

    return Area(aurc, at(0.5), at(0.8), at(1.0))
