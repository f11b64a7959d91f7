"""Panels driven from the kernel's side: what is seen, typed and clicked, without a browser."""

import json
import re
import threading
from html import unescape

import ipywidgets
import pytest
from ipywidgets.widgets.widget import _instances

import memframe as mf
from memframe.client import Client
from memframe.oauth import SIGNS_OF_ELSEWHERE
from memframe.panel.widgets import LABELS
from memframe.secret import Secret
from tests.signin.conftest import proxy
from tests.strangers import at_once

__all__ = ["proxy"]

SOON_S = 20
SHOWN = ("value", "description", "disabled", "children")
"""Traits in which a change can be seen."""

SETTINGS = ("base_url", "auth_url", "api_key", "client_id", "client_secret", "redirect_uri")


class Seen:
    """A panel as somebody before the screen has it: hidden widgets are not there."""

    def __init__(self, panel):
        self.panel = panel
        self._changed = threading.Condition()
        panel.sign_in.subscribe(self._tell)
        for widget in self.widgets(hidden=True):
            widget.layout.observe(self._tell, "display")
            widget.observe(self._tell, [name for name in SHOWN if widget.has_trait(name)])

    def _tell(self, *_):
        with self._changed:
            self._changed.notify_all()

    def widgets(self, widget=None, *, hidden=False):
        widget = widget or self.panel
        if hidden or widget.layout.display != "none":
            yield widget
            for child in getattr(widget, "children", ()):
                yield from self.widgets(child, hidden=hidden)

    def buttons(self):
        return [each for each in self.widgets() if isinstance(each, ipywidgets.Button)]

    def labels(self):
        return [each.description for each in self.buttons() if not each.disabled]

    def primary(self):
        return [each.description for each in self.buttons() if "mf-primary" in each._dom_classes]

    def click(self, label, *, wait=True):
        with self._changed:
            assert self._changed.wait_for(lambda: self._ready(label), SOON_S), label
        (button,) = self._ready(label)
        button.click()
        if wait:
            self.settle()

    def _ready(self, label):
        return [each for each in self.buttons() if each.description == label and not each.disabled]

    def click_row(self, tooltip):
        """Press the button of a request in the list."""
        (button,) = [each for each in self.buttons() if each.tooltip == tooltip]
        button.click()
        self.settle()

    def fields(self):
        kinds = (ipywidgets.Text, ipywidgets.Textarea)  # Password is a Text
        return {each.description: each for each in self.widgets() if isinstance(each, kinds)}

    def type(self, label, text):
        self.fields()[label].value = text

    def press_enter(self, label, text="", *, wait=True):
        """Press Enter in a field, as a front end reports it: Enter, the text, and what the link there returns."""
        field, enter = self.fields()[label], self.panel._enter
        field._handle_custom_msg({"event": "submit"}, [])
        if text:
            field.value = text
        enter._returned.value = enter._sent.value
        if wait:
            self.settle()

    @property
    def html(self):
        return "".join(each.value for each in self.widgets() if isinstance(each, ipywidgets.HTML))

    @property
    def text(self):
        """What can be read."""
        html = re.sub(r"<style>.*?</style>|</?code>", "", self.html, flags=re.DOTALL)
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())

    @property
    def link(self):
        return unescape(re.search(r'class="mf-go" href="([^"]*)"', self.html)[1])

    def settle(self):
        assert self.panel.wait(SOON_S)

    def until(self, state):
        with self._changed:
            assert self._changed.wait_for(lambda: self.panel.sign_in.state == state, SOON_S)

    def until_it_says(self, words):
        with self._changed:
            assert self._changed.wait_for(lambda: words in self.text, SOON_S), self.text

    def until_primary(self, label):
        with self._changed:
            assert self._changed.wait_for(lambda: self.primary() == [label], SOON_S), self.primary()


@pytest.fixture
def user(own_user):
    """A new user of a developer of this test's own, of whom nobody else asks anything."""
    return own_user


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch):
    """As on a machine with nobody in front of it, where answers are pasted."""
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22")


@pytest.fixture
def local(monkeypatch):
    """As on the machine of whoever has the browser, which listens for the answer."""
    for name in SIGNS_OF_ELSEWHERE:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def show():
    """Make panels, which are closed at the end and leave neither widgets nor threads."""
    made = []

    def make(*arguments, **options):
        panel = mf.Panel(*arguments, **{"poll_s": 0.1} | options)
        made.append(panel)
        seen = Seen(panel)
        seen.settle()
        return seen

    yield make
    for panel in made:
        panel.close()
    assert not _instances
    for thread in threading.enumerate():
        if thread.name == "memframe-panel":
            thread.join(SOON_S)
            assert not thread.is_alive()


@pytest.fixture
def bare(monkeypatch):
    """An environment without settings."""
    for name in SETTINGS:
        monkeypatch.delenv(f"MEMFRAME_{name.upper()}", raising=False)


@pytest.fixture
def environment(user, monkeypatch):
    """An environment with all settings."""
    for name in SETTINGS:
        monkeypatch.setenv(f"MEMFRAME_{name.upper()}", getattr(user.service, name))
    return user


@pytest.fixture
def connected(user, show):
    """A panel whose developer is signed in, with the user's link on it."""
    return show(user.client, flow=user.flow(), reason="a test")


@pytest.fixture
def far(user, show, proxy):
    """As `connected`, through the proxy."""
    client = Client(proxy.base_url, Secret(user.service.api_key), transport=at_once())
    return show(client, flow=user.flow(), reason="a test")


def fill_in(seen, service, *names):
    """Type settings of the service into their fields."""
    for name in names:
        seen.type(LABELS[name], getattr(service, name))


def answer(seen, user):
    """Lead a panel with a link on it through the consent."""
    seen.type("Redirected address, or its code", user.person.authorize(seen.link))
    seen.click("Continue")
    return seen


def ask(seen, user):
    """Lead a panel with a link on it to a request that waits."""
    answer(seen, user).click("Send the request")
    return seen


def approve(seen, user):
    """Lead a panel with a link on it to an approved request."""
    ask(seen, user)
    user.service.decide(seen.panel.sign_in.request.id, "approved")
    seen.until("approved")
    return seen


def everything_kept(panel):
    """All that could be saved of a panel: the state of every widget, and every way to print it."""
    state = ipywidgets.Widget.get_manager_state(drop_defaults=False)
    spoken = [
        repr(panel),
        str(panel),
        panel._repr_mimebundle_ and panel._repr_mimebundle_(),
        [repr(each) for each in _instances.values()],
    ]
    return json.dumps([state, spoken], default=str)
