"""What the tests of the service share: developers at the API, and people at a browser.

Both speak real HTTP. A browser keeps its cookies, finds the forms of a page and sends them.
"""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from html.parser import HTMLParser
from itertools import count
from urllib.parse import parse_qsl, urljoin, urlsplit
from uuid import uuid4

import pytest
import requests
from argon2 import PasswordHasher
from msgspec import Struct

from memframe.secret import Secret
from memframe.service import run_local

PASSWORD = "correct horse battery"
CALLBACK = "http://127.0.0.1:51004/callback"
TIMEOUT_S = 20
CHEAP_HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


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
        self.call = call
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

    def create(self, content="Likes tea", **fields):
        answer = self.call.post("/memory-blobs", {**self.keys, "content": content, **fields})
        assert answer.status_code == 201, answer.text
        return answer.json()

    def patch(self, memory_id, **fields):
        return self.call("PATCH", f"/memory-blobs/{memory_id}", json={**self.keys, **fields})

    def list(self, **params):
        return self.call.get("/memory-blobs", user_id=self.user_id, **params)

    def ids(self, **params):
        return [memory["id"] for memory in self.list(**params).json()["memoryBlobs"]]


def memory_key(local, call, user_id):
    """What the OAuth exchange would give, without walking through the browser."""
    deployment = local._deployment
    developer_id = deployment.bearer_tokens(local._addresses).developer_id(Secret(call.token))
    return deployment.memory_key(user_id=user_id, developer_id=developer_id).reveal()


def ask(call, key, reason="weekly review"):
    answer = call.post("/access-requests", {"memoryKey": key, "reason": reason})
    assert answer.status_code == 201, answer.text
    return answer.json()


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


@pytest.fixture(scope="session")
def new_grant():
    return Grant


@pytest.fixture(scope="session")
def new_caller():
    return Caller


@pytest.fixture(scope="session")
def key_for(service):
    """The memory key of a user for a caller."""
    return lambda caller, user_id: memory_key(service, caller, user_id)


def assert_problem(answer, status, code):
    assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert answer.json()["detail"]


@pytest.fixture(scope="session")
def refused():
    """Asserts that an answer is a problem document with a status and a code."""
    return assert_problem


class Form(Struct):
    """A form as the page has it: where it goes, and what it would send."""

    action: str
    fields: dict
    buttons: list


class FormFinder(HTMLParser):
    """All forms of a page."""

    def __init__(self, html):
        super().__init__()
        self.forms = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "form":
            assert values["method"] == "post"
            self.forms.append(Form(values["action"], {}, []))
        elif tag == "input":
            self.forms[-1].fields[values["name"]] = values.get("value", "")
        elif tag == "button" and "name" in values:
            self.forms[-1].buttons.append((values["name"], values["value"]))


class Browser:
    """One person's browser at one service."""

    def __init__(self, local):
        self.local = local
        self.session = requests.Session()
        self.session.trust_env = False
        self.page = None

    def open(self, path, **options):
        self.page = self.session.get(self.local.auth_url + path, timeout=TIMEOUT_S, **options)
        return self.page

    def form(self, part_of_action, button=None):
        """The form that goes to an address and has a button, on the present page."""
        forms = [form for form in FormFinder(self.page.text).forms if part_of_action in form.action]
        return next(
            form for form in forms if button is None or button in [value for _, value in form.buttons]
        )

    def send(self, form, *, follow=True, headers=None, **fields):
        address = urljoin(self.page.url, form.action)
        self.page = self.session.post(
            address,
            data={**form.fields, **fields},
            headers=headers,
            timeout=TIMEOUT_S,
            allow_redirects=follow,
        )
        return self.page

    def sign_in(self, email, password=PASSWORD, **options):
        if self.page is None or "password" not in self.page.text:
            self.open("/login")
        return self.send(self.form("/login"), email=email, password=password, **options)

    def consent(self, decision="allow", **changes):
        """The address to which the consent page sends the browser, as fields, for a question."""
        self.open("/oauth/authorize", params=question_of(self.local, **changes))
        answer = self.send(self.form("/oauth/authorize"), follow=False, decision=decision)
        assert answer.status_code == 303
        return dict(parse_qsl(urlsplit(answer.headers["Location"]).query))

    def exchange(self, code, **changes):
        """What the token endpoint answers to a code; a change to None leaves a field out."""
        return call_token_endpoint(self.local, code=code, **changes)


def question_of(local, **changes):
    """The parameters of an authorization request; a change to None leaves one out."""
    asked = {
        "response_type": "code",
        "client_id": local.client_id,
        "redirect_uri": CALLBACK,
        "state": "s-1",
        **changes,
    }
    return {name: value for name, value in asked.items() if value is not None}


def call_token_endpoint(local, *, auth=None, headers=None, **changes):
    """One call of the token endpoint."""
    form = {
        "grant_type": "authorization_code",
        "client_id": local.client_id,
        "client_secret": local.client_secret,
        "redirect_uri": CALLBACK,
        **changes,
    }
    data = {name: value for name, value in form.items() if value is not None}
    address = f"{local.auth_url}/oauth/token"
    return requests.post(address, data=data, auth=auth, headers=headers, timeout=TIMEOUT_S)


class SetClock:
    """Time that stands still until it is moved."""

    def __init__(self):
        self.time = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self):
        return self.time

    def advance(self, **passed):
        self.time += timedelta(**passed)


@pytest.fixture(scope="session")
def new_email():
    numbers = count()
    return lambda: f"reader{next(numbers)}@pages.example"


@pytest.fixture
def email(service, new_email):
    """The address of a user of this test's own."""
    address = new_email()
    service.add_user(address, PASSWORD)
    return address


@pytest.fixture
def stranger(service):
    """A browser in which nobody has signed in."""
    return Browser(service)


@pytest.fixture
def reader(service, email):
    """A browser in which this test's user has signed in."""
    browser = Browser(service)
    browser.sign_in(email)
    return browser


@pytest.fixture
def question(service):
    """The parameters of an authorization request."""
    return partial(question_of, service)


@pytest.fixture
def exchange(service):
    """The token endpoint."""
    return partial(call_token_endpoint, service)


@pytest.fixture
def new_browser():
    """A browser at a service that the test has started."""
    return Browser


@pytest.fixture
def set_clock():
    return SetClock()


@pytest.fixture
def run_for_ada(set_clock):
    """Run a service with one user; its clock stands still, its throttles are those of every service."""

    @contextmanager
    def run(data=None, hasher=CHEAP_HASHER):
        with run_local(data, now=set_clock, password_hasher=hasher) as local:
            local.add_user("ada@pages.example", PASSWORD)
            yield local

    return run


@pytest.fixture
def timed(run_for_ada):
    """A service of this test's own, on the clock `set_clock`."""
    with run_for_ada() as local:
        yield local
