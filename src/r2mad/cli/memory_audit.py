"""`r2mad memory audit`: what is wrong with a memory, and what runs did with it."""

from __future__ import annotations

import json as json_module
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from r2mad.cli.ask import LIST
from r2mad.cli.common import DONE, INCOMPLETE, complain, log_to_stderr, printable
from r2mad.cli.memory_look import excerpt
from r2mad.errors import R2madError, StoreError, UsageError
from r2mad.settings import home_expanded

if TYPE_CHECKING:
    from r2mad.memory.audit import Audit, Auditor
    from r2mad.study.retrieved import Retrievals, Share
    from r2mad.types import Item

TOP = 10
"""Cases that the text of `memory audit --run` shows; its JSON has them all."""


@dataclass(frozen=True)
class AuditOptions:
    """What to hold a memory against."""

    against: Annotated[list[str], LIST] = field(default_factory=list)
    """`DATASET` or `DATASET:split` whose questions should not be in it; give it once for each. By default all splits
    but `train` of the data sets that its debates come from."""
    run: Annotated[list[Path], LIST] = field(default_factory=list)
    """Folder of a run that used the memory: shows which cases were retrieved, and how those debates ended."""
    strict: bool = False
    """Exit with 1 if anything is wrong: questions of an evaluation split in it, contradicting outcomes, an agent whose
    cases were all right or all wrong or have no known outcome, or (a mere warning else) questions nearly the same."""
    ids: Path | None = None
    """New file for the ids of the debates to be rid of, for `r2mad memory forget --ids`."""
    json: bool = False
    """Print one JSON object instead of text; `forget --ids` reads that as well."""


def audit(url: str, /, *, options: Annotated[AuditOptions, Parameter(name="*")] = AuditOptions()) -> int:
    """Check a memory: leaked evaluation questions, contradicting outcomes, doubles, and banks without any contrast.

    Each finding is wrong, a warning, or a note, and says how many debates it is about. Without --strict the exit code
    does not depend on what is found. To be rid of what is wrong:

        r2mad memory audit sqlite:PATH --ids BAD.txt
        r2mad memory forget sqlite:PATH --ids BAD.txt

    Args:
        url: The memory, as sqlite:PATH.
    """
    from r2mad.experience import case_id
    from r2mad.memory import open_memory
    from r2mad.memory.audit import Auditor
    from r2mad.study import datasets
    from r2mad.study.retrieved import retrievals

    log_to_stderr("warning")
    if options.ids and home_expanded(options.ids).exists():
        raise _there_already(options.ids)
    items = [item for name in options.against for item in datasets.load(name)]
    used = retrievals(map(home_expanded, options.run)) if options.run else None
    wanted = {use.case for use in used.uses} if used else set()
    origins: dict[str, tuple[str, str]] = {}
    auditor = Auditor()
    with closing(open_memory(url)) as store:
        for debate in store.debates():
            auditor.take(debate)
            if wanted:
                origin = (debate.record.id, debate.record.question.text)
                names = (case_id(debate.record.id, t, i) for t, i in debate.states)
                origins |= {name: origin for name in names if name in wanted}
    against, items = (options.against, items) if options.against else _held_out(auditor)
    found = auditor.report(items)
    if options.ids:
        _write_ids(options.ids, found)
    if options.json:
        rows = _use_rows(used, origins) if used else None
        whole = {**asdict(found), "clean": found.clean, "forget": found.forget, "against": against, "retrieved": rows}
        print(json_module.dumps(whole, indent=2, ensure_ascii=False))
    else:
        _print_audit(found, against)
        if used:
            _print_uses(used, origins)
    return INCOMPLETE if options.strict and not found.clean else DONE


def _held_out(auditor: Auditor) -> tuple[list[str], list[Item]]:
    """The splits but `train` of the data sets that a memory's debates come from, and their items."""
    from r2mad.study import datasets

    names: dict[str, None] = {}
    items: list[Item] = []
    for name in sorted(auditor.datasets):
        try:
            held_out = [item for item in datasets.load(name) if item.split != "train"]
        except R2madError as error:
            complain(f"not held against {name}: {error}")
            continue
        names |= {f"{name}:{item.split}": None for item in held_out}
        items += held_out
    return list(names), items


def _write_ids(path: Path, found: Audit) -> None:
    lines = []
    for one in found.findings:
        if one.weight != "note" and one.forget:
            lines += [f"# {one.kind}: {printable(one.text)}", *one.forget]
    try:
        with home_expanded(path).open("x", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
    except FileExistsError as error:
        raise _there_already(path) from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from error


def _there_already(path: Path) -> UsageError:
    return UsageError(f"{path} is there already; choose another file for --ids")


def _print_audit(found: Audit, against: Sequence[str]) -> None:
    print(f"{found.debates} debates, {found.cases} cases; held against {', '.join(against) or 'no data set'}")
    if found.experiences:
        print(f"{'cases':>7} {'known':>7} {'rewarded':>8}  agent, data set, source")
    for one in found.experiences:
        share = "-" if one.share is None else f"{one.share:.0%}"
        names = ", ".join(printable(name) or "-" for name in (one.agent, one.dataset, one.source))
        print(f"{one.cases:>7} {one.known:>7} {share:>8}  {names}")
    for finding in found.findings:
        print(f"{finding.weight:<7}  {finding.kind}: {printable(finding.text)}")
        for example in finding.examples:
            print(f"{'':<9}{excerpt(example)}")
    if found.clean:
        print("nothing is wrong")


def _use_rows(used: Retrievals, origins: dict[str, tuple[str, str]]) -> dict[str, Any]:
    def ended(share: Share) -> dict[str, Any]:
        return {**asdict(share), "share": share.share, "interval": share.interval}

    cases = []
    for use in used.uses:
        debate, question = origins.get(use.case, (None, None))
        cases.append(
            {
                **asdict(use),
                "with_it": ended(use.with_it),
                "without": ended(use.without),
                "debate": debate,
                "question": question,
            }
        )
    return {"debates": used.debates, "ungraded": used.ungraded, "versions": used.versions, "cases": cases}


def _print_uses(used: Retrievals, origins: dict[str, tuple[str, str]]) -> None:
    def ended(share: Share) -> str:
        low, high = share.interval
        return f"{share.right}/{share.debates}, {low:.0%} to {high:.0%}"

    print(f"\n{used.debates} debates of the runs had a memory; {used.ungraded} of them are not graded")
    print(f"{len(used.uses)} cases were retrieved{f'; the {TOP} most often:' if len(used.uses) > TOP else ''}")
    if used.uses:
        print(f"{'times':>6} {'debates':>7}  {'right with it':<20}  {'right without':<20}  case, question")
    for use in used.uses[:TOP]:
        _, question = origins.get(use.case, ("", "(not in this memory)"))
        numbers = f"{use.times:>6} {use.debates:>7}  {ended(use.with_it):<20}  {ended(use.without):<20}"
        print(f"{numbers}  {use.case} {excerpt(question)}")
