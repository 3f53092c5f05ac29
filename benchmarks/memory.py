"""What a search of the memory costs beside the bare matrix product, and what loading, adding and holding it cost.

Debates of 3 agents and 3 rounds are made up, so that each agent has 1,000, 10,000 and 100,000 cases, with vectors of
256 dimensions. For each size:

    product     similarities of all cases of an agent to one debate state: one matrix product, which no search can avoid
    search      the same, then what is computed from it: 3K = 9 candidates, MMR, the peers' confidence
    cases       reading the K = 3 chosen cases, each for the first time; it does not grow with the memory
    add         1,000 cases, and beside it a bare SQLite insert of the same bytes, as durable
    load        from opening the file to having an agent's cases, in a fresh process, and beside it a bare read
    resident    how much that process grows, over the bytes of the vectors

Ratios compare medians of the same run, whose sides take turns. The exit code is 1 if one is over its limit. Run with
`python benchmarks/memory.py`; about one minute and 2 GB of disk, most of it for making the memory.
"""

from __future__ import annotations

import argparse
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from r2mad.experience import Outcome, Remembered
from r2mad.memory import open_memory
from r2mad.protocols import Bank, MemoryStore
from r2mad.retrieval import DECIMALS, WIDTH, mmr, nearest
from r2mad.skew import confidence
from r2mad.types import AgentInfo, DebateRecord, Question, Reply, Round, digest

if TYPE_CHECKING:
    from r2mad.experience import Vectors

DIMENSION = 256
"""d of the smallest embedder that is worth its while."""
AGENTS, ROUNDS = 3, 3
"""A debate leaves each agent ROUNDS − 1 cases."""
K = 3
"""Cases an agent is reminded of; the default of `Retrieval`."""
SEARCH_LIMIT, RESIDENT_LIMIT = 1.3, 1.5
"""What the largest memory is held to: search over product, growth over vectors. At small ones fixed costs prevail."""
NAMES = ("Ann", "Ben", "Cyd")
BATCH = 500
"""Debates added at once while the memory is made."""


def units(drawn: np.random.Generator, *shape: int) -> Vectors:
    """Random unit vectors."""
    found = drawn.standard_normal((*shape, DIMENSION), np.float32)
    return np.asarray(found / np.linalg.norm(found, axis=-1, keepdims=True), np.float32)


@cache
def model_debate() -> DebateRecord:
    """The record that all others are copies of, but for id and question."""
    said = tuple(Reply(seat, text="Short is what this reply is. ((A))", answer="A") for seat in range(AGENTS))
    return DebateRecord(
        id="",
        method="mad",
        seed=0,
        question=Question("?"),
        agents=tuple(AgentInfo(name, "made/up") for name in NAMES),
        prompts="made:up",
        rounds=tuple(Round(index, 1.0, said) for index in range(ROUNDS)),
        answer="A",
        votes={"A": 3.0},
        tie=False,
        tied=(),
        stopped="rounds",
        degraded=False,
        confidence=1.0,
        calls={},
        usage={},
        seconds=0.0,
        started="",
    )


def debates(seed: int) -> Iterator[Remembered]:
    """Debates without end, each with its own vectors and outcome."""
    drawn = np.random.default_rng(seed)
    number = 0
    while True:
        right = tuple(tuple(bool(one) for one in row) for row in drawn.random((ROUNDS, AGENTS)) < 0.6)
        question = Question(f"Question {number} of lot {seed}?", id=f"{seed}/{number}")
        yield Remembered(
            replace(model_debate(), id=digest([seed, number]), question=question),
            Outcome("gold", tuple(float(last) for last in right[-1]), right, "A"),
            units(drawn),
            units(drawn, ROUNDS, AGENTS),
            {(index, seat): units(drawn) for index in range(1, ROUNDS) for seat in range(AGENTS)},
        )
        number += 1


def fill(store: MemoryStore, source: Iterator[Remembered], cases: int) -> float:
    """Add debates until each agent has so many cases; the seconds that adding took, without making them."""
    here = len(store.known()) * (ROUNDS - 1)
    missing, spent = (cases - here) // (ROUNDS - 1), 0.0
    while missing > 0:
        lot = list(islice(source, min(BATCH, missing)))
        missing -= len(lot)
        start = time.perf_counter()
        store.add(lot)
        spent += time.perf_counter() - start
    return spent


def product(bank: Bank, state: Vectors) -> Vectors:
    """The part that no exact search can do without."""
    found: Vectors = bank.states @ state
    return found


def search(bank: Bank, state: Vectors, replies: Vectors) -> tuple[float, float]:
    """What the engine does for one agent in one round; the seconds of what is computed, and of reading the cases."""
    start = time.perf_counter()
    similarity = product(bank, state)
    pool = sorted(nearest(similarity, bank.ids, WIDTH * K), key=lambda index: int(bank.ids[index]))
    states = bank.states[pool]
    chosen = mmr(similarity[pool], np.nan_to_num(bank.rewards[pool]), states @ states.T, K, 0.5)
    found = time.perf_counter()
    cases = [bank.case(pool[index]) for index in chosen]
    read = time.perf_counter()
    for seat in range(AGENTS):
        confidence(
            [round(float(replies[seat] @ case.debate.replies[case.round, seat]), DECIMALS) for case in cases],
            [case.debate.outcome.correct[case.round][seat] for case in cases],
        )
    return time.perf_counter() - start - (read - found), read - found


def in_turns(first: Callable[[int], object], second: Callable[[int], object], times: int) -> tuple[float, float]:
    """Median seconds of two things done by turns."""
    spent: tuple[list[float], list[float]] = ([], [])
    for turn in range(times):
        for what, kept in zip((first, second), spent, strict=True):
            start = time.perf_counter()
            what(turn)
            kept.append(time.perf_counter() - start)
    return median(spent[0]), median(spent[1])


def searching(store: MemoryStore, times: int) -> tuple[float, float, float]:
    """Median seconds of the product, of the search, and of reading the cases that were found."""
    drawn = np.random.default_rng(1)
    asked, replies = units(drawn, times), units(drawn, AGENTS)
    bank = store.snapshot().bank(NAMES[0])
    assert bank is not None
    product(bank, asked[0])
    search(bank, asked[0], replies)
    spent = list[tuple[float, float]]()
    bare, _ = in_turns(
        lambda turn: product(bank, asked[turn]), lambda turn: spent.append(search(bank, asked[turn], replies)), times
    )
    return bare, median(one for one, _ in spent), median(one for _, one in spent)


def adding(store: MemoryStore, source: Iterator[Remembered], folder: Path) -> tuple[float, float]:
    """Median seconds of adding 1,000 cases, and of inserting the same bytes into one bare table. They are forgotten."""
    times, size = 5, round(1000 / AGENTS / (ROUNDS - 1))
    lots = [list(islice(source, size)) for _ in range(times)]
    with closing(sqlite3.connect(folder / "bare.db", isolation_level=None)) as bare:
        bare.execute("PRAGMA journal_mode = WAL")
        bare.execute("PRAGMA synchronous = FULL")
        bare.execute("CREATE TABLE IF NOT EXISTS bare (number INTEGER PRIMARY KEY, a, b, c)")
        stored = folder / "memory.db"
        rows = list(_bytes(stored))

        def insert(turn: int) -> None:
            bare.execute("BEGIN IMMEDIATE")
            bare.executemany("INSERT INTO bare (a, b, c) VALUES (?, ?, ?)", rows)
            bare.execute("COMMIT")

        spent = in_turns(lambda turn: store.add(lots[turn]), insert, times)
    store.forget([debate.record.id for lot in lots for debate in lot])
    return spent


def _bytes(path: Path) -> Iterator[tuple[object, ...]]:
    """Texts and vectors of as many debates and cases as `adding` adds, from a memory."""
    with closing(sqlite3.connect(path)) as database:
        yield from database.execute(
            "SELECT record || outcome, question, replies FROM debates LIMIT ?", (round(1000 / AGENTS / (ROUNDS - 1)),)
        )
        yield from database.execute("SELECT name, id, state FROM cases LIMIT 1000")


FRESH = """
import sys, time
from pathlib import Path
import numpy as np
from r2mad.memory import open_memory, sqlite
def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) * 1024
path, name = sys.argv[1:]
before, start = resident(), time.perf_counter()
store = open_memory("sqlite:" + path)
bank = store.snapshot().bank(name)
spent = time.perf_counter() - start
bank.case(len(bank) // 2)
print(spent, (resident() - before) / bank.states.nbytes)
"""
BARE = """
import sqlite3, sys, time
import numpy as np
path, name = sys.argv[1:]
start = time.perf_counter()
database = sqlite3.connect(path)
count, size = database.execute("SELECT count(*), max(length(state)) FROM cases WHERE name = ?", (name,)).fetchone()
states = np.empty((count, size // 4), np.float32)
for place, row in enumerate(database.execute("SELECT id, reward, state FROM cases WHERE name = ?", (name,))):
    states[place] = np.frombuffer(row[2], np.float32)
print(time.perf_counter() - start, 0)
"""


def fresh(script: str, path: Path) -> tuple[float, float]:
    """What a script prints that loads an agent's cases in a process of its own."""
    done = subprocess.run([sys.executable, "-c", script, path, NAMES[1]], check=True, capture_output=True, text=True)
    seconds, ratio = done.stdout.split()
    return float(seconds), float(ratio)


def loading(path: Path) -> tuple[float, float, float]:
    """Median seconds of loading and of a bare read, and resident bytes over bytes of vectors."""
    ours, bare = zip(*((fresh(FRESH, path), fresh(BARE, path)) for _ in range(3)), strict=True)
    return median(one[0] for one in ours), median(one[0] for one in bare), max(one[1] for one in ours)


def main() -> int:
    """Measure and print; 1 if something is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000], help="cases an agent")
    parser.add_argument("--times", type=int, default=101, help="repetitions of a search")
    arguments = parser.parse_args()
    over = False
    print(f"{DIMENSION} dimensions, {AGENTS} agents; milliseconds, medians")
    print("an agent  |  product   search  ratio    cases |    add    bare  ratio |     load     bare  ratio  resident")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with closing(open_memory(f"sqlite:{path}", embedder="made/up", dimension=DIMENSION)) as store:
            source = debates(0)
            for size in sorted(arguments.sizes):
                fill(store, source, size)
                a, b, read = searching(store, arguments.times)
                c, d = adding(store, source, Path(folder))
                e, f, grown = loading(path)
                print(
                    f"{size:9} | {a * 1e3:8.3f} {b * 1e3:8.3f} {b / a:6.2f} {read * 1e3:8.3f} | "
                    f"{c * 1e3:6.1f} {d * 1e3:7.1f} {c / d:6.2f} | "
                    f"{e * 1e3:8.1f} {f * 1e3:8.1f} {e / f:6.2f} {grown:9.2f}",
                    flush=True,
                )
        for what, found, limit in (("search / product", b / a, SEARCH_LIMIT), ("resident", grown, RESIDENT_LIMIT)):
            over |= found > limit
            print(f"{what} at {size} cases: {found:.2f}, limit {limit}: {'OVER' if found > limit else 'ok'}")
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
