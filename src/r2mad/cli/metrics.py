"""`r2mad metrics`: how far a run's confidence, masks and diversity can be believed."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from r2mad.cli.ask import LIST
from r2mad.cli.common import DONE, log_to_stderr, printable
from r2mad.errors import StoreError, UsageError
from r2mad.settings import home_expanded

if TYPE_CHECKING:
    from r2mad.study.abstain import Area, Point
    from r2mad.study.calibration import Calibration, Pairs
    from r2mad.study.diversity import Diversity
    from r2mad.study.graded import Graded
    from r2mad.study.mask_quality import MaskQuality
    from r2mad.study.scores import Summary
    from r2mad.study.stats import Correlation, Difference, Proportion
    from r2mad.types import Separation

WIDTH = 100
"""Columns that the text keeps to."""


@dataclass(frozen=True)
class MetricsOptions:
    """What to look at."""

    method: Annotated[list[str], LIST] = field(default_factory=list)
    """Methods to look at, with commas between them; all by default."""
    calibrate: Path | None = None
    """File to write a calibration to, for `r2mad ask --calibration`: learned from all graded debates of one method."""
    json: bool = False
    """Print one JSON object instead of text; it has the whole curves and tables."""


def metrics(run: Path, /, *, options: Annotated[MetricsOptions, Parameter(name="*")] = MetricsOptions()) -> int:
    """Measure a run: whether confidence can be believed, masks find what is false, and variety pays.

    Everything is computed from the run's files; no model is asked. Intervals are at 95 %; those of areas and
    correlations draw whole questions anew.

    Args:
        run: The run's folder.
    """
    log_to_stderr("warning")
    chosen = {name.strip() for names in options.method for name in names.split(",") if name.strip()}
    groups, debates = _read(home_expanded(run), chosen)
    if options.calibrate:
        _calibrate(groups, home_expanded(options.calibrate))
    graded = sum(map(len, groups.values()))
    found = [_measure(name, group) for name, group in groups.items()]
    if options.json:
        whole = {
            "run": str(run),
            "debates": debates,
            "ungraded": debates - graded,
            "methods": [_row(one) for one in found],
            "calibrator": str(options.calibrate) if options.calibrate else None,
        }
        print(json_module.dumps(whole, indent=2))  # ASCII, whatever the terminal can show
        return DONE
    print(f"{printable(str(run))}: {debates} debates, {debates - graded} of them not graded")
    for one in found:
        print()
        for line in _lines(one):
            print(line)
    if options.calibrate:
        print(f"\nthe calibration is in {printable(str(options.calibrate))}; r2mad ask takes it as --calibration")
    return DONE


def _read(run: Path, chosen: set[str]) -> tuple[dict[str, list[Graded]], int]:
    """(the graded debates of the chosen methods, how many debates these have, graded or not)."""
    from r2mad.study.graded import by_method, graded
    from r2mad.study.records import DEBATES, SCORES, latest
    from r2mad.study.scores import latest_scores

    if not (run / DEBATES).is_file():
        raise StoreError(f"{run}: no run there, for it has no {DEBATES}")
    records = list(latest(run / DEBATES).values())
    if not records:
        raise StoreError(f"{run}: no debate of this run has ended yet")
    there = sorted({record.method for record in records})
    if unknown := sorted(chosen - set(there)):
        raise UsageError(f"the run has no debates by {', '.join(unknown)}, but by {', '.join(there)}")
    records = [record for record in records if not chosen or record.method in chosen]
    found = by_method(graded(records, latest_scores(run / SCORES)))
    if not found:
        raise UsageError(f"{run}: none of its {len(records)} debates is graded, so nothing can be measured")
    return found, len(records)


def _calibrate(groups: dict[str, list[Graded]], path: Path) -> None:
    from r2mad.study.abstain import fit

    if len(groups) > 1:
        raise UsageError(f"--calibrate is for one method, and these are {', '.join(groups)}: choose with --method")
    (group,) = groups.values()
    fit([one.record for one in group], [one.score for one in group]).save(path)


@dataclass(frozen=True, slots=True)
class _Measured:
    """One method's metrics."""

    method: str
    questions: int
    summary: Summary
    right: Proportion
    calibrations: dict[str, Calibration]
    """By whose confidence it is; those that the method has."""
    mask: MaskQuality | None
    diversity: Diversity | None
    """None where the opening is a single reply."""
    curves: dict[str, tuple[Point, ...]]
    """By what is withheld first; always by vote, and calibrated where that can be fitted."""
    unfitted: str | None
    """Why it cannot."""


def _measure(method: str, group: Sequence[Graded]) -> _Measured:
    from r2mad.study import calibration
    from r2mad.study.abstain import coverage, crossed, votes
    from r2mad.study.diversity import diversities
    from r2mad.study.mask_quality import qualities
    from r2mad.study.scores import summarise
    from r2mad.study.stats import Proportion

    records, scores = [one.record for one in group], [one.score for one in group]
    summary = summarise(scores)
    pairs: dict[str, Pairs] = {
        "verbal": calibration.verbal(records, scores),
        "memory": calibration.memory(records, scores),
        "group": calibration.group(records, scores),
    }
    by_vote = votes(records, scores)
    curves, unfitted = {"vote": coverage(by_vote.confidence, by_vote.right)}, None
    try:
        pairs["calibrated"] = fitted = crossed(records, scores)
        curves["calibrated"] = coverage(fitted.confidence, fitted.right, fitted.fold)
    except UsageError as error:
        unfitted = str(error)
    return _Measured(
        method=method,
        questions=len({score.question for score in scores}),
        summary=summary,
        right=Proportion(summary.correct, summary.debates),
        calibrations={name: calibration.assess(one) for name, one in pairs.items() if len(one) or one.missing},
        mask=qualities(records, scores).get(method),
        diversity=diversities(records, scores)[method] if any(len(r.rounds[0].replies) > 1 for r in records) else None,
        curves=curves,
        unfitted=unfitted,
    )


# JSON


def _share(one: Proportion) -> dict[str, Any]:
    return {**asdict(one), "share": one.share, "interval": one.interval}


def _row(one: _Measured) -> dict[str, Any]:
    from r2mad.study.abstain import area

    areas = {name: area(points) for name, points in one.curves.items()}
    return {
        "method": one.method,
        "questions": one.questions,
        **asdict(one.summary),
        "right": _share(one.right),
        "calibration": {name: asdict(found) for name, found in one.calibrations.items()},
        "mask": None
        if one.mask is None
        else {
            **asdict(one.mask),
            "judged": one.mask.judged,
            "precision": _share(one.mask.precision),
            "recall": _share(one.mask.recall),
            "right_masked": _share(one.mask.right_masked),
            "false": _share(one.mask.false),
        },
        "diversity": None if one.diversity is None else asdict(one.diversity),
        "coverage": {
            name: {"points": [asdict(point) for point in one.curves[name]], **(asdict(found) if found else {})}
            for name, found in areas.items()
        },
        "unfitted": one.unfitted,
    }


# Text, at most WIDTH columns


def _lines(one: _Measured) -> Iterator[str]:
    total = one.summary
    yield f"{printable(one.method)}: {total.debates} debates on {one.questions} questions"
    yield f"  right answers  {_of(one.right)}"
    yield (
        f"  {total.failed} debates failed; of {total.replies} replies {total.errors} failed, "
        f"{total.unparsed} had no answer that could be read"
    )
    yield from _calibration_lines(one)
    if one.mask:
        yield from _mask_lines(one.mask)
    if one.diversity:
        yield from _diversity_lines(one.diversity)
    yield from _coverage_lines(one)


def _of(one: Proportion) -> str:
    if one.share is None:
        return "- (0 of 0)"
    low, high = one.interval
    return f"{one.share:.1%} ({one.part} of {one.whole}), interval {low:.1%} to {high:.1%}"


NAMES = {
    "verbal": "agents, of their own replies",
    "memory": "memory, of peers' replies",
    "group": "the vote, of the group's answer",
    "calibrated": "the same, calibrated (cross-fitted)",
}


def _calibration_lines(one: _Measured) -> Iterator[str]:
    yield ""
    yield "  Can confidence be believed?"
    yield "  Brier: mean squared error, 0 is best. ECE: mean gap between confidence and share right, 0 is best."
    yield "  AUC: chance that a right one has more confidence than a wrong one, 0.5 tells nothing."
    yield f"    {'whose':<36}{'said':>6}{'unsaid':>7}{'mean':>6}{'right':>6}{'Brier':>7}{'ECE':>6}  AUC"
    for name, found in one.calibrations.items():
        yield (
            f"    {NAMES[name]:<36}{found.count:>6}{found.missing:>7}{_percent(found.confidence):>6}"
            f"{_percent(found.right):>6}{_decimals(found.brier, 3):>7}{_decimals(found.ece, 2):>6}  {_area(found.auc)}"
        )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _decimals(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _area(found: Separation | None) -> str:
    return "-" if found is None else f"{found.auc:.2f} ({found.low:.2f} to {found.high:.2f})"


def _mask_lines(mask: MaskQuality) -> Iterator[str]:
    yield ""
    yield "  Does the mask hide what is false, and only that?"
    yield f"    hidden replies that are false (precision)  {_of(mask.precision)}"
    yield f"    all replies that are false, to compare     {_of(mask.false)}"
    yield f"    false replies that are hidden (recall)     {_of(mask.recall)}"
    yield f"    right replies that are hidden              {_of(mask.right_masked)}"
    if mask.unscored:
        yield f"    not judged, for want of log-probabilities: {mask.unscored} replies"
    if mask.verdicts:
        yield f"    {'verdict':<14}{'right':>7}{'false':>7}"
        for told in mask.verdicts:
            yield f"    {told.verdict:<14}{told.right:>7}{told.wrong:>7}"


def _diversity_lines(found: Diversity) -> Iterator[str]:
    yield ""
    yield "  Does variety pay, and where does debate help?"
    yield (
        f"    at the start: {_decimals(found.diversity, 2)} different answers a reply (diversity; entropy "
        f"{_decimals(found.entropy, 2)}), {_percent(found.difficulty)} wrong (difficulty)"
    )
    yield f"    gain over a vote at the start, in points: {_gain(found.gain)}"
    yield f"    {'correlation of':<30}{'Pearson':<26}Spearman"
    for one in found.associations:
        told = f"{one.x} with {'being right' if one.y == 'correct' else one.y}"
        yield f"    {told:<30}{_correlated(one.pearson):<26}{_correlated(one.spearman)}"
    yield f"    {'replies at the start':<22}{'debates':>8}{'vote':>7}{'end':>7}  gain in points"
    for row in found.by_hardness:
        ends = f"{_percent(row.before):>7}{_percent(row.after):>7}"
        yield f"    {row.hardness:<22}{row.debates:>8}{ends}  {_gain(row.gain)}"


def _gain(found: Difference | None) -> str:
    if found is None:
        return "-"
    mean, low, high = (round(100 * value, 1) + 0.0 for value in (found.mean, found.low, found.high))  # no -0.0
    return f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"


def _correlated(found: Correlation | None) -> str:
    if found is None:
        return "- (one does not vary)"
    if found.low is None or found.high is None:
        return f"{found.value:+.2f} (no interval)"
    return f"{found.value:+.2f} ({found.low:+.2f} to {found.high:+.2f})"


def _coverage_lines(one: _Measured) -> Iterator[str]:
    from r2mad.study.abstain import area

    yield ""
    yield "  What is it worth to withhold the answers that are least sure?"
    for name, title in (("vote", "by the winner's share of the votes"), ("calibrated", "by the calibrated chance")):
        if name not in one.curves:
            yield f"    {title}: not known"
            yield from wrap(str(one.unfitted), WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
            continue
        found: Area | None = area(one.curves[name])
        assert found is not None  # a method without a debate is not here
        yield f"    {title}; area under risk and coverage {found.aurc:.3f}, 0 is best"
        yield f"    {'to answer':<12}{'answered':>9}{'from':>7}  right"
        for wanted, point in (("all", found.at_100), ("80%", found.at_80), ("50%", found.at_50)):
            low, high = point.interval
            yield (
                f"    {wanted:<12}{point.coverage:>9.0%}{point.threshold:>7.2f}  "
                f"{point.accuracy:.1%}, interval {low:.1%} to {high:.1%}"
            )
