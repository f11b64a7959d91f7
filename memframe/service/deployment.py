"""One service as it was set up: its store, keys and addresses, and what an operator does with it.

The data folder holds the database (unless that is elsewhere) and the master key file. Both are made
at the first start, closed to others; data whose key is gone, or another's, is refused.
"""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from argon2 import PasswordHasher
from msgspec import Struct

from memframe.address import check_redirect_uri
from memframe.errors import ConfigError, NotFoundError
from memframe.secret import Secret
from memframe.service import cursors, rules
from memframe.service.keyring import HeldKeys, Keyring
from memframe.service.keys import KEY_FILE, MasterKey, is_open_to_others, next_key
from memframe.service.logs import log_event
from memframe.service.store import Developer, Memories, Store, User, sqlite_url
from memframe.service.throttle import TokenCalls
from memframe.service.times import Clock, Seconds, utc_now
from memframe.service.tokens import (
    API_KEY_PREFIX,
    CLIENT_ID_PREFIX,
    CLIENT_SECRET_PREFIX,
    BearerTokens,
    Passwords,
    new_secret,
    secret_hash,
)

API_PREFIX = "/api/v1"
DATABASE_FILE = "memframe.db"
DEFAULT_REDIRECT_URI = "http://127.0.0.1/callback"
FIRST_DEVELOPER = "My application"
TOKEN_CALLS_PER_MINUTE = 60
KEYS_HELD = 1000
"""Users' keys that stay unwrapped in memory, those that were used last."""


class Place(NamedTuple):
    """Where a service keeps its data; database and master key are in the folder unless they are named."""

    folder: Path
    database: str | None = None
    key_file: Path | None = None

    @property
    def master_key_file(self) -> Path:
        """The file with the master key, wherever it is."""
        return self.key_file or self.folder / KEY_FILE

    def open(self, *, may_create: bool = False) -> Deployment:
        """The service; a mistyped folder does not become a new one, unless it may."""
        return open_deployment(
            self.folder, database_url=self.database, key_file=self.key_file, may_create=may_create
        )


class Addresses(Struct, frozen=True):
    """Where a service is reached.

    >>> Addresses("http://127.0.0.1:8765").base_url
    'http://127.0.0.1:8765/api/v1'
    """

    public_url: str

    @property
    def base_url(self) -> str:
        """Of the API."""
        return self.public_url + API_PREFIX

    @property
    def auth_url(self) -> str:
        """Of the OAuth authorization server."""
        return self.public_url

    @property
    def dashboard_url(self) -> str:
        """Of the pages on which users decide."""
        return self.public_url + "/dashboard"


class NewDeveloper(Struct, frozen=True):
    """What a developer is given once, and the service keeps only as hashes."""

    id: str
    api_key: Secret
    client_id: str
    client_secret: Secret


class Deployment:
    """A store and the master key over it.

    Parameters
    ----------
    store : Store
    master_key : MasterKey
    now : Clock, optional
        What tells the time.
    seconds : Seconds, optional
        What throttles count time by.
    password_hasher : PasswordHasher, optional
        Argon2 parameters; tests pass cheap ones.
    token_calls_per_minute : int, optional
        Token calls that may be made from one address for one account, and ten times as many for all.

    Attributes
    ----------
    store, master_key, now, seconds
        As given.
    passwords : Passwords
    cursors : Cursors
    token_calls : TokenCalls
    """

    def __init__(
        self,
        store: Store,
        master_key: MasterKey,
        *,
        now: Clock = utc_now,
        seconds: Seconds = time.monotonic,
        password_hasher: PasswordHasher | None = None,
        token_calls_per_minute: int = TOKEN_CALLS_PER_MINUTE,
    ) -> None:
        self.store = store
        self.master_key = master_key
        self.now = now
        self.seconds = seconds
        self.passwords = Passwords(password_hasher)
        self.cursors = cursors.Cursors(master_key.derive("cursors", n_bytes=cursors.KEY_BYTES))
        self._held_keys = HeldKeys(KEYS_HELD)
        self._memory_key = lru_cache(KEYS_HELD)(master_key.memory_key)
        self.token_calls = TokenCalls(token_calls_per_minute, seconds=seconds)

    def bearer_tokens(self, addresses: Addresses) -> BearerTokens:
        """Tokens for the API at these addresses."""
        return BearerTokens(
            self.master_key.derive("bearer tokens"),
            issuer=addresses.auth_url,
            audience=addresses.base_url,
            now=self.now,
        )

    def add_developer(self, name: str, *redirect_uris: str, only_first: bool = False) -> NewDeveloper:
        """Add an application, with secrets that are shown this once.

        Users are sent back to one of its addresses, without any to a program on their own machine. With
        ``only_first`` it is `ConflictError` where there is an application already: of several processes that start
        at the same time, one adds the first.
        """
        addresses = dict.fromkeys(redirect_uris or [DEFAULT_REDIRECT_URI])
        api_key, client_secret = new_secret(API_KEY_PREFIX), new_secret(CLIENT_SECRET_PREFIX)
        developer = self.store.accounts.add_developer(
            name=rules.developer_name(name),
            api_key_hash=secret_hash(api_key),
            client_id=CLIENT_ID_PREFIX + uuid4().hex,
            client_secret_hash=secret_hash(client_secret),
            redirect_uris=tuple(check_redirect_uri("the redirect address", uri) for uri in addresses),
            only_first=only_first,
        )
        log_event("developer added", developer_id=developer.id)
        return NewDeveloper(developer.id, api_key, developer.client_id, client_secret)

    def rotate_api_key(self, developer_id: str) -> Secret:
        """Replace an application's API key; return the new one, which is kept only as a hash."""
        return self._replace_secret(developer_id, "api_key", API_KEY_PREFIX)

    def rotate_client_secret(self, developer_id: str) -> Secret:
        """Replace an application's client secret; return the new one, which is kept only as a hash."""
        return self._replace_secret(developer_id, "client_secret", CLIENT_SECRET_PREFIX)

    def _replace_secret(self, developer_id: str, name: str, prefix: str) -> Secret:
        secret = new_secret(prefix)
        self.store.accounts.set_developer_secret(developer_id, **{f"{name}_hash": secret_hash(secret)})
        log_event(f"{name.replace('_', ' ')} rotated".replace("api", "API"), developer_id=developer_id)
        return secret

    def add_user(self, email: str, password: Secret, *, of_operator: bool = False) -> str:
        """Add a person; return the id.

        With ``of_operator`` the dashboard asks the person to change the password, which somebody else has chosen.
        It does not insist: a sign-in on the way to an application's consent page goes on as always.
        """
        user_id = str(uuid4())
        self.store.accounts.add_user(
            user_id=user_id,
            email=rules.email_address(email),
            password_hash=self.passwords.hash(Secret(rules.new_password(password.reveal()))),
            wrapped_key=self.master_key.new_user_key(user_id=user_id, version=1),
            password_of_operator=of_operator,
        )
        log_event("user added", user_id=user_id)
        return user_id

    def user_id(self, email: str) -> str:
        """The id of the person with an e-mail address; `NotFoundError` where there is none."""
        user = self.store.accounts.user_by_email(email)
        if user is None:
            raise _unknown("user", email)
        return user.id

    def developer(self, name: str) -> Developer:
        """Return the application with an id or client_id; `NotFoundError` where there is none."""
        accounts = self.store.accounts
        found = accounts.developer(name) or accounts.developer_by_client_id(name)
        if found is None:
            raise _unknown("developer", name)
        return found

    def account(self, name: str) -> Developer | User:
        """The person or application behind an e-mail address or an id; `NotFoundError` where there is none."""
        accounts = self.store.accounts
        found = (
            accounts.user_by_email(name)
            or accounts.user(name)
            or accounts.developer(name)
            or accounts.developer_by_client_id(name)
        )
        if found is None:
            raise _unknown("account", name)
        return found

    def reset_password(self, user_id: str, password: Secret) -> None:
        """Give a person another password, which the dashboard asks the person to change.

        Whoever is signed in with the old one no longer is.
        """
        new = rules.new_password(password.reveal())
        self.store.accounts.set_password(user_id, self.passwords.hash(Secret(new)), of_operator=True)
        log_event("password reset", user_id=user_id)

    def memory_key(self, *, user_id: str, developer_id: str) -> Secret:
        """Connect a user and a developer, unless they are, and return the memory key of the two."""
        pair = {"user_id": user_id, "developer_id": developer_id}

        def key_hash(generation: int) -> str:
            return secret_hash(self.master_key.memory_key(**pair, generation=generation))

        generation = self.store.accounts.connect(**pair, key_hash=key_hash)
        return self.master_key.memory_key(**pair, generation=generation)

    def keyring(self, user_id: str, memories: Memories) -> Keyring:
        """What seals and opens the user's content."""
        return Keyring(self.master_key, self._held_keys, user_id, memories.keys)

    def is_memory_key(self, key: Secret, *, user_id: str, developer_id: str, generation: int) -> bool:
        """Return True for the memory key of a user and a developer."""
        return self._memory_key(user_id=user_id, developer_id=developer_id, generation=generation) == key

    def close(self) -> None:
        """Give back what is held."""
        self.store.close()


def _unknown(kind: str, name: str) -> NotFoundError:
    message = f"there is no {kind} {name}; `memframe service list` shows all"
    return NotFoundError(message, status=404, code="not_found")


def open_deployment(
    folder: Path,
    *,
    database_url: str | None = None,
    key_file: Path | None = None,
    may_create: bool = True,
    now: Clock = utc_now,
    seconds: Seconds = time.monotonic,
    password_hasher: PasswordHasher | None = None,
    token_calls_per_minute: int = TOKEN_CALLS_PER_MINUTE,
) -> Deployment:
    """The service whose data is in a folder, made there if there is none yet and it may be.

    Its database and its master key file may be elsewhere.
    """
    key_file = key_file or folder / KEY_FILE
    if not may_create:
        _check_is_there(folder, database_url, key_file)
    if key_file.parent == folder or not database_url:
        _make_private(folder)
    store = Store(database_url or sqlite_url(folder / DATABASE_FILE), now=now)
    try:
        with store.naming_errors():
            master_key = _master_key(key_file, store)
            first = store.bind(master_key.fingerprint())
            if first is not None:
                master_key.unwrap_first(first)
        return Deployment(
            store,
            master_key,
            now=now,
            seconds=seconds,
            password_hasher=password_hasher,
            token_calls_per_minute=token_calls_per_minute,
        )
    except BaseException:  # whatever it was, the database is let go
        store.close()
        raise


def _check_is_there(folder: Path, database_url: str | None, key_file: Path) -> None:
    if not key_file.exists():
        raise ConfigError(f"there is no service in {folder}; start it once with `memframe serve`")
    if not database_url and not (folder / DATABASE_FILE).exists():
        raise ConfigError(
            f"there is no database in {folder}; name the one that the service runs on: --database, or MEMFRAME_DATABASE"
        )


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not any(folder.iterdir()):
            folder.chmod(0o700)
        is_open = is_open_to_others(folder)
    except OSError as error:
        raise ConfigError(f"the data folder {folder} cannot be used: {error.strerror}") from None
    if is_open:
        raise ConfigError(f"the data folder {folder} is open to other users; close it: chmod 700 {folder}")


def _present_key(path: Path, store: Store) -> MasterKey:
    """Return the key of a file, or the one beside it, if a rotation was broken off before the file was replaced."""
    master_key, following = MasterKey.load(path), next_key(path)
    if following is not None and store.is_bound(following.fingerprint()):
        following.take_place(path)
        return following
    return master_key


def _master_key(path: Path, store: Store) -> MasterKey:
    if path.exists():
        return _present_key(path, store)
    if store.is_bound():
        raise ConfigError(
            f"the data is there, but its master key file {path} is not; restore it from a backup"
        )
    master_key = MasterKey.generate()
    try:
        master_key.save(path)
    except FileExistsError:  # another process has started in the same moment
        return MasterKey.load(path)
    except OSError as error:
        raise ConfigError(f"the master key file {path} cannot be written: {error.strerror}") from None
    return master_key
