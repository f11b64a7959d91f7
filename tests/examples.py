"""What the examples of docstrings speak of: a user with the memories of the sample, on a service of their own.

An example that says ``access``, ``client``, ``request_id`` or ``folder`` finds them; the user is nobody else's, so
that an example may write.
"""

import re

import pytest

from memframe.sample import load_sample, load_sample_tags

SPOKEN_OF = re.compile(r"\b(access|client|request_id|folder)\b")


@pytest.fixture(scope="session")
def service_of_examples():
    from tests.conftest import serving_tests  # noqa: PLC0415 - pytest loads this file before it can import that one

    with serving_tests() as local:
        yield local


@pytest.fixture
def service_of_example(request):
    """One for all examples, but for those of fleets: a fleet is all users of a developer."""
    from tests.conftest import serving_tests  # noqa: PLC0415 - as above

    if "memframe.fleet." in request.node.name:
        with serving_tests() as local:
            yield local
    else:
        yield request.getfixturevalue("service_of_examples")


@pytest.fixture
def example(service_of_example, tmp_path):
    from tests.conftest import User  # noqa: PLC0415 - as above

    local = service_of_example
    user = User(local, f"{tmp_path.name}@example.org")
    local.import_memories(user.user_id, load_sample(), load_sample_tags())
    access = user.access()
    yield {"access": access, "client": user.client, "request_id": access.request_id, "folder": tmp_path}
    user.close()


@pytest.fixture(autouse=True)
def _at_hand(request):
    examples = getattr(getattr(request.node, "dtest", None), "examples", ())
    if any(SPOKEN_OF.search(example.source) for example in examples):
        request.node.dtest.globs.update(request.getfixturevalue("example"))
