"""`r2mad memory info`, `list` and `show`: what is in a memory."""

from __future__ import annotations

import json as json_module
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from r2mad.cli.common import DONE, printable
from r2mad.errors import UnknownNameError, UsageError
from r2mad.settings import home_expanded

if TYPE_CHECKING:
    from r2mad.experience import Remembered
    from r2mad.protocols import MemoryStore

WIDTH = 70
"""Characters of a question that a line shows; `memory show` has all of it."""
MOST = 10
"""Debates that a message names."""


@dataclass(frozen=True)
class ListOptions:
    """Which debates to list."""

    dataset: str | None = None
    """Only debates of this data set, or of one of its splits (`NAME:split`)."""
    source: str | None = None
    """Only debates whose outcome this source told: `gold`, `feedback`, and so on."""
    question: str | None = None
    """Only debates whose question holds this text, or has it as its id."""
    limit: int | None = None
    """Only so many, the newest."""
    json: bool = False
    """Print one JSON array instead of text."""


def info(url: str, /, *, json: bool = False) -> int:
    """Show what a memory holds: agents, data sets, sources, and the embedder that reads it.

    Args:
        url: The memory, as sqlite:PATH.
        json: Print one JSON object instead of text.
    """
    from r2mad.memory import open_memory

    with closing(open_memory(url)) as store:
        row = _described(store)
    if json:
        print(json_module.dumps(row, indent=2, ensure_ascii=False))
        return DONE
    print(f"memory     {printable(row['url'])}")
    print(f"embedder   {printable(row['embedder'])}, {row['dimension']} numbers a vector")
    print(f"form       {row['form']}")
    print(f"version    {row['version']}")
    print(f"size       {_size(row['bytes'])}")
    between = f", added from {row['oldest']} to {row['newest']}" if row["debates"] else ""
    print(f"debates    {row['debates']}{between}")
    print(f"data sets  {_counted(row['datasets'])}")
    print(f"sources    {_counted(row['sources'])}")
    print(f"cases      {sum(one['cases'] for one in row['agents'])}")
    for one in row["agents"]:
        print(f"  {one['cases']:>7}  {printable(one['name'])}, by {printable(one['model'])}")
    return DONE


def _described(store: MemoryStore) -> dict[str, Any]:
    datasets: Counter[str] = Counter()
    sources: Counter[str] = Counter()
    added: list[str] = []
    debates = 0
    for debate in store.debates():
        debates += 1
        datasets[place(debate)] += 1
        sources[debate.outcome.source] += 1
        added = [min([*added, debate.added]), max([*added, debate.added])]
    return {
        "url": store.url,
        "embedder": store.embedder,
        "dimension": store.dimension,
        "form": store.form,
        "version": store.snapshot().version,
        "bytes": _bytes(store.url),
        "debates": debates,
        "oldest": added[0] if added else None,
        "newest": added[1] if added else None,
        "datasets": dict(datasets.most_common()),
        "sources": dict(sources.most_common()),
        "agents": [asdict(holder) for holder in store.roster()],
    }


def _bytes(url: str) -> int | None:
    """Size of the memory's file; None where it has none."""
    try:
        return home_expanded(Path(url.partition(":")[2])).stat().st_size
    except OSError:
        return None


def _size(number: int | None) -> str:
    return "not a file" if number is None else f"{number / 1e6:.1f} MB"


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{printable(name) or 'none named'} {number}" for name, number in counts.items()) or "none"


def place(debate: Remembered) -> str:
    """Data set and split that a debate's question comes from; empty for a question of the user's own."""
    record = debate.record
    return f"{record.dataset}:{record.split}" if record.split else record.dataset


def of_dataset(debate: Remembered, wanted: str) -> bool:
    """Whether a debate's question comes from `NAME` or `NAME:split`."""
    return wanted in (debate.record.dataset, place(debate))


def row(debate: Remembered) -> dict[str, Any]:
    """What `list` tells of a debate."""
    return {
        "id": debate.record.id,
        "added": debate.added,
        "dataset": debate.record.dataset,
        "split": debate.record.split,
        "source": debate.outcome.source,
        "rewards": list(debate.outcome.rewards),
        "cases": len(debate.states),
        "question": debate.record.question.text,
    }


def print_rows(rows: Sequence[dict[str, Any]]) -> None:
    """One line a debate, in columns."""
    cells = [
        (
            one["id"],
            one["added"][:19] or "-",
            printable(f"{one['dataset']}:{one['split']}".strip(":")) or "-",
            printable(one["source"]),
            " ".join("?" if reward is None else f"{reward:g}" for reward in one["rewards"]),
        )
        for one in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for one, cell in zip(rows, cells, strict=True):
        line = "  ".join(f"{text:<{width}}" for text, width in zip(cell, widths, strict=True))
        print(f"{line}  {excerpt(one['question'])}")


def counted(number: int) -> str:
    """So many debates."""
    return f"{number} debate{'' if number == 1 else 's'}"


def excerpt(text: str) -> str:
    """The beginning of a text, for one line."""
    line = printable(text)
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 2]} …"


def list_debates(url: str, /, *, options: Annotated[ListOptions, Parameter(name="*")] = ListOptions()) -> int:
    """List a memory's debates, one a line: id, when it was added, data set, source, the agents' rewards, question.

    Args:
        url: The memory, as sqlite:PATH.
    """
    from r2mad.memory import open_memory

    if options.limit is not None and options.limit < 1:
        raise UsageError(f"--limit {options.limit} is out of range (1 or more)")
    sought = None if options.question is None else options.question.casefold()
    rows: deque[dict[str, Any]] = deque(maxlen=options.limit)
    with closing(open_memory(url)) as store:
        for debate in store.debates():
            asked = debate.record.question
            if (
                (options.dataset is None or of_dataset(debate, options.dataset))
                and (options.source is None or options.source == debate.outcome.source)
                and (sought is None or sought in asked.text.casefold() or options.question == asked.id)
            ):
                rows.append(row(debate))
    if options.json:
        print(json_module.dumps(list(rows), indent=2, ensure_ascii=False))
    elif rows:
        print_rows(rows)
    return DONE


def show(url: str, id: str, /, *, json: bool = False) -> int:
    """Show one debate: its question, its outcome, who was right in each round, and the cases that it left.

    Args:
        url: The memory, as sqlite:PATH.
        id: A debate's, case's or question's id, or the beginning of one that no other has.
        json: Print the debate as one line of JSON, as `memory export` writes it, with its cases.
    """
    from r2mad.memory import open_memory

    with closing(open_memory(url)) as store:
        debate = _sought(store, id)
    if json:
        from r2mad.memory.exchange import debate_line

        cases = [{"id": name, "round": t, "agent": i} for (t, i), name in _cases(debate).items()]
        print(json_module.dumps({**json_module.loads(debate_line(debate)), "cases": cases}, ensure_ascii=False))
        return DONE
    _print_debate(debate)
    return DONE


def _cases(debate: Remembered) -> dict[tuple[int, int], str]:
    from r2mad.experience import case_id

    return {(t, i): case_id(debate.record.id, t, i) for t, i in sorted(debate.states)}


def _sought(store: MemoryStore, id: str) -> Remembered:
    """The debate of that id, or the one that has a case or a question of it; exact ids come before beginnings.

    Raises:
        UsageError: there is none, or there are several.
    """
    if not id.strip():
        raise UsageError("an id is needed; `r2mad memory list` shows the debates'")
    if id in store.known():
        return next(iter(store.debates({id})))
    found: dict[bool, list[str]] = {True: [], False: []}
    for debate in store.debates():
        names = {debate.record.id, debate.record.question.id, *_cases(debate).values()}
        if any(name.startswith(id) for name in names):
            found[id in names].append(debate.record.id)
    ids = found[True] or found[False]
    if not ids:
        raise UnknownNameError(f"no debate, case or question {id!r} in {store.url}; see `r2mad memory list`")
    if len(ids) > 1:
        more = f" and {len(ids) - MOST} more" if len(ids) > MOST else ""
        raise UsageError(f"{id!r} is of {len(ids)} debates: {', '.join(ids[:MOST])}{more}; give one of these ids")
    return next(iter(store.debates({ids[0]})))


def _print_debate(debate: Remembered) -> None:
    record, outcome, cases = debate.record, debate.outcome, _cases(debate)
    print(f"Debate {record.id}, {record.method}, seed {record.seed}; added {debate.added or 'who knows when'}")
    print(
        f"Question {printable(record.question.id)} {f'({printable(place(debate))})' if place(debate) else ''}".rstrip()
    )
    print(f"  {printable(record.question.text)}")
    for letter, option in record.question.lettered:
        print(f"  ({letter}) {printable(option)}")
    right = "not known" if outcome.answer is None else printable(outcome.answer)
    answer = "none" if record.answer is None else printable(record.answer)
    print(f"Right answer: {right}, by {printable(outcome.source)}; the group's: {answer}")
    for agent, reward in zip(record.agents, outcome.rewards, strict=True):
        known = "not known" if reward is None else f"{reward:g}"
        print(f"  {printable(agent.name)}, by {printable(agent.model)}: reward {known}")
    for settled, verdicts in zip(record.rounds, outcome.correct, strict=True):
        print(f"Round {settled.index}")
        for reply in settled.replies:
            said = "failed" if reply.error else "no answer" if reply.answer is None else printable(reply.answer)
            verdict = {True: "right", False: "wrong", None: "not judged"}[verdicts[reply.agent]]
            case = f"  case {name}" if (name := cases.get((settled.index, reply.agent))) else ""
            print(f"  {printable(record.agents[reply.agent].name)}: {said}, {verdict}{case}")
