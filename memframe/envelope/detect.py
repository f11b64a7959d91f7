"""Content formats by name, and why no layout opened a content: plain text, wrong key, layout, damage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from memframe.envelope.alphabets import utf8_of
from memframe.envelope.layouts import (
    DERIVATIONS,
    Aead,
    Authenticated,
    CbcColon,
    Colons,
    FernetToken,
    Joined,
    Json,
    Jwe,
    Layout,
    OpenSsl,
    Own,
)
from memframe.errors import ConfigError, SealError
from memframe.secret import Secret

_SHORTEST = 38
"""Characters of the shortest sealed content: nonce and tag, 28 bytes, in base64 without padding."""

_SPELLED = re.compile(r"[A-Za-z0-9+/=_:.-]+")
_HEX = re.compile(r"[0-9a-fA-F:]+")
_MARKS = re.compile(
    r"\s*mf1\.[0-9.]"  # ours
    r"|\s*eyJ[A-Za-z0-9_-]{8,}\."  # JWE
    r"|gAAAAA"  # Fernet
    r"|U2FsdGVkX1"  # OpenSSL's Salted__
    r'|\{\s*"(data|ciphertext|content|encrypted|encryptedData|ct)"\s*:\s*"[A-Za-z0-9+/=_-]{22,}'
)
_JSON_FIELD = re.compile(r'"(iv|nonce|tag|authTag|auth_tag)"\s*:\s*"[A-Za-z0-9+/=_-]{16,}')


def looks_sealed(text: str, *, among_sealed: bool) -> bool:
    """Return True if a text looks sealed, so that it must not pass as plain.

    It looks sealed if

    - it begins with a mark of ours, of JWE, Fernet or OpenSSL, or is JSON with a nonce or tag in it;
    - or it is as long as a nonce and a tag, all but one in a hundred of its characters (and one more)
      are those of base64, hexadecimal, colons and full stops, and small letters, capitals and digits
      are mixed as in random bytes. Prose has a space every few letters; an address has its ``://``.

    Short or damaged content can pass for plain by that. Empty text always does.

    Parameters
    ----------
    text : str
    among_sealed : bool
        True if other content of the same user was sealed. Then a single word, a long text without the
        mix and any JSON object look sealed too.

    Examples
    --------
    >>> looks_sealed("Likes tea, hates coffee.", among_sealed=True)
    False
    >>> looks_sealed("00" * 28, among_sealed=False)
    True
    """
    if _MARKS.match(text) or _is_sealed_json(text) or (among_sealed and text.startswith("{")):
        return True
    n_foreign = len(_SPELLED.sub("", text))
    if "://" in text or n_foreign > 1 + len(text) // 100:
        return False
    if among_sealed and (n_foreign == 0 or len(text) >= _SHORTEST):
        return bool(text)
    return len(text) >= _SHORTEST and _is_mixed(text)


def _is_sealed_json(text: str) -> bool:
    return (text[:1] == "{" or text[-1:] == "}") and _JSON_FIELD.search(text) is not None


def _is_mixed(text: str) -> bool:
    """Return True if the characters of a text are spread as in base64, or nearly all hexadecimal."""
    n_upper, n_lower = (sum(map(test, text)) for test in (str.isupper, str.islower))
    has_digits = any(map(str.isdigit, text))
    is_base64 = n_upper and n_lower and (has_digits or 5 * n_upper > len(text))
    return bool(is_base64) or len(_HEX.sub("", text)) <= len(text) // 10


def reason_for(text: str, *, readers: Sequence[Layout], known: Iterable[Layout]) -> str:
    """Explain why a text could not be opened: wrong key, another layout, or damage.

    Parameters
    ----------
    text : str
    readers : sequence of Layout
        The layouts that were tried.
    known : iterable of Layout
        Every layout, to recognise what was not tried.
    """
    tried = {reader.name for reader in readers}
    others = [layout for layout in known if layout.name not in tried]
    objections = (layout.objection(text) for layout in (*readers, *others))
    return (
        next((objection for objection in objections if objection), None)
        or _explain_other_layout(text, others, tried)
        or _explain_failure(text, readers, others)
        or _explain_unknown(text)
    )


def _explain_other_layout(text: str, others: Sequence[Layout], tried: set[str]) -> str | None:
    provable = (layout for layout in others if isinstance(layout, Authenticated))
    layout = next((layout for layout in provable if layout.open(text) is not None), None)
    if layout is None:
        return None
    return f"sealed as {layout.name}, while this content is read as {', '.join(sorted(tried))}; {_advice(layout.name)}"


def _explain_failure(text: str, readers: Sequence[Layout], others: Sequence[Layout]) -> str | None:
    layouts = sorted((*readers, *others), key=_order)
    layout = next((layout for layout in layouts if layout.fits(text)), None)
    if layout is None:
        return None
    if isinstance(layout, Authenticated):
        return f"looks like {layout.name}, but did not authenticate: wrong key or damage"
    if layout in readers:
        return f"looks like {layout.name}, but did not open: wrong key or damage"
    return f"looks like {layout.name}, which does not show changes; {_advice(layout.name)} all the same"


def _order(layout: Layout) -> int:
    """Order layouts for a diagnosis: marked ones first, then those that were tried."""
    return 0 if layout.marked else 1


def _explain_unknown(text: str) -> str:
    if not text:
        return "empty, which no sealed content is"
    if utf8_of(text) is None:
        return "holds half of a surrogate pair, which is not Unicode: damage"
    return 'in no known layout: damage, or plain text; content_format="plain" reads plain text'


def _advice(name: str) -> str:
    return f'content_format="{name}" reads it'


OWN = "memframe"
PLAIN = "plain"


class KeyBinding(NamedTuple):
    """Key and identity that a layout is bound to: key text, key bytes, AES-GCM, user, key version."""

    key_text: str
    key: bytes
    gcm: Aead
    user_id: str
    key_version: int


LAYOUTS: dict[str, Callable[[str, KeyBinding], Layout]] = {
    OWN: lambda name, binding: Own(name, binding.gcm, binding.user_id, binding.key_version),
    "jwe": lambda name, binding: Jwe(name, binding.gcm),
    "fernet": lambda name, binding: FernetToken(name, binding.key),
    "gcm-json": lambda name, binding: Json(name, binding.gcm),
    "gcm-iv-ct-tag": lambda name, binding: Joined(name, binding.gcm, tag_last=True, iv_sizes=(12, 16)),
    "gcm-iv-tag-ct": lambda name, binding: Joined(name, binding.gcm, tag_last=False, iv_sizes=(12, 16)),
    "gcm-iv:tag:ct": lambda name, binding: Colons(name, binding.gcm, tag_last=False),
    "gcm-iv:ct:tag": lambda name, binding: Colons(name, binding.gcm, tag_last=True),
    "chacha20-poly1305": lambda name, binding: Joined(
        name, ChaCha20Poly1305(binding.key), tag_last=True, iv_sizes=(12,)
    ),
    "cbc-iv:ct": lambda name, binding: CbcColon(name, binding.key),
    "openssl-salted": lambda name, binding: OpenSsl(name, binding.key_text),
}
"""Name to maker, in the order in which ``"auto"`` tries the authenticated ones."""

PlainRule = Literal["never", "unless sealed", "always"]
"""When content passes as plain text."""

UNDERIVED = {OWN, PLAIN, "openssl-salted"}
"""Layouts that fix how the key is used, so that no other derivation can be named."""


def bind(name: str, key: Secret, user_id: str, key_version: int) -> Layout:
    """Make the layout of that name under a key; ``name@derivation`` derives the key's bytes in another way.

    Raises
    ------
    ConfigError
        Where there is no layout or no derivation of that name.
    """
    layout, _, derivation = name.partition("@")
    if layout not in LAYOUTS:
        raise ConfigError(f"there is no content format {layout!r}; there are {', '.join([*LAYOUTS, PLAIN])}")
    if derivation not in DERIVATIONS or (derivation and layout in UNDERIVED):
        known = [] if layout in UNDERIVED else [f"{layout}@{known}" for known in DERIVATIONS if known]
        raise ConfigError(
            f"content format {layout!r} is not known as {name!r}; there is {', '.join([layout, *known])}"
        )
    raw = DERIVATIONS[derivation](key.reveal())
    return LAYOUTS[layout](name, KeyBinding(key.reveal(), raw, AESGCM(raw), user_id, key_version))


class Codec(Protocol):
    """User-defined sealing and opening of content."""

    def seal(self, text: str) -> str: ...

    def open(self, text: str) -> str: ...


class CodecLayout(Authenticated):
    """A `Codec` used as a layout; that it detects changes is its author's promise.

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
    """Parsed ``content_format``."""

    auto: bool
    plain: PlainRule
    layouts: Sequence[str | Layout]


def every_layout() -> list[str]:
    """List each layout under each derivation of the key, the usual one first."""
    return [
        f"{name}@{derivation}" if derivation else name
        for derivation in DERIVATIONS
        for name in LAYOUTS
        if not derivation or name not in UNDERIVED
    ]


def read_format(content_format: str | Sequence[str] | Codec) -> Reading:
    """Parse a ``content_format``.

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
