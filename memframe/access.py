"""From an access request to `Access`: the keys to one user's memories, and the baselines of what was loaded."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import pandas as pd
import pyarrow as pa

from memframe.client import Client, id_of
from memframe.client.responses import require_same_id
from memframe.display import html_card
from memframe.envelope import Codec, Envelope
from memframe.errors import AccessError, Hint, check_kind
from memframe.frames import MEMORY_KINDS, FrameBuilder
from memframe.wire import GET_CREDENTIALS, AccessRequest, Credentials

MAX_KEPT_LOADS = 8
"""Most loads that are kept apart; more are joined into one frame, which has each state of a row once."""

ContentFormat = str | Sequence[str] | Codec


class Access:
    """Access to one user's memories: client, keys and baselines. Made by `open_access`.

    Attributes
    ----------
    client : Client
    request_id : str
    credentials : Credentials
        As of the time when the access was opened.
    envelope : Envelope
        Opens and seals content with the user's key.

    Examples
    --------
    >>> access
    <memframe.Access to user ... at http://127.0.0.1:...>
    >>> access.credentials
    <memframe.Credentials user_id: ..., memory_key: ••••••, encryption_key: ••••••, key_version: 1>
    """

    def __init__(self, client: Client, request_id: str, credentials: Credentials, envelope: Envelope) -> None:
        self.client = client
        self.request_id = request_id
        self.credentials = credentials
        self.envelope = envelope
        self._loads: list[pd.DataFrame] = []

    def __repr__(self) -> str:
        return f"<memframe.Access to user {self.user_id} at {self.client.base_url}>"

    def _repr_html_(self) -> str:
        facts = {"user": self.user_id, "API": self.client.base_url, "request": self.request_id}
        return html_card("Access, open", facts | {"key version": self.credentials.key_version})

    @property
    def user_id(self) -> str:
        """Id of the user whose memories these are."""
        return self.credentials.user_id

    def renew(self) -> Access:
        """Return this access with freshly fetched credentials and the same content formats.

        Raises
        ------
        AccessError
            The request is no longer approved.
        ProtocolError
            The credentials are for another user now.
        """
        credentials = require_same_id(
            _fetch(self.client, self.request_id), what=GET_CREDENTIALS, user_id=self.user_id
        )
        key, version = credentials.encryption_key, credentials.key_version
        is_same = (key, version) == (self.credentials.encryption_key, self.credentials.key_version)
        envelope = self.envelope if is_same else self.envelope.rekey(key, version)
        return Access(self.client, self.request_id, credentials, envelope)

    def keep_baseline(self, loaded: pd.DataFrame) -> None:
        """Keep loaded rows as baselines; later edits of the frame do not change them.

        Columns are shared with the frame until one of the two is written to (pandas copies on write),
        and cells of tags are tuples, so this costs next to nothing.
        """
        earlier = [_keep_older_states(load, loaded) for load in self._loads]
        self._loads = [*(load for load in earlier if len(load)), loaded.copy(deep=False)]
        if len(self._loads) > MAX_KEPT_LOADS:
            self.states()

    @property
    def has_baselines(self) -> bool:
        """True once memories were loaded through this access."""
        return bool(self._loads)

    def baseline(self) -> pd.DataFrame:
        """Return every row as it was last loaded, indexed by ``id``."""
        return self.states().drop_duplicates("id", keep="last").set_index("id", drop=False)

    def states(self) -> pd.DataFrame:
        """Return every loaded state of every row, distinguished by ``updated_at``; the newest of each id comes last.

        A frame of an earlier load is compared with the older states, so that its unchanged cells are not edits.
        """
        if not self._loads:
            return FrameBuilder(MEMORY_KINDS).frame()
        if len(self._loads) > 1:
            rows = pd.concat(self._loads, ignore_index=True)
            self._loads = [rows.drop_duplicates(["id", "updated_at"], keep="last", ignore_index=True)]
        return self._loads[0]


def _keep_older_states(load: pd.DataFrame, loaded: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of an earlier load to keep: all, or only older states if the same rows were loaded again."""
    if pa.array(load.id) != pa.array(loaded.id):  # Arrow compares twenty times as fast as pandas
        return load
    times, again = load.updated_at.reset_index(drop=True), loaded.updated_at.reset_index(drop=True)
    is_older = ((times != again) & ~(times.isna() & again.isna())).to_numpy()
    # with an all-False mask Arrow would copy all text before it drops it
    return load[is_older] if is_older.any() else load.iloc[:0]


def open_access(
    client: Client,
    request_id: str | AccessRequest,
    *,
    content_format: ContentFormat = "auto",
    write_format: str | None = None,
) -> Access:
    """Fetch the credentials of an approved request and return the access to the user's memories.

    Parameters
    ----------
    client : Client
    request_id : str or AccessRequest
        An approved access request, or its id; the beginning of the id is enough.
    content_format : str, list of str or codec
        How stored content is sealed: ``"auto"`` recognises the authenticated layouts. Otherwise the name of a
        layout, a list of names, or an object with ``seal(text)`` and ``open(text)``.
    write_format : str, optional
        Layout for new content; by default the authenticated layout that was read, otherwise memframe's own.

    Raises
    ------
    AccessError
        The request is pending, rejected or revoked; the message says which, and what to do.
    SealError
        The encryption key is malformed or the layout is unknown.

    Examples
    --------
    >>> open_access(client, request_id)
    <memframe.Access to user ... at http://127.0.0.1:...>
    """
    check_kind("client", client, Client)
    request_id, credentials = client.with_full_id(id_of(request_id), functools.partial(_fetch, client))
    envelope = Envelope(
        credentials.encryption_key,
        user_id=credentials.user_id,
        key_version=credentials.key_version,
        content_format=content_format,
        write_format=write_format,
    )
    return Access(client, request_id, credentials, envelope)


def _fetch(client: Client, request_id: str) -> Credentials:
    try:
        return client.credentials(request_id)
    except AccessError as refused:
        raise explain_refusal(client, request_id, refused) from None


_NEXT_STEP = {
    "pending": "the user has not decided yet",
    "rejected": "the user declined; you can ask again, with a better reason",
    "revoked": "the user revoked the approval, so nothing can be read: ask again with a new request",
    "approved": "the service still refuses it; ask the operator of the service",
}


def explain_refusal(client: Client, request_id: str, refused: AccessError) -> AccessError:
    """Explain a refusal by the status of the access request."""
    request = client.access_request(request_id)
    since = f" since {request.updated_at:%Y-%m-%d %H:%M} UTC" if request.updated_at else ""
    return AccessError(
        f"access request {request_id} is {request.status}{since}: {_NEXT_STEP[request.status]}",
        status=refused.status,
        code=refused.code or request.status,
        endpoint=refused.endpoint,
        hint=_WAIT if request.status == "pending" else None,
    )


_WAIT = Hint("wait_for_decision() waits for it", "memframe request wait waits for it")
