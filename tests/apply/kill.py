"""Real processes, killed at random: a client that writes and a service that stores, until all rows are written.

    python tests/apply/kill.py --rows 4000 --client-kills 100 --service-kills 30 --seed 1

Prints one line of JSON. The client is a fork of this process, which has imported everything already, so that a
life is as long as it is meant to be; it knows of its earlier lives what its journal says, and nothing else.
"""

import argparse
import json
import os
import random
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pandas as pd
from argon2 import PasswordHasher

import memframe as mf
from memframe.service import run_local

PASSWORD = "a password for torture"
HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
SETTLE_S = 0.5
QUIET = {"progress": False, "settle_s": SETTLE_S}


class Service:
    """A service in a process of its own, always on the same port and folder; a fork, as the client is."""

    def __init__(self, data):
        self._reserved = socket.socket()  # bound, so that nobody is given the port while the service is down
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self.port = self._reserved.getsockname()[1]
        self._data = data
        self.start()

    def start(self):
        reading, writing = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            try:
                with run_local(self._data, port=self.port, token_calls_per_minute=1_000_000):
                    os.write(writing, b"ready")
                    signal.pause()
            finally:
                os._exit(2)
        os.close(writing)
        is_ready = os.read(reading, 1)
        os.close(reading)
        if not is_ready:
            raise SystemExit("the service does not start")

    def kill(self):
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)


def prepared(data):
    """A user who has approved a request: what a client needs."""
    with run_local(data, password_hasher=HASHER) as local:
        user_id = local.add_user("ada@example.org", PASSWORD)
        client = mf.connect(local.base_url, api_key=local.api_key, auth_url=local.auth_url)
        request = client.create_access_request(local.memory_key(user_id), "torture")
        local.decide(request.id, "approved")
        return local.api_key, request.id


def opened(port, api_key, request_id):
    """An access; while the service is down, again and again."""
    while True:
        try:
            client = mf.connect(f"http://127.0.0.1:{port}/api/v1", api_key=api_key)
            return mf.open_access(client, request_id)
        except mf.MemframeError:
            time.sleep(0.1)


def planned(access, n_rows):
    """A plan of creates, patches and deletes, in all `n_rows`; and what must stand there in the end."""
    n_there = n_rows * 2 // 5
    there = pd.DataFrame({"content": [f"old fact {row}" for row in range(n_there)]})
    mf.create_memories(access, there, **QUIET, workers=8).raise_for_failures()
    memories = mf.load_memories(access, progress=False)
    edited = memories.copy()
    edited.loc[: n_there // 2 - 1, "title"] = "patched"
    new = pd.DataFrame({"content": [f"new fact {row}" for row in range(n_rows - n_there)]})
    plan = mf.plan_changes(access, pd.concat([edited, new], ignore_index=True))
    plan += mf.plan_deletes(access, memories.iloc[n_there // 2 :])
    patched = Counter((text, "patched") for text in memories.content[: n_there // 2])
    return plan, patched + Counter((text, None) for text in new.content)


def live(place, plan, journal):
    """One life of the client; ends with 0 when nothing is left to do."""
    access = opened(*place)
    try:
        if is_journal(journal):
            run = mf.resume_run(access, journal, **QUIET)
        else:
            journal.unlink(missing_ok=True)
            run = mf.apply_plan(access, plan, confirm=plan.counts["delete"], journal=journal, **QUIET)
    except mf.NoAnswerError:
        return 1
    Path(f"{journal}.outcome").write_text(json.dumps({"counts": run.counts, "said": repr(run)}))
    return 0 if run.is_complete else 1


def is_journal(journal):
    """Whether an earlier life came so far as to write all of its journal; before that, nothing was sent."""
    try:
        mf.journal.Journal.open(journal, mf.keystore.open_local_cipher()).close()
    except mf.JournalError:
        return False
    return True


def torture(folder, chance, n_rows, n_client_kills, n_service_kills):
    """Kill and be killed, until the client comes to its end and enough have died."""
    life_s = 0.02, min(0.8, n_rows / 200)
    place_of_keys = prepared(folder / "data")
    service = Service(folder / "data")
    place = (service.port, *place_of_keys)
    journal = folder / "run.journal"
    kills = Counter()
    try:
        plan, wanted = planned(opened(*place), n_rows)
        while True:
            child = forked(live, place, plan, journal)
            status = waited(child, chance.uniform(*life_s) if kills["client"] < n_client_kills else 120.0)
            if status is None:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                kills["client"] += 1
            elif status == 0:
                break
            if kills["service"] < n_service_kills and chance.random() < n_service_kills / max(
                n_client_kills, 1
            ):
                kill_during_a_life(service, place, plan, journal, chance)
                kills["service"] += 1
        memories = mf.load_memories(opened(*place), progress=False)
    finally:
        service.kill()
    titles = [title if isinstance(title, str) else None for title in memories.title]
    held = Counter(zip(memories.content, titles, strict=True))
    outcome = json.loads(Path(f"{journal}.outcome").read_text())
    return {
        "rows": n_rows,
        "client_kills": kills["client"],
        "service_kills": kills["service"],
        "lost": sum((wanted - held).values()),
        "unplanned": sum((held - wanted).values()),
        **outcome,
    }


def kill_during_a_life(service, place, plan, journal, chance):
    """The service dies while a client writes, and comes back; the client goes on by itself, or is killed too."""
    child = forked(live, place, plan, journal)
    time.sleep(chance.uniform(0.05, 0.4))
    service.kill()
    service.start()
    if waited(child, chance.uniform(0.1, 1.0)) is None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def forked(live, *arguments):
    """Start one life of the client, and return its process id."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            status = live(*arguments)
        finally:
            os._exit(status)
    return child


def waited(child, seconds):
    """The exit status of a child, or None if it lives on after so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            code = os.waitstatus_to_exitcode(status)
            if code not in (0, 1):
                raise SystemExit(f"the client has failed with {code}")
            return code
        time.sleep(0.005)
    return None


def run_program(description, torture, **defaults):
    """Torture with numbers from the command line, in a folder of its own, and print what was found."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    for name, default in (defaults | {"seed": 1}).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    options = vars(parser.parse_args())
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        chance = random.Random(options.pop("seed"))
        found = torture(Path(folder), chance, *options.values())
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    run_program(__doc__, torture, rows=300, client_kills=12, service_kills=3)
