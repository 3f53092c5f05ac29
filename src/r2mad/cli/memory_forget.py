"""`r2mad memory forget`: taking debates out of a memory."""

from __future__ import annotations

import json as json_module
import re
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from r2mad.cli.common import DONE, INCOMPLETE, complain
from r2mad.cli.memory_look import counted, of_dataset, print_rows, row
from r2mad.errors import StoreError, UsageError
from r2mad.settings import home_expanded

if TYPE_CHECKING:
    from r2mad.experience import Remembered

SHOWN = 10
"""Debates that `forget` names before it asks; it says how many more there are."""
UNITS = {"h": "hours", "d": "days", "w": "weeks"}
"""What an age may be counted in."""


@dataclass(frozen=True)
class ForgetOptions:
    """Which debates are to go; of several filters all must hold."""

    source: str | None = None
    """Debates whose outcome this source told."""
    dataset: str | None = None
    """Debates of this data set, or of one of its splits (`NAME:split`)."""
    question: str | None = None
    """Debates on the question of this id or of exactly this text."""
    older_than: str | None = None
    """Debates added longer ago than this (`30d`, `12h`, `2w`), or before this date (ISO 8601; UTC if it does not
    say)."""
    ids: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None
    """File with debates' ids, one a line, or what `r2mad memory audit --json` printed; - for standard input."""
    dry_run: bool = False
    """Only show what would go."""
    yes: bool = False
    """Do not ask."""


def forget(url: str, /, *, options: Annotated[ForgetOptions, Parameter(name="*")] = ForgetOptions()) -> int:
    """Take debates out of a memory, with all their cases, after showing which.

    Of several filters all must hold. It asks before anything goes, or needs --yes where nobody can be asked.

        r2mad memory forget sqlite:PATH --source feedback --older-than 30d --dry-run

    Args:
        url: The memory, as sqlite:PATH.
    """
    from r2mad.memory import open_memory

    chosen, listed = _filters(options)
    with closing(open_memory(url)) as store:
        unknown = sorted(listed - store.known()) if listed is not None else []
        going = {}
        for debate in store.debates(listed):
            if all(holds(debate) for holds in chosen):
                going[debate.record.id] = row(debate)
        for id in unknown[:SHOWN]:
            complain(f"no debate {id!r} in {url}")
        if len(unknown) > SHOWN:
            complain(f"and {len(unknown) - SHOWN} more ids that are not in it")
        _show_going(list(going.values()))
        if going and not options.dry_run:
            if not (options.yes or _agreed(len(going))):
                complain("nothing was forgotten")
                return INCOMPLETE
            print(f"forgot {counted(store.forget(going.keys()))}")
    return INCOMPLETE if unknown else DONE


def _show_going(rows: list[dict[str, Any]]) -> None:
    if not rows:
        print("no debate is to go")
        return
    print(f"{counted(len(rows))} to go, with {sum(one['cases'] for one in rows)} cases")
    print_rows(rows[:SHOWN])
    if len(rows) > SHOWN:
        print(f"and {len(rows) - SHOWN} more")


def _agreed(number: int) -> bool:
    """Ask. Only a terminal can answer.

    Raises:
        UsageError: there is none.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("nobody can be asked here: give --yes to forget them, or --dry-run to look only")
    sys.stdout.flush()
    print(f"Forget {counted(number)}? They cannot be brought back. [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _filters(options: ForgetOptions) -> tuple[list[Callable[[Remembered], bool]], set[str] | None]:
    """What must hold of a debate that is to go, and the ids it must be among.

    Raises:
        UsageError: there is no filter, or one that cannot be read.
    """
    chosen: list[Callable[[Remembered], bool]] = []
    if options.source is not None:
        chosen.append(lambda debate: debate.outcome.source == options.source)
    if (dataset := options.dataset) is not None:
        chosen.append(lambda debate: of_dataset(debate, dataset))
    if (question := options.question) is not None:
        text = _squeezed(question)
        chosen.append(
            lambda debate: debate.record.question.id == question or _squeezed(debate.record.question.text) == text
        )
    if options.older_than is not None:
        limit = _moment(options.older_than, datetime.now(UTC))
        chosen.append(lambda debate: (when := _when(debate.added)) is not None and when < limit)
    listed = None if options.ids is None else _read_ids(options.ids)
    if not chosen and listed is None:
        raise UsageError("say what is to go: --source, --dataset, --question, --older-than or --ids")
    return chosen, listed


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _moment(given: str, now: datetime) -> datetime:
    """The time before which a debate is old.

    Raises:
        UsageError: neither an age nor a date.
    """
    age = re.fullmatch(r"([0-9]{1,6})([hdw])", given.strip())
    with suppress(ValueError, OverflowError):
        return now - timedelta(**{UNITS[age[2]]: int(age[1])}) if age else _utc(datetime.fromisoformat(given.strip()))
    raise UsageError(f"--older-than {given!r} is neither an age (30d, 12h, 2w) nor a date (2026-01-31)")


def _when(added: str) -> datetime | None:
    try:
        return _utc(datetime.fromisoformat(added))
    except ValueError:
        return None  # nobody knows, so it is not old


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _read_ids(path: Path) -> set[str]:
    """The ids of a file; what follows a # in a line is a remark.

    Raises:
        StoreError: it cannot be read.
        UsageError: it is JSON, and not an audit's.
    """
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else home_expanded(path).read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    text = raw.decode("utf-8-sig", errors="replace")
    if not text.lstrip().startswith(("{", "[")):
        return {id for line in text.splitlines() if (id := line.partition("#")[0].strip())}
    try:
        ids = json_module.loads(text)["forget"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UsageError(f"{path}: neither ids, one a line, nor what `memory audit --json` prints") from error
    if not isinstance(ids, list) or not all(isinstance(id, str) for id in ids):
        raise UsageError(f"{path}: its `forget` is not a list of ids")
    return set(ids)
