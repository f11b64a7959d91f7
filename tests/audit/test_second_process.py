"""Checks in a second process: the same findings, whatever happens to it, and nothing of it is left."""

import os
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
import pytest

import memframe as mf
from memframe.audit.junk import find_junk
from memframe.audit.missing import find_missing
from memframe.audit.second_process import MIN_ROWS, beside, is_worthwhile
from memframe.audit.secrets import find_secrets
from memframe.errors import ConfigError
from tests.pairs.corpus import corpus

ROOT = Path(__file__).parents[2]
NOW = pd.Timestamp("2026-06-01", tz="UTC").to_pydatetime()

SCRIPT = """
import pandas as pd
import memframe as mf

memories = pd.DataFrame({"id": ["m1", "m2"], "content": ["Door code: 2580#", "Likes tea"]})
print("ran", len(mf.audit_memories(memories, workers=2).findings))
"""


@pytest.fixture(scope="module")
def memories():
    store = corpus(200, 5).memories
    store.loc[store.index[::9], "content"] = "Door code: 2580#, and mail to ada@example.com until Friday"
    return store


def audited(memories, **options):
    return mf.audit_memories(memories, now=NOW, **options)


def same(one, other):
    pd.testing.assert_frame_equal(one.findings, other.findings)
    return (one.checks, one.not_checked) == (other.checks, other.not_checked)


def test_two_processes_find_what_one_finds(memories):
    tags = pd.DataFrame({"id": ["t1"], "name": ["unused"], "is_enabled": [True]})
    assert same(audited(memories, tags=tags, workers=2), audited(memories, tags=tags, workers=1))


def test_it_is_the_second_process_that_finds_them(memories):
    with beside(memories) as second:
        second.put_last({"secret": find_secrets})
        pd.testing.assert_frame_equal(second.found()["secret"], find_secrets(memories))


@pytest.mark.parametrize("checks", [["superseded", "junk", "near_duplicate"], ["secret", "superseded"]])
def test_what_waits_for_the_pairs_is_shared(memories, checks):
    assert same(audited(memories, checks=checks, workers=2), audited(memories, checks=checks, workers=1))


def test_checks_wait_in_order_and_the_last_is_taken_back(memories):
    with beside(memories) as second:
        with second._changed:  # so that none is begun meanwhile
            second.put_last({"missing": find_missing, "junk": find_junk})
            second.put_first("secret", find_secrets)
            assert [check for check, _ in second._waiting] == ["secret", "missing", "junk"]
            assert next(second.taken_back()) == "junk"
        assert list(second.found()) == ["secret", "missing"]


def test_what_cannot_be_sent_is_done_here(memories):
    odd = memories.copy()
    odd.attrs["handle"] = lambda: None
    assert same(audited(odd, workers=2), audited(memories, workers=1))


def test_functions_of_ones_own_run_here(memories):
    seen = []

    def own(frame):
        seen.append(os.getpid())
        return find_secrets(frame)

    checks = {"secret": own, "near_duplicate": lambda frame: find_secrets(frame).head(0), "junk": own}
    audited(memories, checks=checks, workers=2)
    assert seen == [os.getpid()] * 2


@pytest.mark.parametrize("end", [KeyboardInterrupt, ValueError])
def test_nothing_is_left_of_it_whatever_ends_the_audit(memories, end):
    def broken():
        with beside(memories) as second:
            second.put_last({"secret": find_secrets})
            process.append(second)
            raise end

    process = []
    with pytest.raises(end):
        broken()
    assert process[0]._process.poll() is not None
    assert not process[0]._exchange.is_alive()


def test_a_script_needs_no_guard(tmp_path):
    script = tmp_path / "audit.py"
    script.write_text(SCRIPT)
    told = subprocess.check_output([sys.executable, script], env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert told.decode().count("ran") == 1


def test_small_frames_and_daemonic_processes_do_without():
    assert not is_worthwhile(MIN_ROWS - 1)
    context = get_context("spawn")
    answers = context.SimpleQueue()
    process = context.Process(target=ask, args=(answers,), daemon=True)
    process.start()
    assert answers.get() is False
    process.join()


def ask(answers):
    answers.put(is_worthwhile(MIN_ROWS))


@pytest.mark.parametrize("workers", [0, 3, "2"])
def test_other_numbers_of_workers_are_refused(memories, workers):
    with pytest.raises(ConfigError, match="workers"):
        audited(memories, workers=workers)
