"""The user at the browser, played by a program: opens pages, fills in forms, presses buttons.

It knows the service only as a person does, through its pages, so that nothing in a tour or a test is
possible that a user could not do.
"""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import requests
from msgspec import Struct, field

from memframe.errors import ProtocolError

TIMEOUT_S = 10


class Button(Struct, frozen=True):
    """A button that submits its form: what is written on it, and what it adds to the form."""

    label: str
    name: str = ""
    value: str = ""


class Form(Struct):
    """A form of a page: where it goes, and what it says before anybody types."""

    action: str
    method: str = "GET"
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[Button] = field(default_factory=list)


def forms_of(html: str) -> list[Form]:
    """The forms of a page, in their order.

    >>> page = '<form method="post" action="/login"><input name="email"><button>Sign in</button></form>'
    >>> (form,) = forms_of(page)
    >>> form.method, form.action, form.fields, form.buttons[0].label
    ('POST', '/login', {'email': ''}, 'Sign in')
    """
    page = _Forms()
    page.feed(html)
    return page.forms


class _Forms(HTMLParser):
    """Collects the forms of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._open: Form | None = None
        self._button: dict[str, str] | None = None
        self._label = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = Form(said.get("action", ""), said.get("method", "get").upper())
            self.forms.append(self._open)
        elif tag == "input" and self._open:
            self._open.fields[said["name"]] = said.get("value", "")
        elif tag == "button" and self._open:
            self._button, self._label = said, ""

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
    """A user with a browser of their own.

    Parameters
    ----------
    email, password : str
        What this person signs in with.
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
        """Open an authorization address, sign in and decide: the address that the browser is sent back to."""
        self._open(address)
        return self._press("Allow" if allow else "Do not allow")

    def decide(self, dashboard_url: str, button: str = "Approve") -> None:
        """Press a button on the dashboard: Approve, Reject or Revoke access."""
        self._open(dashboard_url)
        self._press(button)

    def _open(self, address: str) -> None:
        """Open a page, and sign in first where it asks for that."""
        self._go("GET", address)
        if any("password" in form.fields for form in forms_of(self.page)):
            self._press("Sign in", email=self._email, password=self._password)

    def _press(self, label: str, **typed: str) -> str:
        """Press a button: where that leads."""
        for form in forms_of(self.page):
            for button in form.buttons:
                if button.label == label:
                    sent = form.fields | typed | ({button.name: button.value} if button.name else {})
                    return self._go(form.method, urljoin(self._page.url, form.action), sent)
        raise ProtocolError(f"the page {self._page.url} has no button {label!r}")

    def _go(self, method: str, address: str, sent: dict[str, str] | None = None) -> str:
        """Follow redirects as a browser does, but stop where they leave the service: there the application is."""
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
