"""A server for benchmarks of writing: it keeps what it is given in a dict, after a delay if one is asked for."""

import argparse
import json
import time
from itertools import count
from urllib.parse import urlsplit

from pages import KEY, USER_ID, Handler, Server

CREDENTIALS = {"user_id": USER_ID, "memory_key": "mk", "encryption_key": KEY.hex(), "key_version": 1}


class Keeper:
    """Answers by method and target."""

    def __init__(self, n_memories, delay_s):
        self._delay_s = delay_s
        self._ids = count()
        self._rows = {}
        for number in range(n_memories):
            self._add({"content": f"fact {number}", "title": "before"})

    def answer(self, method, target, body):
        path = urlsplit(target).path
        if path.endswith("/auth/token"):
            return b'{"token": "t", "expires_at": "2099-01-01T00:00:00Z", "token_type": "Bearer"}'
        if path.endswith("/credentials"):
            return json.dumps(CREDENTIALS).encode()
        if path.endswith("/memory-blobs") and method == "GET":
            return json.dumps({"memoryBlobs": list(self._rows.values()), "next_cursor": None}).encode()
        time.sleep(self._delay_s)
        if method == "POST":
            return json.dumps(self._add(json.loads(body))).encode()
        row = self._rows[path.rpartition("/")[2]]
        row |= json.loads(body) if method == "PATCH" else {}
        return json.dumps(row).encode()

    def _add(self, fields):
        row = {"id": f"m{next(self._ids)}", "user_id": USER_ID, **fields}
        self._rows[row["id"]] = row
        return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=0)
    parser.add_argument("--delay-ms", type=float, default=0)
    options = parser.parse_args()
    with Server(("127.0.0.1", 0), Handler) as server:
        server.pages = Keeper(options.memories, options.delay_ms / 1000)
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
