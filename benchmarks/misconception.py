"""What memory does to shared misconceptions where the truth is known: paired debates of the simulated model.

    python benchmarks/misconception.py [--debates 5000] [--processes 2]

Every method debates the same questions with the same seed, so round 0 is the same. The memory comes from the training
questions of the simulated set; no topic is new, no question is old. Prints accuracy, and the paired difference to `mad`
and to `r2mad` with its 95 % interval.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

from r2mad import engine
from r2mad.api import open_table
from r2mad.settings import Settings
from r2mad.study.datasets import load
from r2mad.study.remember import open_shelf, remember
from r2mad.study.stats import paired

MODEL = "simulated/shared-misconception"
METHODS = ("mad", "r2mad", "r2mad-no-confidence", "r2mad-no-memory")
Right = dict[str, list[float]]
"""By method: 1 for each question whose group answer was right, else 0, in the order of the questions."""


async def build(memory: str) -> int:
    """Remember the training set's debates; how many cases there are."""
    settings = Settings(cache=":memory:")
    async with open_table(MODEL, settings) as table, open_shelf(memory, settings) as shelf:
        return (await remember(table, load("simulated:train"), shelf)).cases


async def hold(memory: str, methods: Sequence[str], first: int, last: int, seed: int) -> Right:
    """Debates on the test questions from `first` to before `last`."""
    items = load("simulated:test")[first:last]
    right: Right = {}
    async with open_table(MODEL, Settings(cache=":memory:", memory=memory)) as table:
        for name in methods:
            right[name] = []
            for item in items:
                scene, method = table.prepare(item.question, name, seed=seed)
                right[name].append(float((await engine.run(scene, method)).answer == item.gold))
    return right


def _hold(memory: str, methods: Sequence[str], first: int, last: int, seed: int) -> Right:
    return asyncio.run(hold(memory, methods, first, last, seed))


def measure(memory: str, methods: Sequence[str], debates: int, seed: int = 1, processes: int = 2) -> Right:
    """`debates` paired debates of each method, shared out among processes."""
    cuts = [debates * part // processes for part in range(processes + 1)]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        parts = [pool.submit(_hold, memory, methods, first, last, seed) for first, last in pairwise(cuts)]
        found = [part.result() for part in parts]
    return {name: [right for part in found for right in part[name]] for name in methods}


def main() -> int:
    """Measure and print; 1 if memory does not help."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--debates", type=int, default=5000)
    parser.add_argument("--ablations", type=int, help="debates of each ablation; as many as of the others if not given")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        memory = f"sqlite:{Path(folder) / 'memory.db'}"
        print(f"{asyncio.run(build(memory))} cases from {len(load('simulated:train'))} training questions")
        right = measure(memory, METHODS[:2], options.debates, options.seed, options.processes)
        right |= measure(memory, METHODS[2:], options.ablations or options.debates, options.seed, options.processes)
    groups = [item.group for item in load("simulated:test")[: options.debates]]
    print(f"{'method':<22} {'all':>6} {'sound':>6} {'misconception':>13}   against mad              against r2mad")
    for name in METHODS:
        shares = []
        for wanted in ("", "sound", "misconception"):
            some = [value for value, group in zip(right[name], groups, strict=False) if wanted in ("", group)]
            shares.append(sum(some) / len(some))
        pairs = len(right[name])
        against = [paired(right[name], right[other][:pairs]) for other in ("mad", "r2mad")]
        cells = "  ".join(f"{d.mean:+.3f} ({d.low:+.3f} to {d.high:+.3f})" for d in against)
        print(f"{name:<22} {shares[0]:>6.3f} {shares[1]:>6.3f} {shares[2]:>13.3f}   {cells}")
    helps = paired(right["r2mad"], right["mad"]).low > 0
    ablations = [paired(right[name], right["r2mad"][: len(right[name])]).low <= 0 for name in METHODS[2:]]
    print("r2mad beats mad, and no ablation beats it" if helps and all(ablations) else "NOT as expected")
    return int(not (helps and all(ablations)))


if __name__ == "__main__":
    sys.exit(main())
