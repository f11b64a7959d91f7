"""A service in memory with a clock of its own, behind a way that breaks what a script says.

Everything on this side of the wire is the real thing: `apply_plan`, its journal, the client. Time is
the world's: it moves by a little with every request, and by what a run sleeps. A killed client is one in which
every further touch of the wire or the journal raises `Killed`.
"""

import io
import itertools
import json
import sqlite3
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import urllib3
from urllib3.exceptions import MaxRetryError, NewConnectionError, ProtocolError

from memframe.client import Client
from memframe.client.connections import ConnectionPool
from memframe.client.transport import Transport, read_retry
from memframe.secret import Secret

BASE_URL = "http://127.0.0.1:9/api/v1"
USER_ID = "5f0c9b1e-93f3-4b6c-8c0a-0a4c6b8d2e11"
KEYS = {1: "0f1e" * 16, 2: "2d3c" * 16}
REQUEST_S = 0.01
LATE_S = 5.0


class Killed(BaseException):
    """SIGKILL, as far as one process can have it."""


class Logged(NamedTuple):
    """One request, and when it came."""

    at: float
    method: str
    path: str
    body: bytes | None
    key: str | None


@dataclass
class World:
    """The service, the wire to it, and time.

    `faults` are taken by the writes to come, one each, `read_faults` by the listings and `get_faults` by the readings
    of single memories. `kills` are the steps
    at which the client dies, one for each of its lives: every request is a step before it leaves and one after
    it was carried out, every commit of the journal one before and one after, and every sleep is one.
    """

    faults: deque = field(default_factory=deque)
    read_faults: deque = field(default_factory=deque)
    get_faults: deque = field(default_factory=deque)
    kills: deque = field(default_factory=deque)
    lag_s: float = 0.0
    honours_keys: bool = False
    stored_as: object = staticmethod(lambda content: content)

    def __post_init__(self):
        self.now = 0.0
        self.rows = {}
        self.tombstones = {}
        self.texts_before = []
        self.log = []
        self.n_steps = 0
        self.dead = False
        self.key_version = 1
        self.status = "approved"
        self._late = []
        self._past = deque([(float("-inf"), {})])
        self._by_key = {}
        self._ids = itertools.count()

    # -- time

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.step()
        self.pass_time(seconds)

    def pass_time(self, seconds):
        end = self.now + seconds
        while self._late and self._late[0][0] <= end:
            self.now, do = self._late.pop(0)
            do()
            self._remember()
        self.now = end

    def step(self):
        """One more place at which the client may be killed."""
        if self.dead:
            raise Killed
        self.n_steps += 1
        if self.kills and self.n_steps == self.kills[0]:
            self.dead = True
            raise Killed

    def restart(self):
        """A new process of the client; what is under way on the wire arrives all the same."""
        self.dead, self.n_steps = False, 0
        self.kills.popleft()

    # -- the state

    def add(self, **fields):
        times = dict.fromkeys(("created_at", "updated_at"), stamp(self.now))
        row = {"id": f"m{next(self._ids)}", "user_id": USER_ID, **times, **fields}
        self.rows[row["id"]] = row
        self._remember()
        return row

    def bury(self, row):
        """Delete a memory, and keep what it can be restored by."""
        self.tombstones[row["id"]] = {name: row[name] for name in ("id", "created_at", "updated_at")}
        del self.rows[row["id"]]
        self._remember()

    def listed(self):
        """What a listing shows: as it was `lag_s` ago."""
        if not self.lag_s:
            return self.rows
        return next(rows for at, rows in reversed(self._past) if at <= self.now - self.lag_s)

    def _remember(self):
        if self.lag_s:
            self._past.append((self.now, dict(self.rows)))

    # -- the wire

    def answer(self, request):
        """The answer to a prepared request, as (status, body, headers); or the error that urllib3 would raise."""
        self.step()
        self.pass_time(REQUEST_S)
        address = urlsplit(request.url)
        path, query = address.path.removeprefix("/api/v1"), dict(parse_qsl(address.query))
        self.log.append(
            Logged(self.now, request.method, path, request.body, request.headers.get("Idempotency-Key"))
        )
        if path == "/auth/token" or request.method == "GET":
            faults, do = self._read_faults(path), partial(self._read, request.method, path)
        else:
            faults, do = self.faults, partial(self._write, request, path, query)
        answer = (faults.popleft() if faults else ok)(self, do)
        self.step()
        return answer

    def sent(self, method):
        """The writes of a method so far; of GET, the listings."""
        is_meant = (
            (lambda path: path == "/memory-blobs") if method == "GET" else (lambda path: "blobs" in path)
        )
        return [one for one in self.log if one.method == method and is_meant(one.path)]

    def _read_faults(self, path):
        if path == "/memory-blobs":
            return self.read_faults
        return self.get_faults if path.startswith("/memory-blobs/") else ()

    def _read(self, method, path):
        if path == "/auth/token":
            return 200, {"token": "t", "expires_at": "2040-01-01T00:00:00Z"}
        if path == "/memory-blobs":
            return 200, {"memoryBlobs": list(self.listed().values()), "next_cursor": None}
        if path.startswith("/memory-blobs/"):
            row = self.listed().get(path.rpartition("/")[2])
            return (200, row) if row else (404, {"detail": "no such memory"})
        if path.endswith("/credentials"):
            if self.status != "approved":
                return 403, {"detail": f"the request is {self.status}"}
            keys = {"user_id": USER_ID, "memory_key": "mk_1", "encryption_key": KEYS[self.key_version]}
            return 200, keys | {"key_version": self.key_version}
        return 200, {"id": "r1", "status": self.status}

    def _write(self, request, path, query):
        memory_id = path.removeprefix("/memory-blobs").strip("/")
        if self.status != "approved":
            return 403, {"detail": "the access was revoked"}
        if request.method != "POST" and memory_id not in self.rows:
            return 404, {"detail": "no such memory"}
        if request.method == "DELETE":
            del self.rows[memory_id]
            self._remember()
            return 200, {"success": True}
        fields = {name: value for name, value in json.loads(request.body).items() if name != "memoryKey"}
        if "content" in fields:
            fields["content"] = self.stored_as(fields["content"])
        if request.method == "PATCH":
            self.rows[memory_id] = {**self.rows[memory_id], **fields, "updated_at": stamp(self.now)}
            self._remember()
            return 200, without_content(self.rows[memory_id])
        key, restores = (request.headers.get(name) for name in ("Idempotency-Key", "Restores"))
        if self.honours_keys and key in self._by_key:
            return 201, without_content(self._by_key[key])
        if restores in self.rows:
            return 409, {"detail": "the memory is there", "code": "memory_exists"}
        self._by_key[key] = self.add(**fields, **self.tombstones.pop(restores, {}))
        return 201, without_content(self._by_key[key])

    def later(self, do):
        """Carry out something when nobody expects it any more."""
        self._late.append((self.now + LATE_S, do))


def stamp(now):
    return f"2030-01-01T00:{int(now) // 60 % 60:02}:{int(now) % 60:02}.{int(now % 1 * 1e6):06}Z"


def without_content(row):
    return {name: value for name, value in row.items() if name != "content"}


# Faults: what becomes of one write. Each takes the world and what carries the write out.


def ok(world, do):
    return do()


def refused(world, do):
    return MaxRetryError(None, "/", NewConnectionError(None, "refused"))


def reset(world, do):
    """Broken while the body went up, or before the service had done anything."""
    return ProtocolError("Connection aborted.", ConnectionResetError(104, "reset"))


def reset_after(world, do):
    do()
    return reset(world, do)


def truncated(world, do):
    status, body = do()
    return status, json.dumps(body)[:-7]  # a proxy's doing: the length is that of what is left


def empty(world, do):
    return do()[0], ""


def failed_before(world, do):
    return 500, {"detail": "internal error"}


def failed_after(world, do):
    do()
    return 500, {"detail": "internal error"}


def gateway_before(world, do):
    return 504, "<html>timed out</html>"


def gateway_after(world, do):
    do()
    return 504, "<html>timed out</html>"


def throttled(world, do):
    return 429, {"detail": "slow down"}


def late(world, do):
    world.later(do)
    return reset(world, do)


def expired(world, do):
    """401: the token; the client renews it and sends the write once more."""
    return 401, {"detail": "expired"}


def accepted(world, do):
    do()
    return 202, ""


def twice(world, do):
    """Something on the way delivers the request twice."""
    do()
    return do()


FAULTS = (
    ok,
    refused,
    reset,
    reset_after,
    truncated,
    empty,
    failed_before,
    failed_after,
    gateway_before,
    gateway_after,
    throttled,
    late,
    expired,
    accepted,
)
"""What a client must survive; `twice` is apart, as nobody can but tell."""


# The client's side


class Wire(ConnectionPool):
    """Carries the requests of a client into the world of the moment."""

    world: World

    def __init__(self):
        super().__init__(ca_bundle=None)

    def request(self, request, **options):
        answer = self.world.answer(request)
        if isinstance(answer, Exception):
            raise answer
        status, body, *more = answer
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        headers = {"Content-Length": str(len(content)), "Content-Type": "application/json"} | dict(*more)
        return urllib3.HTTPResponse(io.BytesIO(content), headers, status, preload_content=False)


class Database(sqlite3.Connection):
    """The journal's database: a commit is a step, before it and after."""

    world: World

    def execute(self, statement, *parameters):
        if self.world.dead:
            raise Killed
        if statement != "COMMIT":
            return super().execute(statement, *parameters)
        self.world.step()
        done = super().execute(statement, *parameters)
        self.world.step()
        return done


def client_of():
    """A client on a wire, and the wire."""
    transport = Transport(retry=read_retry().new(backoff_factor=0, backoff_jitter=0))
    wire = Wire()
    transport._pool_of = lambda process: wire
    return Client(BASE_URL, Secret("mf_key_of_the_simulation"), transport=transport), wire
