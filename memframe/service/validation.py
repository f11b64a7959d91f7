"""Validate input: pure functions that return the accepted value or raise an error with the reason.

- Access requests move pending -> approved or rejected, and approved -> revoked; nothing else.
- Types are strict: ``"60"`` and ``true`` are not integers, NaN and infinity are not scores.
- Tag names keep order and case; surrounding blanks and repetitions are removed. Blank names, and names with a comma
  (for which the filter ``tags`` has no spelling), are refused.
- NUL is refused everywhere, because PostgreSQL cannot store it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import UNSET

from memframe.address import check_url
from memframe.errors import ConfigError, ConflictError, InvalidError
from memframe.fields import MEMORY_FIELDS
from memframe.wire import DEFAULT_LIMIT, MAX_SCORES, MAX_TAG_CHARS, MAX_TAGS, RequestStatus

TRANSITIONS: dict[RequestStatus, tuple[RequestStatus, ...]] = {
    "pending": ("approved", "rejected"),
    "approved": ("revoked",),
    "rejected": (),
    "revoked": (),
}
"""Allowed next states of an access request."""

TOKEN_LIFETIME_S = 3600
MIN_TOKEN_LIFETIME_S = 60
MAX_TOKEN_LIFETIME_S = 86_400

MAX_LIMIT = 1000
MAX_IMPORTANCE_FILTER = 1.0

MAX_PENDING = 100
"""Most pending access requests of one developer to one user."""

MAX_REASON_CHARS = 2000
MAX_NAME_CHARS = 200
MAX_EMAIL_CHARS = 320
MIN_PASSWORD_CHARS = 8
MAX_PASSWORD_CHARS = 1024
MAX_USER_TAGS = 10_000
"""Most tags of one user, over all memories."""

MAX_IDEMPOTENCY_KEY_CHARS = 255

PLAIN_TEXTS = tuple(
    field.name
    for field in MEMORY_FIELDS
    if field.is_editable and field.kind == "text" and field.name != "content"
)
"""Texts of a memory that are stored unsealed; content is sealed."""

_DIGITS = re.compile(r"[0-9]{1,4000}", re.ASCII)  # int() refuses more than 4,300 digits
_EMAIL = re.compile(r"[^@\s\x00-\x1f]+@[^@\s\x00-\x1f]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def invalid(message: str, code: str = "invalid_request") -> InvalidError:
    return InvalidError(message, status=400, code=code)


def states_before(status: RequestStatus) -> tuple[RequestStatus, ...]:
    """Return the states from which a request may move to this one.

    >>> states_before("revoked")
    ('approved',)
    """
    return tuple(before for before, after in TRANSITIONS.items() if status in after)


def wrong_state(current: RequestStatus, wanted: str) -> ConflictError:
    """Make the 409 of a decision that the current state does not allow."""
    possible = " or ".join(TRANSITIONS[current]) or "nothing"
    message = f"the access request is {current} and cannot become {wanted}; allowed from here: {possible}"
    return ConflictError(message, status=409, code="wrong_state")


def check_token_lifetime(expires_in: int | None) -> int:
    """Return the lifetime of a bearer token in seconds.

    >>> check_token_lifetime(None)
    3600
    """
    if expires_in is None:
        return TOKEN_LIFETIME_S
    if not MIN_TOKEN_LIFETIME_S <= expires_in <= MAX_TOKEN_LIFETIME_S:
        bounds = f"{MIN_TOKEN_LIFETIME_S} to {MAX_TOKEN_LIFETIME_S}"
        raise invalid(f"expires_in must be {bounds} seconds", "invalid_expires_in")
    return expires_in


def parse_limit(text: str | None, *, default: int = DEFAULT_LIMIT) -> int:
    """Parse the query parameter ``limit``; larger values are clamped.

    >>> parse_limit(None), parse_limit("25"), parse_limit("5000")
    (10, 25, 1000)
    """
    if text is None:
        return default
    if not _DIGITS.fullmatch(text) or int(text) < 1:
        raise invalid(f"limit must be an integer from 1 to {MAX_LIMIT}", "invalid_limit")
    return min(int(text), MAX_LIMIT)


def parse_importance(text: str | None) -> float | None:
    """Parse the query parameter ``importance``: a minimum from 0 to 1."""
    if text is None:
        return None
    if not _NUMBER.fullmatch(text) or not 0 <= float(text) <= MAX_IMPORTANCE_FILTER:
        raise invalid("importance must be a number from 0.0 to 1.0", "invalid_importance")
    return float(text)


def parse_tags(text: str | None) -> tuple[str, ...]:
    """Parse the query parameter ``tags``: comma-separated names, deduplicated and sorted.

    >>> parse_tags("work, home,work")
    ('home', 'work')
    """
    names = {check_text(name.strip(), "tags") for name in (text or "").split(",")} - {""}
    if len(names) > MAX_TAGS:
        raise invalid(f"tags must name at most {MAX_TAGS} tags", "too_many_tags")
    return tuple(sorted(names))


def check_score(value: float | None, name: str) -> float | None:
    """Check an importance from 0 to 5 or a confidence from 0 to 1; None is allowed."""
    top = MAX_SCORES[name]
    if value is not None and not (math.isfinite(value) and 0 <= value <= top):
        raise invalid(f"{name} must be a number from 0 to {top:g}", f"invalid_{name}")
    return value


def check_columns(record: object) -> dict[str, Any]:
    """Check and return the texts and scores of a memory that are set, tags and content apart."""
    columns = {name: getattr(record, name) for name in (*PLAIN_TEXTS, *MAX_SCORES)}
    given = {name: value for name, value in columns.items() if value is not UNSET}
    for name, value in given.items():
        if name in MAX_SCORES:
            check_score(value, name)
        elif value:
            check_text(value, name)
    return given


def check_text(value: str, name: str, *, max_chars: int | None = None) -> str:
    """Check a text: every database must be able to store it, and it must not be too long."""
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


def check_tag_names(names: Iterable[str]) -> tuple[str, ...]:
    """Check and normalize tag names.

    >>> check_tag_names(["work", " home ", "work"])
    ('work', 'home')
    """
    unique = tuple(dict.fromkeys(_check_tag_name(name) for name in names))
    if len(unique) > MAX_TAGS:
        raise invalid(f"a memory has at most {MAX_TAGS} tags", "too_many_tags")
    return unique


def _check_tag_name(name: str) -> str:
    name = check_text(name, "a tag name", max_chars=MAX_TAG_CHARS).strip()
    if not name or "," in name:
        raise invalid("a tag name must not be blank or contain a comma", "invalid_tag")
    return name


def check_email(text: str) -> str:
    """Check an e-mail address and fold its case.

    >>> check_email("Ada@Example.org")
    'ada@example.org'
    """
    if len(text) > MAX_EMAIL_CHARS or not _EMAIL.fullmatch(text):
        raise ConfigError("the e-mail address must look like name@example.org, without spaces")
    return check_text(text.casefold(), "the e-mail address")


def check_new_password(text: str) -> str:
    """Check a new password; `ConfigError` if it is blank, too short, too long or a common one.

    >>> check_new_password("correct horse battery staple")
    'correct horse battery staple'
    """
    if not MIN_PASSWORD_CHARS <= len(text) <= MAX_PASSWORD_CHARS:
        bounds = f"{MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS}"
        raise ConfigError(f"the password must have {bounds} characters; choose another one")
    if not text.strip():
        raise ConfigError("the password must not be blank; choose another one")
    if text.strip().casefold() in _common_passwords():
        raise ConfigError(
            "the password is among the most common ones, which are guessed first; choose another one"
        )
    return check_text(text, "the password")


@cache
def _common_passwords() -> frozenset[str]:
    lines = Path(__file__).with_name("common_passwords.txt").read_text("utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def check_developer_name(text: str) -> str:
    """Check the name under which users see an application."""
    name = text.strip()
    if not name or len(name) > MAX_NAME_CHARS:
        raise ConfigError(f"the developer's name must have 1 to {MAX_NAME_CHARS} characters")
    return check_text(name, "the developer's name")


def check_public_url(text: str) -> str:
    """Check the public address of a service: https, or http to loopback; no path.

    >>> check_public_url("https://memories.example.org/")
    'https://memories.example.org'
    """
    url = check_url("the public address", text)
    if urlsplit(url).path:
        raise ConfigError("the public address has a path: the service must be at the root of its host.")
    return url
