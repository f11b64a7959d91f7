"""One service: its database, keys and addresses, and the management of its accounts.

The data folder holds the database (unless that is elsewhere) and the master key file. Both are made at the first
start, closed to other users. The service refuses a database whose master key is missing, and one that belongs to
another key.

Users' keys are rotated and backups made while the service runs; the master key is rotated while it is stopped. Rotating
a user's key is one transaction: until it commits, everybody reads content and credentials of the old version. Meanwhile
reads continue and writes wait: in SQLite all of them, in PostgreSQL those of the user. Content that a client has sealed
in one of `KNOWN_LAYOUTS` keeps its layout and spelling. Content that the old key does not open stays unchanged and is
counted. ``updated_at`` does not change.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar
from uuid import uuid4

from argon2 import PasswordHasher
from msgspec import Struct
from sqlalchemy import Engine

from memframe.address import check_redirect_uri
from memframe.errors import ConfigError, NotFoundError
from memframe.files import atomic_folder, is_open_to_others
from memframe.secret import Secret
from memframe.service import validation
from memframe.service.clock import Clock, format_instant, utc_now
from memframe.service.keys import MASTER_KEY_FILE, MasterKey, load_next_key
from memframe.service.logs import log_event
from memframe.service.store import Store, bind_to_key, is_bound
from memframe.service.store.accounts import Developer, User
from memframe.service.store.engine import naming_database_errors, open_engine, sqlite_url
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

Account = TypeVar("Account", bound=Developer | User)


class Addresses(Struct, frozen=True):
    """Public addresses of a service.

    >>> Addresses("http://127.0.0.1:8765").base_url
    'http://127.0.0.1:8765/api/v1'
    """

    public_url: str

    @property
    def base_url(self) -> str:
        """Address of the API."""
        return self.public_url + API_PREFIX

    @property
    def auth_url(self) -> str:
        """Address of the OAuth authorization server."""
        return self.public_url

    @property
    def dashboard_url(self) -> str:
        """Address of the user's pages."""
        return self.public_url + "/dashboard"


class NewDeveloper(Struct, frozen=True):
    """Secrets of a new application, which are stored only as hashes."""

    id: str
    api_key: Secret
    client_id: str
    client_secret: Secret


class Receipt(Struct, frozen=True):
    """Receipt of an erased account: the time, and the numbers of what was deleted.

    `receipt` is a keyed digest of the user id, and all that the service keeps.
    """

    receipt: str
    user_id: str
    erased_at: str
    memories: int
    tags: int
    access_requests: int
    applications: int
    keys: int


class KeyRotation(Struct, frozen=True):
    """Result of the rotation of a user's key, with its new version.

    The content of `n_sealed` memories was sealed again; that of `n_unreadable` did not open with the old key.
    """

    user_id: str
    key_version: int
    n_sealed: int
    n_unreadable: int


class Deployment:
    """A database, the master key over it, and the accounts in it.

    Tests pass cheap Argon2 parameters as `password_hasher`. `token_calls_per_minute` limits the calls from one address
    for one account; for all accounts together, ten times as many are allowed.
    """

    def __init__(
        self,
        store: Store,
        *,
        now: Clock = utc_now,
        password_hasher: PasswordHasher | None = None,
        token_calls_per_minute: int = TOKEN_CALLS_PER_MINUTE,
    ) -> None:
        self.store = store
        self.master_key = store.master_key
        self.now = now
        self.passwords = Passwords(password_hasher)
        self.throttle = Throttle(store.engine, partial(self.master_key.digest, "attempts"), now=now)
        self._token_calls = token_calls_per_minute

    def bearer_tokens(self, addresses: Addresses) -> BearerTokens:
        """Return the issuer of the tokens of the API at these addresses."""
        return BearerTokens(
            self.master_key.derive("bearer tokens"),
            issuer=addresses.auth_url,
            audience=addresses.base_url,
            now=self.now,
        )

    def count_token_call(self, address: str, account: str) -> None:
        """Count a call for a token; `TooManyCallsError` beyond the limits of the account and the address."""
        per_account, per_address = Limit(self._token_calls), Limit(ACCOUNTS_PER_ADDRESS * self._token_calls)
        limits = {("token call", address, account): per_account, ("token calls", address): per_address}
        self.throttle.count(limits)

    def add_developer(self, name: str, *redirect_uris: str, only_first: bool = False) -> NewDeveloper:
        """Add an application; return its secrets, which are stored only as hashes.

        Without redirect addresses, users are redirected to a program on their own machine. `only_first` raises
        `ConflictError` if there is an application, so that of several processes that start at once only one adds it.
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

        `must_change_password` is for a password that somebody else has chosen: after the first sign-in, the person must
        change it before anything else.
        """
        user_id = str(uuid4())
        self.store.accounts.add_user(
            id=user_id,
            email=validation.check_email(email),
            password_hash=self.passwords.hash(Secret(validation.check_new_password(password.reveal()))),
            wrapped_key=self.master_key.new_user_key(user_id=user_id, version=1),
            must_change_password=must_change_password,
        )
        log_event("user added", user_id=user_id)
        return user_id

    def user_id(self, email: str) -> str:
        """Return the id of the person with an e-mail address; `NotFoundError` if there is none."""
        return _require(self.store.accounts.user_by_email(email), "user", email).id

    def developer(self, name: str) -> Developer:
        """Return the application with an id or client_id; `NotFoundError` if there is none."""
        return _require(self._find_developer(name), "developer", name)

    def account(self, name: str) -> Developer | User:
        """Return the person or application with an e-mail address or id; `NotFoundError` if there is none."""
        accounts = self.store.accounts
        found = accounts.user_by_email(name) or accounts.user(name) or self._find_developer(name)
        return _require(found, "account", name)

    def _find_developer(self, name: str) -> Developer | None:
        return self.store.accounts.developer(id=name) or self.store.accounts.developer(client_id=name)

    def reset_password(self, user_id: str, password: Secret) -> None:
        """Replace a person's password, which must be changed after the next sign-in; end all sessions."""
        new = validation.check_new_password(password.reveal())
        self.store.accounts.set_password(user_id, self.passwords.hash(Secret(new)), must_change=True)
        log_event("password reset", user_id=user_id)

    def erase_user(self, user_id: str, *, expected: int | None = None) -> Receipt:
        """Delete a person's account with everything in it; return the receipt.

        The service keeps a keyed digest of the id, which reveals nothing without the master key. After restoring a
        backup, the operator learns from the receipt that this account must be erased again. `ConflictError`, with
        nothing deleted, if the number of memories is not `expected`.
        """
        user = _require(self.store.accounts.user(user_id), "user", user_id)
        digest = self.master_key.digest("erasures", user_id.encode())
        erased = self.store.accounts.erase_user(user_id, digest, expected=expected)
        self.master_key.user_key.cache_clear()
        self.throttle.forgive({("e-mail", user.email): PER_EMAIL}, {})
        return Receipt(
            digest,
            user_id,
            format_instant(self.now()),
            memories=erased["memories"],
            tags=erased["tags"],
            access_requests=erased["access_requests"],
            applications=erased["connections"],
            keys=erased["user_keys"],
        )

    def memory_key(self, *, user_id: str, developer_id: str) -> Secret:
        """Connect a user and a developer, unless they are connected; return their memory key."""
        pair = {"user_id": user_id, "developer_id": developer_id}

        def key_hash(generation: int) -> str:
            return secret_hash(self.master_key.memory_key(**pair, generation=generation))

        generation = self.store.accounts.connect(**pair, key_hash=key_hash)
        return self.master_key.memory_key(**pair, generation=generation)

    def rotate_key(self, user_id: str) -> KeyRotation:
        """Give a user a new version of the encryption key; `NotFoundError` if there is no such user."""
        with self.store.transaction_of(user_id) as memories:
            n_sealed, n_unreadable = memories.rotate_key()
        log_event("user key rotated", user_id=user_id)
        return KeyRotation(user_id, memories.key_version, n_sealed, n_unreadable)

    def rotate_master_key(self, key_file: Path) -> int:
        """Replace the master key, and wrap the keys of all users with the new one; return the number of keys.

        The new key is written beside the old one before the transaction commits, and replaces the file afterwards. A
        rotation that is interrupted between the two is completed when the service is opened next. Afterwards this
        deployment can only be closed. `ConfigError` while the service runs, or if the key file cannot be replaced.
        """
        new = MasterKey.generate()
        try:
            n_keys = self.store.replace_master_key(new, key_file)
            new.complete_rotation(key_file)
        except OSError as error:
            message = f"the master key file {key_file} cannot be replaced: {error.strerror}"
            raise ConfigError(message) from None
        log_event("master key rotated")
        return n_keys

    def back_up(self, folder: Path, *, with_key: bool = True) -> list[Path]:
        """Copy the service into a new folder, from which `memframe serve` could start; return the files in it.

        SQLite itself makes the copy (``VACUUM INTO``) in one read transaction, so that it shows one moment. The folder
        is closed to other users, and made as a whole or not at all; without the master key (`with_key`) it can be kept
        in a less safe place. `ConfigError` if the folder exists, the database is not SQLite, or the copy is damaged.
        """
        source = self.store.engine.url.database
        if self.store.engine.dialect.name != "sqlite" or not source:
            raise ConfigError(
                "the database is not SQLite; back it up with its own tools, such as pg_dump, and also copy the master "
                "key file, without which it cannot be read"
            )
        if folder.exists():
            raise ConfigError(f"{folder} already exists; name a new folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with atomic_folder(folder) as filling:
            copy = filling / DATABASE_FILE
            with closing(sqlite3.connect(source)) as connection:
                connection.execute("VACUUM INTO ?", (str(copy),))
            copy.chmod(0o600)
            with closing(sqlite3.connect(copy)) as connection:
                (found,) = connection.execute("PRAGMA integrity_check").fetchone()
            if found != "ok":
                raise ConfigError(f"the copy of {source} is damaged: {found}; look at the disk")
            if with_key:
                self.master_key.save(filling / MASTER_KEY_FILE)
        return sorted(folder.iterdir())

    def close(self) -> None:
        self.store.close()


def _require(found: Account | None, kind: str, name: str) -> Account:
    if found is None:
        add = "add-developer" if kind == "developer" else "add-user"
        message = f"there is no {kind} {name}; `memframe service list` shows all, and `memframe service {add}` adds one"
        raise NotFoundError(message, status=404, code="not_found")
    return found


class ServiceConfig(NamedTuple):
    """Configuration of a service: database and master key are in the folder unless they are given."""

    folder: Path
    database: str | None = None
    key_file: Path | None = None

    @property
    def master_key_file(self) -> Path:
        """Path of the master key file."""
        return self.key_file or self.folder / MASTER_KEY_FILE

    def open(self, *, may_create: bool = False, **options: Any) -> Deployment:
        """Open the service, and make it if there is none and `may_create`; `options` are those of `Deployment`.

        Without `may_create` a mistyped folder does not become a new service.
        """
        key_file, database_file = self.master_key_file, self.folder / DATABASE_FILE
        if not may_create and not key_file.exists():
            raise ConfigError(f"there is no service in {self.folder}; start it once with `memframe serve`")
        if not may_create and not self.database and not database_file.exists():
            raise ConfigError(
                f"there is no database in {self.folder}; name the one that the service runs on: --database, or "
                "MEMFRAME_DATABASE"
            )
        if key_file.parent == self.folder or not self.database:
            _make_private(self.folder)
        engine = open_engine(self.database or sqlite_url(database_file))
        try:
            with naming_database_errors(engine):
                master_key = _load_master_key(key_file, engine)
                bind_to_key(engine, master_key)
            return Deployment(Store(engine, master_key, now=options.get("now", utc_now)), **options)
        except BaseException:  # Ctrl-C as well: nobody else could close the database
            engine.dispose()
            raise


def open_deployment(
    folder: Path, *, database_url: str | None = None, key_file: Path | None = None, **options: Any
) -> Deployment:
    """Open the service in a data folder, and make it if there is none; `options` are those of `Deployment`."""
    return ServiceConfig(folder, database_url, key_file).open(may_create=True, **options)


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


def _load_master_key(path: Path, engine: Engine) -> MasterKey:
    # read before the key file: another process at its first start writes its key file before it binds the database
    was_bound = is_bound(engine)
    if path.exists():
        master_key, following = MasterKey.load(path), load_next_key(path)
        if following is not None and is_bound(engine, following.fingerprint()):
            following.complete_rotation(path)  # the rotation was interrupted before it replaced the file
            return following
        return master_key
    if was_bound:
        raise ConfigError(
            f"the data exists, but its master key file {path} is missing; restore it from a backup"
        )
    master_key = MasterKey.generate()
    try:
        master_key.save(path)
    except FileExistsError:  # another process has started in the same moment
        return MasterKey.load(path)
    except OSError as error:
        raise ConfigError(f"the master key file {path} cannot be written: {error.strerror}") from None
    return master_key
