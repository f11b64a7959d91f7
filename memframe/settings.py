"""Settings from arguments, environment, keyring and a file, in one order of precedence.

A setting is looked for in

1. the argument of the call,
2. the environment: ``MEMFRAME_BASE_URL``, ``MEMFRAME_AUTH_URL``, ``MEMFRAME_API_KEY``,
   ``MEMFRAME_CLIENT_ID``, ``MEMFRAME_CLIENT_SECRET``, ``MEMFRAME_REDIRECT_URI``,
3. the keyring of the operating system: service ``memframe``, entries named like the settings,
4. ``config.toml`` in the user's configuration folder, which holds no secrets. A file in the working
   directory is never read: it may have come with another person's project.

The first source that has a setting decides, even if its value is refused: an empty variable is an error. Later sources
are not opened, so that a script with everything in its environment never waits for a keyring to be unlocked.

A stored secret belongs to the address that it was stored for: an ``api_key`` from the keyring is sent only to the
keyring's ``base_url``, a ``client_secret`` only to its ``auth_url`` and only for its ``client_id``. Arguments and
variables are for one process, and are sent where that process says.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import platformdirs
from msgspec import Struct

from memframe.address import check_redirect_uri, check_url
from memframe.errors import ConfigError, Hint
from memframe.secret import Secret, as_secret, as_secret_if_text

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

Name = Literal["base_url", "auth_url", "api_key", "client_id", "client_secret", "redirect_uri"]

KEYRING_SERVICE = "memframe"
KEYRING_ENTRIES: tuple[Name, ...] = ("base_url", "auth_url", "api_key", "client_id", "client_secret")
FILE_ENTRIES: tuple[Name, ...] = ("base_url", "auth_url", "client_id", "redirect_uri")
SECRETS: tuple[Name, ...] = ("api_key", "client_secret")


@dataclass(frozen=True)
class Sources:
    """Sources of settings other than arguments; ``Sources()`` has none.

    ``open_keyring`` is called only when a setting is looked for there; ``config`` is the file without secrets.
    """

    environ: Mapping[str, str] = field(default_factory=dict, repr=False)  # it holds secrets in the open
    open_keyring: Callable[[], KeyringBackend] | None = None
    config: Path | None = None


def open_system_keyring() -> KeyringBackend:
    """Return the keyring of the operating system."""
    import keyring  # noqa: PLC0415 - searches for backends for 0.2 s, which most calls do not need

    return keyring.get_keyring()


def user_sources() -> Sources:
    """Return the user's environment, keyring and configuration file."""
    config = platformdirs.user_config_path("memframe") / "config.toml"
    return Sources(os.environ, open_system_keyring, config)


class Found(NamedTuple):
    """Setting with its source; every value is a `Secret`, as an address may hold a password."""

    name: Name
    value: Secret
    origin: str
    stored: bool = False


def open_secure_keyring(open_keyring: Callable[[], KeyringBackend]) -> KeyringBackend:
    """Open the keyring for storing; refuse one that the keyring library does not recommend.

    Backends with a priority below 1 fail, forget, or write plain files.
    """
    keyring = open_keyring()
    first, *_ = getattr(keyring, "backends", None) or [keyring]  # a chain of backends stores in its first
    if first.priority < 1:
        raise ConfigError(
            "No OS keyring on this machine protects secrets: install one (on Linux GNOME Keyring or "
            "KWallet), or set MEMFRAME_API_KEY and MEMFRAME_BASE_URL in the environment instead."
        )
    return keyring


def require_setting(name: Name, argument: str | Secret | None, sources: Sources) -> Found:
    """Return the setting from the first source that has it; if none has it, the error says where to put it."""
    found = find_setting(name, argument, sources)
    if found is not None:
        return found
    places = ["store it with `memframe login`"] if name in KEYRING_ENTRIES else []
    places += [f"write it in {sources.config}"] if name in FILE_ENTRIES else []
    *first, last = places
    others = ", ".join([f"set the variable {_variable_of(name)} in the environment", *first, f"or {last}."])
    if name in KEYRING_ENTRIES and sources.open_keyring:
        _, fault = read_keyring(sources.open_keyring, name)
        if fault and fault != "NoKeyringError":  # to have no keyring is not an error
            others += f" The OS keyring did not open ({fault}): unlock it if it holds the setting."
    raise ConfigError(f"{name} is not set", hint=Hint(f"pass {name}=..., {others}", others))


def find_setting(name: Name, argument: str | Secret | None, sources: Sources) -> Found | None:
    """Return the setting from the first source that has it."""
    if argument is not None:
        if not isinstance(argument, str | Secret):
            raise ConfigError(f"{name} (from the argument) is text, not {type(argument).__name__}.")
        return Found(name, as_secret(argument), "the argument")
    variable = _variable_of(name)
    if variable in sources.environ:
        return Found(name, Secret(sources.environ[variable]), f"the environment variable {variable}")
    return _from_keyring(name, sources) or _from_file(name, sources.config)


def _variable_of(name: Name) -> str:
    return f"MEMFRAME_{name.upper()}"


def read_keyring(open_keyring: Callable[[], KeyringBackend], entry: str) -> tuple[Secret | None, str]:
    """Read an entry of the keyring; if the keyring did not open, return the name of the error as well."""
    try:
        text = open_keyring().get_password(KEYRING_SERVICE, entry)
    except Exception as fault:
        # a backend raises any error of its platform; a missing or locked keyring counts as empty
        return None, type(fault).__name__
    return None if text is None else Secret(text), ""


def _from_keyring(name: Name, sources: Sources) -> Found | None:
    if name not in KEYRING_ENTRIES or sources.open_keyring is None:
        return None
    value, _ = read_keyring(sources.open_keyring, name)
    return None if value is None else Found(name, value, "the OS keyring", stored=True)


def _from_file(name: Name, path: Path | None) -> Found | None:
    try:
        entries = tomllib.loads(path.read_text("utf-8-sig")) if path else {}
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(
            f"The file {path} cannot be read: {error.strerror}. Correct its permissions."
        ) from None
    except ValueError:  # a decoding error quotes the bytes, which may be a misplaced secret
        raise ConfigError(
            f'The file {path} is not TOML: write lines such as base_url = "https://...".'
        ) from None
    for entry, value in entries.items():
        if entry in SECRETS:
            raise ConfigError(
                f"The file {path} holds the secret {entry}, and files get copied and committed: delete the line, "
                f"and store it with `memframe login` or in the environment variable MEMFRAME_{entry.upper()}."
            )
        if entry not in FILE_ENTRIES:
            raise ConfigError(
                f"The file {path} has an unknown entry {entry!r}: known are {', '.join(FILE_ENTRIES)}."
            )
        if not isinstance(value, str):
            raise ConfigError(f"The entry {entry} in the file {path} is not text: put it in quotes.")
    return Found(name, Secret(entries[name]), f"the file {path}") if name in entries else None


class ClientSettings(Struct, frozen=True):
    """Settings of a client, checked; addresses have no trailing slash."""

    base_url: str
    api_key: Secret
    auth_url: str | None = None


class OAuthSettings(Struct, frozen=True):
    """Settings of an OAuth application; a public client has no ``client_secret``."""

    auth_url: str
    client_id: str
    client_secret: Secret | None = None
    redirect_uri: str | None = None


def find_client_settings(
    base_url: str | Secret | None = None,
    *,
    api_key: str | Secret | None = None,
    auth_url: str | Secret | None = None,
    sources: Sources | None = None,
) -> ClientSettings:
    """Find the address of the service and the developer's key.

    Parameters
    ----------
    base_url, api_key, auth_url : optional
        Values to use; those that are None are looked for.
    sources : Sources, optional
        Where to look; by default the environment, the keyring and the configuration file of the user.
        ``Sources()`` ignores all of them.

    Raises
    ------
    ConfigError
        A setting is missing, malformed or unsafe, or the stored key belongs to another address.

    Examples
    --------
    >>> environ = {"MEMFRAME_API_KEY": "mf_live_1"}
    >>> find_client_settings("https://api.example.com/api/v1/", sources=Sources(environ))
    ClientSettings(base_url='https://api.example.com/api/v1', api_key=Secret(••••••), auth_url=None)
    """
    base_url, api_key, auth_url = map(as_secret_if_text, (base_url, api_key, auth_url))
    sources = user_sources() if sources is None else sources
    address = require_setting("base_url", base_url, sources)
    key = require_setting("api_key", api_key, sources)
    if not (address.stored or key.stored):
        sources = replace(sources, open_keyring=None)  # do not unlock it for an optional address alone
    server = find_setting("auth_url", auth_url, sources)
    if key.stored:
        _refuse_elsewhere("api_key", "base_url", _check(address).reveal(), sources)
    return ClientSettings(_check(address).reveal(), _check(key), server and _check(server).reveal())


def find_oauth_settings(
    client_id: str | None = None,
    client_secret: str | Secret | None = None,
    *,
    auth_url: str | Secret | None = None,
    redirect_uri: str | Secret | None = None,
    sources: Sources | None = None,
) -> OAuthSettings:
    """Find the address of the authorization server and the application's credentials.

    Parameters
    ----------
    client_id, client_secret, auth_url, redirect_uri : optional
        Values to use; those that are None are looked for.
    sources : Sources, optional
        As in `find_client_settings`.

    Raises
    ------
    ConfigError
        A setting is missing, malformed or unsafe, or the stored secret belongs to another address.

    Examples
    --------
    >>> found = find_oauth_settings("notebook", auth_url="http://localhost:8080", sources=Sources())
    >>> found.auth_url, found.client_secret
    ('http://localhost:8080', None)
    """
    client_secret, auth_url, redirect_uri = map(as_secret_if_text, (client_secret, auth_url, redirect_uri))
    sources = user_sources() if sources is None else sources
    server = _check(require_setting("auth_url", auth_url, sources)).reveal()
    client = _check(require_setting("client_id", client_id, sources))
    secret = find_setting("client_secret", client_secret, sources)
    redirect = find_setting("redirect_uri", redirect_uri, sources)
    if secret and secret.stored:
        if _read_entry("client_id", sources) != client:
            secret = None  # it belongs to another application, and this one may have none
        else:
            _refuse_elsewhere("client_secret", "auth_url", server, sources)
    return OAuthSettings(
        server, client.reveal(), secret and _check(secret), redirect and _check(redirect).reveal()
    )


def origins_of(names: Iterable[Name], sources: Sources | None = None) -> dict[Name, str | None]:
    """Name the source of each setting; None for those that are not set.

    Examples
    --------
    >>> origins_of(["api_key", "base_url"], Sources({"MEMFRAME_API_KEY": "mf_live_1"}))
    {'api_key': 'the environment variable MEMFRAME_API_KEY', 'base_url': None}
    """
    sources = user_sources() if sources is None else sources
    found = {name: find_setting(name, None, sources) for name in names}
    return {name: setting and setting.origin for name, setting in found.items()}


def store_settings(
    base_url: str | Secret,
    api_key: str | Secret,
    *,
    auth_url: str | None = None,
    client_id: str | None = None,
    client_secret: str | Secret | None = None,
    open_keyring: Callable[[], KeyringBackend] = open_system_keyring,
) -> None:
    """Store settings in the keyring of the operating system, replacing all earlier ones.

    An entry that is not given is removed, because the entries belong together.

    Raises
    ------
    ConfigError
        A value is refused, or there is no keyring that encrypts its secrets.
    """
    base_url, api_key = as_secret_if_text(base_url), as_secret_if_text(api_key)
    client_secret = as_secret_if_text(client_secret)
    if client_secret is not None and not (auth_url and client_id):
        raise ConfigError("client_secret belongs to an auth_url and a client_id; give them with it")
    given = dict(zip(KEYRING_ENTRIES, (base_url, auth_url, api_key, client_id, client_secret), strict=True))
    found = (find_setting(name, value, Sources()) for name, value in given.items())
    _replace_entries(open_keyring, {setting.name: _check(setting) for setting in found if setting})


def remove_settings() -> list[Name]:
    """Remove all of memframe's settings from the keyring of the operating system, and return their names.

    Raises
    ------
    ConfigError
        There is no keyring that encrypts its secrets, or it does not remove them.
    """
    return _replace_entries(open_system_keyring, {})


def _replace_entries(
    open_keyring: Callable[[], KeyringBackend], entries: Mapping[Name, Secret]
) -> list[Name]:
    """Replace all entries, and return the names of the earlier ones.

    Secrets are removed first and stored last, so that an interrupted update never pairs one with another address.
    """
    order = sorted(KEYRING_ENTRIES, key=lambda name: name not in SECRETS)
    try:
        keyring = open_secure_keyring(open_keyring)
        stored = [name for name in order if keyring.get_password(KEYRING_SERVICE, name) is not None]
        for name in stored:
            keyring.delete_password(KEYRING_SERVICE, name)
        for name in reversed(order):
            if name in entries:
                keyring.set_password(KEYRING_SERVICE, name, entries[name].reveal())
    except ConfigError:
        raise
    except Exception as error:  # a backend raises any error of its platform
        raise ConfigError(
            f"The OS keyring did not {'store' if entries else 'remove'} the settings ({type(error).__name__}): unlock "
            "it and try again, or set MEMFRAME_API_KEY and MEMFRAME_BASE_URL in the environment instead."
        ) from None
    return stored


def _read_entry(name: Name, sources: Sources) -> Secret | None:
    found = _from_keyring(name, sources)
    return found and _check(found)


def _refuse_elsewhere(secret: Name, address: Name, in_force: str, sources: Sources) -> None:
    """Refuse to send a stored secret to an address that it was not stored for."""
    home = _read_entry(address, sources)
    if home is None:
        raise ConfigError(
            f"The OS keyring has a {secret} without its {address}: store both with `memframe login`."
        )
    if home.reveal() != in_force:
        others = f"set {_variable_of(secret)}, or run `memframe login` for this address."
        raise ConfigError(
            f"The {secret} in the OS keyring was stored for {home.reveal()} and is not sent to {in_force}",
            hint=Hint(f"pass {secret}=..., {others}", others),
        )


def _check(found: Found) -> Secret:
    named = f"{found.name} (from {found.origin})"
    if found.name == "redirect_uri":
        return Secret(check_redirect_uri(named, found.value))
    if found.name in ("base_url", "auth_url"):
        return Secret(check_url(named, found.value))
    return check_secret(named, found.value)


def check_secret(name: str, secret: Secret) -> Secret:
    """Check a key or id, and strip the line end that copying and ``echo`` leave.

    >>> check_secret("api_key", Secret("mf_live_1\\n")).reveal()
    'mf_live_1'
    """
    bare = Secret(secret.reveal().rstrip("\r\n"))
    fault = _fault_of_secret(bare.reveal())
    if fault:  # raised here, where no variable holds the text in the open for a traceback to print
        raise ConfigError(f"{name} {fault}")
    return bare


_QUOTES = "\"'`“”‘’«»"


def _fault_of_secret(text: str) -> str | None:
    if not text.strip():
        return "is empty: give the value, or unset it, so that the next place is searched."
    if text[0] in _QUOTES or text[-1] in _QUOTES:
        return "has quotation marks around it: leave them out."
    if any(letter.isspace() for letter in text):
        return "contains a blank: copy only the value."
    if not (text.isascii() and text.isprintable()):
        return "contains an invisible or foreign character: copy the value again from its source."
    return None
