"""Servers for benchmarks, each in a process of its own: answers made beforehand, sent as fast as a socket takes them.

What is measured is the client. They speak just enough of the specification for a load, for writes, or for a fleet.

    python benchmarks/servers.py KIND NUMBER...
"""

import base64
import contextlib
import json
import os
import random
import socketserver
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

HERE = Path(__file__).parent
USER_ID = "0b5e9e9c-3d1f-4c55-9a53-6f5d4a1b2c3d"
KEY = bytes(range(32))
REQUEST_ID = "r1"
TEXT = (
    "On the way home from the climbing hall we talked about the move to Lisbon, the new job that begins in "
    "March, and whether the cat would forgive us. She wants to keep the flat until summer; I would rather "
    "not pay for two. We agreed to decide after the visit in January, when the school has answered. "
)


def memory(number, text):
    nonce = os.urandom(12)
    return {
        "id": f"mem_{number:012d}",
        "user_id": USER_ID,
        "content": base64.b64encode(nonce + AESGCM(KEY).encrypt(nonce, text.encode(), None)).decode(),
        "title": f"Conversation {number}",
        "summary": "Moving to Lisbon: decide about the flat after the visit in January.",
        "tags": ["family", "plans"],
        "tag_ids": ["tag_000000000007", "tag_000000000019"],
        "importance": 0.5 + number % 5 / 10,
        "confidence": 0.9,
        "source": "chat",
        "created_at": f"2025-03-{number % 28 + 1:02d}T10:{number % 60:02d}:12.345678Z",
        "updated_at": f"2025-04-{number % 28 + 1:02d}T10:{number % 60:02d}:12.345678Z",
    }


def render(memories, size):
    """Bodies of pages of this size by the place where they begin."""
    return {
        start: json.dumps(
            {
                "memoryBlobs": memories[start : start + size],
                "next_cursor": f"c{start + size}" if start + size < len(memories) else None,
            }
        ).encode()
        for start in range(0, len(memories), size)
    }


class Answers:
    """Answers by method and target: token and credentials here, the rest by `answer_other`."""

    def answer(self, method, target, body):
        parts = urlsplit(target)
        if parts.path.endswith("/auth/token"):
            return b'{"token": "t", "expires_at": "2099-01-01T00:00:00Z", "token_type": "Bearer"}'
        if parts.path.endswith("/credentials"):
            keys = {"memory_key": "mk", "encryption_key": KEY.hex(), "key_version": 1}
            return json.dumps(keys | {"user_id": self.user_of(parts.path)}).encode()
        return self.answer_other(method, parts, body)

    def user_of(self, path):
        return USER_ID


class Pages(Answers):
    """The list of one user's memories. ``/asked`` says for how many pages it was asked since it was asked that."""

    def __init__(self, n_memories, size, delay_ms):
        memories = [memory(number, f"Entry {number}. {TEXT}") for number in range(n_memories)]
        self._pages = render(memories, size)
        self._delay_s = delay_ms / 1000
        self._n_asked = 0

    def answer_other(self, method, parts, body):
        if parts.path.endswith("/asked"):
            n_asked, self._n_asked = self._n_asked, 0
            return json.dumps(n_asked).encode()
        self._n_asked += 1
        time.sleep(self._delay_s)
        return self._pages[int(parse_qs(parts.query).get("cursor", ["c0"])[0][1:])]


class EndlessPages(Answers):
    """Fifty pages of memories, over and over, each time with ids of their own."""

    SIZE, N_KEPT = 1000, 50

    def __init__(self, n_memories):
        self._last = n_memories // self.SIZE - 1
        draw, words = random.Random(7), TEXT.split()
        memories = [
            memory(number, " ".join(draw.choices(words, k=60)))  # does not compress to nothing
            | {"id": f"########-5f6d-4a1b-8c3d-{number % self.SIZE:012x}"}
            for number in range(self.N_KEPT * self.SIZE)
        ]
        self._kept = list(render(memories, self.SIZE).values())

    def answer_other(self, method, parts, body):
        number = int(parse_qs(parts.query).get("cursor", ["c0"])[0][1:])
        body = self._kept[number % self.N_KEPT].replace(b'"id": "########', b'"id": "%08x' % number)
        cursor = b'"c%d"' % (number + 1) if number < self._last else b"null"
        return body[: body.rindex(b":")] + b": " + cursor + b"}"


class Keeper(Answers):
    """Keeps what it is given in a dict, after a delay."""

    def __init__(self, n_memories, delay_ms):
        self._delay_s = delay_ms / 1000
        self._ids = count()
        self._rows = {}
        for number in range(n_memories):
            self._add({"content": f"fact {number}", "title": "before"})

    def answer_other(self, method, parts, body):
        if parts.path.endswith("/memory-blobs") and method == "GET":
            return json.dumps({"memoryBlobs": list(self._rows.values()), "next_cursor": None}).encode()
        time.sleep(self._delay_s)
        if method == "POST":
            return json.dumps(self._add(json.loads(body))).encode()
        row = self._rows[parts.path.rpartition("/")[2]]
        row |= json.loads(body) if method == "PATCH" else {}
        return json.dumps(row).encode()

    def _add(self, fields):
        row = {"id": f"m{next(self._ids)}", "user_id": USER_ID, **fields}
        self._rows[row["id"]] = row
        return row


class Users(Answers):
    """Answers for many users by turning the ids in one prepared page into theirs; ``/counts`` says how much it was."""

    def __init__(self, n_users, n_memories, delay_ms):
        sys.path.insert(0, str(HERE.parent))
        from benchmarks.pairs.corpus import corpus

        self._n_users, self._delay_s = n_users, delay_ms / 1000
        memories = map(memory, count(), corpus(n_memories, seed=7).memories["content"])
        (self._page,) = render(list(memories), n_memories).values()
        self._n_requests = self._n_bytes = 0

    def answer(self, method, target, body):
        if target.endswith("/counts"):
            return json.dumps([self._n_requests, self._n_bytes]).encode()
        time.sleep(self._delay_s)
        answer = super().answer(method, target, body)
        self._n_requests += 1
        self._n_bytes += len(answer)
        return answer

    def user_of(self, path):
        return user_id(int(path.split("/")[-2][1:]))

    def answer_other(self, method, parts, body):
        if parts.path.endswith("/access-requests"):
            approved = [
                {"id": f"r{n}", "status": "approved", "user_id": user_id(n)} for n in range(self._n_users)
            ]
            return json.dumps({"items": approved}).encode()
        if parts.path.endswith("/tags"):
            return b'{"items": []}'
        return self._page.replace(USER_ID.encode(), parse_qs(parts.query)["user_id"][0].encode())


class Nights(Users):
    """The same for users whose memories change: ``/act`` adds one, deletes one, revokes a request or erases a user."""

    N_KINDS = 20

    def __init__(self, n_users, n_memories, delay_ms):
        super().__init__(n_users, 1, delay_ms)
        from benchmarks.pairs.corpus import corpus

        texts = corpus(self.N_KINDS * n_memories, seed=7, copies=0.05, changes=0).memories["content"]
        rows = list(map(self._bare, count(), texts))
        starts = range(0, len(rows), n_memories)
        self._rows = [rows[start : start + n_memories] for start in starts]
        self._whole = [next(iter(render(part, n_memories).values())) for part in self._rows]
        self._changed, self._status, self._number = {}, {}, count(10**9)

    def answer(self, method, target, body):
        if target.endswith("/act"):
            self._act(**json.loads(body))
            return b"{}"
        return super().answer(method, target, body)

    def _bare(self, number, text):
        return memory(number, text) | {"title": None, "summary": None, "tags": [], "tag_ids": []}

    def _act(self, user, add=None, delete=None, status=None):
        if status is not None:
            self._status[user] = status
            return
        rows = self._changed.setdefault(user, list(self._rows[user % self.N_KINDS]))
        if delete is not None:
            del rows[delete]
        if add is not None:
            rows.append(self._bare(next(self._number), add))

    def answer_other(self, method, parts, body):
        if "/access-requests" in parts.path:
            users = (n for n in range(self._n_users) if self._status.get(n) != "erased")
            items = {f"r{n}": self._request(n) for n in users}
            wanted = parts.path.rpartition("/")[2]
            return json.dumps(
                {"items": [*items.values()]} if wanted == "access-requests" else items[wanted]
            ).encode()
        if parts.path.endswith("/tags"):
            return b'{"items": []}'
        asked = parse_qs(parts.query)["user_id"][0]
        number = int(asked.partition("-")[0], 16)
        page = self._whole[number % self.N_KINDS]
        if number in self._changed:
            page = json.dumps({"memoryBlobs": self._changed[number], "next_cursor": None}).encode()
        return page.replace(USER_ID.encode(), asked.encode())

    def _request(self, number):
        return {
            "id": f"r{number}",
            "status": self._status.get(number, "approved"),
            "user_id": user_id(number),
        }


def user_id(number):
    return f"{number:08x}-5f6d-4a1b-8c3d-6f5d4a1b2c3d"


class Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        while line := self.rfile.readline():
            method, target, _ = line.decode().split(" ", 2)
            length = 0
            while (header := self.rfile.readline()) not in {b"\r\n", b""}:
                name, _, value = header.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            status, given = "200 OK", self.rfile.read(length)
            try:
                body = self.server.answers.answer(method, target, given)
            except KeyError:
                status, body = "404 Not Found", b'{"title": "no such thing"}'
            head = (
                f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            self.wfile.write(head.encode() + body)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128


@contextlib.contextmanager
def serving(kind, *numbers):
    """The address of a server in a process of its own."""
    command = [sys.executable, __file__, kind.__name__, *map(str, numbers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/api/v1"
        finally:
            server.terminate()


def run_apart(program, *arguments, **environ):
    """What a program prints as JSON, in a fresh process."""
    command = [sys.executable, program, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | environ)
    return json.loads(done.stdout)


if __name__ == "__main__":
    with Server(("127.0.0.1", 0), Handler) as server:
        server.answers = globals()[sys.argv[1]](*map(int, sys.argv[2:]))
        print(server.server_address[1], flush=True)
        server.serve_forever()
