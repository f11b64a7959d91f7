"""A letterbox: whoever knows its address can put something in, and only the process that made it takes it out.

So what a worker brings is closed to the scheduler, to other workers, and to whatever they spill to disk, without
a key in any task: the address is a public key, which opens nothing. The private one goes with the run. Sealing is
HPKE (RFC 9180), with X25519 and AES-256-GCM.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_PURPOSE = b"memframe fleet"


class Letterbox:
    """A new one with every instance.

    Examples
    --------
    >>> box = Letterbox()
    >>> letter = sealed_for(box.address, b"Likes tea")
    >>> box.opened(letter)
    b'Likes tea'
    >>> Letterbox().opened(letter) is None
    True
    """

    def __init__(self) -> None:
        self._key = X25519PrivateKey.generate()

    @property
    def address(self) -> bytes:
        """What to seal letters with."""
        return self._key.public_key().public_bytes_raw()

    def opened(self, letter: bytes) -> bytes | None:
        """What was sealed; None of a letter that is damaged, or for another box."""
        try:
            return _SUITE.decrypt(letter, self._key, _PURPOSE)
        except InvalidTag:
            return None


def sealed_for(address: bytes, data: bytes) -> bytes:
    """A letter that only the box of this address opens."""
    return _SUITE.encrypt(data, X25519PublicKey.from_public_bytes(address), _PURPOSE)
