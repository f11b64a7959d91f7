"""One service: its database, keys and addresses, and what its operator does with accounts.

The data folder holds the database (unless that is elsewhere) and the master key file. Both are made at the first
start, closed to other users; data without its key, or of another key, is refused.
"""

from __future__ import annotations

import hmac
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple
from uuid import uuid4

from argon2 import PasswordHasher
from msgspec import Struct

from memframe.address import check_redirect_uri
from memframe.errors import ConfigError, NotFoundError
from memframe.secret import Secret
from memframe.service import validation
from memframe.service.clock import Clock, format_instant, utc_now
from memframe.service.keys import (
    KEY_FILE,
    MAX_UNWRAPPED,
    KeyUnwrapper,
    MasterKey,
    UserKeyring,
    is_open_to_others,
    load_next_key,
)
from memframe.service.listing import CURSOR_KEY_BYTES, CursorCipher
from memframe.service.logs import log_event
from memframe.service.store import Developer, Memories, Store, User, sqlite_url
from memframe.service.throttle import ACCOUNTS_PER_ADDRESS, PER_EMAIL, Limit, Throttle
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


class ServiceConfig(NamedTuple):
    """Configuration of a service: database and master key are in the folder unless they are given."""

    folder: Path
    database: str | None = None
    key_file: Path | None = None

    @property
    def master_key_file(self) -> Path:
        """Path of the master key file."""
        return self.key_file or self.folder / KEY_FILE

    def open(self, *, may_create: bool = False) -> Deployment:
        """Open the service; without `may_create` a mistyped folder does not become a new one."""
        return open_deployment(
            self.folder, database_url=self.database, key_file=self.key_file, may_create=may_create
        )


class Addresses(Struct, frozen=True):
    """Public addresses of a service.

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
        """Of the user's pages."""
        return self.public_url + "/dashboard"


class NewDeveloper(Struct, frozen=True):
    """Secrets of a new application, which are stored only as hashes."""

    id: str
    api_key: Secret
    client_id: str
    client_secret: Secret


class Receipt(Struct, frozen=True):
    """Receipt of an erased account: when, and how much of what.

    Attributes
    ----------
    receipt : str
        Keyed digest of the user id: all that the service keeps.
    """

    receipt: str
    user_id: str
    erased_at: str
    memories: int
    tags: int
    access_requests: int
    applications: int
    keys: int


_ERASED = {
    "memories": "memories",
    "tags": "tags",
    "access_requests": "access_requests",
    "applications": "connections",
    "keys": "user_keys",
}


class Deployment:
    """A database, the master key over it, and the accounts in it.

    Parameters
    ----------
    store : Store
    master_key : MasterKey
    now : Clock, optional
    password_hasher : PasswordHasher, optional
        Argon2 parameters; tests pass cheap ones.
    token_calls_per_minute : int, optional
        Token calls from one address for one account; for all accounts together ten times as many.

    Attributes
    ----------
    store, master_key, now
        As given.
    passwords : Passwords
    cursors : CursorCipher
    throttle : Throttle
    """

    def __init__(
        self,
        store: Store,
        master_key: MasterKey,
        *,
        now: Clock = utc_now,
        password_hasher: PasswordHasher | None = None,
        token_calls_per_minute: int = TOKEN_CALLS_PER_MINUTE,
    ) -> None:
        self.store = store
        self.master_key = master_key
        self.now = now
        self.passwords = Passwords(password_hasher)
        self.cursors = CursorCipher(master_key.derive("cursors", n_bytes=CURSOR_KEY_BYTES))
        self.throttle = Throttle(store.engine, master_key.first.derive("attempts"), now=now)
        self._unwrapper = KeyUnwrapper(master_key)
        self._memory_key = lru_cache(MAX_UNWRAPPED)(master_key.memory_key)
        self._token_calls = token_calls_per_minute

    def bearer_tokens(self, addresses: Addresses) -> BearerTokens:
        """Return what issues and checks tokens of the API at these addresses."""
        return BearerTokens(
            self.master_key.derive("bearer tokens"),
            issuer=addresses.auth_url,
            audience=addresses.base_url,
            now=self.now,
        )

    def count_token_call(self, address: str, account: str) -> None:
        """Count a call for a token; `TooManyCallsError` beyond the limits of the account and the address."""
        limit = self._token_calls
        of_account, of_address = ("token call", address, account), ("token calls", address)
        self.throttle.count({of_account: Limit(limit), of_address: Limit(ACCOUNTS_PER_ADDRESS * limit)})

    def add_developer(self, name: str, *redirect_uris: str, only_first: bool = False) -> NewDeveloper:
        """Add an application; return its secrets, which are stored only as hashes.

        Without redirect addresses users are sent to a program on their own machine. With `only_first` it is
        `ConflictError` where there is an application already: of processes that start at once, one adds the first.
        """
        addresses = dict.fromkeys(redirect_uris or [DEFAULT_REDIRECT_URI])
        api_key, client_secret = new_secret(API_KEY_PREFIX), new_secret(CLIENT_SECRET_PREFIX)
        developer = self.store.accounts.add_developer(
            name=validation.check_developer_name(name),
            api_key_hash=secret_hash(api_key),
            client_id=CLIENT_ID_PREFIX + uuid4().hex,
            client_secret_hash=secret_hash(client_secret),
            redirect_uris=tuple(check_redirect_uri("the redirect address", uri) for uri in addresses),
            only_first=only_first,
        )
        log_event("developer added", developer_id=developer.id)
        return NewDeveloper(developer.id, api_key, developer.client_id, client_secret)

    def rotate_secret(self, developer_id: str, name: Literal["api_key", "client_secret"]) -> Secret:
        """Replace an application's API key or client secret; return the new one."""
        secret = new_secret(API_KEY_PREFIX if name == "api_key" else CLIENT_SECRET_PREFIX)
        self.store.accounts.set_developer_secret(developer_id, **{f"{name}_hash": secret_hash(secret)})
        log_event(
            "API key rotated" if name == "api_key" else "client secret rotated", developer_id=developer_id
        )
        return secret

    def add_user(self, email: str, password: Secret, *, must_change_password: bool = False) -> str:
        """Add a person; return the id.

        `must_change_password` is for a password that somebody else has chosen: the first sign-in leads to changing it,
        and to nothing else before.
        """
        user_id = str(uuid4())
        self.store.accounts.add_user(
            user_id=user_id,
            email=validation.check_email(email),
            password_hash=self.passwords.hash(Secret(validation.check_new_password(password.reveal()))),
            wrapped_key=self.master_key.new_user_key(user_id=user_id, version=1),
            must_change_password=must_change_password,
        )
        log_event("user added", user_id=user_id)
        return user_id

    def user_id(self, email: str) -> str:
        """Return the id of the person with an e-mail address; `NotFoundError` where there is none."""
        user = self.store.accounts.user_by_email(email)
        if user is None:
            raise _not_found("user", email)
        return user.id

    def developer(self, name: str) -> Developer:
        """Return the application with an id or client_id; `NotFoundError` where there is none."""
        accounts = self.store.accounts
        found = accounts.developer(name) or accounts.developer_by_client_id(name)
        if found is None:
            raise _not_found("developer", name)
        return found

    def account(self, name: str) -> Developer | User:
        """Return the person or application with an e-mail address or id; `NotFoundError` where there is none."""
        accounts = self.store.accounts
        user = accounts.user_by_email(name) or accounts.user(name)
        found = user or accounts.developer(name) or accounts.developer_by_client_id(name)
        if found is None:
            raise _not_found("account", name)
        return found

    def reset_password(self, user_id: str, password: Secret) -> None:
        """Replace a person's password, which the next sign-in leads to changing; end all sessions."""
        new = validation.check_new_password(password.reveal())
        self.store.accounts.set_password(user_id, self.passwords.hash(Secret(new)), must_change=True)
        log_event("password reset", user_id=user_id)

    def erase_user(self, user_id: str, *, expected: int | None = None) -> Receipt:
        """Delete a person's account with everything in it; return what remains of it.

        The service keeps a keyed digest of the id, which without the master key tells nothing. With the receipt the
        operator finds out, after a backup was put back, that this account has to be erased once more. `ConflictError`,
        with nothing deleted, where there are not as many memories as `expected`.
        """
        user = self.store.accounts.user(user_id)
        if user is None:
            raise _not_found("user", user_id)
        digest = hmac.digest(self.master_key.first.derive("erasures"), user_id.encode(), "sha256").hex()
        erased = self.store.accounts.erase_user(user_id, digest, expected=expected)
        self._unwrapper.forget()
        self.throttle.forgive({("e-mail", user.email): PER_EMAIL}, {})
        named = {name: erased[table] for name, table in _ERASED.items()}
        return Receipt(digest, user_id, format_instant(self.now()), **named)

    def memory_key(self, *, user_id: str, developer_id: str) -> Secret:
        """Connect a user and a developer, unless they are connected; return their memory key."""
        pair = {"user_id": user_id, "developer_id": developer_id}

        def key_hash(generation: int) -> str:
            return secret_hash(self.master_key.memory_key(**pair, generation=generation))

        generation = self.store.accounts.connect(**pair, key_hash=key_hash)
        return self.master_key.memory_key(**pair, generation=generation)

    def is_memory_key(self, key: Secret, *, user_id: str, developer_id: str, generation: int) -> bool:
        """Return True for the memory key of a user and a developer."""
        return self._memory_key(user_id=user_id, developer_id=developer_id, generation=generation) == key

    def keyring(self, user_id: str, memories: Memories) -> UserKeyring:
        """Return what seals and opens a user's content."""
        return UserKeyring(self._unwrapper, user_id, memories.keys)

    def close(self) -> None:
        """Close the database."""
        self.store.close()


def _not_found(kind: str, name: str) -> NotFoundError:
    message = f"there is no {kind} {name}; `memframe service list` shows all"
    return NotFoundError(message, status=404, code="not_found")


def open_deployment(
    folder: Path,
    *,
    database_url: str | None = None,
    key_file: Path | None = None,
    may_create: bool = True,
    now: Clock = utc_now,
    password_hasher: PasswordHasher | None = None,
    token_calls_per_minute: int = TOKEN_CALLS_PER_MINUTE,
) -> Deployment:
    """Open the service in a data folder, and make it if there is none and `may_create`.

    Database and master key file may be elsewhere.
    """
    key_file = key_file or folder / KEY_FILE
    if not may_create:
        _check_exists(folder, database_url, key_file)
    if key_file.parent == folder or not database_url:
        _make_private(folder)
    store = Store(database_url or sqlite_url(folder / DATABASE_FILE), now=now)
    try:
        with store.naming_errors():
            master_key = _load_master_key(key_file, store)
            first = store.bind(master_key.fingerprint())
            if first is not None:
                master_key.unwrap_first(first)
        return Deployment(
            store,
            master_key,
            now=now,
            password_hasher=password_hasher,
            token_calls_per_minute=token_calls_per_minute,
        )
    except BaseException:  # Ctrl-C as well: nobody else could close the database
        store.close()
        raise


def _check_exists(folder: Path, database_url: str | None, key_file: Path) -> None:
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


def _load_master_key(path: Path, store: Store) -> MasterKey:
    was_bound = (
        store.is_bound()
    )  # asked first: the key file of another first start is there before its database
    if path.exists():
        master_key, following = MasterKey.load(path), load_next_key(path)
        if following is not None and store.is_bound(following.fingerprint()):
            following.complete_rotation(path)  # it was interrupted before the file was replaced
            return following
        return master_key
    if was_bound:
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
