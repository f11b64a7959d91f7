"""Fixtures that every room shares: a running service, made once.

============  ======================================================================================
fixture       is
============  ======================================================================================
postgres      a PostgreSQL server, for all tests of the process
backend       a database for a service, SQLite and PostgreSQL in turn
service       a running service, for all tests of the process; its users belong to their tests
developer     the same service for a developer of the test's own, with no users yet
village       the same service for a developer with six users, three of whom have approved; nobody changes it
shared_user   a user for all tests of one file, who is not changed
user          a new user of `service`
own_user      a new user of `developer`
access        an open access to the memories of `user`, of which there are none yet
proxy         the running service, which breaks what the test says
elsewhere     an access to them by a service that restores nothing, as in the specification
stranger      a service of somebody else, which answers what the test says
============  ======================================================================================

`pytest --fixtures tests/FOLDER` lists those of a folder beside them.
"""

import atexit
import os
import shutil
import signal
import tempfile
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import hypothesis
import nbval.kernel
import pytest
from argon2 import PasswordHasher

import memframe
from memframe.demo.sample_service import Person
from memframe.sample import load_sample
from memframe.service import run_local
from memframe.service.local import LocalService
from memframe.wire import CREATE_MEMORY, GET_CREDENTIALS, RESTORE_DAYS, RESTORES
from tests.backends import Postgresql, Sqlite
from tests.faults import FaultProxy
from tests.kernels import SocketKernelManager
from tests.postgres import running_postgres
from tests.strangers import Stranger

HERE = str(Path(memframe.__file__).parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [HERE, os.environ.get("PYTHONPATH")]))
"""The kernels of notebooks, and commands in other folders, import the memframe that is being tested."""

MEMORY = Path("/dev/shm")  # noqa: S108 - only the folder of temporary folders
ENOUGH_BYTES = 4 << 30
if (
    "TMPDIR" not in os.environ
    and os.access(MEMORY, os.W_OK)
    and shutil.disk_usage(MEMORY).free > ENOUGH_BYTES
):
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
"""Databases wait for the disk at each commit, and no test cuts the power: half the time of some files was that."""

os.environ["XDG_STATE_HOME"] = STATE = tempfile.mkdtemp(prefix="memframe-tests-")
atexit.register(shutil.rmtree, STATE, ignore_errors=True)
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
"""Journals and data keys of tests stay out of the state folder and the keyring of whoever runs them."""

nbval.kernel.KernelManager = SocketKernelManager

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as jobs in the background begin, and all they start
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile(
    "memframe",
    deadline=None,  # machines are busy, and time is no law here
    suppress_health_check=[
        hypothesis.HealthCheck.function_scoped_fixture
    ],  # examples share a folder, and know it
    max_examples=100 if "CI" in os.environ else 25,
    derandomize="CI" in os.environ,  # there a failure is to come from the change, here from a new example
)
hypothesis.settings.load_profile("memframe")

FEW_EXAMPLES = hypothesis.settings(max_examples=8 if "CI" in os.environ else 3)
"""For examples that plan, audit or write files. The first is always the simplest, the others are new each time."""

PASSWORD = "a password for tests"

CHEAP_HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
"""Argon2 with the least cost: tests sign in often, and have no password to protect."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Half as many again as there are cores, as tests of processes and browsers mostly wait."""
    return (os.cpu_count() or 1) * 3 // 2


LONGEST = (
    "tests/simulation/test_simulation.py::test_all",
    "tests/browser/test_panel.py",
    "tests/cli/test_serving.py",
    "tests/apply/test_kills.py",
    "tests/cleanup/test_cleanup.py",
    "tests/test_demo.py",
    "tests/audit/test_audit.py",
    "notebooks/",
    "tests/test_docs.py",
    "tests/test_fleet",
    "tests/test_reader_",
    "tests/review/test_review.py",
    "tests/cli/",
    "tests/test_plot.py",
    "tests/audit/",
)
"""Begun first and in this order, as one of them that is begun last would keep everybody waiting."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    items[:] = [
        item for item in items if not (item.get_closest_marker("any_database") and is_on_postgresql(item))
    ]

    def place(item):
        return next(
            (place for place, path in enumerate(LONGEST) if item.nodeid.startswith(path)), len(LONGEST)
        )

    items.sort(key=place)


def is_on_postgresql(item):
    return hasattr(item, "callspec") and item.callspec.params.get("backend") == "postgresql"


@pytest.fixture(scope="session")
def postgres():
    """A server for all tests of this process: started for the first, there until the last."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def backend(request):
    """A database for a service; the tests of a service's own folders run once with each."""
    return Sqlite() if request.param == "sqlite" else Postgresql(request.getfixturevalue("postgres"))


@contextmanager
def serving_tests(database=None):
    """A service that is quick with passwords and patient with callers."""
    options = {"password_hasher": CHEAP_HASHER, "token_calls_per_minute": 1_000_000}
    with run_local(database=database, **options) as local:
        yield local


@pytest.fixture(scope="session")
def service():
    """A running service of this process; add users of your own, and leave others' alone."""
    with serving_tests() as local:
        yield local


def add_developer(service):
    """The same service for another developer, who has no users yet."""
    new = service._deployment.add_developer("Duplicate finder")
    return LocalService(service._deployment, service._addresses, new)


@pytest.fixture
def developer(service):
    """The running service for a developer of the test's own, whose users nobody else adds to."""
    return add_developer(service)


class User:
    """A user of the running service with one developer's way to them: what most tests begin with."""

    def __init__(self, service, email):
        self.service = service
        self.person = Person(email, PASSWORD)
        self.user_id = service.add_user(email, PASSWORD)
        self.client = memframe.connect(service.base_url, api_key=service.api_key, auth_url=service.auth_url)

    def flow(self, **options):
        service = self.service
        settings = {"auth_url": service.auth_url, "redirect_uri": service.redirect_uri} | options
        return memframe.OAuthFlow(service.client_id, service.client_secret, **settings)

    def ask(self, reason="a test"):
        return self.client.create_access_request(self.service.memory_key(self.user_id), reason)

    def access(self, **options):
        request = self.ask()
        self.service.decide(request.id, "approved")
        return memframe.open_access(self.client, request.id, **options)

    def close(self):
        self.client.close()
        self.person.close()


@contextmanager
def fleet_of(developer, rows, statuses):
    """New users of a developer, each with these memories and a request that was decided like this."""
    people = [User(developer, f"{uuid4()}@example.org") for _ in statuses]
    for person, status in zip(people, statuses, strict=True):
        developer.import_memories(person.user_id, rows)
        request = person.ask()
        for step in {"pending": (), "revoked": ("approved", "revoked")}.get(status, (status,)):
            developer.decide(request.id, step)
    yield people
    for person in people:
        person.close()


@pytest.fixture(scope="session")
def village(service):
    """Three users of a developer who approved, one of them twice, and three who did not."""
    developer = add_developer(service)
    rows = load_sample()[:11]
    statuses = ["approved"] * 3 + ["pending", "rejected", "revoked"]
    with fleet_of(developer, [*rows, rows[0]], statuses) as developer.people:
        developer.decide(developer.people[0].ask("once more").id, "approved")
        yield developer


@pytest.fixture(scope="module")
def shared_user(service):
    """A user whom the tests of one file share, and who therefore may not be changed by any."""
    person = User(service, f"{uuid4()}@example.org")
    yield person
    person.close()


@pytest.fixture
def user(service):
    """A new user, whom nobody else knows."""
    person = User(service, f"{uuid4()}@example.org")
    yield person
    person.close()


@pytest.fixture
def own_user(developer):
    """A new user, and the only one of a developer."""
    person = User(developer, f"{uuid4()}@example.org")
    yield person
    person.close()


@pytest.fixture
def access(user):
    """An open access to a new user's memories, of which there are none yet."""
    return user.access()


@pytest.fixture
def proxy(service):
    """The running service, which breaks what the test says."""
    with FaultProxy(service.base_url) as proxy:
        yield proxy


def without_offer(request, forward):
    reply = forward(request)
    kept = {name: text for name, text in reply.headers.items() if name.lower() != RESTORE_DAYS.lower()}
    return reply._replace(headers=kept)


def without_restoring(request, forward):
    headers = {name: text for name, text in request.headers.items() if name != RESTORES}
    return forward(request._replace(headers=headers))


@pytest.fixture
def elsewhere(service, access):
    """The same memories at a service that restores nothing, as the specification has it."""
    with (
        FaultProxy(service.base_url) as proxy,
        memframe.connect(proxy.base_url, api_key=service.api_key) as client,
    ):
        proxy.always(GET_CREDENTIALS, without_offer)
        proxy.always(CREATE_MEMORY, without_restoring)
        yield memframe.open_access(client, access.request_id)


@pytest.fixture
def stranger():
    """A service of somebody else, which answers what the test says."""
    with Stranger() as stranger:
        yield stranger
