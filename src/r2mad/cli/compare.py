"""`r2mad compare`: two methods of a run on the same questions, or every pair of them."""

from __future__ import annotations

import json as json_module
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from r2mad.cli.ask import LIST
from r2mad.cli.common import DONE, complain, log_to_stderr, printable
from r2mad.errors import UsageError
from r2mad.settings import home_expanded

if TYPE_CHECKING:
    from r2mad.study.contrasts import Contrast
    from r2mad.study.runs import Run
    from r2mad.study.table_data import Results


@dataclass(frozen=True)
class CompareOptions:
    """What to compare."""

    dataset: str | None = None
    """Only these data sets, separated by commas."""
    model: Annotated[list[str], LIST] = field(default_factory=list)
    """Only this model, whole or as its string ends; give it again for more."""
    subset: Literal["misconception"] | None = None
    """Only questions on which more than half of mad's agents are not right in round 0; the same for all methods."""
    expected: bool = False
    """Score a tie by the chance of being right if it were broken evenly, instead of as it was broken."""
    run: Annotated[list[Path], LIST] = field(default_factory=list)
    """A further folder of the same study, such as a shard that lies elsewhere; give it again for more."""
    json: bool = False
    """Print one JSON object instead of text."""


def compare(
    run: Path,
    one: str | None = None,
    other: str | None = None,
    /,
    *,
    options: Annotated[CompareOptions, Parameter(name="*")] = CompareOptions(),
) -> int:
    """Compare two methods on the questions that both have answered: by how much, how sure that is, and a sentence.

    Without methods every pair is compared, and p is corrected for all of them together (Holm). Nothing is asked.

        r2mad compare RUN mad r2mad
        r2mad compare RUN --dataset truthfulqa --subset misconception

    Args:
        run: The run's folder; where it is not there, its shards RUN-shard-i-of-n beside it.
        one: A method.
        other: The method to compare it with.
    """
    from r2mad.study.runs import load_runs
    from r2mad.study.table_data import results

    log_to_stderr("warning")
    if one is not None and other is None:
        raise UsageError(f"compare takes two methods or none; {one} is one")
    found = load_runs([home_expanded(path) for path in (run, *options.run)])
    _tell_what_is_missing(found)
    held = _narrowed(results(_filtered(found, options)), options)
    if one is None or other is None:
        return _every_pair(held, found, options)
    for name in (one, other):
        if name not in held.methods:
            raise UsageError(f"no debates by {name} there, but by {', '.join(held.methods)}")
    if one == other:
        raise UsageError(f"{one} cannot be compared with itself")
    return _two(held, found, options, one, other)


def _tell_what_is_missing(found: Run) -> None:
    if found.missing:
        complain(f"shards that are not there: {', '.join(found.missing)}")
    if found.left_out:
        complain(f"{found.left_out} scores belong to no cell of the study, and are left out")


def _filtered(found: Run, options: CompareOptions) -> Run:
    """The run with the chosen data sets and models alone.

    Raises:
        UsageError: it has no such data set or model, or no score at all.
    """
    if not found.scores:
        raise UsageError(f"{found.path}: none of its debates is graded, so there is nothing to compare")
    scores = found.scores
    if options.dataset:
        wanted = {part.strip() for part in options.dataset.split(",") if part.strip()}
        there = sorted({score.dataset for score in scores})
        if unknown := sorted(wanted - set(there)):
            raise UsageError(f"the run has no data set {', '.join(unknown)}, but {', '.join(there)}")
        scores = [score for score in scores if score.dataset in wanted]
    if options.model:
        models = sorted({score.model for score in scores})
        chosen = {model for model in models for name in options.model if _is_named(model, name)}
        if not chosen:
            raise UsageError(f"the run has no model {', '.join(options.model)}, but {', '.join(models)}")
        scores = [score for score in scores if score.model in chosen]
    return replace(found, scores=scores)


def _is_named(model: str, name: str) -> bool:
    return model.lower() == name.lower() or model.lower().endswith(f"/{name.lower()}")


def _narrowed(held: Results, options: CompareOptions) -> Results:
    """The results, if they have what the subset is chosen by.

    Raises:
        UsageError: they have not.
    """
    if options.subset and "mad" not in held.methods:
        raise UsageError("the misconception subset is chosen by mad's round 0, and the run has no debates by mad")
    return held


def _two(held: Results, found: Run, options: CompareOptions, one: str, other: str) -> int:
    from r2mad.study.contrasts import pairwise

    cells, pooled = pairwise(held, one, other, expected=options.expected, subset=bool(options.subset))
    if not cells:
        where = " in the subset" if options.subset else ""
        raise UsageError(f"{one} and {other} were run on no model and data set in common{where}")
    if options.json:
        _print_json(found, options, {"cells": [_row(c) for c in cells], "pooled": [_row(c) for c in pooled]})
        return DONE
    for contrast in (*cells, *pooled):
        print(f"{printable(contrast.model)} on {printable(contrast.dataset)}{_on(options)}")
        for line in _lines(contrast):
            print(f"  {printable(line)}")
        print()
    if pooled:
        print("Pooled: pairs are within a data set, and every question counts the same.")
    return DONE


def _on(options: CompareOptions) -> str:
    return ", questions of the shared-misconception subset" if options.subset else ""


def _lines(contrast: Contrast) -> list[str]:
    from r2mad.study.comparison import verdict

    row = contrast.comparison
    found = [verdict(row)]
    if row.only_one is not None and row.only_other is not None:
        found.append(f"Only {row.names[0]} was right {row.only_one} times, only {row.names[1]} {row.only_other} times.")
    if contrast.unpaired:
        found.append(f"Not counted: {contrast.unpaired} answers under a seed that only one of the two has.")
    if (least := _detectable(contrast)) is not None:
        found.append(f"A study of this size finds a difference of {100 * least:.1f} points four times in five.")
    return found


def _detectable(contrast: Contrast) -> float | None:
    """What a study like this one would find; only where it found nothing, and with a single seed."""
    from r2mad.study.comparison import outcome
    from r2mad.study.power import detectable

    row = contrast.comparison
    if outcome(row) != "unclear" or row.answers != row.pairs or row.only_one is None or row.only_other is None:
        return None
    return detectable(row.pairs, (row.only_one + row.only_other) / row.pairs)


def _every_pair(held: Results, found: Run, options: CompareOptions) -> int:
    from r2mad.study.contrasts import every_pair

    rows = every_pair(held, held.methods, expected=options.expected, subset=bool(options.subset))
    if not rows:
        raise UsageError("the run has no two methods on one model and data set, so there is no pair to compare")
    if options.json:
        _print_json(found, options, {"pairs": [_row(row) for row in rows]})
        return DONE
    _print_pairs(rows, options)
    return DONE


def _print_pairs(rows: Sequence[Contrast], options: CompareOptions) -> None:
    from r2mad.study.comparison import outcome, signed

    width = max(len(printable(name)) for row in rows for name in row.comparison.names)
    place = ""
    for contrast in rows:
        row = contrast.comparison
        where = f"{printable(contrast.model)} on {printable(contrast.dataset)}{_on(options)}"
        if where != place:
            print(f"\n{where}" if place else where)
            print(
                f"{'one':<{width}}  {'other':<{width}}      n  one - other    95 % interval       p  Holm's p  one is"
            )
            place = where
        one, other = (f"{printable(name):<{width}}" for name in row.names)
        if row.difference is None or row.low is None or row.high is None:
            print(f"{one}  {other}  {0:>5}  {'-':>11} {'-':>16}  {'-':>6}  {'-':>8}  -")
            continue
        between = f"{signed(row.low)} to {signed(row.high)}"
        alone = len(row.only_in_one) + len(row.only_in_other)
        parts = [f"{alone} questions"] * bool(alone) + [f"{contrast.unpaired} answers"] * bool(contrast.unpaired)
        left = f"  (not counted, for only one has them: {', '.join(parts)})" if parts else ""
        print(
            f"{one}  {other}  {row.pairs:>5}  {signed(row.difference):>11} {between:>16}  {_p(row.p):>6}  "
            f"{_p(row.adjusted):>8}  {outcome(row)}{left}"
        )
    family = max(row.comparison.family for row in rows)
    print(f"\nin points, on questions that both have answered; Holm's p allows for {family} comparisons")
    print("better, worse: Holm's p is below 0.05; unclear: this study cannot tell, which does not make them equal")


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _print_json(found: Run, options: CompareOptions, more: dict[str, Any]) -> None:
    whole = {
        "run": str(found.path),
        "folders": [str(folder) for folder in found.folders],
        "missing": list(found.missing),
        "left_out": found.left_out,
        "subset": options.subset,
        "expected": options.expected,
        **more,
    }
    print(json_module.dumps(whole, indent=2, ensure_ascii=False))


def _row(contrast: Contrast) -> dict[str, Any]:
    from r2mad.study.comparison import outcome, verdict

    return {
        "model": contrast.model,
        "dataset": contrast.dataset,
        **asdict(contrast.comparison),
        "unpaired": contrast.unpaired,
        "detectable": _detectable(contrast),
        "outcome": outcome(contrast.comparison),
        "verdict": verdict(contrast.comparison),
    }
