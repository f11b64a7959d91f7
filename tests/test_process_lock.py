"""A lock that names its holder and ends with it."""

import os
import signal
import subprocess
import sys
import threading

import pytest

import memframe as mf
from memframe.files import process_lock

HOLD = """
import sys, time
from pathlib import Path
from memframe.files import process_lock
with process_lock(Path(sys.argv[1]), what="the run"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def held(tmp_path):
    """A lock that another process holds, and that process."""
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        yield path, other
        other.kill()


def test_another_process_is_named_with_host_and_time(held):
    path, other = held
    words = rf"the run is in use by process {other.pid} on {os.uname().nodename}, since 2\d\d\d-.* UTC"
    with pytest.raises(mf.JournalError, match=words), process_lock(path, what="the run"):
        pass


def test_the_lock_ends_with_its_holder_however_that_ends(held):
    path, other = held
    other.send_signal(signal.SIGKILL)
    other.wait()
    with process_lock(path, what="the run"):
        pass


def test_another_thread_is_kept_out_as_well(tmp_path):
    refused = []

    def attempt():
        try:
            with process_lock(tmp_path / "lock", what="the run"):
                pass
        except mf.JournalError as error:
            refused.append(str(error))

    with process_lock(tmp_path / "lock", what="the run"):
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
    assert len(refused) == 1
    assert f"process {os.getpid()}" in refused[0]


def test_a_lock_of_something_else_is_refused_by_name(tmp_path):
    (tmp_path / "lock").write_bytes(b"nothing that SQLite knows" * 99)
    with pytest.raises(mf.JournalError, match="lock"), process_lock(tmp_path / "lock", what="the run"):
        pass
