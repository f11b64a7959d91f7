"""Fixtures that every room shares: a running service, made once."""

from uuid import uuid4

import pytest
from argon2 import PasswordHasher

import memframe as mf
from memframe.sample import load_sample
from memframe.service import run_local

CHEAP_HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
"""Argon2 with the least cost: tests sign in often, and have no password to protect."""


@pytest.fixture(scope="session")
def service():
    """A running service of this process; add users of your own, and leave others' alone."""
    with run_local(password_hasher=CHEAP_HASHER, token_calls_per_minute=1_000_000) as local:
        yield local


@pytest.fixture(scope="session")
def sample_memories():
    """The memories behind `sample_request_id`, as their owner reads them."""
    return load_sample()[:25]


@pytest.fixture(scope="session")
def sample_request_id(service, sample_memories):
    """An approved request to a user who has `sample_memories`; do not change them."""
    user_id = service.add_user(f"{uuid4()}@example.org", "a long password")
    service.import_memories(user_id, sample_memories)
    deployment = service._deployment
    developer = deployment.store.accounts.developer_by_client_id(service.client_id)
    memory_key = deployment.memory_key(user_id=user_id, developer_id=developer.id)
    with mf.connect(service.base_url, api_key=service.api_key) as client:
        request = client.create_access_request(memory_key, "tests")
    service.decide(request.id, "approved")
    return request.id
