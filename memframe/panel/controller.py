"""Carry out what the buttons of the panel do, and collect what it shows, without any widget."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from memframe.client import Client
from memframe.errors import ConfigError
from memframe.oauth import can_listen, is_port_free
from memframe.secret import Secret
from memframe.settings import Name, find_setting, origins_of, user_sources
from memframe.signin import SignIn, SignInState
from memframe.signin.poller import Poller
from memframe.signin.state import POLLING_STEPS

SIGN_IN: tuple[Name, ...] = ("base_url", "api_key")
CONNECT: tuple[Name, ...] = ("auth_url", "client_id", "client_secret", "redirect_uri")
"""Settings that the first two steps need."""

LISTEN_S = 3600.0
"""Time that a listener waits for the redirect; after that, the user pastes its address."""

REDRAW_INTERVAL_S = 0.5
"""Minimum time between updates of a load: front ends drop updates when they get too many."""


_logger = logging.getLogger(__name__)


class ViewState(Struct, frozen=True, kw_only=True):
    """Everything that the panel shows, at one moment."""

    snapshot: SignInState
    origins: dict[Name, str | None] | None
    """The source of each setting; None until the settings were read."""
    is_watching: bool
    """True while the poller is running."""
    next_check_at: datetime | None
    hint: str
    """The input that a button needs first."""
    n_loaded: int
    now: datetime

    @property
    def is_busy(self) -> bool:
        """True while a step runs, other than a poll or a listener."""
        doing = self.snapshot.doing
        return doing is not None and doing not in POLLING_STEPS and not self.snapshot.is_listening

    @property
    def missing(self) -> frozenset[Name]:
        """The settings that were not found, and that no step has provided."""
        found = {name for name, origin in (self.origins or {}).items() if origin}
        if self.snapshot.flow:
            found.update(CONNECT)
        if self.snapshot.client:
            found.update(SIGN_IN)
            found.update({"auth_url"} if self.snapshot.client.auth_url else ())
        return frozenset(SIGN_IN + CONNECT) - found


class PanelController:
    """Carry out what the buttons do; everything that takes time runs in the poller's thread.

    `changed` is called after each change, in any thread.
    """

    def __init__(
        self,
        sign_in: SignIn,
        changed: Callable[[], object],
        *,
        poll_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.sign_in = sign_in
        self.redraw = changed
        self._clock = clock
        self._origins: dict[Name, str | None] | None = None
        self._hint = ""
        self._is_to_be_pasted = False
        self._n_loaded = 0
        sign_in.subscribe(changed)  # before the poller, whose `idle` says that nothing more will change
        self.poller = Poller(sign_in, changed, poll_s=poll_s)

    @property
    def view(self) -> ViewState:
        """The current view."""
        return ViewState(
            snapshot=self.sign_in.snapshot,
            origins=self._origins,
            is_watching=self.poller.is_watching,
            next_check_at=self.poller.next_check_at,
            hint=self._hint,
            n_loaded=self._n_loaded,
            now=datetime.now(UTC),
        )

    def start_from_settings(self, client: Client | None) -> None:
        """Read the settings, and take the steps for which they suffice."""
        wanted = (SIGN_IN if client is None else ()) + (CONNECT if self.sign_in.snapshot.flow is None else ())
        try:
            self._origins = origins_of(wanted)
        except ConfigError as error:  # a broken file: the user fills in fields instead
            self._origins, self._hint = {}, str(error)
        if client is None and self.view.missing.intersection(SIGN_IN):
            self.redraw()
        else:
            self.sign_in_and_list(client)

    def sign_in_and_list(self, key: Secret | Client | None, base_url: str | None = None) -> None:
        """Sign in and list the requests; if there are none and no setting is missing, start an authorization."""
        self.sign_in.sign_in(key, base_url=base_url)
        self.sign_in.refresh()
        if not (self.sign_in.requests or self.view.missing.intersection(CONNECT)):
            self.connect()

    def connect(
        self,
        *,
        client_id: str | None = None,
        client_secret: Secret | None = None,
        auth_url: str | None = None,
        redirect_uri: str | None = None,
    ) -> None:
        """Start an authorization; listen for the redirect if a browser on this computer can reach the listener."""
        given = {"client_id": client_id, "auth_url": auth_url, "redirect_uri": redirect_uri}
        if self._is_to_be_pasted or not self._can_listen(redirect_uri):
            self.sign_in.authorize(client_secret=client_secret, **given)
        else:
            self.receive(client_secret=client_secret, **given)

    def _can_listen(self, redirect_uri: str | None) -> bool:
        flow = self.sign_in.snapshot.flow
        if redirect_uri is None and flow is not None:
            redirect_uri = flow.redirect_uri
        found = find_setting("redirect_uri", redirect_uri, user_sources())
        address = found.value.reveal() if found else ""
        return can_listen(address, os.environ) and is_port_free(address)

    def receive(self, **application: Any) -> None:
        """Start an authorization, and listen for the redirect."""
        self._is_to_be_pasted = False
        self.sign_in.receive(LISTEN_S, **application)
        self.sign_in.refresh()

    def paste(self) -> None:
        """Stop listening: from now on, the user pastes the redirected address."""
        self._is_to_be_pasted = True
        self.cancel()

    def finish(self, answer: Secret | None) -> None:
        """Exchange the redirected address, and list earlier requests."""
        self.sign_in.finish(answer or "")
        self.sign_in.refresh()

    def resume_request(self, request_id: str) -> None:
        """Continue with a request, and open it if it is approved."""
        self.sign_in.choose(request_id)
        if self.sign_in.state == "approved":
            self.sign_in.open()

    def open(self) -> None:
        """Open the access, and load."""
        if self.sign_in.state == "approved":
            self.sign_in.open()
        self._n_loaded = 0
        self.sign_in.load(progress=self.report_load())

    def report_load(self) -> Callable[..., None]:
        """Return a progress callback that shows the count, and cancels the load once another step has replaced it.

        It shows a count at most every `REDRAW_INTERVAL_S`.
        """
        step_number: int | None = None
        shown_at = self._clock()

        def progress(done: int, *_: object) -> None:
            nonlocal step_number, shown_at
            current = self.sign_in.snapshot.step_number
            step_number = current if step_number is None else step_number
            if current != step_number:
                raise ConfigError("the load was cancelled")
            if self._clock() - shown_at >= REDRAW_INTERVAL_S:
                shown_at = self._clock()
                self._n_loaded = done
                self.redraw()

        return progress

    def run_action(self, action: Callable[[], object]) -> None:
        """Run the action of a button, and show an error, which a notebook would swallow."""
        try:
            action()
        except Exception as error:  # a notebook shows no errors of callbacks
            _logger.debug("a button failed", exc_info=True)
            self.ask_for(f"An unexpected error occurred ({type(error).__name__}).")

    def start(self, task: Callable[[], object]) -> None:
        """Run a task in the background, unless one is running already, as after a second click."""
        if self.poller.idle.is_set():
            self._hint = ""
            self.poller.start(task)

    def ask_for(self, hint: str) -> None:
        """Ask for input that is needed first."""
        self._hint = hint
        self.redraw()

    def cancel(self) -> None:
        """Drop the running step."""
        self._hint = ""
        self.sign_in.cancel()
        self.poller.start()

    def go_back(self) -> None:
        """Leave this attempt or request, and list the requests again."""
        self._hint = ""
        self.sign_in.go_back()
        self.poller.start(self.sign_in.refresh)

    def sign_out(self) -> None:
        """Stop, and forget everything."""
        self._hint = ""
        self.poller.stop()
        self.sign_in.sign_out()
