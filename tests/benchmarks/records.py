"""A service for benchmarks of writing: memories in a dict, answers after a delay, nothing on a disk.

So that what is measured is the client. It speaks just enough of the specification for plans and runs.
"""

import argparse
import itertools
import json
import socketserver
import time
from urllib.parse import parse_qs, urlsplit

from pages import KEY, USER_ID, Server, memory

MAX_LIMIT = 1000
EDITABLE = ("title", "summary", "content", "tags", "importance", "confidence", "source")


class Records:
    """One user's memories, and the answer to a request about them."""

    def __init__(self, n_memories, delay_s):
        self._memories = {blob["id"]: blob for blob in map(memory, range(n_memories))}
        self._numbers = itertools.count(n_memories)
        self._delay_s = delay_s

    def answer(self, method, target, body):
        """Status and JSON."""
        path = urlsplit(target).path.removeprefix("/api/v1")
        if path == "/auth/token":
            return 200, {"token": "t", "expires_at": "2099-01-01T00:00:00Z", "token_type": "Bearer"}
        if path.endswith("/credentials"):
            return 200, {
                "user_id": USER_ID,
                "memory_key": "mk",
                "encryption_key": KEY.hex(),
                "key_version": 1,
            }
        time.sleep(self._delay_s)
        memory_id = path.removeprefix("/memory-blobs").strip("/")
        if method == "GET" and not memory_id:
            return 200, self._page(parse_qs(urlsplit(target).query))
        return getattr(self, f"_{method.lower()}")(memory_id, json.loads(body or b"{}"))

    def _page(self, query):
        limit = min(int(query.get("limit", ["10"])[0]), MAX_LIMIT)
        start = int(query.get("cursor", ["0"])[0])
        blobs = list(self._memories.values())[start : start + limit]
        more = start + limit < len(self._memories)
        return {"memoryBlobs": blobs, "next_cursor": str(start + limit) if more else None}

    def _get(self, memory_id, _):
        return 200, self._memories[memory_id]

    def _post(self, _, sent):
        number = next(self._numbers)
        blank = memory(0) | {"title": None, "summary": None, "tags": [], "tag_ids": [], "source": None}
        blob = blank | {"importance": None, "confidence": None, "id": f"mem_{number:012d}"}
        self._memories[blob["id"]] = blob
        return 201, self._changed(blob, sent)

    def _patch(self, memory_id, sent):
        return 200, self._changed(self._memories[memory_id], sent)

    def _delete(self, memory_id, _):
        del self._memories[memory_id]
        return 200, {"success": True}

    def _changed(self, blob, sent):
        blob.update({name: sent[name] for name in EDITABLE if name in sent})
        return {name: value for name, value in blob.items() if name != "content"}


class Handler(socketserver.StreamRequestHandler):
    """Requests with a body, one after the other on a connection that stays open."""

    disable_nagle_algorithm = True

    def handle(self):
        while line := self.rfile.readline():
            method, target, _ = line.decode().split(" ", 2)
            length = 0
            while (header := self.rfile.readline()) not in {b"\r\n", b""}:
                name, _, value = header.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            status, answer = self.server.records.answer(method, target, self.rfile.read(length))
            body = json.dumps(answer).encode()
            head = f"HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            self.wfile.write(head.encode() + body)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=1_000)
    parser.add_argument("--delay-ms", type=float, default=0)
    options = parser.parse_args()
    with Server(("127.0.0.1", 0), Handler) as server:
        server.records = Records(options.memories, options.delay_ms / 1000)
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
