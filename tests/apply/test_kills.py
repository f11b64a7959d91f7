"""Clients and services that are killed at random, in processes of their own: nothing lost, nothing twice."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

KILL = Path(__file__).with_name("kill.py")


def killed(program=KILL, **options):
    """Run a program that kills, and return what it found."""
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    done = subprocess.run([sys.executable, program, *arguments], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_whole(found):
    assert (found["lost"], found["unplanned"]) == (0, 0), found
    assert found["counts"]["attempted"] == found["rows"]
    assert found["counts"]["done"] + found["counts"]["recovered"] == found["rows"]
    assert "all as written" in found["said"]


def test_a_few_kills():
    found = killed(rows=60, client_kills=3, service_kills=1)
    assert_whole(found)
    assert found["client_kills"] > 0


@pytest.mark.campaign
def test_many_kills():
    found = killed(rows=4000, client_kills=100, service_kills=30)
    assert_whole(found)
    assert found["client_kills"] >= 100
    assert found["service_kills"] >= 30
