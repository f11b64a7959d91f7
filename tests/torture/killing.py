"""A service and a writer, each a process of its own, killed at random moments until all is written."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections import Counter
from contextlib import closing, contextmanager
from pathlib import Path

import memframe as mf
from memframe.demo.person import Person
from memframe.service.deployment import open_deployment

EMAIL, PASSWORD = "victim@example.org", "a password for torture"
HERE = Path(__file__).parents[2]
LONGEST_LIFE_S = 0.6
"""Of a writer that has begun to write, while there is somebody left to kill."""

MAX_STARTS = 1_000
"""Of a writer; one that needs more than that gets nowhere."""


class Service:
    """A service on a port of its own, killed and started again on the same data."""

    def __init__(self, folder):
        self._command = [sys.executable, "-m", "tests.torture.service", str(folder), str(free_port())]
        self.first = self._start()

    def _start(self):
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        return json.loads(self._process.stdout.readline())

    def kill(self):
        self._process.kill()
        self._process.communicate()
        self._start()

    def stop(self):
        self._process.communicate(timeout=60)  # the end of its input ends it


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def serving(folder):
    service = Service(folder)
    try:
        yield service
    finally:
        service.stop()


@contextmanager
def approved(folder, service):
    """Settings and an approved request of a new user; the access that it gives."""
    first = service.first
    with closing(open_deployment(folder, may_create=False)) as deployment:
        deployment.add_user(EMAIL, mf.Secret(PASSWORD))
        with closing(Person(EMAIL, PASSWORD)) as person, mf.connect(**address(first)) as client:
            flow = mf.OAuthFlow(
                first["client_id"],
                first["client_secret"],
                auth_url=first["auth_url"],
                redirect_uri=first["redirect_uri"],
            )
            tokens = flow.exchange(person.authorize(flow.authorization_url()))
            request = client.create_access_request(tokens.memory_key, "torture")
            deployment.store.requests.decide(request.id, "approved")
            yield mf.open_access(client, request.id)


def address(first):
    return {name: first[name] for name in ("base_url", "auth_url", "api_key")}


def environment(first, home):
    """Of the writer: settings, and a home of its own in which its data key and its journals are."""
    settings = {f"MEMFRAME_{name.upper()}": value for name, value in address(first).items()}
    backend = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
    return {**os.environ, **settings, **backend, "HOME": str(home), "XDG_STATE_HOME": str(home)}


class Killer:
    """Decides by chance, from a seed, who dies when."""

    def __init__(self, seed, service, *, client_kills, service_kills):
        self._chance = random.Random(seed)
        self._service = service
        self._left = Counter(client=client_kills, service=service_kills)
        self.counts = Counter()

    @property
    def has_victims(self):
        return self._left.total() > 0

    def work(self, command, env):
        """Start the writer again and again until it ends by itself, and with success."""
        for _ in range(MAX_STARTS):
            writer = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=HERE
            )
            self.counts["starts"] += 1
            if writer.stdout.readline() and self.has_victims:  # else it could not begin
                self._disturb(writer)
            _, errors = writer.communicate()
            if writer.returncode == 0:
                return
            assert writer.returncode == -signal.SIGKILL or "memframe.errors." in errors, errors
        raise AssertionError(f"not done after {MAX_STARTS} starts: {errors}")

    def _disturb(self, writer):
        victim = self._chance.choice(list(self._left.elements()))
        try:
            writer.wait(self._chance.uniform(0.0, LONGEST_LIFE_S))
        except subprocess.TimeoutExpired:
            writer.kill() if victim == "client" else self._service.kill()
            self._left[victim] -= 1
            self.counts[victim] += 1
