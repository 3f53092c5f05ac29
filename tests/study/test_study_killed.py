"""A study killed with −9 at fifty random moments, its memory's building among them, is the undisturbed study."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from r2mad.models.fake_server import FakeServer
from r2mad.models.fake_server import Settings as FakeSettings
from r2mad.study.records import DEBATES, ITEMS, SCORES, latest
from r2mad.study.scores import Score, latest_scores
from r2mad.types import DebateRecord

KILLS = 50
CONNECTIONS = 4
METHODS = ("cot", "sc-3", "mad", "r2mad")


def _start(base_url: str, folder: Path, connections: int = CONNECTIONS) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "r2mad", "study", "--dataset", "simulated:test", "--method", ",".join(METHODS)]
    command += ["--model", "openai/fake", "--base-url", base_url, "--limit", "60", "--memory-limit", "12"]
    command += ["--max-connections", str(connections), "--display", "plain", "--name", "run"]
    command += ["--log-dir", str(folder), "--cache", str(folder / "calls.sqlite")]
    environment = {**os.environ, "OPENAI_API_KEY": "-"}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)


def _until_debates(process: subprocess.Popen[bytes]) -> bytes:
    """What it said until debates began, or until it ended."""
    assert process.stderr is not None
    said = b""
    for line in process.stderr:
        said += line
        if b"are to be held" in line:
            break
    return said


def _untimed(record: DebateRecord) -> Any:
    from r2mad.study.records import dump

    data = json.loads(dump(record))
    for name in ("seconds", "started"):
        del data[name]
    if data["memory"]:
        del data["memory"]["url"]  # two memories of one content at two places
    for note in data["judgements"]:
        del note["seconds"], note["cached"]
    for one in data["rounds"]:
        for reply in (*one["replies"], *one["candidates"]):
            del reply["seconds"], reply["cached"]
    return data


def _untimed_score(score: Score) -> Any:
    from r2mad.study.records import dump

    data = json.loads(dump(score))
    for name in ("seconds", "waited", "shared", "shared_tokens"):
        del data[name]
    return data


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_fifty_kills_leave_no_trace(tmp_path: Path) -> None:
    with FakeServer.spawn(FakeSettings(latency_ms=45.0)) as server:
        with _start(server.base_url, tmp_path / "calm", 64) as calm:
            calm.wait()
        assert calm.returncode == 0
        server.reset()
        chance, kills, sizes = random.Random(11), 0, []
        while True:
            with _start(server.base_url, tmp_path / "killed") as process:
                early = kills < KILLS and chance.random() < 0.2  # while a memory is built, or nothing is done yet
                time.sleep(chance.uniform(0.3, 1.0) if early else 0.0)
                told = b"" if early else _until_debates(process)
                time.sleep(0.0 if early or kills >= KILLS else chance.uniform(0.0, 0.35))
                if kills < KILLS and process.poll() is None:
                    os.kill(process.pid, signal.SIGKILL)
                    kills += 1
                elif process.wait() == 0:
                    break
                else:
                    raise AssertionError(told)
            sizes.append(len(latest(tmp_path / "killed" / "run" / DEBATES)))
        log = [json.dumps(entry["body"], sort_keys=True) for entry in server.read_log() if entry["status"] == 200]
    assert kills == KILLS or sizes[-1] < 240
    assert sum(0 < size < 240 for size in sizes) >= 10  # in the middle of the debates, and not only before them
    calm_run, killed_run = (latest(tmp_path / name / "run" / DEBATES) for name in ("calm", "killed"))
    assert len(killed_run) == 240
    assert {k: _untimed(r) for k, r in killed_run.items()} == {k: _untimed(r) for k, r in calm_run.items()}
    assert len((tmp_path / "killed" / "run" / DEBATES).read_text().splitlines()) == 240  # none twice
    scores = [
        {s.id: _untimed_score(s) for s in latest_scores(tmp_path / n / "run" / SCORES)} for n in ("calm", "killed")
    ]
    assert scores[0] == scores[1]
    assert (tmp_path / "calm" / "run" / ITEMS).read_bytes() == (tmp_path / "killed" / "run" / ITEMS).read_bytes()
    # A call that was in flight at a kill cannot be known; one that came back is never made again.
    assert len(log) - len(set(log)) <= CONNECTIONS * kills
