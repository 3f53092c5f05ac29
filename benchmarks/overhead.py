"""What remembering costs: the wall time of `r2mad` against `mad` in the same run, on a server as slow as a model.

    python benchmarks/overhead.py [--debates 50] [--repeats 3]

50 debates of 3 agents and 3 rounds at once, no early stop, 150 connections; the server takes 10 ms and 4 ms for each
token of the reply, replies have 250 tokens and summaries 60. Summaries, embeddings (WordLlama) and retrieval are all
in. The limit is 1.3 times `mad`; two summaries alone are 1.17 times.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from r2mad import embed, engine, retrieval
from r2mad.api import Table, open_table
from r2mad.methods import METHODS
from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.prompts import Pack
from r2mad.protocols import ChatModel
from r2mad.settings import Settings
from r2mad.study.remember import open_shelf, remember
from r2mad.types import Completion, Item, Question, Request
from r2mad.verdict import Never

LIMIT = 1.3
"""Most times the wall time of `mad`; the paper reports 1.5 to 2."""
TRAINING = 200
"""Training questions: 400 cases an agent. What a larger bank costs is in memory.py; it is little beside a reply."""
SLOW = FakeSettings(latency_ms=10, ms_per_token=4, reply_tokens=250, summary_tokens=60, bias=0, adopt=0, no_bodies=True)
QUICK = replace(SLOW, latency_ms=0, ms_per_token=0)
OPTIONS = tuple(f"option {word}" for word in ("one", "two", "three", "four", "five", "six", "seven", "eight"))

spent: dict[str, float] = defaultdict(float)
"""Seconds of the client's work by what it was for, added up over all debates; they overlap with waiting."""


def _questions(count: int, split: str) -> list[Item]:
    return [
        Item(
            Question(f"In the {split} set, case {n} of the long survey: which holds?", OPTIONS, id=f"{split}/{n}"), "A"
        )
        for n in range(count)
    ]


class _Distinct:
    """The fake model with replies that are all different: its own are a few hundred, and a cache would gain by it."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.name, self.identity = model.name, model.identity

    async def complete(self, request: Request) -> Completion:
        found = await self._model.complete(request)
        if request.kind == "summary":
            return found
        words = [
            f"{word}{request.seed % 997}" if place % 5 == 0 else word
            for place, word in enumerate(found.text.split(" "))
        ]
        return replace(found, text=" ".join(words))

    async def aclose(self) -> None:
        await self._model.aclose()


def _timed(owner: Any, name: str, label: str) -> None:
    """Add the time that a function of ours takes to `spent`; it waits for nothing while it is timed."""
    plain: Callable[..., Any] = getattr(owner, name)

    def timed(*args: Any, **more: Any) -> Any:
        begun = time.perf_counter()
        try:
            return plain(*args, **more)
        finally:
            spent[label] += time.perf_counter() - begun

    setattr(owner, name, timed)


async def _run(table: Table, name: str, items: list[Item], seed: int) -> float:
    method = replace(METHODS[name], stop=Never())
    begun = time.perf_counter()

    async def hold(item: Item) -> None:
        scene, sized = table.prepare(item.question, method, seed=seed)
        record = await engine.run(scene, sized)
        assert not record.degraded
        assert len(record.rounds) == 3

    await asyncio.gather(*(hold(item) for item in items))
    return time.perf_counter() - begun


async def measure(debates: int, repeats: int) -> list[tuple[float, float]]:
    """Pairs of (mad, r2mad) wall times, the two in turns."""
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        memory = f"sqlite:{Path(folder) / 'memory.db'}"
        with FakeServer.spawn(QUICK) as server:
            settings = Settings(base_url=server.base_url, cache=":memory:")
            async with open_table("openai/fake", settings) as table, open_shelf(memory, settings) as shelf:
                await remember(table, _questions(TRAINING, "training"), shelf)
        with FakeServer.spawn(SLOW) as server:
            settings = Settings(base_url=server.base_url, cache=":memory:", max_connections=150, memory=memory)
            for repeat in range(-1, repeats):  # the first pair warms up: connections, templates, the bank
                items = _questions(debates, f"test {repeat}")
                seconds = {}
                for name in ("mad", "r2mad") if repeat % 2 else ("r2mad", "mad"):
                    spent.clear()
                    async with open_table(
                        "openai/fake", settings
                    ) as table:  # each its own cache: round 0 is not shared
                        seconds[name] = await _run(table, name, items, seed=repeat)
                    if name == "r2mad" and repeat >= 0:
                        _tell(debates)
                if repeat >= 0:
                    pairs.append((seconds["mad"], seconds["r2mad"]))
    return pairs


def _tell(debates: int) -> None:
    parts = ", ".join(f"{label} {1000 * seconds / debates:.2f}" for label, seconds in sorted(spent.items()))
    print(f"  client's work in r2mad, ms a debate: {parts}")


def main() -> int:
    """Measure, print, and return 1 if the limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--debates", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    from r2mad.embed import wordllama

    _timed(wordllama, "_vectors", "embedding")
    _timed(retrieval.Retrieval, "_search", "retrieval")
    for name in ("summary", "experience", "debate"):
        _timed(Pack, name, "prompts")
    assert embed.DEFAULT == "wordllama"
    pairs = asyncio.run(measure(options.debates, options.repeats))
    reply, summary = 10 + 4 * 250, 10 + 4 * 60
    waits = (3 * reply / 1000, (3 * reply + 2 * summary) / 1000)
    ratios = []
    for mad, r2mad in pairs:
        ratios.append(r2mad / mad)
        shares = f"{mad / waits[0]:.3f} and {r2mad / waits[1]:.3f} of their waits"
        print(f"mad {mad:.2f} s, r2mad {r2mad:.2f} s ({shares})")
    ratio = statistics.median(ratios)
    state = "ok" if ratio <= LIMIT else "OVER"
    print(f"r2mad ÷ mad: {ratio:.3f} (limit {LIMIT}, waits alone {waits[1] / waits[0]:.3f}) {state}")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
