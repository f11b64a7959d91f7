"""What the tests of the API share: callers with tokens, and users who have approved them."""

import base64
import os
from http import HTTPStatus
from uuid import uuid4

import pytest
import requests
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memframe.envelope import Envelope
from memframe.secret import Secret
from tests.conftest import serving_tests


class Caller:
    """One developer at the API, with a bearer token that can be replaced."""

    def __init__(self, base_url, api_key):
        self.base_url = base_url
        self.http = requests.Session()
        self.http.trust_env = False
        answer = self.http.post(f"{base_url}/auth/token", json={"api_key": api_key})
        self.token = answer.json()["token"]

    def __call__(self, method, path, *, headers=None, **request):
        headers = {"Authorization": f"Bearer {self.token}"} | (headers or {})
        return self.http.request(method, self.base_url + path, headers=headers, **request)

    def get(self, path, **params):
        return self("GET", path, params=params)

    def post(self, path, body, **headers):
        return self("POST", path, json=body, headers=headers)


class Grant:
    """A user who has approved one access request of a caller."""

    def __init__(self, local, call):
        self.local, self.call = local, call
        self.email = f"{uuid4().hex}@example.org"
        self.user_id = local.add_user(self.email, "a long password")
        self.memory_key = memory_key(local, call, self.user_id)
        self.request_id = ask(call, self.memory_key)["id"]
        local.decide(self.request_id, "approved")

    @property
    def keys(self):
        """What goes into the body of every write."""
        return {"user_id": self.user_id, "memoryKey": self.memory_key}

    def credentials(self):
        return self.call.get(f"/access-requests/{self.request_id}/credentials").json()

    def envelope(self):
        """Opens and seals with the key that the user has now."""
        told = self.credentials()
        key = Secret(told["encryption_key"])
        return Envelope(key, user_id=self.user_id, key_version=told["key_version"])

    def seal_by_hand(self, plain, iv_bytes=12):
        """As a program with Node's usual habits seals: base64, or hexadecimal between colons."""
        iv, key = os.urandom(iv_bytes), AESGCM(bytes.fromhex(self.credentials()["encryption_key"]))
        sealed = key.encrypt(iv, plain.encode(), None)
        joined = base64.b64encode(iv + sealed).decode()
        return joined, ":".join(part.hex() for part in (iv, sealed[-16:], sealed[:-16]))

    def create(self, content="Likes tea", **fields):
        answer = self.call.post("/memory-blobs", {**self.keys, "content": content, **fields})
        assert answer.status_code == 201, answer.text
        return answer.json()

    def patch(self, memory_id, **fields):
        return self.call("PATCH", f"/memory-blobs/{memory_id}", json={**self.keys, **fields})

    def get(self, memory_id):
        return self.call.get(f"/memory-blobs/{memory_id}", user_id=self.user_id)

    def delete(self, memory_id):
        return self.call("DELETE", f"/memory-blobs/{memory_id}", params={"user_id": self.user_id})

    def list(self, **params):
        return self.call.get("/memory-blobs", user_id=self.user_id, **params)

    def ids(self, **params):
        return [memory["id"] for memory in self.list(**params).json()["memoryBlobs"]]


def memory_key(local, call, user_id):
    """What the OAuth exchange would give, without walking through the browser."""
    deployment = local._deployment
    developer_id = deployment.bearer_tokens(local._addresses).check(Secret(call.token)).developer_id
    return deployment.memory_key(user_id=user_id, developer_id=developer_id).reveal()


def ask(call, key, reason="weekly review"):
    answer = call.post("/access-requests", {"memoryKey": key, "reason": reason})
    assert answer.status_code == 201, answer.text
    return answer.json()


@pytest.fixture(scope="session")
def service(backend):
    """A running service of this process on each database; add users of your own, and leave others' alone."""
    with serving_tests(backend.new_database()) as local:
        yield local


@pytest.fixture(scope="session")
def call(service):
    """The developer of the shared service."""
    return Caller(service.base_url, service.api_key)


@pytest.fixture(scope="session")
def other_call(service):
    """Another developer of the shared service."""
    developer = service._deployment.add_developer("Another application")
    return Caller(service.base_url, developer.api_key.reveal())


@pytest.fixture
def grant(service, call):
    """A new user who has approved."""
    return Grant(service, call)


def assert_problem(answer, status, code):
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.json()["status"], answer.json()["title"]) == (status, HTTPStatus(status).phrase)
    assert answer.json()["detail"]


@pytest.fixture(scope="session")
def refused():
    """Asserts that an answer is a problem document with a status and a code."""
    return assert_problem
