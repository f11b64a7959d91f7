"""A lock that names its holder and ends with it."""

import os
import threading

import pytest

import memframe as mf
from memframe.files import process_lock


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
