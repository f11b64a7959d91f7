"""The desk behind the panel: what its buttons do, and what there is to see, without any widget."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Struct

from memframe.client import Client
from memframe.errors import ConfigError
from memframe.oauth import can_listen, is_port_free
from memframe.secret import Secret
from memframe.settings import Name, find_setting, origins_of, user_sources
from memframe.signin import SignIn, Stand
from memframe.signin.poller import Worker
from memframe.signin.state import LOOKS

SIGN_IN: tuple[Name, ...] = ("base_url", "api_key")
CONNECT: tuple[Name, ...] = ("auth_url", "client_id", "client_secret", "redirect_uri")
"""What the first two steps need."""

LISTEN_S = 3600.0
"""How long a listener waits for the answer; after that it is pasted."""

MIN_INTERVAL_S = 0.5
"""A load is not drawn more often: the front end drops updates when it gets too many."""


_logger = logging.getLogger(__name__)


class Moment(Struct, frozen=True, kw_only=True):
    """What there is to see, at one moment.

    Attributes
    ----------
    stand : Stand
    origins : dict of str to (str or None), or None
        Where the settings stand; None until they have been looked for.
    is_watching : bool
        Whether the worker looks by itself for what may change.
    next_look_at : datetime or None
        When it will look again.
    hint : str
        What somebody has to do before a button can do its work.
    n_loaded : int
        Memories that have come so far.
    now : datetime
    """

    stand: Stand
    origins: dict[Name, str | None] | None
    is_watching: bool
    next_look_at: datetime | None
    hint: str
    n_loaded: int
    now: datetime

    @property
    def is_busy(self) -> bool:
        """Tell whether a step is under way that does not only look or listen."""
        doing = self.stand.doing
        return doing is not None and doing not in LOOKS and not self.stand.is_listening

    @property
    def lacking(self) -> frozenset[Name]:
        """The settings that stand nowhere, and that no step has brought."""
        found = {name for name, origin in (self.origins or {}).items() if origin}
        if self.stand.flow:
            found.update(CONNECT)
        if self.stand.client:
            found.update(SIGN_IN)
            found.update({"auth_url"} if self.stand.client.auth_url else ())
        return frozenset(SIGN_IN + CONNECT) - found


class Desk:
    """What the buttons do. Nothing here waits: whatever lasts is the worker's.

    Parameters
    ----------
    way : SignIn
    changed : callable
        Called when there is something else to see, in any thread.
    poll_s : float
        As in `Worker`.
    clock : callable
        Seconds that only grow.
    """

    def __init__(
        self,
        way: SignIn,
        changed: Callable[[], object],
        *,
        poll_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.way = way
        self.redraw = changed
        self._clock = clock
        self._origins: dict[Name, str | None] | None = None
        self._hint = ""
        self._is_to_be_pasted = False
        self._n_loaded = 0
        way.subscribe(changed)  # before the worker, whose `idle` says that there is nothing more to come
        self.worker = Worker(way, changed, poll_s=poll_s)

    @property
    def moment(self) -> Moment:
        """What there is to see now."""
        return Moment(
            stand=self.way.stand,
            origins=self._origins,
            is_watching=self.worker.is_watching,
            next_look_at=self.worker.next_look_at,
            hint=self._hint,
            n_loaded=self._n_loaded,
            now=datetime.now(UTC),
        )

    def arrive(self, client: Client | None) -> None:
        """Find out what is known already, and go as far as that leads."""
        self.start(lambda: self._arrive(client))

    def _arrive(self, client: Client | None) -> None:
        wanted = (SIGN_IN if client is None else ()) + (CONNECT if self.way.stand.flow is None else ())
        try:
            self._origins = origins_of(wanted)
        except ConfigError as error:  # a broken file: fields take the place of what it may hold
            self._origins, self._hint = {}, str(error)
        if client is None and self.moment.lacking.intersection(SIGN_IN):
            self.redraw()
        else:
            self.enter(client)

    def enter(self, key: Secret | Client | None, base_url: str | None = None) -> None:
        """Sign in and list the requests; where there are none and nothing is lacking, prepare the link."""
        self.way.sign_in(key, base_url=base_url)
        self.way.refresh()
        if not (self.way.requests or self.moment.lacking.intersection(CONNECT)):
            self.connect()

    def connect(
        self,
        *,
        client_id: str | None = None,
        client_secret: Secret | None = None,
        auth_url: str | None = None,
        redirect_uri: str | None = None,
    ) -> None:
        """Prepare the link; where a browser on this computer can bring the answer, listen for it."""
        given = {"client_id": client_id, "auth_url": auth_url, "redirect_uri": redirect_uri}
        if self._is_to_be_pasted or not self._can_listen(redirect_uri):
            self.way.authorize(client_secret=client_secret, **given)
        else:
            self.way.receive(LISTEN_S, client_secret=client_secret, **given)
            self.way.refresh()

    def _can_listen(self, redirect_uri: str | None) -> bool:
        flow = self.way.stand.flow
        if redirect_uri is None and flow is not None:
            redirect_uri = flow.redirect_uri
        found = find_setting("redirect_uri", redirect_uri, user_sources())
        address = found.value.reveal() if found else ""
        return can_listen(address, os.environ) and is_port_free(address)

    def listen(self) -> None:
        """Wait for the answer on this computer, with a new link."""
        self._is_to_be_pasted = False
        self.way.receive(LISTEN_S)
        self.way.refresh()

    def paste(self) -> None:
        """Listen no more: the answer to the same link, and to later ones, is pasted."""
        self._is_to_be_pasted = True
        self.cancel()

    def finish(self, answer: Secret | None) -> None:
        """Exchange what came back, and look whether this user was asked before."""
        self.way.finish(answer or "")
        self.way.refresh()

    def take_up(self, request_id: str) -> None:
        """Go on with a request; an approved one is opened."""
        self.way.choose(request_id)
        if self.way.state == "approved":
            self.way.open()

    def open(self) -> None:
        """Open the access, and load."""
        if self.way.state == "approved":
            self.way.open()
        self._n_loaded = 0
        self.way.load(progress=_Count(self._count, self.way, self._clock))

    def _count(self, n_loaded: int) -> None:
        self._n_loaded = n_loaded
        self.redraw()

    def press(self, action: Callable[[], object]) -> None:
        """Do what a button is for; errors in there would be seen nowhere."""
        try:
            action()
        except Exception as error:  # whatever it is, somebody waits for something to happen
            _logger.debug("a button failed", exc_info=True)
            self.ask_for(f"Something unforeseen went wrong ({type(error).__name__}).")

    def start(self, errand: Callable[[], object]) -> None:
        """Have the worker do something, unless it is doing something else, as on a second click."""
        if self.worker.idle.is_set():
            self._hint = ""
            self.worker.start(errand)

    def ask_for(self, hint: str) -> None:
        """Say what somebody has to do first."""
        self._hint = hint
        self.redraw()

    def cancel(self) -> None:
        """Let go of the step that is under way."""
        self._hint = ""
        self.way.cancel()
        self.worker.start()

    def go_back(self) -> None:
        """Leave this attempt or request, and list the requests again."""
        self._hint = ""
        self.way.go_back()
        self.worker.start(self.way.refresh)

    def stop_watching(self) -> None:
        """Do not look by itself for a decision any more."""
        self.worker.stop()

    def sign_out(self) -> None:
        """Forget everything, and do nothing more."""
        self._hint = ""
        self.worker.stop()
        self.way.sign_out()


class _Count:
    """Progress of a load for a display that bears few changes; it ends the load when nobody waits for it."""

    def __init__(self, show: Callable[[int], object], way: SignIn, clock: Callable[[], float]) -> None:
        self._show = show
        self._way = way
        self._clock = clock
        self._turn: int | None = None
        self._shown_at = clock()

    def __call__(self, done: int, *_: object) -> None:
        turn = self._way.stand.turn
        self._turn = turn if self._turn is None else self._turn
        if turn != self._turn:
            raise ConfigError("the load was let go of")
        if self._clock() - self._shown_at >= MIN_INTERVAL_S:
            self._shown_at = self._clock()
            self._show(done)
