"""Sources: the places where settings are kept, and what stands in each.

The order and the meaning are told in `memframe.settings`; here is only the reading.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import platformdirs

from memframe.errors import ConfigError
from memframe.secret import Secret, as_secret

Name = Literal["base_url", "auth_url", "api_key", "client_id", "client_secret", "redirect_uri"]

KEYRING_SERVICE = "memframe"
KEYRING_ENTRIES: tuple[Name, ...] = ("base_url", "auth_url", "api_key", "client_id", "client_secret")
FILE_ENTRIES: tuple[Name, ...] = ("base_url", "auth_url", "client_id", "redirect_uri")
SECRETS: tuple[Name, ...] = ("api_key", "client_secret")


class Keyring(Protocol):
    """What is asked of a keyring: a part of ``keyring.backend.KeyringBackend``."""

    @property
    def priority(self) -> float:
        """How far the keyring library recommends it: below 1 not at all."""

    def get_password(self, service: str, username: str, /) -> str | None:
        """The entry, or None."""

    def set_password(self, service: str, username: str, password: str, /) -> None:
        """Store an entry."""

    def delete_password(self, service: str, username: str, /) -> None:
        """Remove an entry."""


@dataclass(frozen=True)
class Sources:
    """Where settings come from, beside arguments; ``Sources()`` is nowhere.

    Attributes
    ----------
    environ : mapping of str to str
    open_keyring : callable or None
        Gives the `Keyring`; called only when a setting is looked for there.
    config : Path or None
        The file without secrets.
    """

    environ: Mapping[str, str] = field(default_factory=dict, repr=False)  # it holds secrets in the open
    open_keyring: Callable[[], Keyring] | None = None
    config: Path | None = None


def open_system_keyring() -> Keyring:
    """The keyring of the operating system."""
    import keyring  # noqa: PLC0415 - costs 0.2 s and looks for backends; most calls need none

    return keyring.get_keyring()


def user_sources() -> Sources:
    """The environment, the keyring and the configuration file of the user."""
    config = platformdirs.user_config_path("memframe") / "config.toml"
    return Sources(os.environ, open_system_keyring, config)


class Found(NamedTuple):
    """A setting where it was found; a `Secret` whatever it is, as an address may hold a password."""

    name: Name
    value: Secret
    origin: str
    stored: bool = False


def closed_keyring(open_keyring: Callable[[], Keyring]) -> Keyring:
    """The keyring to store in, refused where its own library does not recommend it.

    Below priority 1 are backends that fail, that forget, and that write plain files.
    """
    keyring = open_keyring()
    first, *_ = getattr(keyring, "backends", None) or [keyring]  # a chain stores in its first link
    if first.priority < 1:
        raise ConfigError(
            "There is no OS keyring here that keeps secrets closed: install one (on Linux GNOME Keyring or "
            "KWallet), or set MEMFRAME_API_KEY and MEMFRAME_BASE_URL in the environment instead."
        )
    return keyring


def require_setting(name: Name, argument: str | Secret | None, sources: Sources) -> Found:
    """The setting from the first source that has it, or an error that says where to put it."""
    found = find_setting(name, argument, sources)
    if found is None:
        raise ConfigError(
            f"{name} is not set: pass {name}=..., set the variable {variable_of(name)} in the environment, "
            f"{_or_kept(name, sources)}.{_fault_of_keyring(name, sources)}"
        )
    return found


def _or_kept(name: Name, sources: Sources) -> str:
    """The places where a setting can stay."""
    places = ["keep it with `memframe login`"] if name in KEYRING_ENTRIES else []
    places += [f"write it in {sources.config}"] if name in FILE_ENTRIES else []
    return ", ".join([*places[:-1], f"or {places[-1]}"])


def find_setting(name: Name, argument: str | Secret | None, sources: Sources) -> Found | None:
    """The setting from the first source that has it."""
    return (
        from_argument(name, argument)
        or _from_environ(name, sources.environ)
        or from_keyring(name, sources)
        or _from_file(name, sources.config)
    )


def variable_of(name: Name) -> str:
    """The environment variable of a setting."""
    return f"MEMFRAME_{name.upper()}"


def from_argument(name: Name, argument: str | Secret | None) -> Found | None:
    """The setting as the caller gave it."""
    if argument is None:
        return None
    if not isinstance(argument, str | Secret):
        raise ConfigError(f"{name} (from the argument) is text, not {type(argument).__name__}.")
    return Found(name, as_secret(argument), "the argument")


def _from_environ(name: Name, environ: Mapping[str, str]) -> Found | None:
    variable = variable_of(name)
    if variable not in environ:
        return None
    return Found(name, Secret(environ[variable]), f"the environment variable {variable}")


def from_keyring(name: Name, sources: Sources) -> Found | None:
    """The setting as it was stored."""
    if name not in KEYRING_ENTRIES or sources.open_keyring is None:
        return None
    try:
        text = sources.open_keyring().get_password(KEYRING_SERVICE, name)
    except Exception:  # a backend raises whatever its platform does: missing or locked, it has nothing
        return None
    return None if text is None else Found(name, Secret(text), "the OS keyring", stored=True)


def _fault_of_keyring(name: Name, sources: Sources) -> str:
    """What else to say of a setting that is nowhere: it may be in a keyring that did not open."""
    if name not in KEYRING_ENTRIES or sources.open_keyring is None:
        return ""
    try:
        sources.open_keyring().get_password(KEYRING_SERVICE, name)
    except Exception as fault:  # as in from_keyring; not having one is no fault
        kind = type(fault).__name__
        return (
            ""
            if kind == "NoKeyringError"
            else f" The OS keyring did not open ({kind}): unlock it if it is there."
        )
    return ""


def _from_file(name: Name, path: Path | None) -> Found | None:
    entries = _read_file(path) if path else {}
    if name not in entries:
        return None
    return Found(name, Secret(entries[name]), f"the file {path}")


def _read_file(path: Path) -> dict[str, str]:
    try:
        entries = tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(
            f"The file {path} cannot be read: {error.strerror}. Mend its permissions."
        ) from None
    except ValueError:  # a decoding error quotes the bytes, which may be a secret in the wrong place
        raise ConfigError(
            f'The file {path} is not TOML: write lines such as base_url = "https://...".'
        ) from None
    for name, value in entries.items():
        _check_file_entry(path, name, value)
    return entries


def _check_file_entry(path: Path, name: str, value: object) -> None:
    if name in SECRETS:
        raise ConfigError(
            f"The file {path} holds the secret {name}, and files get copied and committed: delete the line, "
            f"and keep it with `memframe login` or in the environment variable {variable_of(name)}."
        )
    if name not in FILE_ENTRIES:
        raise ConfigError(
            f"The file {path} has an unknown entry {name!r}: known are {', '.join(FILE_ENTRIES)}."
        )
    if not isinstance(value, str):
        raise ConfigError(f"The entry {name} in the file {path} is not text: put it in quotes.")
