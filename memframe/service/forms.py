"""Queries and forms as OAuth wants them read: strictly, and every name once."""

from __future__ import annotations

from collections import Counter
from urllib.parse import parse_qsl

from memframe.errors import InvalidError

MAX_FIELDS = 64


def read_form(encoded: bytes) -> dict[str, str]:
    """The fields of a query or of a form body (``application/x-www-form-urlencoded``).

    A field without a value counts as not sent (RFC 6749 section 3.1). Whatever cannot be read exactly,
    or comes twice, is refused with `InvalidError`: what is guessed here would be guessed about a secret.

    >>> read_form(b"state=a%20b&scope=&response_type=code")
    {'state': 'a b', 'response_type': 'code'}
    """
    try:
        pairs = parse_qsl(
            encoded.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS
        )
    except ValueError:
        raise _malformed("it cannot be read; percent-encode UTF-8, and send few fields") from None
    for name, times in Counter(name for name, _ in pairs).items():
        if times > 1:
            raise _malformed(f"the field {name[:64]!a} comes more than once")
    if "\0" in "".join(value for _, value in pairs):
        raise _malformed("it has the character NUL")
    return {name: value for name, value in pairs if value}


def _malformed(reason: str) -> InvalidError:
    return InvalidError(f"the query or form is malformed: {reason}", status=400, code="invalid_request")
