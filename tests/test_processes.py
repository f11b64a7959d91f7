"""One client in many threads and processes, and the lock that keeps others out."""

import copy
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import memframe as mf
from memframe import wire
from memframe.files import process_lock
from tests.faults import answered
from tests.strangers import TOKEN, USER_ID

N_THREADS = 8


def test_eight_threads_renew_an_expired_token_once(stranger):
    """Every thread holds the old token when it is refused: the service waits until all of them have sent it."""
    everybody = threading.Barrier(N_THREADS, timeout=10)

    def expired(request, forward):
        if request.headers["Authorization"] == f"Bearer {TOKEN['token']}":
            everybody.wait()
            return answered(401)(request, forward)
        return answered(200, {"items": []})(request, forward)

    client = stranger.client()
    client.sign_in()
    stranger.always(wire.LIST_TAGS, expired)
    stranger.answer(wire.ISSUE_TOKEN, token="fresh")
    with ThreadPoolExecutor(N_THREADS) as threads:
        assert list(threads.map(client.tags, [USER_ID] * N_THREADS)) == [[]] * N_THREADS
    assert len(stranger.requests_to(wire.ISSUE_TOKEN)) == 2  # the first, and one renewal
    assert len(stranger.requests_to(wire.LIST_TAGS)) == 2 * N_THREADS


@pytest.mark.parametrize("turn", [pickle.dumps, copy.deepcopy])
def test_a_client_and_what_holds_one_is_not_pickled_and_says_what_to_do(stranger, turn):
    access = mf.open_access(stranger.client(), "r1")
    for subject in (access.client, access):
        with pytest.raises(TypeError, match=r"cannot be pickled: call connect\(\) in each process"):
            turn(subject)
    with pytest.raises(TypeError, match="cannot be pickled"):
        turn(stranger.flow())


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")  # from Python 3.12 on
def test_a_forked_process_opens_connections_of_its_own(stranger):
    """Two processes that share a connection would read each other's answers."""
    client = stranger.client()
    client.tags(USER_ID)
    asked = len(stranger.requests)
    connections = set()
    stranger.always(wire.LIST_TAGS, seen(connections))
    client.tags(USER_ID)
    if (child := os.fork()) == 0:
        os._exit(0 if client.tags(USER_ID) == [] else 1)
    assert os.waitpid(child, 0)[1] == 0
    client.tags(USER_ID)
    assert len(stranger.requests) == asked + 3
    assert len(connections) == 2


def seen(connections):
    def fault(request, forward):
        connections.add(threading.get_ident())  # the server has a thread for each connection
        return answered(200, {"items": []})(request, forward)

    return fault


# A lock names its holder, and ends with it


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
