"""The processes that read formulas: given up in time, replaced when they die, gone when the program ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from r2mad.answers import _pool, equivalent, tally
from r2mad.answers import math as formulas

FOREVER = r"\sum_{k=1}^{1000000000}\sqrt{k}"
"""sympy would add up a thousand million terms."""


READY = "import json, sys\nprint(json.dumps({'ready': True}), flush=True)\nsys.stdin.readline()\n"


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No formula is remembered from another test, and time is short."""
    formulas._memory.clear()
    monkeypatch.setattr(_pool, "_pool", _pool.Pool(seconds=0.5))
    yield
    _pool.close()
    formulas._memory.clear()


def _pids() -> list[int]:
    return [worker.process.pid for worker in _pool._pool.workers.values()]


def test_a_formula_that_takes_for_ever_is_undecided_and_equals_only_itself() -> None:
    start = time.monotonic()
    result = tally([FOREVER, "x", FOREVER, FOREVER + "+0"], "math")
    assert time.monotonic() - start < 30
    assert result.undecided == (FOREVER, FOREVER + "+0")
    assert sorted(one.count for one in result.classes) == [1, 1, 2]
    assert equivalent(FOREVER, FOREVER, "math")
    assert not equivalent(FOREVER, FOREVER + "+0", "math")
    assert equivalent("x+x", "2x", "math")  # the next worker does its work


def test_an_undecided_formula_is_remembered() -> None:
    formulas.canonical(FOREVER)
    start = time.monotonic()
    assert not formulas.canonical(FOREVER).decided
    assert time.monotonic() - start < 0.1


def test_a_killed_worker_is_replaced() -> None:
    assert equivalent("x+x", "2x", "math")
    before = _pids()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    assert equivalent("y+y", "2y", "math")
    assert _pids() != before


def test_a_worker_that_is_stopped_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pool, "_PATIENCE", 1.0)
    assert equivalent("x+x", "2x", "math")
    for pid in _pids():
        os.kill(pid, signal.SIGSTOP)
    assert not formulas.canonical("z+z").decided
    assert equivalent("y+y", "2y", "math")


@pytest.mark.parametrize(
    "program",
    [
        "raise SystemExit(3)",
        "print('junk')",
        READY + "print('junk' * 100000)",
        READY + "print('[1]\\n{}\\nnull')",
    ],
)
def test_junk_and_sudden_death_are_survived(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pool, "_PROGRAM", program)
    form = formulas.canonical("x+x")
    assert not form.decided
    monkeypatch.undo()
    _pool.close()
    assert formulas.canonical("x+x").decided  # that was the machine's fault and not the formula's


def test_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert not equivalent("x+x", "2x", "math")
    assert equivalent("1/2", "0.5", "math")


def test_from_many_threads() -> None:
    wrong: list[int] = []

    def check(number: int) -> None:
        if not equivalent(f"x+{number}", f"{number}+x", "math"):
            wrong.append(number)

    threads = [threading.Thread(target=check, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(_pids()) <= _pool.WORKERS


def test_nothing_is_left_when_the_program_ends() -> None:
    program = (
        "from r2mad.answers import equivalent, _pool\n"
        "assert equivalent('x+x', '2x', 'math')\n"
        "print(*[w.process.pid for w in _pool._pool.workers.values()])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    pids = [int(pid) for pid in run.stdout.split()]
    assert pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_worker_ends_with_a_parent_that_was_killed() -> None:
    program = (
        "import os, signal\n"
        "from r2mad.answers import equivalent, _pool\n"
        "assert equivalent('x+x', '2x', 'math')\n"
        "print(*[w.process.pid for w in _pool._pool.workers.values()], flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    deadline = time.monotonic() + 10
    for pid in map(int, run.stdout.split()):
        while _alive(pid):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def _alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for whoever adopted it does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_workers_of_its_own() -> None:
    program = (
        "import os\n"
        "from r2mad.answers import equivalent\n"
        "assert equivalent('x+x', '2x', 'math')\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    from r2mad.answers import _pool\n"
        "    good = equivalent('y+y', '2y', 'math')\n"
        "    _pool.close()\n"
        "    os._exit(0 if good else 1)\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
        "assert equivalent('z+z', '2z', 'math')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, stdin=subprocess.DEVNULL)


def test_importing_the_answers_imports_no_mathematics() -> None:
    program = (
        "import sys, r2mad.answers\n"
        "heavy = {'sympy', 'numpy', 'mpmath', 'math_verify', 'latex2sympy2_extended'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "from r2mad.answers import equivalent\n"
        "assert equivalent('1/2', '0.5', 'math')\n"
        "from r2mad.answers import _pool\n"
        "assert not _pool._pool.workers"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_worker_runs_as_a_module() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "r2mad.answers._worker"],
        input='{"id": 1, "text": "x+x"}\n{"id": 2, "text": "2x"}\n{"id": 3, "text": "("}\n',
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    lines = run.stdout.splitlines()
    assert lines[0] == '{"ready": true}'
    assert lines[1].replace('"id": 1', "") == lines[2].replace('"id": 2', "")
    assert lines[3] == '{"id": 3, "key": null}'


def test_keys_are_the_same_in_every_process() -> None:
    program = "from r2mad.answers import canonical\nprint(canonical('xy+\\\\sqrt{z}', 'math').key)"
    keys = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True, text=True, check=True, timeout=60, env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(keys) == 1
