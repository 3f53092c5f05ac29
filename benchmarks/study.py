"""What a study costs on this side of the endpoint: debates a second, peak memory, and reading a large run's results.

    python benchmarks/study.py [--questions 1000] [--debates 100000]

First 1,000 questions by `mad` at a fake server of 1 ms, in a process of its own: debates and calls a second, the most
memory that this process held, and the same divided by bare aiohttp posting the same number of calls in the same run.
Then a run of 100,000 debates of 12 KB each, whose scores.jsonl alone is read and summed up: the limit is 10 s.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import aiohttp

from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.settings import Settings
from r2mad.study.config import StudyConfig, team_of
from r2mad.study.metrics import cells, measure
from r2mad.study.records import DEBATES, SCORES, Writer, dump, latest
from r2mad.study.scores import Score, latest_scores
from r2mad.study.studies import run_config
from r2mad.types import DebateRecord

LIMIT = 10.0
"""Seconds in which a hundred thousand debates are summed up."""
KILOBYTES = 12
CONNECTIONS = 64


def _peak() -> float:
    """Most memory that this process has held so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def _bare(base_url: str, calls: int) -> float:
    """Seconds for so many posts of a short body by nothing but the HTTP client."""
    body = {"model": "fake", "messages": [{"role": "user", "content": "word " * 200}], "max_tokens": 6144}
    left = iter(range(calls))
    begun = time.perf_counter()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONNECTIONS)) as session:

        async def work() -> None:
            for seed in left:
                async with session.post(f"{base_url}/chat/completions", json={**body, "seed": seed}) as response:
                    await response.json()

        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
    return time.perf_counter() - begun


async def hold(questions: int, folder: Path) -> None:
    """Run the study, and print what it took."""
    with FakeServer.spawn(FakeSettings(latency_ms=1.0, bias=0.3, adopt=0.2, no_bodies=True)) as server:
        settings = Settings(base_url=server.base_url, cache=str(folder / "calls.sqlite"), max_connections=CONNECTIONS)
        config = StudyConfig(
            "bench", ("simulated:test",), ("mad",), (team_of("openai/fake"),), settings=settings, limit=questions
        )
        before, begun = _peak(), time.perf_counter()
        outcome = await run_config(config, folder / "bench", folder / "memories")
        spent = time.perf_counter() - begun
        calls = outcome.session.calls
        bare = await _bare(server.base_url, calls)
    rates = f"{questions / spent:.1f} debates and {calls / spent:.0f} calls a second"
    print(f"{questions} questions × mad: {spent:.1f} s, {rates}")
    print(f"bare client, as many calls: {bare:.1f} s; the study took {spent / bare:.2f} times that")
    print(f"memory: {_peak():.0f} MiB at most, {before:.0f} MiB of them before the first debate")


def summarise(debates: int, folder: Path) -> float:
    """Seconds to sum up a run of so many debates from its scores; made of the study's own, with other ids."""
    records, scores = latest(folder / "bench" / DEBATES), latest_scores(folder / "bench" / SCORES)
    large = folder / "large"
    large.mkdir()
    record = next(iter(records.values()))
    padded = _padded(record)
    with (large / DEBATES).open("wb") as file:
        for number in range(debates):
            file.write(padded.replace(record.id.encode(), f"{number:016x}".encode(), 1))
    writer = Writer[Score](large / SCORES)
    for start in range(0, debates, 1000):
        rows = [replace(scores[n % len(scores)], id=f"{n:016x}") for n in range(start, min(debates, start + 1000))]
        writer.append_now(*rows)
    writer.close()
    size = (large / DEBATES).stat().st_size / debates / 1000
    begun = time.perf_counter()
    found = cells(latest_scores(large / SCORES))
    measured = [measure(cell, rows) for cell, rows in found.items()]
    spent = time.perf_counter() - begun
    assert sum(one.debates for one in measured) == debates
    print(f"{debates} debates of {size:.1f} KB summed up from their scores in {spent:.1f} s (limit {LIMIT:.0f} s)")
    return spent


def _padded(record: DebateRecord) -> bytes:
    """A record of about the size that a real model's debates have."""
    line = dump(record)
    missing = max(0, KILOBYTES * 1000 - len(line))
    first, *others = record.rounds[0].replies
    longer = replace(
        record.rounds[0], replies=(replace(first, text=first.text + " and so on" * (missing // 10)), *others)
    )
    return dump(replace(record, rounds=(longer, *record.rounds[1:]))) + b"\n"


def main() -> int:
    """Measure, print, and return 1 if the limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--debates", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(hold(options.questions, Path(folder)))
        spent = summarise(options.debates, Path(folder))
    return int(spent > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
