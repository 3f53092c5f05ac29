"""What memory does where the truth is known: the simulated scenario, as its benchmark measures it."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "misconception.py"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_r2mad_beats_mad_and_no_ablation_beats_r2mad() -> None:
    """5,000 paired debates against `mad`, 1,000 of each ablation; the script's exit code is the verdict."""
    command = [sys.executable, str(SCRIPT), "--debates", "5000", "--ablations", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "r2mad beats mad, and no ablation beats it" in done.stdout
