"""Several processes at one memory, and processes that are killed at any moment."""

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import r2mad
from r2mad.memory import open_memory
from tests.memory.made import made, same

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(r2mad.__path__[0]).parent), str(ROOT)])}

ADDER = """
import sys
from r2mad.memory import open_memory
from tests.memory.made import made
url, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
store = open_memory(url, embedder="e", dimension=8)
for number in range(first, first + count):
    assert store.add([made(number), made(5000 + number % 7)]) in (1, 2)  # some of them the other adds as well
    if number % 10 == 9:
        store.forget([made(number - 4).record.id])
store.close()
"""

SEARCHER = """
import sys
import numpy as np
from r2mad.errors import StoreError
from r2mad.memory import open_memory
store = open_memory(sys.argv[1], embedder="e", dimension=8)
print("ready", flush=True)
looked, versions = 0, set()
import threading
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), ended.set())).start()
while not ended.is_set():
    snapshot = store.snapshot()
    versions.add(snapshot.version)
    try:
        banks = [bank for name in ("Ann", "Ben", "Cyd") if (bank := snapshot.bank(name))]
        assert len({len(bank) for bank in banks}) <= 1, "half a debate"
        for bank in banks:
            place = int(np.argmax(bank.states @ bank.states[-1]))
            case = bank.case(place)
            assert int(case.id, 16) == int(bank.ids[place])
            assert np.array_equal(case.debate.states[case.round, case.seat], bank.states[place])
            assert np.array_equal(case.debate.question, bank.questions[place])
    except StoreError as error:
        if "forgotten" not in str(error):
            raise
    looked += 1
print(looked, len(versions))
store.close()
"""


def started(script: str, *arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-W", "error", "-c", script, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=ENVIRONMENT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def ended(process: "subprocess.Popen[str]") -> str:
    """What it printed; it must have ended well and have complained of nothing."""
    with process:
        out, complaints = process.communicate("\n", timeout=60)
    assert complaints == ""
    assert process.returncode == 0
    return out


def ready(*processes: "subprocess.Popen[str]") -> None:
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"


def go(*processes: "subprocess.Popen[str]") -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()


def integrity(path: Path) -> object:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("PRAGMA integrity_check").fetchone()[0]


def test_two_build_and_one_searches(tmp_path: Path) -> None:
    path, count = tmp_path / "deep" / "memory.db", 60
    url = f"sqlite:{path}"
    searcher = started(SEARCHER, url)
    adders = [started(ADDER, url, 0, count), started(ADDER, url, 1000, count)]
    ready(searcher, *adders)
    go(*adders)
    for adder in adders:
        assert ended(adder) == ""
    looked, versions = map(int, ended(searcher).split())
    assert looked >= versions > 10
    expected = {n for first in (0, 1000) for n in range(first, first + count) if n % 10 != 5} | set(range(5000, 5007))
    with closing(open_memory(url)) as store:
        assert store.known() == {made(number).record.id for number in expected}
        bank = store.snapshot().bank("Cyd")
        assert bank is not None
        assert len(bank) == 2 * len(expected)
        with closing(open_memory(f"sqlite:{tmp_path}/other.db", embedder="e", dimension=8)) as other:
            other.add([made(number) for number in sorted(expected)])
            assert other.snapshot().version == store.snapshot().version
    assert integrity(path) == "ok"
    assert [each.name for each in path.parent.iterdir()] == ["memory.db"]


def test_many_make_one_memory_at_once(tmp_path: Path) -> None:
    count = 4
    adders = [started(ADDER, f"sqlite:{tmp_path}/memory.db", 100 * each, 2) for each in range(count)]
    ready(*adders)
    go(*adders)
    for adder in adders:
        assert ended(adder) == ""
    with closing(open_memory(f"sqlite:{tmp_path}/memory.db")) as store:
        fresh = {made(100 * each + number).record.id for each in range(count) for number in range(2)}
        assert fresh <= store.known()


# One process with everything imported forks those that are killed, since starting one takes longer than it may live.
VICTIMS = """
import os, random, signal, sys, time
from r2mad.memory import open_memory
from tests.memory.made import made
folder, seed, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
drawn = random.Random(seed)
for turn in range(times):
    url = f"sqlite:{folder}/{'new%d' % turn if turn % 5 == 4 else 'memory'}.db"
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        store = open_memory(url, embedder="e", dimension=8)
        for number in range(1000 * turn, 1000 * turn + 1000):
            assert store.add([made(number, rounds=4)]) == 1
            if number % 4 == 3:
                store.forget([made(number - 2, rounds=4).record.id])
            os.write(writing, b"%d " % number)
        os._exit(1)
    os.close(writing)
    if turn % 3:  # sooner or later after it has begun to add, and else at any moment of opening and making the file
        first = os.read(reading, 1000)
    else:
        first = b""
    time.sleep(drawn.random() * (0.06 if turn % 3 else 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print(url, turn, (first + os.read(reading, 100000)).decode(), flush=True)
    os.close(reading)
"""


def test_killed_at_thirty_moments(tmp_path: Path) -> None:
    """What was announced is there, whole; of what was not, all or nothing."""
    process = started(VICTIMS, tmp_path, random.randrange(10**6), 30)
    lines = ended(process).splitlines()
    assert len(lines) == 30
    announced = dict[str, dict[int, int]]()
    for line in lines:
        url, turn, *numbers = line.split()
        there = announced.setdefault(url, {})
        there[int(turn)] = len(numbers)
        assert [int(number) for number in numbers] == [1000 * int(turn) + each for each in range(len(numbers))]
    assert sum(sum(turns.values()) for turns in announced.values()) > 30
    for url, turns in announced.items():
        path = Path(url.partition(":")[2])
        if not path.exists():
            assert sum(turns.values()) == 0
            continue
        check_whole(url, turns)
        assert integrity(path) == "ok"


def check_whole(url: str, turns: dict[int, int]) -> None:
    """That a memory holds what was announced in each turn, perhaps the one after it, and nothing else."""
    with closing(open_memory(url)) as store:
        debates = {debate.record.seed: debate for debate in store.debates()}
        banks = {name: store.snapshot().bank(name) for name in ("Ann", "Ben", "Cyd")}
        assert {len(bank) if bank else 0 for bank in banks.values()} == {3 * len(debates)}
        assert all(same(debate, made(number, rounds=4)) for number, debate in debates.items())
        for turn, count in turns.items():
            first = 1000 * turn
            there = {number - first for number in debates if first <= number < first + 1000}
            gone = {number for number in range(count) if number % 4 == 1 and number + 2 < count}
            must = set(range(count)) - gone
            # the next may be there, and what it forgets may be gone, though neither was announced
            assert must - ({count - 2} if count % 4 == 3 else set()) <= there <= must | {count}
        assert store.add([made(999_999)]) == 1
