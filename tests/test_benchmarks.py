"""The benchmarks run, each as small as it can be: their figures are for whoever asks, that they run is for us."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1] / "benchmarks"

SMALL = {
    "load": "--memories 20 --rounds 1 --page-size 10 --delay-ms 0 --way libraries",
    "write": "--rounds 1",
    "calls": "",
    "review": "--findings 400",
    "losses": "--plans 2",
    "scale": "--memories 60000 --rounds 1",
    "fleet": "--rounds 1",
    "nights": "--users 5 --nights 2 --memories 8 --changed 0.4",
    "audit_whole": "--rows 300 --rounds 1",
    "audit_corpora": "",
    "service": "--databases sqlite --workers 1 --seconds 1 --rounds 1 --rows 0",
}
PARTS = {"by_hand", "servers"}
"""Programs that the others start."""

FOR_MAINTAINERS = {"lock"}
"""Programs that measure nothing."""

ON_REAL_MEMORIES = {"ablation", "audit_history", "audit_real", "real_memories"}
"""Programs that need repositories of others: tests/test_real_memories.py tries them on made-up ones."""


def test_every_benchmark_is_tried():
    assert {path.stem for path in HERE.glob("*.py")} == {*SMALL, *PARTS, *ON_REAL_MEMORIES, *FOR_MAINTAINERS}


@pytest.mark.campaign
@pytest.mark.parametrize("name", SMALL)
def test_it_runs(name):
    command = [sys.executable, HERE / f"{name}.py", *SMALL[name].split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
