"""Fixtures that every room shares: a running service, made once."""

import pytest
from argon2 import PasswordHasher

from memframe.service import run_local

CHEAP_HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
"""Argon2 with the least cost: tests sign in often, and have no password to protect."""


@pytest.fixture(scope="session")
def service():
    """A running service of this process; add users of your own, and leave others' alone."""
    with run_local(password_hasher=CHEAP_HASHER, token_calls_per_minute=1_000_000) as local:
        yield local
