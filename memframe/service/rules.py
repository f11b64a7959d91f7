"""What the service allows: pure decisions, each with the reason that the caller is told.

- Access requests move pending -> approved or rejected, and approved -> revoked; nothing else.
- Types are strict: ``"60"`` and ``true`` are no integers, NaN and infinity are no scores.
- Tag names keep their order and their case; the surrounding blanks go, repeats collapse. A blank
  name, and one with a comma (which the filter ``tags`` could not name), are refused.
- The character NUL is refused everywhere, as not every database can keep it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from memframe.address import check_url
from memframe.errors import ConfigError, ConflictError, InvalidError
from memframe.wire import DEFAULT_LIMIT, Status

TRANSITIONS: dict[Status, tuple[Status, ...]] = {
    "pending": ("approved", "rejected"),
    "approved": ("revoked",),
    "rejected": (),
    "revoked": (),
}
"""What each state of an access request may become."""

TOKEN_LIFETIME_S = 3600
MIN_TOKEN_LIFETIME_S = 60
MAX_TOKEN_LIFETIME_S = 86_400

MAX_LIMIT = 1000
MAX_IMPORTANCE = 5.0
MAX_CONFIDENCE = 1.0
MAX_IMPORTANCE_FILTER = 1.0

MAX_PENDING = 100
"""Access requests of one developer that wait for one user's decision."""

MAX_REQUESTS = 1000
"""Access requests of one developer to one user that are kept; beyond, the oldest without access are dropped."""

MAX_REASON_CHARS = 2000
MAX_NAME_CHARS = 200
MAX_EMAIL_CHARS = 320
MIN_PASSWORD_CHARS = 8
MAX_PASSWORD_CHARS = 1024
MAX_TAGS = 100
MAX_USER_TAGS = 10_000
"""Tags that one user may have, over all memories."""

MAX_IDEMPOTENCY_KEY_CHARS = 255

_DIGITS = re.compile(r"[0-9]{1,4000}", re.ASCII)  # Python reads no longer integers
_EMAIL = re.compile(r"[^@\s\x00-\x1f]+@[^@\s\x00-\x1f]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def invalid(message: str, code: str = "invalid_request") -> InvalidError:
    """A 400 with a reason."""
    return InvalidError(message, status=400, code=code)


def states_before(status: Status) -> tuple[Status, ...]:
    """The states from which a decision may lead to this one.

    >>> states_before("revoked")
    ('approved',)
    """
    return tuple(before for before, after in TRANSITIONS.items() if status in after)


def wrong_state(current: Status, wanted: str) -> ConflictError:
    """The 409 of a decision that comes too late, too early or twice."""
    possible = " or ".join(TRANSITIONS[current]) or "nothing else"
    message = f"the access request is {current}, it cannot become {wanted}; from here: {possible}"
    return ConflictError(message, status=409, code="wrong_state")


def token_lifetime(expires_in: int | None) -> int:
    """Seconds that a bearer token lives, as asked for within the bounds.

    >>> token_lifetime(None)
    3600
    """
    if expires_in is None:
        return TOKEN_LIFETIME_S
    if not MIN_TOKEN_LIFETIME_S <= expires_in <= MAX_TOKEN_LIFETIME_S:
        bounds = f"{MIN_TOKEN_LIFETIME_S} to {MAX_TOKEN_LIFETIME_S}"
        raise invalid(f"expires_in must be {bounds} seconds", "invalid_expires_in")
    return expires_in


def page_limit(text: str | None) -> int:
    """Records on a page: the query parameter ``limit``, clamped from above.

    >>> page_limit(None), page_limit("25"), page_limit("5000")
    (10, 25, 1000)
    """
    if text is None:
        return DEFAULT_LIMIT
    if not _DIGITS.fullmatch(text) or int(text) < 1:
        raise invalid(f"limit must be an integer from 1 to {MAX_LIMIT}", "invalid_limit")
    return min(int(text), MAX_LIMIT)


def importance_filter(text: str | None) -> float | None:
    """The query parameter ``importance``: a minimum from 0 to 1."""
    if text is None:
        return None
    if not _NUMBER.fullmatch(text) or not 0 <= float(text) <= MAX_IMPORTANCE_FILTER:
        raise invalid("importance must be a number from 0.0 to 1.0", "invalid_importance")
    return float(text)


def tags_filter(text: str | None) -> tuple[str, ...]:
    """The query parameter ``tags``: names between commas, each once, sorted.

    >>> tags_filter("work, home,work")
    ('home', 'work')
    """
    names = {checked_text(name.strip(), "tags") for name in (text or "").split(",")} - {""}
    if len(names) > MAX_TAGS:
        raise invalid(f"tags must name at most {MAX_TAGS} tags", "too_many_tags")
    return tuple(sorted(names))


def score(value: float | None, name: str) -> float | None:
    """An importance from 0 to 5 or a confidence from 0 to 1; the field may be empty."""
    top = MAX_CONFIDENCE if name == "confidence" else MAX_IMPORTANCE
    if value is not None and not (math.isfinite(value) and 0 <= value <= top):
        raise invalid(f"{name} must be a number from 0 to {top:g}", f"invalid_{name}")
    return value


def checked_text(value: str, name: str, *, max_chars: int | None = None) -> str:
    """Text that every database can keep and that is not too long."""
    if "\0" in value:
        raise invalid(f"{name} must not contain the character NUL", "invalid_text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid(
            f"{name} must not contain half a character (a lone surrogate)", "invalid_text"
        ) from None
    if max_chars is not None and len(value) > max_chars:
        raise invalid(f"{name} must have at most {max_chars} characters", "too_long")
    return value


def tag_names(names: Iterable[str]) -> tuple[str, ...]:
    """Tag names as they are stored.

    >>> tag_names(["work", " home ", "work"])
    ('work', 'home')
    """
    unique = tuple(dict.fromkeys(_tag_name(name) for name in names))
    if len(unique) > MAX_TAGS:
        raise invalid(f"a memory has at most {MAX_TAGS} tags", "too_many_tags")
    return unique


def _tag_name(name: str) -> str:
    name = checked_text(name, "a tag name", max_chars=MAX_NAME_CHARS).strip()
    if not name or "," in name:
        raise invalid("a tag name must not be blank or contain a comma", "invalid_tag")
    return name


def email_address(text: str) -> str:
    """An e-mail address in the spelling in which it is stored: case does not count.

    >>> email_address("Ada@Example.org")
    'ada@example.org'
    """
    if len(text) > MAX_EMAIL_CHARS or not _EMAIL.fullmatch(text):
        raise ConfigError("the e-mail address must look like name@example.org, without blanks")
    return checked_text(text.casefold(), "the e-mail address")


def new_password(text: str) -> str:
    """Return a password that may be set; `ConfigError` for one that is blank, too short, too long or much used.

    >>> new_password("correct horse battery staple")
    'correct horse battery staple'
    """
    if not MIN_PASSWORD_CHARS <= len(text) <= MAX_PASSWORD_CHARS:
        bounds = f"{MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS}"
        raise ConfigError(f"the password must have {bounds} characters; choose another one")
    if not text.strip():
        raise ConfigError("the password must not be blank; choose another one")
    if text.strip().casefold() in _common_passwords():
        raise ConfigError(
            "the password is one of the most used ones, which are guessed first; choose another one"
        )
    return checked_text(text, "the password")


@cache
def _common_passwords() -> frozenset[str]:
    lines = Path(__file__).with_name("common_passwords.txt").read_text("utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def developer_name(text: str) -> str:
    """The name under which users see an application."""
    name = text.strip()
    if not name or len(name) > MAX_NAME_CHARS:
        raise ConfigError(f"the developer's name must have 1 to {MAX_NAME_CHARS} characters")
    return checked_text(name, "the developer's name")


def public_url(text: str) -> str:
    """The address of a service as others reach it: https, or http on this machine; no path.

    >>> public_url("https://memories.example.org/")
    'https://memories.example.org'
    """
    url = check_url("the public address", text)
    if urlsplit(url).path:
        raise ConfigError("the public address has a path: the service stands at the root of its host.")
    return url
