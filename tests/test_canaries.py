"""A whole walk with everything listening: none of the secrets shows in anything that prints or is kept."""

import logging
import pickle
import sys
import traceback
import warnings
from itertools import count
from types import MappingProxyType
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from requests.structures import CaseInsensitiveDict

import memframe as mf
from memframe.sample import load_sample
from memframe.secret import Secret
from memframe.wire import LIST_MEMORIES
from tests.canaries import found_in, shown_by, stands
from tests.faults import FaultProxy, answered, cut, html
from tests.strangers import at_once

SEARCH = "a searched-for illness"


def everything_in(subject, seen=None):
    """Texts of an object and of all that its attributes lead to, as a debugger would walk."""
    seen = {} if seen is None else seen
    if id(subject) in seen or isinstance(subject, type | Secret | type(sys)):
        return
    seen[id(subject)] = subject  # kept, so that no other object gets this id
    yield f"{subject!r} {subject}" if isinstance(subject, Secret) else repr(subject)
    for child in children_of(subject):
        yield from everything_in(child, seen)


def children_of(subject):
    if isinstance(subject, dict | MappingProxyType | CaseInsensitiveDict):
        return [*subject.values()]
    if isinstance(subject, list | tuple | set | frozenset):
        return [*subject]
    if isinstance(subject, msgspec.Struct):
        return [getattr(subject, name) for name in subject.__struct_fields__]
    is_ours = type(subject).__module__.split(".")[0] in {"memframe", "requests", "urllib3"}
    return [*vars(subject).values()] if is_ours and hasattr(subject, "__dict__") else []


class Walk:
    """The way from key to exported frame, over a proxy that sees every request."""

    def __init__(self, user, proxy, folder):
        self.user, self.proxy, self.folder = user, proxy, folder
        self.client = mf.client.Client(proxy.base_url, Secret(user.service.api_key), transport=at_once())
        self.subjects = [self.client]
        self.errors = []
        self.secrets = {"api key": user.service.api_key, "client secret": user.service.client_secret}

    def go(self):
        self.authorize()
        self.open()
        self.load()
        self.fail()

    def authorize(self):
        flow = self.user.flow()
        address = flow.authorization_url()
        self.secrets["verifier"] = flow._attempt.verifier.reveal()
        redirected = self.user.person.authorize(address)
        self.secrets["code"] = parse_qs(urlsplit(redirected).query)["code"][0]
        self.attempt(lambda: flow.exchange(redirected.replace("state=", "state=x")))
        self.tokens = flow.exchange(redirected)
        self.attempt(lambda: flow.exchange(redirected))
        self.attempt(lambda: flow.exchange(self.secrets["code"]))
        self.secrets["memory key"] = self.tokens.memory_key.reveal()
        self.secrets["access token"] = self.tokens.access_token.reveal()
        self.subjects += [flow, self.tokens]

    def open(self):
        request = self.client.create_access_request(self.secrets["memory key"], "a walk")
        self.attempt(lambda: mf.open_access(self.client, request.id))
        self.user.service.decide(request.id, "approved")
        self.way = mf.SignIn(self.client)
        self.way.choose(request.id)
        self.access = self.way.open()
        self.secrets["encryption key"] = self.access.credentials.encryption_key.reveal()
        self.secrets["token"] = self.client._tokens.token().token.reveal()
        self.subjects += [request, self.way, self.access, self.client.sign_in()]
        self.secrets["second token"] = self.client._tokens.token().token.reveal()

    def load(self):
        memories = mf.load_memories(self.access, page_size=5, progress=True)
        mf.load_memories(self.access, search=SEARCH, progress=True)
        mf.export_memories(memories, self.folder / "memories.jsonl")
        mf.export_memories(self.access, self.folder / "memories.parquet")
        self.subjects += [
            memories,
            memories.attrs,
            mf.load_tags(self.access),
            mf.load_access_requests(self.client),
        ]

    def fail(self):
        blob = {"memory_key": self.secrets["memory key"], "content": "x"}
        for fault in (*[cut] * 3, html, answered(403, {"detail": self.secrets["token"]}), answered(302)):
            self.proxy.script(LIST_MEMORIES, fault)
        for _ in range(4):
            self.attempt(lambda: mf.load_memories(self.access, search=SEARCH))
        self.attempt(lambda: self.client.create_memory_blob(self.user.user_id, importance=99, **blob))
        self.attempt(lambda: self.client.update_memory_blob(self.user.user_id, "nobody", **blob))
        self.attempt(lambda: mf.connect("nonsense", api_key=self.secrets["api key"]))
        for subject in (self.client, self.access, self.way, self.tokens, self.access.credentials):
            self.attempt(lambda subject=subject: pickle.dumps(subject))

    def attempt(self, step):
        with pytest.raises((mf.MemframeError, TypeError)) as caught:
            step()
        self.errors.append(caught.value)


@pytest.fixture
def walk(user, tmp_path, caplog, capfd):
    """A finished walk, with all that was logged, printed and warned of meanwhile."""
    user.service.import_memories(user.user_id, load_sample()[:12])
    caplog.set_level(logging.DEBUG)
    with FaultProxy(user.service.base_url) as proxy, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        walk = Walk(user, proxy, tmp_path)
        walk.go()
        walk.client.close()
    walk.logged = [record.getMessage() for record in caplog.records]
    walk.warned = [str(warning.message) for warning in warned]
    walk.printed = capfd.readouterr()
    return walk


def test_a_short_secret_is_told_from_an_id_with_its_digits():
    assert stands("4071", "the PIN 4071.")
    assert not stands("4071", "1b9d6bcd-4071-4b2d-9b5d-ab8dfbbd4bed at 12.4071, 14071")


@pytest.mark.asvs("14.2.1")
def test_no_secret_shows_anywhere(walk):
    assert len(walk.secrets) == 9
    assert len(walk.errors) == 16
    sinks = {
        "log": walk.logged,
        "standard output and error": walk.printed,
        "warnings": walk.warned,
        "errors": [text for error in walk.errors for text in shown_by(error)],
        "tracebacks": ["".join(traceback.format_exception(error)) for error in walk.errors],
        "objects": [text for subject in walk.subjects for text in everything_in(subject)],
        "files": [path.read_bytes().decode("latin-1") for path in walk.folder.iterdir()],
        "addresses": [f"{request.path} {request.query}" for request in walk.proxy.requests],
    }
    hits = {
        name: [hit for text in texts for hit in found_in(text, walk.secrets)] for name, texts in sinks.items()
    }
    assert not any(hits.values()), hits
    assert all(sinks[name] for name in ("log", "errors", "tracebacks", "objects", "files", "addresses"))
    assert "memories" in walk.printed.err  # somebody did listen


def test_what_was_searched_for_is_in_no_error_and_no_warning(walk):
    """At the level DEBUG urllib3 may write the address of a request, which the specification puts it in."""
    assert SEARCH in {request.query.get("searchQuery") for request in walk.proxy.requests}
    spoken = [text for error in walk.errors for text in (str(error), repr(error))] + [
        *walk.printed,
        *walk.warned,
    ]
    assert not [text for text in spoken if found_in(text, {"search": SEARCH})]


# Ctrl-C during a request


WAITING = (
    *("http/client.py", "socket.py", "requests/models.py", "requests/structures.py"),
    *("urllib3/connection.py", "urllib3/connectionpool.py", "urllib3/response.py"),
    *(f"memframe/client/{name}.py" for name in ("__init__", "responses")),
    *("memframe/oauth.py", "memframe/wire.py"),
)
"""Files in whose frames a request waits or is made. Files with locks are left alone: who breaks into one is
stuck."""


def interrupted(step, nth):
    """What Ctrl-C at the n-th line of a request raises; None where it has fewer lines.

    Where Python lets it come to nothing, as while an object is torn down, an empty one.
    """
    left = nth

    def press(frame, event, argument):
        nonlocal left
        if not frame.f_code.co_filename.endswith(WAITING):
            return None
        left -= 1
        if left == 0:
            sys.settrace(None)
            raise KeyboardInterrupt
        return press

    sys.settrace(press)
    try:
        step()
    except KeyboardInterrupt as stop:
        return stop
    except mf.MemframeError:
        pass
    finally:
        sys.settrace(None)
    return None if left > 0 else KeyboardInterrupt()


STEPS = {
    "sign in": lambda user, client, secrets: client.sign_in(),
    "ask": lambda user, client, secrets: client.create_access_request(secrets["memory key"], "a walk"),
    "credentials": lambda user, client, secrets: client.credentials(secrets["request"]),
    "create": lambda user, client, secrets: client.create_memory_blob(
        user.user_id, memory_key=secrets["memory key"], content="tea"
    ),
    "load": lambda user, client, secrets: mf.load_memories(
        mf.access.Access(client, secrets["request"], secrets["keys"], secrets["envelope"]),
        page_size=1,
        progress=False,
    ),
    "exchange": lambda user, client, secrets: secrets["flow"].exchange("code_canary-of-consent"),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of sockets that it left open
@pytest.mark.parametrize("name", STEPS)
def test_ctrl_c_during_a_request_shows_no_secret_in_a_traceback_with_local_variables(user, name):
    """At every 23rd line that runs, from the first to the last: while it is made, while it waits, while it is read."""
    access = user.access()
    service, keys = user.service, access.credentials
    secrets = {"memory key": keys.memory_key, "flow": user.flow(), "keys": keys}
    secrets |= {"request": access.request_id, "envelope": access.envelope}
    shown = {
        "api key": service.api_key,
        "client secret": service.client_secret,
        "memory key": keys.memory_key.reveal(),
        "encryption key": keys.encryption_key.reveal(),
    }
    n_broken = 0
    for nth in count(1, 23):
        client = mf.connect(service.base_url, api_key=service.api_key, auth_url=service.auth_url)
        shown["token"] = client.sign_in().token.reveal()
        stop = interrupted(lambda: STEPS[name](user, client, secrets), nth)  # noqa: B023 - called at once
        client.close()
        if stop is None:
            break
        n_broken += 1
        for text in shown_by(stop):
            assert not found_in(text, shown), (nth, text[:60])
    assert n_broken > 10
