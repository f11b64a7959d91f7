"""The service under load: creates, gets, lists, patches and searches, on SQLite and on PostgreSQL.

    python tests/benchmarks/service.py                    # needs wrk, and a PostgreSQL for its part
    python tests/benchmarks/service.py --rows 1000000     # what the rows of other users in the table cost

Each service is a process tree of its own, with full durability; wrk shares the machine with it. Beside
requests a second and the slowest hundredth stands how long the service's processes have worked for a request,
which tells more than the rest where the machine has other things to do.
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

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

CONTENT = "She likes her tea green and her trams on time. " * 12
N_MEMORIES = 10_000
CLIENTS = 16
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
        developer_id = deployment.store.accounts.developers()[0].id
        self.user_id = self.add_user()
        key = deployment.memory_key(user_id=self.user_id, developer_id=developer_id).reveal()
        asked = deployment.store.requests.add(developer_id=developer_id, user_id=self.user_id, reason="")
        deployment.store.requests.decide(asked.id, "approved")
        self.keys = {"user_id": self.user_id, "memoryKey": key}
        body = {"api_key": shown["api_key"], "expires_in": 86_400}
        token = requests.post(f"{self.address}/api/v1/auth/token", json=body, timeout=60).json()["token"]
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

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
        with self.deployment.store.owned(self.user_id) as mine:
            from memframe.service.cursors import Filter

            return [memory.id for _, memory in mine.page(Filter(self.user_id), after=0, limit=1000)]

    def path(self, rest="", **query):
        return f"/api/v1/memory-blobs{rest}?" + urlencode({"user_id": self.user_id, **query})

    def get(self, path, connection=None):
        connection = connection or http.client.HTTPConnection(self.address.removeprefix("http://"))
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


def compare(databases, workers, seconds, rounds):
    """One table: each kind of request on each database with so many processes."""
    print(f"{'':24}{'requests/s':>12}{'p99 ms':>9}{'work us':>9}")
    for database in databases:
        for n_workers in workers:
            with running(database, n_workers) as service:
                service.fill(service.user_id, 1000)
                service.some_ids = service.ids()
                for kind in kinds(service):
                    load(service, kind, 1)
                    measured = zip(*(load(service, kind, seconds) for _ in range(rounds)), strict=True)
                    rate, p99, work = map(statistics.median, measured)
                    name = f"{database}, {n_workers}: {kind}"
                    print(f"{name:32}{rate:10,.0f}{p99:9.1f}{work:9,.0f}", flush=True)


def search_s(service, *, rounds=7):
    """Seconds of a search through all memories of the user, which finds nothing."""
    connection = http.client.HTTPConnection(service.address.removeprefix("http://"))
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        found = service.get(service.path(searchQuery="zeppelin"), connection)
        took.append(time.perf_counter() - began)
        assert found["memoryBlobs"] == []
    return statistics.median(took)


def grow(databases, n_rows):
    """What searches, pages and gets cost with few and with many rows of other users in the table."""
    for database in databases:
        with running(database, 1) as service:
            service.fill(service.user_id, N_MEMORIES)
            service.some_ids = service.ids()
            few = costs(service)
            print(f"{database}: a search through {N_MEMORIES:,} memories takes {few['search'] * 1000:.0f} ms")
            for _ in range(100):
                service.fill(service.add_user(), (n_rows - N_MEMORIES) // 100)
            many = costs(service)
            for name, before in few.items():
                print(f"{database}: {name}: {many[name] / before:.2f} times with {n_rows:,} rows", flush=True)


def costs(service):
    """Seconds of each thing that must not depend on the size of the table."""
    cursor = service.get(service.path(limit=1000))["next_cursor"]
    paths = {
        "list of 100": service.path(limit=100),
        "list of 100 behind a cursor": service.path(limit=100, cursor=cursor),
        "list of 100 under a tag": service.path(limit=100, tags="city"),
        "list of 100 by importance": service.path(limit=100, importance=0.5),
        "get": service.path(f"/{service.some_ids[500]}"),
    }
    return {"search": search_s(service)} | {name: _seconds(service, path) for name, path in paths.items()}


def _seconds(service, path, *, rounds=300):
    connection = http.client.HTTPConnection(service.address.removeprefix("http://"))
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        service.get(path, connection)
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--databases", default="sqlite,postgresql")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, help="Compare a small table with one of so many rows instead.")
    given = parser.parse_args()
    databases = given.databases.split(",")
    if given.rows:
        grow(databases, given.rows)
    else:
        compare(databases, [int(number) for number in given.workers.split(",")], given.seconds, given.rounds)


if __name__ == "__main__":
    main()
