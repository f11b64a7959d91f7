"""Run a whole service in a thread of this process, for tests, demos and trying things out."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import uvicorn
from argon2 import PasswordHasher
from markupsafe import Markup

from memframe.errors import ConfigError
from memframe.files import expand_path
from memframe.secret import Secret
from memframe.service.app import create_app
from memframe.service.clock import Clock, utc_now
from memframe.service.deployment import (
    DEFAULT_REDIRECT_URI,
    FIRST_DEVELOPER,
    TOKEN_CALLS_PER_MINUTE,
    Addresses,
    Deployment,
    NewDeveloper,
    open_deployment,
)
from memframe.service.importing import import_memories
from memframe.service.server import listen, make_server, url_of
from memframe.wire import RequestStatus

LOOPBACK = "127.0.0.1"
START_TIMEOUT_S = 10
_LOOK_EVERY_S = 0.005


class LocalService:
    """A running service, its addresses and one developer's secrets.

    Attributes
    ----------
    base_url, auth_url, dashboard_url : str
        Addresses of the API, the authorization server and the user's pages.
    api_key, client_id, client_secret, redirect_uri : str
        Credentials of a developer, made for this run.
    """

    def __init__(self, deployment: Deployment, addresses: Addresses, developer: NewDeveloper) -> None:
        self._deployment = deployment
        self._addresses = addresses
        self._developer_id = developer.id
        self.base_url = addresses.base_url
        self.auth_url = addresses.auth_url
        self.dashboard_url = addresses.dashboard_url
        self.api_key = developer.api_key.reveal()
        self.client_id = developer.client_id
        self.client_secret = developer.client_secret.reveal()
        self.redirect_uri = DEFAULT_REDIRECT_URI

    def __repr__(self) -> str:
        return f"<memframe.LocalService {self.base_url}>"

    def _repr_html_(self) -> str:
        addresses = {"API": self.base_url, "OAuth server": self.auth_url, "dashboard": self.dashboard_url}
        rows = Markup("").join(Markup("<br>{}: {}").format(*pair) for pair in addresses.items())
        return Markup("<b>Service</b>{}").format(rows)

    def add_user(self, email: str, password: str) -> str:
        """Add a user, who can sign in; return the user's id."""
        return self._deployment.add_user(email, Secret(password))

    def memory_key(self, user_id: str) -> Secret:
        """Return the user's memory key for this run's developer, as the OAuth exchange would.

        It connects the two without the user's consent. To try out sign-in and consent, use `memframe.OAuthFlow`.

        Parameters
        ----------
        user_id : str
            Id that `add_user` returned.

        Raises
        ------
        NotFoundError
            If there is no such user.

        Examples
        --------
        >>> with run_local() as local:
        ...     user_id = local.add_user("ada@example.org", "a long password")
        ...     local.memory_key(user_id) == local.memory_key(user_id)  # it stays the same
        True
        """
        return self._deployment.memory_key(user_id=user_id, developer_id=self._developer_id)

    def import_memories(self, user_id: str, memories: Iterable[object], tags: Iterable[object] = ()) -> None:
        """Import memories and tags of a user, with their times.

        Parameters
        ----------
        user_id : str
            Id of the user who will own them.
        memories, tags : DataFrame, or iterable of object
            Frames such as `memframe.load_memories` and `memframe.load_tags` give, their ``to_dict("records")``, or
            objects with attributes. Content is plain text and times have a zone. All get new ids; columns that no
            memory or tag has are ignored.

        Raises
        ------
        InvalidError
            If a record is not of that form; the message names it, in a frame by its label. Nothing is imported.

        Examples
        --------
        >>> import pandas as pd
        >>> with run_local() as local:
        ...     user_id = local.add_user("ada@example.org", "a long password")
        ...     texts = pd.DataFrame({"content": ["Likes tea"], "created_at": "2024-05-01T10:00:00Z"})
        ...     local.import_memories(user_id, texts)
        """
        import_memories(self._deployment, user_id, memories, tags)

    def rotate_key(self, user_id: str) -> int:
        """Give a user a new encryption key, and seal the content again; return the key version."""
        return self._deployment.rotate_key(user_id).key_version

    def decide(self, request_id: str, status: RequestStatus) -> RequestStatus:
        """Decide on an access request for the user: approved, rejected or revoked."""
        return self._deployment.store.requests.decide(request_id, status).status


@contextmanager
def run_local(
    data: str | Path | None = None,
    port: int = 0,
    *,
    database: str | None = None,
    now: Clock = utc_now,
    password_hasher: PasswordHasher | None = None,
    token_calls_per_minute: int = TOKEN_CALLS_PER_MINUTE,
) -> Iterator[LocalService]:
    """Run the service on this machine until the ``with`` block ends.

    Parameters
    ----------
    data : str or Path, optional
        Data folder, created if it is missing; users and their memories stay in it. None uses a temporary one,
        removed at the end. Each run adds a new developer, because an earlier one's secrets cannot be shown again.
    port : int, default 0
        Port of the service; 0 chooses a free one.
    database : str, optional
        SQLAlchemy address of a database to use instead of the SQLite file in the data folder.
    now : Clock, optional
        Function that returns the current time.
    password_hasher : PasswordHasher, optional
        Argon2 parameters for users' passwords.
    token_calls_per_minute : int, default 60
        Most token calls per minute from one address for one account, and ten times as many for all accounts.

    Yields
    ------
    LocalService

    Raises
    ------
    ConfigError
        If the port is taken, or the data folder cannot be used.

    Examples
    --------
    >>> with run_local() as local:
    ...     print(local.base_url)
    http://127.0.0.1:.../api/v1

    A user who has approved, with a memory, in a few lines:

    >>> import memframe as mf, pandas as pd
    >>> with run_local() as local, mf.connect(local.base_url, api_key=local.api_key) as client:
    ...     user_id = local.add_user("ada@example.org", "a long password")
    ...     request = client.create_access_request(local.memory_key(user_id), "a test")
    ...     status = local.decide(request.id, "approved")
    ...     access = mf.open_access(client, request.id)
    ...     mf.create_memories(access, pd.DataFrame({"content": ["Likes tea"]}))
    <memframe.Run: 1 done; 1 read back: all as written>
    """
    with ExitStack() as stack:
        folder = (
            expand_path(data) if data else Path(stack.enter_context(TemporaryDirectory(prefix="memframe-")))
        )
        listening = stack.enter_context(listen(LOOPBACK, port))
        deployment = open_deployment(
            folder,
            database_url=database,
            now=now,
            password_hasher=password_hasher,
            token_calls_per_minute=token_calls_per_minute,
        )
        stack.callback(deployment.close)
        addresses = Addresses(url_of(listening))
        local = LocalService(deployment, addresses, deployment.add_developer(FIRST_DEVELOPER))
        stack.enter_context(
            serving_in_thread(make_server(create_app(deployment, addresses), addresses.public_url), listening)
        )
        yield local


@contextmanager
def serving_in_thread(server: uvicorn.Server, listening: socket.socket) -> Iterator[None]:
    """Run a server in a thread for the length of a block."""
    ended: Future[None] = Future()

    def run() -> None:
        try:
            server.run([listening])
        except BaseException as error:  # uvicorn's SystemExit, too; the waiting thread raises it below
            ended.set_exception(error)
        else:
            ended.set_result(None)

    thread = Thread(target=run, name="memframe-service", daemon=True)
    thread.start()
    failure = "did not start"
    try:
        for _ in range(int(START_TIMEOUT_S / _LOOK_EVERY_S)):
            if server.started or wait([ended], _LOOK_EVERY_S).done:
                break
        if server.started:
            failure = "has stopped unexpectedly"
            yield
        elif not (ended.done() and ended.exception()):
            raise ConfigError(f"the service did not start within {START_TIMEOUT_S} seconds; its log says why")
    finally:
        server.should_exit = True
        thread.join()
    if error := ended.exception():
        raise ConfigError(f"the service {failure}: {type(error).__name__}: {error}") from error
