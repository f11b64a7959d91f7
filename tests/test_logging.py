"""One logger, `memframe`, tells of retries and slow-downs, and of nothing that is a secret, an id or a text."""

import logging

import pandas as pd
import pytest

import memframe as mf
from memframe import wire
from memframe.client.retry import RateLimiter
from memframe.versions import show_versions
from tests.faults import answered, cut, lost
from tests.strangers import SECRETS, USER_ID, Stranger


@pytest.fixture
def logged(caplog):
    caplog.set_level(logging.DEBUG, "memframe")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "memframe"]


def test_retries_are_logged_with_their_reason(logged):
    with Stranger() as stranger:
        client = stranger.client()
        stranger.script(wire.LIST_MEMORIES, cut, answered(503, Retry_After="0"))
        client.memory_blobs(USER_ID, search="an illness")
    first, second = logged()
    assert first.startswith("No answer from 127.0.0.1:")
    assert first.endswith(", attempt 1 of 3.")
    assert second == "A read was refused with 503: retry 1."
    assert not [hidden for hidden in [USER_ID, "illness", *SECRETS.values()] if hidden in first + second]


def test_a_slow_down_is_logged_with_its_wait(logged):
    RateLimiter(8, clock=lambda: 0.0).slow_down(wait_s=2)
    assert logged() == ["Slowing down (429): at most 4 requests in flight, the next in 2.0 s."]


def test_a_reconciliation_is_logged_with_what_it_found(logged, access, proxy):
    access.client.base_url = proxy.base_url
    proxy.script(wire.CREATE_MEMORY, lost)
    mf.create_memories(access, pd.DataFrame({"content": ["an illness"]}), settle_s=0).raise_for_failures()
    looked = [line for line in logged() if line.startswith("Looked for")]
    assert looked == ["Looked for writes that had no answer: 1 recovered."]


def test_versions_are_shown(capsys):
    show_versions()
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert {"memframe", "python", "system", "pandas", "litestar", "distributed"} <= shown.keys()
