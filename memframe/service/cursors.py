"""Page cursors: the place of the last record of a page, sealed for one user and one filter.

AES-SIV (RFC 5297) needs no nonce, so the same place always gives the same cursor; what is sealed in
tells nothing about how many records the service holds, and a cursor that was altered, or made for
another user or another filter, does not open.
"""

from __future__ import annotations

import base64
import binascii

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from msgspec import Struct

from memframe.errors import InvalidError
from memframe.service.rules import invalid

KEY_BYTES = 64
_PLACE_BYTES = 8


class Filter(Struct, frozen=True):
    """Which memories of a user a list call asks for."""

    user_id: str
    tags: tuple[str, ...] = ()
    search: str = ""
    min_importance: float | None = None


class Cursors:
    """Seals and opens cursors.

    Parameters
    ----------
    key : bytes
        `KEY_BYTES` of them.

    Examples
    --------
    >>> cursors = Cursors(bytes(range(64)))
    >>> everything = Filter("u-1")
    >>> cursors.open(cursors.seal(4711, everything), everything)
    4711
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = AESSIV(key)

    def seal(self, place: int, chosen: Filter) -> str:
        """The cursor that goes on after a place."""
        sealed = self._cipher.encrypt(place.to_bytes(_PLACE_BYTES), [msgspec.json.encode(chosen)])
        return base64.urlsafe_b64encode(sealed).decode()

    def open(self, cursor: str, chosen: Filter) -> int:
        """The place in a cursor that was made for this filter."""
        try:
            sealed = base64.b64decode(cursor, altchars=b"-_", validate=True)
            place = int.from_bytes(self._cipher.decrypt(sealed, [msgspec.json.encode(chosen)]))
        except (binascii.Error, ValueError, InvalidTag):
            raise _bad_cursor() from None
        if self.seal(place, chosen) != cursor:  # another spelling of the same bytes, with padding for one
            raise _bad_cursor()
        return place


def _bad_cursor() -> InvalidError:
    return invalid(
        "the cursor was not made for this user and these filters; repeat the call that gave it "
        "with the same parameters, or start without a cursor",
        "invalid_cursor",
    )
