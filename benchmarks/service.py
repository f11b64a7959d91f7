"""The service under load: creates, gets, lists, patches and searches, on SQLite and on PostgreSQL.

    python benchmarks/service.py             # needs wrk, and a PostgreSQL for its part
    python benchmarks/service.py --rows 0    # without the large table, which takes minutes to fill

Each service is a process tree of its own, with full durability; wrk shares the machine with it. Requests a
second and the slowest hundredth depend on what else the machine does, so that the work for a request stands
beside them: the time of the service's own processes, without PostgreSQL's.
"""

import argparse
import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import urlencode
from uuid import uuid4

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

N_MEMORIES = 10_000
CLIENTS = 16


SCRIPT = """
local ids = {{{ids}}}
local headers = {{["Authorization"] = "{token}", ["Content-Type"] = "application/json"}}
local body, number = {body}, 0
request = function()
  number = number + 1
  return wrk.format("{method}", string.gsub("{path}", "ID", ids[number % #ids + 1]), headers, body)
end
done = function(summary, latency, requests)
  io.write(string.format('\\n{{"requests": %d, "us": %d, "p99_us": %d, "failed": %d}}\\n',
    summary.requests, summary.duration, latency:percentile(99),
    summary.errors.connect + summary.errors.read + summary.errors.status + summary.errors.timeout))
end
"""


# A service and a user with memories

CONTENT = "She likes her tea green and her trams on time. " * 12
MEMORY = {
    "title": "Tea and trams",
    "summary": "What she likes, and what she waits for.",
    "tags": ["habits", "city"],
    "importance": 0.6,
    "confidence": 0.9,
    "source": "chat",
}


class Running:
    """A running service with one user who has approved, and whatever a request to it needs."""

    def __init__(self, process, deployment, shown):
        import requests

        self.process, self.deployment, self.address = process, deployment, shown["auth_url"]
        self.api_key = shown["api_key"]
        self.go_on_with_a_new_user()
        body = {"api_key": shown["api_key"], "expires_in": 86_400}
        token = requests.post(f"{self.address}/api/v1/auth/token", json=body, timeout=60).json()["token"]
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def go_on_with_a_new_user(self):
        """What follows is asked of another user."""
        developer_id = self.deployment.store.accounts.developers()[0].id
        self.user_id = self.add_user()
        pair = {"user_id": self.user_id, "developer_id": developer_id}
        self.keys = {"user_id": self.user_id, "memoryKey": self.deployment.memory_key(**pair).reveal()}
        asked = self.deployment.store.requests.add(**pair, reason="")
        self.deployment.store.requests.decide(asked.id, "approved")
        self.request_id = asked.id

    def add_user(self):
        from memframe.secret import Secret

        return self.deployment.add_user(f"{uuid4()}@example.org", Secret("a long password"))

    def fill(self, user_id, n_memories):
        """Give a user memories, a thousand at a time."""
        from memframe.service.importing import import_memories

        for first in range(0, n_memories, 1000):
            numbers = range(first, min(first + 1000, n_memories))
            some = [{"content": f"{number}. {CONTENT}", **MEMORY} for number in numbers]
            import_memories(self.deployment, user_id, some)

    def ids(self):
        with self.deployment.store.transaction_of(self.user_id) as mine:
            from memframe.service.store.listing import MemoryFilter

            return [memory.id for memory in mine.page(MemoryFilter(self.user_id), limit=1000).memory_blobs]

    def copy_to_strangers(self, n_users):
        """Give others, whose content nobody will ever open, what the user has."""
        from sqlalchemy import text

        for number in range(n_users):
            given = {"source": self.user_id, "new": self.add_user(), "number": f"n{number:03}"}
            with self.deployment.store.engine.begin() as connection:
                for statement in COPIES:
                    connection.execute(text(statement), given)

    def path(self, rest="", **query):
        return f"/api/v1/memory-blobs{rest}?" + urlencode({"user_id": self.user_id, **query})

    def get(self, path):
        connection = http.client.HTTPConnection(self.address.removeprefix("http://"))
        connection.request("GET", path, headers=self.headers)
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body
        return json.loads(body)

    def worked_s(self):
        """Processor time of the service's processes so far; PostgreSQL's own apart."""
        pids = [self.process.pid, *_children(self.process.pid)]
        ticks = 0
        for pid in pids:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


COPIES = [
    """INSERT INTO tags (id, user_id, name, color, description, is_enabled, created_at, updated_at)
    SELECT :number || substr(id, 5), :new, name, color, description, is_enabled, created_at, updated_at
    FROM tags WHERE user_id = :source""",
    """INSERT INTO memories (id, user_id, content, title, summary, tags, tag_ids, importance, created_at, updated_at)
    SELECT :number || substr(id, 5), :new, content, title, summary, tags, tag_ids, importance, created_at, updated_at
    FROM memories WHERE user_id = :source ORDER BY seq""",
    """INSERT INTO memory_tags (tag_id, memory_seq)
    SELECT tags.id, seq FROM tags JOIN memories ON memories.user_id = tags.user_id WHERE tags.user_id = :new""",
]


def _children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def running(database, workers):
    """A service of this many processes, on a database of its own."""
    from memframe.service.deployment import open_deployment

    with ExitStack() as stack:
        folder = tempfile.mkdtemp(prefix="memframe-benchmark-")
        stack.callback(shutil.rmtree, folder)
        url = stack.enter_context(_postgres()).new_database() if database == "postgresql" else None
        options = ["--data", folder, "--port", "0", "--workers", str(workers)]
        options += ["--database", url] if url else []
        command = [sys.executable, "-m", "memframe", "serve", "--json", *options]
        process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT))
        stack.callback(process.terminate)
        shown = json.loads(process.stdout.readline())
        deployment = stack.enter_context(closing(open_deployment(Path(folder), database_url=url)))
        yield Running(process, deployment, shown)


def _postgres():
    from tests.postgres import running_postgres

    return running_postgres({})  # with all its durability


# What it is asked


def kinds(service):
    """Method, path and body of each kind of request."""
    new = json.dumps({**service.keys, "content": CONTENT, **MEMORY})
    changed = json.dumps({**service.keys, "title": "Trams and tea"})
    return {
        "create": ("POST", "/api/v1/memory-blobs", new),
        "patch": ("PATCH", "/api/v1/memory-blobs/ID", changed),
        "get": ("GET", service.path("/ID"), None),
        "list of 100": ("GET", service.path(limit=100), None),
    }


def load(service, kind, seconds):
    """Requests of one kind for a while: how many a second, the slowest hundredth, work for each."""
    method, path, body = kinds(service)[kind]
    script = SCRIPT.format(
        ids=", ".join(f'"{memory_id}"' for memory_id in service.some_ids),
        token=service.headers["Authorization"],
        method=method,
        path=path,
        body=f"[==[{body}]==]" if body else "nil",
    )
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        before = service.worked_s()
        options = ["-t", "1", "-c", str(CLIENTS), "-d", f"{seconds}s", "--timeout", "20s"]
        command = ["wrk", *options, "-s", file.name, service.address]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        worked = service.worked_s() - before
    told = json.loads(done.stdout.splitlines()[-1])
    assert not told["failed"], told
    return told["requests"] / told["us"] * 1e6, told["p99_us"] / 1000, worked / told["requests"] * 1e6


def measured(database, n_workers, seconds, rounds):
    """Cells of a column: each kind of request to so many processes."""
    cells = {}
    with running(database, n_workers) as service:
        service.fill(service.user_id, 1000)
        service.some_ids = service.ids()
        for kind in kinds(service):
            load(service, kind, 1)
            loads = zip(*(load(service, kind, seconds) for _ in range(rounds)), strict=True)
            rate, p99_ms, work_us = map(statistics.median, loads)
            cells[kind] = f"{rate:,.0f}/s, {p99_ms:.0f} ms, {work_us:.0f} us"
    return cells


def grown(database, n_rows):
    """Cells of a column: what a user of a small table costs, and how many times that of a large one.

    The two services run side by side and are asked in turns.
    """
    with running(database, 1) as small, running(database, 1) as large:
        small.fill(small.user_id, N_MEMORIES)
        large.fill(large.user_id, N_MEMORIES)
        large.copy_to_strangers(n_rows // N_MEMORIES - 2)
        large.go_on_with_a_new_user()  # whose memories stand behind all others
        large.fill(large.user_id, N_MEMORIES)
        services = {service: queries(service) for service in (small, large)}
        cells = {}
        for name in services[small]:
            few, many = in_turns([(service, paths[name]) for service, paths in services.items()])
            cells[f"{name}: of {n_rows:,} / {N_MEMORIES:,}"] = f"{many / few:.2f}"
            if name == "search":
                cells = {f"search through {N_MEMORIES:,}": f"{few * 1000:.0f} ms"} | cells
    return cells


def queries(service):
    """Paths of what must not depend on the size of the table."""
    first = service.get(service.path(limit=1000))
    cursor, memory_id = first["next_cursor"], first["memoryBlobs"][500]["id"]
    return {
        "search": service.path(searchQuery="zeppelin"),  # which nobody has mentioned
        "get": service.path(f"/{memory_id}"),
        "list": service.path(limit=100),
        "behind a cursor": service.path(limit=100, cursor=cursor),
        "under a tag": service.path(limit=100, tags="city"),
        "by importance": service.path(limit=100, importance=0.5),
    }


def in_turns(asked, *, rounds=100):
    """Seconds that each of some requests takes when the machine has little else to do: a quarter takes no longer.

    Who is first goes by turns.
    """
    connections = [
        http.client.HTTPConnection(service.address.removeprefix("http://")) for service, _ in asked
    ]
    took = [[] for _ in asked]
    turns = list(zip(asked, connections, took, strict=True))
    for _ in range(rounds):
        turns.reverse()
        for (service, path), connection, seconds in turns:
            began = time.perf_counter()
            connection.request("GET", path, headers=service.headers)
            answer = connection.getresponse()
            answer.read()
            seconds.append(time.perf_counter() - began)
            assert answer.status == 200
    return [statistics.quantiles(seconds, n=4)[0] for seconds in took]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--databases", default="sqlite,postgresql")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000_000, help="Of the large table; 0 leaves it out.")
    given = parser.parse_args()
    columns = {}
    for database in given.databases.split(","):
        for workers in map(int, given.workers.split(",")):
            column = columns[f"{database}, {workers}"] = measured(
                database, workers, given.seconds, given.rounds
            )
            if given.rows and workers == 1:
                column |= grown(database, given.rows)
            print(f"{database}, {workers}: {column}", file=sys.stderr, flush=True)  # the table comes late
    show(columns)


def show(columns):
    """A table: requests a second, the slowest hundredth, work for each; and what a large table changes."""
    print(f"load of the machine in the last quarter of an hour: {os.getloadavg()[2]:.1f}")
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    print("|".join(["", " " * 36, *(f" {name:24}" for name in columns), ""]))
    print("|".join(["", "-" * 36, *("-" * 25 for _ in columns), ""]))
    for name in names:
        print(
            "|".join(["", f" {name:35}", *(f" {column.get(name, ''):24}" for column in columns.values()), ""])
        )


if __name__ == "__main__":
    main()
