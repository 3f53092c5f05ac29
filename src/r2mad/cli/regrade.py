"""`r2mad regrade`: old debates under today's extractor and golds, without a call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from r2mad.cli.common import DONE, complain, log_to_stderr, printable
from r2mad.settings import home_expanded

if TYPE_CHECKING:
    from r2mad.study.regrade import Changed, Counts, Outcome

EXCERPT = 72
"""Characters of a reply's end that an example shows."""


def regrade(run: Path, /, *, dry_run: bool = False) -> int:
    """Read and grade all debates of a run anew, with today's extractor and the golds of its items.jsonl.

    Nothing is asked, and debates.jsonl stays as it is. The new grades take the place of scores.jsonl, the old file is
    kept as scores.1.jsonl (or the next free number). A group's answer is found anew where a plain vote found it; where
    a judge or stated confidence did, it stays, and is graded anew.

    Args:
        run: The run's folder; where it is not there, its shards RUN-shard-i-of-n beside it.
        dry_run: Only tell what would change.
    """
    from r2mad.study import regrade as regrading
    from r2mad.study.runs import folders_of

    log_to_stderr("warning")
    outcomes = []
    for folder in folders_of(home_expanded(run)):
        found = regrading.regrade(folder, write=not dry_run)
        outcomes.append(found)
        _print(found, dry_run)
    if any(found.without_item for found in outcomes):
        complain("debates without an item keep their old grades")
    return DONE


def _print(found: Outcome, dry_run: bool) -> None:
    total = sum(counts.debates for counts in found.by_method.values())
    print(f"{printable(str(found.folder))}: {total} debates graded anew")
    if found.without_item:
        print(f"{found.without_item} debates are on questions that items.jsonl lacks")
    for line in _table(found.by_method):
        print(line)
    kept = sum(counts.kept for counts in found.by_method.values())
    if kept:
        print(f"\nvotes that stand as they were, for they go by more than answers: {kept}; their grades are new")
    if found.examples:
        print("\nfor example")
        for one in found.examples:
            for line in _example(one):
                print(f"  {line}")
    print(f"\n{_end(found, dry_run)}")


def _table(by_method: dict[str, Counts]) -> Sequence[str]:
    width = max((len(printable(name)) for name in by_method), default=6)
    lines = [f"{'method':<{width}}  debates  answers  votes  to right  to wrong  reply grades  had no grade"]
    lines += [
        f"{printable(name):<{width}}  {one.debates:>7}  {one.answers:>7}  {one.votes:>5}  {one.to_right:>8}  "
        f"{one.to_wrong:>8}  {one.replies:>12}  {one.ungraded:>12}"
        for name, one in by_method.items()
    ]
    return [
        *lines,
        "answers, votes: found differently now than when the debate was held; the rest: against the old grades",
    ]


def _example(one: Changed) -> Sequence[str]:
    where = f"{printable(one.method)}, question {printable(one.question)}"
    if one.graded:
        was, now = ("right" if right else "wrong" for right in one.graded)
        return [f"{where}: the group's answer {_said(one.before)} was {was}, {_said(one.now)} is {now}"]
    line = f"{where}, round {one.round}, agent {one.agent}: {_said(one.before)} before, {_said(one.now)} now"
    return [line, f"  … {printable(one.text)[-EXCERPT:]}"]


def _said(answer: str | None) -> str:
    return "no answer" if answer is None else repr(printable(answer))


def _end(found: Outcome, dry_run: bool) -> str:
    if not found.changed:
        return "Nothing changed; scores.jsonl stays as it is."
    if dry_run:
        return "Nothing was written; without --dry-run scores.jsonl would be."
    kept = f"; the old one is {found.kept_as.name}" if found.kept_as else ""
    return f"scores.jsonl is written anew{kept}. Look at r2mad report {printable(str(found.folder))}"
