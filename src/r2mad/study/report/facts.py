"""What a report says in words and in tables of its own: what was run, on what, what came of it, what went wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from r2mad.settings import Settings
from r2mad.study.metrics import REFERENCE, Metrics
from r2mad.study.report.gather import Gathered
from r2mad.study.report.safe import discreet
from r2mad.study.stats import Proportion
from r2mad.study.table_text import DASH, Entry, Number, Table

Fact = tuple[str, str]


def facts(found: Gathered) -> list[Fact]:
    """What was run, a name and a line each."""
    study = found.run.study or {}
    config = study.get("config", {})
    seeds = sorted({score.seed for score in found.run.scores})
    rows = [
        ("debates", _debates(found)),
        ("data sets", ", ".join(_datasets(found))),
        ("methods", ", ".join(_methods(found))),
        ("models", ", ".join(_models(found))),
        ("seeds", ", ".join(map(str, seeds))),
        ("settings", ", ".join(_settings(config.get("settings", {}))) or "as they are by default"),
        ("memory", _plan(config.get("memory"))),
        ("training items for masks", _plan(config.get("train"))),
        ("throughput", _throughput(found)),
        ("versions", ", ".join(f"{name} {version}" for name, version in study.get("versions", {}).items())),
        ("machine", _machine(study.get("hardware", {}))),
        ("folders", ", ".join(map(str, found.run.folders))),
    ]
    return [(name, line) for name, line in rows if line]


def _debates(found: Gathered) -> str:
    line = f"{found.debates:,}".replace(",", " ")
    left = found.sessions[-1].left if len(found.run.folders) == 1 and found.sessions else 0
    more = [f"{left} are still to be held, or failed"] if left else []
    if found.run.left_out:
        more.append(f"{found.run.left_out} more in the files belong to no cell of the study, and are not counted")
    if found.run.missing:
        more.append(f"shards missing: {', '.join(found.run.missing)}")
    return "; ".join([line, *more])


def _datasets(found: Gathered) -> Iterator[str]:
    asked: dict[str, set[str]] = {}
    for cell, scores in found.cells.items():
        asked.setdefault(cell.dataset, set()).update(score.question for score in scores)
    for name, questions in asked.items():
        yield f"{name} ({len(questions)} questions)"


def _models(found: Gathered) -> Iterator[str]:
    served = (found.run.study or {}).get("served", {})
    for name in dict.fromkeys(cell.model for cell in found.cells):
        names = [one for part in name.split(" + ") for one in served.get(part, []) if one not in name]
        yield f"{name} (served as {', '.join(names)})" if names else name


def _settings(given: Mapping[str, Any]) -> Iterator[str]:
    usual = Settings()
    for one in fields(Settings):
        value = given.get(one.name)
        if value is not None and one.name in given and value != json.loads(json.dumps(getattr(usual, one.name))):
            yield f"{one.name.replace('_', '-')} {discreet(value if isinstance(value, str) else json.dumps(value))}"


def _plan(plan: Mapping[str, Any] | None) -> str:
    said = {name: value for name, value in (plan or {}).items() if value is not None and (name, value) != ("seed", 0)}
    return ", ".join(f"{name} {discreet(str(value))}" for name, value in said.items() if said.keys() != {"limit"})


def _throughput(found: Gathered) -> str:
    seconds = sum(session.seconds for session in found.sessions)
    held, calls, tokens = (sum(getattr(one, of) for one in found.sessions) for of in ("held", "calls", "tokens"))
    if not held or not seconds:
        return ""
    return (
        f"{held / seconds * 60:.0f} debates a minute, {calls / seconds:.1f} calls and {tokens / seconds:.0f} tokens a "
        f"second, over {_lasting(seconds)} in all; shared and cached calls do not count"
    )


def _lasting(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _machine(hardware: Mapping[str, Any]) -> str:
    if not hardware:
        return ""
    return f"{hardware.get('system')}, {hardware.get('cores')} cores, {hardware.get('memory_gib')} GiB"


def sessions(found: Gathered) -> Table | None:
    """Each time that the study was run; None where nothing says it."""
    rows = tuple(
        (
            _time(one.started),
            _lasting(one.seconds),
            one.held,
            one.left,
            one.calls,
            one.tokens,
            one.ended,
            discreet(one.command) or None,
        )
        for one in found.sessions
    )
    columns = ("started (UTC)", "lasted", "debates held", "left", "calls", "tokens", "ended", "command")
    return Table("sessions", "Sessions", columns, rows) if rows else None


def _time(written: str) -> str:
    try:
        return datetime.fromisoformat(written).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return written


def compositions(found: Gathered) -> Table | None:
    """What each method is made of; None where no study.json says it."""
    known = (found.run.study or {}).get("compositions", {})
    rows = tuple((name, text) for name, text in known.items())
    return Table("compositions", "Parts", ("method", "parts"), rows) if rows else None


def results(found: Gathered, measured: Iterable[Metrics], id: str, title: str, *notes: str) -> Table:
    """Accuracy, gain, transitions and cost, a row a cell."""
    rows = [_result(one, several=len({cell.model for cell in found.cells}) > 1) for one in measured]
    columns = (
        *(("model",) if len({cell.model for cell in found.cells}) > 1 else ()),
        "data set",
        "method",
        "right",
        "accuracy, % (95 % interval)",
        "spread over seeds",
        "gain, points",
        "wrong → right, %",
        "right → wrong, %",
        "calls",
        "tokens",
    )
    said = [place for place in range(len(columns)) if any(row[place] is not None for row in rows)]
    kept = tuple(tuple(row[place] for place in said) for row in rows)
    return Table(id, title, tuple(columns[place] for place in said), kept, notes)


def _result(one: Metrics, *, several: bool) -> tuple[Entry, ...]:
    low, high = one.right.interval
    return (
        *((one.cell.model,) if several else ()),
        one.cell.dataset,
        one.cell.method,
        f"{one.right.part} of {one.right.whole}",
        Number(_hundred(one.right.share), "plain", 100 * low, 100 * high),
        None if one.spread is None else Number(100 * one.spread, "plain"),
        Number(one.gain, "points") if one.rounds and one.rounds > 1 else None,
        _share(one.transitions.to_right),
        _share(one.transitions.to_wrong),
        Number(one.calls, "plain"),
        Number(one.tokens, "plain", digits=0),
    )


def _hundred(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _share(one: Proportion) -> Number:
    return Number(_hundred(one.share), "plain")


def misconceptions(found: Gathered) -> Table | None:
    """The results on the questions that most agents begin wrong."""
    if not found.subset:
        return None
    return results(
        found,
        found.subset,
        "misconceptions",
        "On shared misconceptions",
        f"Questions, with a seed, on which more than half of {REFERENCE}'s agents are not right in round 0; the same "
        "for all methods. Methods that open alike begin wrong there by construction.",
    )


def failures(found: Gathered) -> Table | None:
    """Which calls failed, and why."""
    counted = found.trust.failures if found.trust else {}
    total: Counter[str] = sum(counted.values(), Counter())
    if not total:
        return None
    kinds = [kind for kind, _ in total.most_common()]
    rows = tuple(
        (method, *(counted[method][kind] or None for kind in kinds))
        for method in _methods(found)
        if counted.get(method)
    )
    return Table("failures", "Calls that failed, by the error", ("method", *kinds), rows)


WHOSE = {"verbal": "agents, of their own replies", "memory": "memory, of peers' replies", "group": "the vote"}


def _methods(found: Gathered) -> list[str]:
    return list(dict.fromkeys(cell.method for cell in found.cells))


def calibrations(found: Gathered) -> Table | None:
    """How far each confidence can be believed."""
    if not found.trust:
        return None
    rows = tuple(
        (
            method,
            WHOSE[whose],
            one.count,
            one.missing,
            Number(_hundred(one.confidence), "plain"),
            Number(_hundred(one.right), "plain"),
            Number(one.brier, "share"),
            Number(one.ece, "share"),
            Number(one.auc.auc if one.auc else None, "share"),
        )
        for method in _methods(found)
        for whose, one in found.trust.calibrations.get(method, {}).items()
    )
    columns = ("method", "whose", "said", "unsaid", "mean, %", "right, %", "Brier", "ECE", "AUC")
    note = (
        "Brier: mean squared error, 0 is best. ECE: mean gap between confidence and share right, 0 is best. AUC: "
        f"chance that a right one has more confidence than a wrong one, 0.5 tells nothing; {DASH} where all are right, "
        "or all wrong. r2mad metrics has intervals."
    )
    return Table("calibration", "Calibration", columns, rows, (note,)) if rows else None
