"""The names of ``content_format`` and what each is made of: the one table of layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from memframe.envelope.alphabets import utf8_of
from memframe.envelope.keys import DERIVATIONS
from memframe.envelope.layouts import Aead, Authenticated, Joined, Layout, Own
from memframe.envelope.parted import Colons, Json
from memframe.envelope.tokens import FernetToken, Jwe
from memframe.envelope.unauthenticated import CbcColon, OpenSsl
from memframe.errors import ConfigError, SealError
from memframe.secret import Secret

OWN = "memframe"
PLAIN = "plain"


class Seat(NamedTuple):
    """What a layout is bound to: the key in text, in bytes and in AES-GCM, the user, the key version."""

    key_text: str
    key: bytes
    gcm: Aead
    user_id: str
    key_version: int


LAYOUTS: dict[str, Callable[[str, Seat], Layout]] = {
    OWN: lambda name, seat: Own(name, seat.gcm, seat.user_id, seat.key_version),
    "jwe": lambda name, seat: Jwe(name, seat.gcm),
    "fernet": lambda name, seat: FernetToken(name, seat.key),
    "gcm-json": lambda name, seat: Json(name, seat.gcm),
    "gcm-iv-ct-tag": lambda name, seat: Joined(name, seat.gcm, tag_last=True, iv_sizes=(12, 16)),
    "gcm-iv-tag-ct": lambda name, seat: Joined(name, seat.gcm, tag_last=False, iv_sizes=(12, 16)),
    "gcm-iv:tag:ct": lambda name, seat: Colons(name, seat.gcm, tag_last=False),
    "gcm-iv:ct:tag": lambda name, seat: Colons(name, seat.gcm, tag_last=True),
    "chacha20-poly1305": lambda name, seat: Joined(
        name, ChaCha20Poly1305(seat.key), tag_last=True, iv_sizes=(12,)
    ),
    "cbc-iv:ct": lambda name, seat: CbcColon(name, seat.key),
    "openssl-salted": lambda name, seat: OpenSsl(name, seat.key_text),
}
"""Name to maker, in the order in which ``"auto"`` tries the authenticated ones."""

PlainRule = Literal["never", "unless sealed", "always"]
"""When content passes as plain text."""

UNDERIVED = {OWN, PLAIN, "openssl-salted"}
"""Layouts that fix how the key is used, so that no other derivation can be named."""


def bind(name: str, key: Secret, user_id: str, key_version: int) -> Layout:
    """The layout of that name under a key; ``name@derivation`` takes the key's bytes in another way.

    Raises
    ------
    ConfigError
        Where there is no layout or no derivation of that name.
    """
    layout, _, derivation = name.partition("@")
    if layout not in LAYOUTS:
        raise ConfigError(f"there is no content format {layout!r}; there are {_listed([*LAYOUTS, PLAIN])}")
    if derivation not in DERIVATIONS or (derivation and layout in UNDERIVED):
        known = [] if layout in UNDERIVED else [f"{layout}@{known}" for known in DERIVATIONS if known]
        raise ConfigError(
            f"content format {layout!r} is not known as {name!r}; there is {_listed([layout, *known])}"
        )
    raw = DERIVATIONS[derivation](key.reveal())
    return LAYOUTS[layout](name, Seat(key.reveal(), raw, AESGCM(raw), user_id, key_version))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


class Codec(Protocol):
    """A way of your own to seal and open content."""

    def seal(self, text: str) -> str: ...

    def open(self, text: str) -> str: ...


class CodecLayout(Authenticated):
    """A `Codec` in the place of a layout; that it notices changes is its author's word.

    What it raises is named by its type alone, as a message may hold content.
    """

    def __init__(self, codec: Codec) -> None:
        super().__init__("codec")
        self._codec = codec

    def fits(self, _text: str, /) -> bool:
        return True

    def open(self, text: str, /) -> bytes | None:
        plain = self._run(self._codec.open, text)
        return utf8_of(plain) if isinstance(plain, str) else None

    def seal(self, plain: bytes, _like: str | None, /) -> str:
        sealed = self._run(self._codec.seal, plain.decode())
        if isinstance(sealed, str):
            return sealed
        raise SealError(f"content cannot be sealed: the codec {_answer(sealed)}")

    def objection(self, text: str, /) -> str | None:
        return f"the codec {_answer(self._run(self._codec.open, text))}"

    @staticmethod
    def _run(turn: Callable[[str], str], text: str) -> object:
        try:
            return turn(text)
        except Exception as error:  # a codec may raise what it likes
            return error


def _answer(outcome: object) -> str:
    kind = type(outcome).__name__
    if isinstance(outcome, Exception):
        return f"raised {kind}"
    return "returned text that is not Unicode" if isinstance(outcome, str) else f"returned {kind}, not str"


class Reading(NamedTuple):
    """What a ``content_format`` asks for."""

    auto: bool
    plain: PlainRule
    layouts: Sequence[str | Layout]


def every_layout() -> list[str]:
    """Each layout under each derivation of the key, the usual one first."""
    return [
        f"{name}@{derivation}" if derivation else name
        for derivation in DERIVATIONS
        for name in LAYOUTS
        if not derivation or name not in UNDERIVED
    ]


def read_format(content_format: str | Sequence[str] | Codec) -> Reading:
    """Take a ``content_format`` apart.

    >>> read_format(["gcm-iv:tag:ct", "plain"])
    Reading(auto=False, plain='unless sealed', layouts=['gcm-iv:tag:ct'])
    """
    if content_format == "auto":
        return Reading(True, "unless sealed", list(LAYOUTS))
    if content_format == PLAIN:
        return Reading(False, "always", [])
    if isinstance(content_format, str):
        return Reading(False, "never", [content_format])
    if isinstance(content_format, Sequence):
        return _read_names(content_format)
    if all(callable(getattr(content_format, turn, None)) for turn in ("seal", "open")):
        return Reading(False, "never", [CodecLayout(content_format)])
    raise ConfigError(
        "content_format is a name, a list of names, or an object with seal(text) and open(text), "
        f"not {type(content_format).__name__}"
    )


def _read_names(names: Sequence[str]) -> Reading:
    if not names or "auto" in names or not all(isinstance(name, str) for name in names):
        raise ConfigError('a list of content formats holds the names of layouts; "auto" stands alone')
    layouts = [name for name in names if name != PLAIN]
    plain: PlainRule = "never" if len(layouts) == len(names) else "unless sealed" if layouts else "always"
    return Reading(False, plain, layouts)
