"""How close the client side comes to the ideal: wall time, CPU a call, calls a second, connections kept busy.

The fake server runs in a process of its own. Everything is a ratio against a baseline of the same run: bare aiohttp
posting the same bodies over one session. Run with `make bench`; about two minutes.

    wall ÷ ideal        ideal = calls × latency ÷ connections, or the three rounds one after another if that is longer
    CPU a call          user + system time of this process, cache, records and fsync included
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from r2mad.api import open_table
from r2mad.models.fake_server import FakeServer, SpawnedServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.settings import Settings
from r2mad.study.runner import run_study
from r2mad.types import Item, Question


@dataclass(frozen=True)
class Measured:
    """One run."""

    wall: float
    cpu: float
    calls: int

    @property
    def cpu_ms(self) -> float:
        """Milliseconds of CPU a call."""
        return 1000 * self.cpu / self.calls

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.calls / self.wall


async def measure(work: Callable[[], Awaitable[int]]) -> Measured:
    """Time one run of `work`, which returns the number of calls it made."""
    wall, cpu = time.perf_counter(), time.process_time()
    calls = await work()
    return Measured(time.perf_counter() - wall, time.process_time() - cpu, calls)


def items(count: int) -> list[Item]:
    """Choice questions of ten options; without a lean in the answers, debates all but never end early."""
    options = tuple(f"option number {n}" for n in range(10))
    return [
        Item(Question(f"Question {n}: which?", options, id=f"bench/{n}"), "A", "bench", "test") for n in range(count)
    ]


async def debates(url: str, count: int, connections: int) -> int:
    """`count` debates of `mad` with a fresh cache and fresh records, on disk."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(base_url=url, cache=str(Path(folder) / "calls.sqlite"), max_connections=connections)
        async with open_table("openai/fake", settings) as table:
            scores = await run_study(table, items(count), ["mad"], Path(folder) / "run", seed=1)
        return sum(score.calls for score in scores)


async def bare(url: str, calls: int, connections: int) -> int:
    """The same number of calls of much the same size, by aiohttp alone."""
    body = {"model": "fake", "seed": 1, "max_tokens": 6144, "messages": [{"role": "user", "content": "x " * 300}]}
    gate = asyncio.Semaphore(connections)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one(number: int) -> None:
            async with gate, session.post(f"{url}/chat/completions", json={**body, "seed": number}) as response:
                json.loads(await response.read())

        await asyncio.gather(*(one(number) for number in range(calls)))
    return calls


def ideal(calls: int, latency: float, connections: int, rounds: int = 3) -> float:
    """Seconds that no client can beat: whole waves of calls, and never less than one wave a round."""
    return max(math.ceil(calls / connections), rounds) * latency


def serve(latency_ms: float) -> AbstractContextManager[SpawnedServer]:
    """A fake server in another process."""
    return FakeServer.spawn(FakeSettings(latency_ms=latency_ms, bias=0.0, adopt=0.0, no_bodies=True))


async def versus_bare(url: str, count: int, connections: int, latency: float, title: str) -> tuple[Measured, Measured]:
    """One line of the report: ours, bare aiohttp, and the ratios."""
    await bare(url, connections, connections)  # both sides warm
    ours = await measure(lambda: debates(url, count, connections))
    base = await measure(lambda: bare(url, ours.calls, connections))
    best = ideal(ours.calls, latency, connections)
    print(
        f"{title}: {ours.calls} calls in {ours.wall:.2f} s, {ours.wall / best:.3f} × ideal (bare aiohttp "
        f"{base.wall / best:.3f}); {ours.cpu_ms:.2f} ms CPU a call (bare {base.cpu_ms:.2f}, ratio "
        f"{ours.cpu_ms / base.cpu_ms:.1f}); {ours.rate:.0f} calls/s (bare {base.rate:.0f})",
        flush=True,
    )
    return ours, base


async def widest(latency: float) -> None:
    """The largest number of connections that one process keeps busy: at least 90 % of them in flight on average."""
    kept = 0
    for connections in (64, 128, 256, 512, 1024, 2048):
        with serve(latency * 1000) as server:
            got = await measure(lambda url=server.base_url, n=connections: debates(url, 4 * n, n))  # type: ignore[misc]
        busy = got.calls * latency / got.wall / connections
        print(
            f"{connections} connections at {latency * 1000:.0f} ms: {busy:.0%} busy, {got.rate:.0f} calls/s", flush=True
        )
        if busy < 0.9:
            break
        kept = connections
    print(f"One process keeps {kept} connections busy at {latency * 1000:.0f} ms latency.")


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--debates", type=int, default=200, help="debates in the first measurement")
    arguments = parser.parse_args()
    with serve(500.0) as server:
        await versus_bare(server.base_url, arguments.debates, 64, 0.5, "500 ms latency, 64 connections")
    with serve(50.0) as server:
        await versus_bare(server.base_url, arguments.debates * 2, 64, 0.05, "50 ms latency, 64 connections")
    await widest(0.5)


if __name__ == "__main__":
    asyncio.run(main())
