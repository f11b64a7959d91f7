"""Sign in, request access and load memories with a panel in a notebook, on ipywidgets.

The panel is a view on `memframe.signin`: a script can take the same steps by ``panel.sign_in``, and the panel
follows. It blocks no cell, survives a reload of the page, and leaves no secret behind: not in outputs, not in the
saved state of its widgets, not in a notebook that ran as a batch job.

Decisions where the specification is silent: the preview is shown only on demand, because it is saved with the
notebook; loaded frames stay after a revocation, and the panel says so.
"""

from __future__ import annotations

import logging
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn

import pandas as pd
from ipywidgets import HTML, VBox

from memframe.access import Access, ContentFormat
from memframe.address import check_redirect_uri
from memframe.client import Client
from memframe.oauth import OAuthFlow
from memframe.panel import widgets
from memframe.panel.controller import PanelController
from memframe.panel.sections import (
    ConnectSection,
    DecisionSection,
    LoadSection,
    RequestSection,
    SignInSection,
)
from memframe.panel.widgets import EnterKey, close_children
from memframe.signin import SignIn, State

__all__ = ["Panel"]

_PLAIN = (
    "memframe.Panel: run this cell in a notebook that shows Jupyter widgets. "
    "Elsewhere, use panel.sign_in, which has the same steps as methods, or `memframe request` in a shell."
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
"""The section that is due, by state."""

_logger = logging.getLogger(__name__)

_STYLE = f"<style>{Path(__file__).with_name('panel.css').read_text('utf-8')}</style>"


class Panel(VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Sign in, connect a user, ask for access, wait for the decision and load, in a notebook.

    It asks only for settings that are not in the arguments, the environment or the keyring. Show it as the last
    line of a cell, or with ``display(panel)``.

    Parameters
    ----------
    client : Client, optional
        Client of a developer who is already signed in; otherwise address and key come from the settings or from
        fields.
    flow : OAuthFlow, optional
        The application's OAuth flow; otherwise it is made from the settings or from fields.
    reason : str
        Text for the user to read before deciding; it fills the field.
    dashboard_url : str, optional
        Address where users decide; the panel links to it.
    content_format : str, list of str or codec
        As in `open_access`.
    poll_s : float
        Seconds between the first polls of a pending request, at least 0.1; the interval grows later.

    Attributes
    ----------
    sign_in : SignIn
        The steps as methods; the panel follows them.

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
        self.sign_in = SignIn(flow=flow, content_format=content_format)
        self._controller = PanelController(self.sign_in, self._draw, poll_s=poll_s)
        self._drawing = RLock()
        self._top = HTML()
        self._enter = EnterKey()
        self._sections = (
            SignInSection(self._controller, self._enter),
            ConnectSection(self._controller, self._enter),
            RequestSection(self._controller, reason),
            DecisionSection(self._controller, dashboard_url),
            LoadSection(self._controller),
        )
        super().__init__([HTML(_STYLE), self._top, *(section.box for section in self._sections)])
        for name in ("memframe-panel", "mathjax_ignore", "tex2jax_ignore"):  # "$5 and $6" is not a formula
            self.add_class(name)
        self._draw()
        self._controller.start(lambda: self._controller.start_from_settings(client))

    def __repr__(self) -> str:
        return "<memframe.Panel>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a panel cannot be pickled: it belongs to one notebook and contains keys")

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """Return the widget, and a constant text for front ends without widgets."""
        return {**super()._repr_mimebundle_(**options), "text/plain": _PLAIN}

    def _display_(self) -> str:
        """Return a text for marimo, which has no Jupyter widgets and asks for this method first."""
        return _PLAIN

    @property
    def access(self) -> Access | None:
        """The open access; None before it is open."""
        return self.sign_in.access

    @property
    def memories(self) -> pd.DataFrame | None:
        """The loaded memories; None before they are loaded."""
        return self.sign_in.memories

    @property
    def tags(self) -> pd.DataFrame | None:
        """The user's tags, loaded with the memories."""
        return self.sign_in.tags

    def wait(self, timeout_s: float = 60) -> bool:
        """Wait until the running task is done, and return True; False if it takes longer."""
        return self._controller.poller.idle.wait(timeout_s)

    def close(self) -> None:
        """Sign out, stop the poller, and remove the panel from the page."""
        if self.comm is not None:
            self._controller.sign_out()
            self._enter.close()
            close_children(self)
        super().close()

    def _draw(self) -> None:
        with self._drawing:
            try:
                view = self._controller.view
                due = _DUE[view.snapshot.state]
                self._top.value = widgets.top(due, len(self._sections), self._sections[due - 1].title)
                for section in self._sections:
                    section.draw(view, due)
            except Exception as error:  # nothing else would show the error of a thread
                _logger.debug("the panel could not be drawn", exc_info=True)
                self._top.value = widgets.alert(f"The panel could not be drawn ({type(error).__name__}).")
