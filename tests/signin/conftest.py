"""A sign-in that can be held up and broken in the middle."""

from threading import Event

import pytest

import memframe as mf
from memframe.client import Client
from memframe.secret import Secret
from tests.faults import FaultProxy, passed
from tests.strangers import at_once


@pytest.fixture
def sign_in(user):
    """Signed in, and nothing more."""
    return mf.SignIn(user.client, flow=user.flow())


@pytest.fixture
def proxy(service):
    """Between a sign-in and the service."""
    with FaultProxy(service.base_url) as proxy:
        yield proxy


@pytest.fixture
def far_sign_in(user, proxy):
    """As `sign_in`, through the proxy."""
    client = Client(proxy.base_url, Secret(user.service.api_key), transport=at_once())
    return mf.SignIn(client, flow=user.flow())


class Held:
    """A fault that holds an answer back until it is released."""

    def __init__(self, then=passed):
        self.came, self.release, self._then = Event(), Event(), then

    def __call__(self, request, forward):
        self.came.set()
        assert self.release.wait(20)
        return self._then(request, forward)


@pytest.fixture
def held():
    held = Held()
    yield held
    held.release.set()


def pending(sign_in, user):
    """Lead a sign-in to a request that waits for its decision."""
    sign_in.finish(user.person.authorize(sign_in.authorize()))
    sign_in.ask("a test")
    return sign_in


def approved(sign_in, user):
    """Lead a sign-in to an approved request."""
    pending(sign_in, user)
    user.service.decide(sign_in.request.id, "approved")
    sign_in.check()
    return sign_in
