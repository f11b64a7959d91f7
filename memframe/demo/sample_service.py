"""Run a service with the sample's memories, and a program that plays its user in a browser.

The user opens pages, fills in forms and presses buttons, so that a tour or a test does nothing that a person could
not do.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import ExitStack, closing
from html.parser import HTMLParser
from typing import Self
from urllib.parse import urljoin, urlsplit

import requests
from argon2 import PasswordHasher
from msgspec import Struct, field

import memframe as mf
from memframe.errors import ProtocolError
from memframe.sample import SampleMemory, load_sample, load_sample_tags
from memframe.service import run_local

TIMEOUT_S = 10


class Button(Struct, frozen=True):
    """A button that submits its form: its label, and the field that it adds."""

    label: str
    name: str = ""
    value: str = ""


class HtmlForm(Struct):
    """A form of a page, with the initial values of its fields."""

    action: str
    method: str = "GET"
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[Button] = field(default_factory=list)


def forms_of(html: str) -> list[HtmlForm]:
    """Return the forms of a page, in their order.

    >>> page = '<form method="post" action="/login"><input name="email"><button>Sign in</button></form>'
    >>> (form,) = forms_of(page)
    >>> form.method, form.action, form.fields, form.buttons[0].label
    ('POST', '/login', {'email': ''}, 'Sign in')
    """
    page = _Forms()
    page.feed(html)
    return page.forms


class _Forms(HTMLParser):
    """Collect the forms of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[HtmlForm] = []
        self._open: HtmlForm | None = None
        self._button: dict[str, str] | None = None
        self._label = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = HtmlForm(given.get("action", ""), given.get("method", "get").upper())
            self.forms.append(self._open)
        elif tag == "input" and self._open:
            self._open.fields[given["name"]] = given.get("value", "")
        elif tag == "button" and self._open:
            self._button, self._label = given, ""

    def handle_data(self, data: str) -> None:
        self._label += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "button" and self._open and self._button is not None:
            name, value = self._button.get("name", ""), self._button.get("value", "")
            self._open.buttons.append(Button(self._label.strip(), name, value))
            self._button = None
        elif tag == "form":
            self._open = None


class Person:
    """A user with their own browser.

    Parameters
    ----------
    email, password : str
        Entered on the sign-in page.
    """

    def __init__(self, email: str, password: str) -> None:
        self._email = email
        self._password = password
        self._browser = requests.Session()
        self._browser.trust_env = False
        self._page = requests.Response()

    def close(self) -> None:
        """Close the browser."""
        self._browser.close()

    @property
    def page(self) -> str:
        """HTML of the page that is open."""
        return self._page.text

    def authorize(self, address: str, *, allow: bool = True) -> str:
        """Open an authorization address, sign in and decide; return the address that the browser is sent back to."""
        self._open(address)
        return self._press("Allow" if allow else "Do not allow")

    def decide(self, dashboard_url: str, button: str = "Approve") -> None:
        """Press a button on the dashboard: Approve, Reject or Revoke access."""
        self._open(dashboard_url)
        self._press(button)

    def _open(self, address: str) -> None:
        """Open a page, and sign in if it asks for that."""
        self._go("GET", address)
        if any("password" in form.fields for form in forms_of(self.page)):
            self._press("Sign in", email=self._email, password=self._password)

    def _press(self, label: str, **typed: str) -> str:
        """Press a button, and return the address that it leads to."""
        for form in forms_of(self.page):
            for button in form.buttons:
                if button.label == label:
                    sent = form.fields | typed | ({button.name: button.value} if button.name else {})
                    return self._go(form.method, urljoin(self._page.url, form.action), sent)
        raise ProtocolError(f"the page {self._page.url} has no button {label!r}")

    def _go(self, method: str, address: str, sent: dict[str, str] | None = None) -> str:
        """Follow redirects as a browser does, but stop where they leave the service for the application."""
        origin = urlsplit(address)[:2]
        headers = {"Origin": "://".join(origin)} if method == "POST" else {}
        query, body = (sent, None) if method == "GET" else (None, sent)
        answer = self._browser.request(
            method, address, query, body, headers=headers, allow_redirects=False, timeout=TIMEOUT_S
        )
        target = urljoin(address, answer.headers.get("Location", address))
        if answer.is_redirect and urlsplit(target)[:2] == origin:
            return self._go("GET", target)
        self._page = answer
        return target


EMAIL = "ilka@example.org"
SAMPLE_PASSWORD = "only for this tour"  # of a made-up person, on a service that ends with the tour

_HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
"""Argon2 with the least cost: the password above is public, and the service is deleted when it stops."""


class SampleService:
    """A running service that holds the sample's memories, and the person to whom they belong.

    It stops with `close`, at the end of a ``with`` block, or with the process; then its database is deleted.

    Attributes
    ----------
    local : LocalService
        Addresses, and one developer's secrets.
    person : Person
        Ilka, who signs in, allows and decides in her own browser.

    Examples
    --------
    >>> with SampleService() as sample:
    ...     access = sample.open_access()
    ...     len(mf.load_memories(access, progress=False))
    389
    """

    def __init__(self) -> None:
        self._opened = ExitStack()
        self._end = weakref.finalize(self, self._opened.close)
        self.local = self._opened.enter_context(run_local(password_hasher=_HASHER))
        self.person = self.add_person(EMAIL, load_sample())

    def __repr__(self) -> str:
        return f"<SampleService of {EMAIL}, {'running' if self._end.alive else 'stopped'}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def add_person(self, email: str, memories: Sequence[SampleMemory]) -> Person:
        """Add a user with memories, the sample's tags and a browser."""
        person = self._opened.enter_context(closing(Person(email, SAMPLE_PASSWORD)))
        self.local.import_memories(self.local.add_user(email, SAMPLE_PASSWORD), memories, load_sample_tags())
        return person

    def open_access(
        self, person: Person | None = None, *, reason: str = "A look at what my assistants remember"
    ) -> mf.Access:
        """Open the access to a person's memories (by default Ilka's): the steps of `memframe demo` in one call."""
        local, person = self.local, person or self.person
        client = self._opened.enter_context(
            mf.connect(local.base_url, api_key=local.api_key, auth_url=local.auth_url)
        )
        flow = mf.OAuthFlow(
            local.client_id, local.client_secret, auth_url=local.auth_url, redirect_uri=local.redirect_uri
        )
        tokens = flow.exchange(person.authorize(flow.authorization_url()))
        request = client.create_access_request(tokens.memory_key, reason)
        person.decide(local.dashboard_url, "Approve")
        return mf.open_access(client, request.id)

    def close(self) -> None:
        """Stop the service and remove its database; a second call does nothing."""
        self._end()
