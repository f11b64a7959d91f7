"""A person at a browser, over real HTTP: cookies are kept, forms are found in the page and sent."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
import requests

from memframe.demo.sample_service import forms_of
from memframe.service import run_local
from tests.conftest import CHEAP_HASHER, serving_tests
from tests.service.conftest import Caller

PASSWORD = "correct horse battery"
CALLBACK = "http://127.0.0.1:51004/callback"
TIMEOUT_S = 20


class Browser:
    """One person's browser at one service."""

    def __init__(self, local):
        self.local = local
        self.session = requests.Session()
        self.session.trust_env = False
        self.page = None
        self.memory_key = None  # of the application that asks this person

    def open(self, path, **options):
        self.page = self.session.get(self.local.auth_url + path, timeout=TIMEOUT_S, **options)
        return self.page

    def form(self, part_of_action, button=None):
        """The form that goes to an address and has a button, on the present page."""
        every = forms_of(self.page.text)
        assert {form.method for form in every} == {"POST"}
        forms = [form for form in every if part_of_action in form.action]
        return next(
            form for form in forms if button is None or button in [each.value for each in form.buttons]
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

    def ask(self, *, follow=True, **changes):
        """Open an authorization request; a change to None leaves a parameter out."""
        asked = {
            "response_type": "code",
            "client_id": self.local.client_id,
            "redirect_uri": CALLBACK,
            "state": "s-1",
            **changes,
        }
        return self.open("/oauth/authorize", params=without_none(asked), allow_redirects=follow)

    def consent(self, decision="allow", **changes):
        """The address to which the consent page sends the browser, as fields, for a question."""
        self.ask(**changes)
        answer = self.send(self.form("/oauth/authorize"), follow=False, decision=decision)
        assert answer.status_code == 303
        return dict(parse_qsl(urlsplit(answer.headers["Location"]).query))

    def exchange(self, code, *, auth=None, headers=None, **changes):
        """What the token endpoint answers to a code; a change to None leaves a field out."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.local.client_id,
            "client_secret": self.local.client_secret,
            "redirect_uri": CALLBACK,
            **changes,
        }
        address = f"{self.local.auth_url}/oauth/token"
        return requests.post(address, without_none(form), auth=auth, headers=headers, timeout=TIMEOUT_S)

    def refresh(self, token, **changes):
        refreshing = {"grant_type": "refresh_token", "refresh_token": token, "redirect_uri": None}
        return self.exchange(None, **refreshing | changes)


def without_none(fields):
    return {name: value for name, value in fields.items() if value is not None}


class SetClock:
    """Time that stands still until it is moved."""

    def __init__(self):
        self.time = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self):
        return self.time

    def advance(self, **passed):
        self.time += timedelta(**passed)


@pytest.fixture(scope="session")
def service(backend):
    """A running service of this process on each database; add users of your own, and leave others' alone."""
    with serving_tests(backend.new_database()) as local:
        yield local


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


@pytest.fixture(scope="session")
def call(service):
    """The developer of the shared service."""
    return Caller(service.base_url, service.api_key)


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
