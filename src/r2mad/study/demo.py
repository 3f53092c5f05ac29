"""The demo: the usual methods on a handful of starter questions, with what each came to and what it took.

`r2mad` reads a memory of the starter set's train split. That of the embedded model ships as text, `demo_memory.jsonl`,
made by

    r2mad remember starter --model local/smollm2-135m --memory sqlite:demo.db
    r2mad memory export sqlite:demo.db demo_memory.jsonl

and is embedded anew when the demo begins. For another model the demo builds a small one first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from r2mad.api import Models, Table, open_table
from r2mad.memory import exchange
from r2mad.memory.cases import embed_debate
from r2mad.settings import Settings
from r2mad.study import remember as remembering
from r2mad.study.datasets import load
from r2mad.study.records import DEBATES, latest
from r2mad.study.runner import Announce, run_study
from r2mad.study.scores import Score, summarise
from r2mad.study.stats import wilson
from r2mad.types import DebateRecord, Item, total

METHODS = ("cot", "sc-3", "vote", "mad", "r2mad")
EMBEDDED = "local/smollm2-135m"
"""The model whose memory ships."""
MEMORY = Path(__file__).parent / "demo_memory.jsonl"
LESSONS = 1
"""Train questions that another model debates for each question of its demo: few, since it has to be asked."""


@dataclass(frozen=True, slots=True)
class Line:
    """One method's line of the table."""

    method: str
    right: int
    debates: int
    low: float
    high: float
    """Ends of Wilson's 95 % interval of the accuracy."""
    lost: int
    """Agents' answers that went from right to wrong from one round to the next."""
    rescued: int
    """Those that went from wrong, or from none, to right."""
    unparsed: int
    replies: int
    calls: int
    shared: int
    """Of the calls, those that another method had made already."""
    read_tokens: int
    """Prompt tokens of the calls that were made for this method, less those that the server still had read."""
    completion_tokens: int
    """Tokens written in those calls."""
    seconds: float
    """Time of those calls."""


async def make_memory(
    model: Models, url: str, settings: Settings, limit: int, announce: remembering.Announce | None = None
) -> int:
    """The memory that the demo reads, at `url`: the one that ships, or a small one of the model's own; its debates.

    Raises:
        R2madError: see `r2mad.study.remember.remember`.
    """
    async with remembering.open_shelf(url, settings) as shelf:
        if model == EMBEDDED:
            with MEMORY.open("rb") as lines:
                source = exchange.Import(lines, MEMORY.name)
                await exchange.read_in(
                    source, shelf.store, lambda record, outcome: embed_debate(record, outcome, shelf.embedder)
                )
            return source.added
        async with open_table(model, settings) as table:
            items = handful(LESSONS * limit, "train")
            return (await remembering.remember(table, items, shelf, announce=announce)).added


def handful(limit: int, split: str = "test") -> list[Item]:
    """The first `limit` questions of a split, taken from the groups in turn so that each is there."""
    groups: dict[str, list[Item]] = {}
    for item in load(f"starter:{split}"):
        groups.setdefault(item.group, []).append(item)
    # Two everyday questions for each of the others: they are what the embedded model can do.
    queues = [groups["everyday"], groups["arithmetic"], groups["everyday"], groups["misconceptions"]]
    queues += [groups["everyday"], groups["economics"], groups["everyday"], groups["engineering"]]
    taken: list[Item] = []
    while len(taken) < limit and any(queues):
        for queue in queues:
            if queue and len(taken) < limit:
                taken.append(queue.pop(0))
    return sorted(taken, key=lambda item: item.group)  # those of a kind together: their prompts begin alike


async def run_demo(
    table: Table, items: Sequence[Item], folder: Path, *, seed: int, announce: Announce | None = None
) -> tuple[list[Line], DebateRecord]:
    """Hold all methods' debates, and return the table and the debate most worth reading.

    Raises:
        StoreError: the folder cannot be written.
    """
    scores = await run_study(table, items, METHODS, folder, seed=seed, announce=announce)
    records = latest(folder / DEBATES)
    lines = [_line(name, [s for s in scores if s.method == name], records) for name in METHODS]
    debates = [score for score in scores if score.method == METHODS[-1]]
    liveliest = max(debates, key=lambda score: (len(score.grades), _flips(score), score.id))
    return lines, records[liveliest.id]


def _flips(score: Score) -> tuple[int, int]:
    """(rescued, lost) over all agents and rounds of one debate."""
    steps = [
        (was, now)
        for before, after in zip(score.grades, score.grades[1:], strict=False)
        for was, now in zip(before, after, strict=True)
    ]
    rescued = sum(was != "1" and now == "1" for was, now in steps)
    lost = sum(was == "1" and now != "1" for was, now in steps)
    return rescued, lost


def _line(method: str, scores: Sequence[Score], records: dict[str, DebateRecord]) -> Line:
    summary = summarise(scores)
    low, high = wilson(summary.correct, summary.debates)
    replies = [reply for score in scores for one in records[score.id].rounds for reply in one.replies]
    made = [reply for reply in replies if not reply.cached]
    used = total(reply.usage for reply in made)
    flips = [_flips(score) for score in scores]
    return Line(
        method=method,
        right=summary.correct,
        debates=summary.debates,
        low=low,
        high=high,
        lost=sum(lost for _, lost in flips),
        rescued=sum(rescued for rescued, _ in flips),
        unparsed=summary.unparsed,
        replies=summary.replies,
        calls=summary.calls,
        shared=len(replies) - len(made),
        read_tokens=used.prompt_tokens - used.cached_tokens,
        completion_tokens=used.completion_tokens,
        seconds=sum(reply.seconds for reply in made),
    )


def expected_calls(items: int) -> int:
    """Calls that the demo makes at most: what the methods share is asked once. The tiny pack has no summary to ask for,
    so with another model there are two more for each question."""
    return items * (3 + 2 + 6 + 6)  # sc-3; agents 1 and 2 of round 0; two debate rounds of three agents, twice
