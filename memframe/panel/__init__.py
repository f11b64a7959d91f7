"""The way from API key to loaded memories as a panel in a notebook, on ipywidgets.

A view on `memframe.signin`: whatever the panel does, a script can do with ``panel.way``, and the panel
follows. It holds up no cell, shows the same after the page was loaded again, and leaves no secret behind:
not in outputs, not in the saved state of its widgets, not in a notebook that ran as a batch job.

Decisions where the specification is silent: the preview is shown on demand, as what it shows is saved
with the notebook; frames that were loaded stay after a revocation, and the panel says so.
"""

from __future__ import annotations

import logging
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn

import pandas as pd
from ipywidgets import VBox

from memframe.access import Access, ContentFormat
from memframe.address import check_redirect_uri
from memframe.client import Client
from memframe.oauth import OAuthFlow
from memframe.panel import widgets
from memframe.panel.controller import Desk, Moment
from memframe.panel.sections import Asking, Connecting, Deciding, Loading, Signing
from memframe.panel.widgets import EnterKey, close_children, html
from memframe.signin import SignIn, State

__all__ = ["Panel"]

_PLAIN = (
    "memframe.Panel: run this cell in a notebook that shows widgets; "
    "elsewhere panel.way has the same steps as methods."
)

_DUE: dict[State, int] = {
    "signed_out": 1,
    "signed_in": 2,
    "authorizing": 2,
    "authorized": 3,
    "pending": 4,
    "rejected": 4,
    "revoked": 4,
    "approved": 5,
    "ready": 5,
    "loaded": 5,
}
"""The section whose turn it is, by state."""

_logger = logging.getLogger(__name__)

_STYLE = f"<style>{Path(__file__).with_name('panel.css').read_text('utf-8')}</style>"


class Panel(VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Sign in, connect a user, ask for access, wait for the decision and load, in a notebook.

    What is known from arguments, environment and keyring is not asked for. Show it as the last line of
    a cell, or with ``display(panel)``.

    Parameters
    ----------
    client : Client, optional
        Of a developer who is known already; else address and key come from the settings or from fields.
    flow : OAuthFlow, optional
        The application's OAuth flow; else it is made from the settings or from fields.
    reason : str
        Stands in the field for what the user reads before deciding.
    dashboard_url : str, optional
        Where users decide; the panel then links to it.
    content_format : str, list of str or codec
        As in `open_access`.
    poll_s : float
        Seconds between two looks at a pending request, at first; later they come more slowly.

    Attributes
    ----------
    way : SignIn
        The steps as methods; the panel follows whoever takes them.

    Examples
    --------
    >>> panel = Panel()
    >>> panel
    <memframe.Panel>
    >>> panel.close()
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        flow: OAuthFlow | None = None,
        reason: str = "",
        dashboard_url: str | None = None,
        content_format: ContentFormat = "auto",
        poll_s: float = 5,
    ) -> None:
        if dashboard_url is not None:
            check_redirect_uri("dashboard_url", dashboard_url)
        self.way = SignIn(flow=flow, content_format=content_format)
        self._desk = Desk(self.way, self._draw, poll_s=poll_s)
        self._drawing = RLock()
        self._top = html()
        self._enter = EnterKey()
        self._sections = (
            Signing(self._desk, self._enter),
            Connecting(self._desk, self._enter),
            Asking(self._desk, reason),
            Deciding(self._desk, dashboard_url),
            Loading(self._desk),
        )
        super().__init__([html(_STYLE), self._top, *(section.box for section in self._sections)])
        for name in ("memframe-panel", "mathjax_ignore", "tex2jax_ignore"):  # "$5 and $6" is no formula
            self.add_class(name)
        self._draw()
        self._desk.arrive(client)

    def __repr__(self) -> str:
        return "<memframe.Panel>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a panel is not pickled, as it is open in one notebook and holds keys")

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """The widget, and for front ends without widgets the same words whatever is on the panel."""
        return {**super()._repr_mimebundle_(**options), "text/plain": _PLAIN}

    @property
    def access(self) -> Access | None:
        """The open access, None before."""
        return self.way.access

    @property
    def memories(self) -> pd.DataFrame | None:
        """The memories that were loaded, None before."""
        return self.way.memories

    @property
    def tags(self) -> pd.DataFrame | None:
        """The user's tags, loaded with the memories."""
        return self.way.tags

    def wait(self, timeout_s: float = 60) -> bool:
        """Wait until what is under way is done, for cells that go on by themselves; False if it takes longer."""
        return self._desk.worker.idle.wait(timeout_s)

    def close(self) -> None:
        """Sign out, end the worker, and take the panel from the page."""
        if self.comm is not None:
            self._desk.sign_out()
            self._enter.close()
            close_children(self)
        super().close()

    def _draw(self) -> None:
        with self._drawing:
            try:
                self._draw_moment(self._desk.moment)
            except Exception as error:  # in any thread, where it would be seen nowhere
                _logger.debug("the panel could not be drawn", exc_info=True)
                self._top.value = widgets.alert(f"The panel could not be drawn ({type(error).__name__}).")

    def _draw_moment(self, moment: Moment) -> None:
        due = _DUE[moment.stand.state]
        self._top.value = widgets.top(due, len(self._sections), self._sections[due - 1].title)
        for section in self._sections:
            section.draw(moment, due)
