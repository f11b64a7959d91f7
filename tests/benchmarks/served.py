"""A service with full durability, in processes of its own, and a user with memories: what benchmarks ask."""

import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import urlencode
from uuid import uuid4

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

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
