"""A page server for benchmarks: pages made beforehand, sent as fast as a socket takes them.

So that what is measured is the client. It speaks just enough of the specification for a load: token,
credentials, and the list of one user's memories at any page size, after a delay if one is asked for.
"""

import argparse
import base64
import json
import os
import socketserver
import time
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

USER_ID = "0b5e9e9c-3d1f-4c55-9a53-6f5d4a1b2c3d"
KEY = bytes(range(32))
REQUEST_ID = "r1"
TEXT = (
    "On the way home from the climbing hall we talked about the move to Lisbon, the new job that begins in "
    "March, and whether the cat would forgive us. She wants to keep the flat until summer; I would rather "
    "not pay for two. We agreed to decide after the visit in January, when the school has answered. "
)


def some_text(draw):
    """Text that is nobody's duplicate and does not compress to nothing."""
    return " ".join(draw.choices(TEXT.split(), k=60))


def memory(number, text=None):
    text = (f"Entry {number}. {TEXT}" if text is None else text).encode()
    nonce = os.urandom(12)
    return {
        "id": f"mem_{number:012d}",
        "user_id": USER_ID,
        "content": base64.b64encode(nonce + AESGCM(KEY).encrypt(nonce, text, None)).decode(),
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


def rendered(memories, size):
    memories = list(memories)
    starts = range(0, len(memories), size)
    return {
        start: json.dumps(
            {
                "memoryBlobs": memories[start : start + size],
                "next_cursor": f"c{start + size}" if start + size < len(memories) else None,
            }
        ).encode()
        for start in starts
    }


class Pages:
    """Answers by method and target; pages of a size are rendered once, when first asked for.

    ``/asked`` says for how many pages it was asked since it was asked that.
    """

    def __init__(self, n_memories, delay_s):
        self._memories = [memory(number) for number in range(n_memories)]
        self._delay_s = delay_s
        self._pages = {}
        self._n_asked = 0

    def prepare(self, size):
        self._pages[size] = rendered(self._memories, size)

    def answer(self, method, target, body):
        parts = urlsplit(target)
        if method == "POST":
            return b'{"token": "t", "expires_at": "2099-01-01T00:00:00Z", "token_type": "Bearer"}'
        if parts.path.endswith("/credentials"):
            keys = {"user_id": USER_ID, "memory_key": "mk", "encryption_key": KEY.hex(), "key_version": 1}
            return json.dumps(keys).encode()
        if parts.path.endswith("/asked"):
            n_asked, self._n_asked = self._n_asked, 0
            return json.dumps(n_asked).encode()
        self._n_asked += 1
        query = parse_qs(parts.query)
        size = min(int(query.get("limit", ["10"])[0]), 1000)
        if size not in self._pages:
            self.prepare(size)
        time.sleep(self._delay_s)
        return self._pages[size][int(query.get("cursor", ["c0"])[0][1:])]


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
            body = self.server.pages.answer(method, target, self.rfile.read(length))
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            self.wfile.write(head.encode() + body)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=50_000)
    parser.add_argument("--page-size", type=int, action="append", default=[])
    parser.add_argument("--delay-ms", type=float, default=0)
    options = parser.parse_args()
    with Server(("127.0.0.1", 0), Handler) as server:
        server.pages = Pages(options.memories, options.delay_ms / 1000)
        for size in options.page_size:
            server.pages.prepare(size)
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
