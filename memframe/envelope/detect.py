"""Content formats by name, checks of keys, resealing under a new key, and the reason why no layout opened a text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from memframe.envelope.alphabets import utf8_of
from memframe.envelope.layouts import (
    Aead,
    Authenticated,
    CbcColon,
    Codec,
    CodecLayout,
    FernetToken,
    Joined,
    Jwe,
    Layout,
    OpenSsl,
    Own,
    colon_layout,
    json_layout,
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
_ADDRESS = re.compile(r"(?:^|\s)[a-z][a-z0-9+.-]{1,14}://")
"""Scheme of an address, at most 15 characters. A nonce in base64 has at least 16, and may be followed by ``://``, too:
by a colon and base64 that begins with two slashes."""

_JSON_FIELD = re.compile(r'"(iv|nonce|tag|authTag|auth_tag)"\s*:\s*"[A-Za-z0-9+/=_-]{16,}')


def looks_sealed(text: str, *, among_sealed: bool) -> bool:
    """Return True if a text looks sealed, so that it must not pass as plain.

    It looks sealed if

    - it begins with a mark of ours, of JWE, Fernet or OpenSSL, or is JSON with a nonce or tag in it;
    - or it is at least as long as a nonce and a tag, at most one of its characters in a hundred (and one more) is
      none of base64, hexadecimal, colons and full stops, and small letters, capitals and digits are mixed as
      in random bytes. Prose has a space every few letters; an address begins with its scheme.

    Short or damaged content can therefore pass for plain; empty text always does. ``among_sealed`` is True if other
    content of the same user was sealed: then a single word, a long text without the mix and any JSON object look
    sealed, too.

    >>> looks_sealed("Likes tea, hates coffee.", among_sealed=True), looks_sealed("00" * 28, among_sealed=False)
    (False, True)
    """
    is_sealed_json = (text[:1] == "{" or text[-1:] == "}") and _JSON_FIELD.search(text)
    if _MARKS.match(text) or is_sealed_json or (among_sealed and text.startswith("{")):
        return True
    n_foreign = len(_SPELLED.sub("", text))
    if _ADDRESS.search(text) or n_foreign > 1 + len(text) // 100:
        return False
    if among_sealed and (n_foreign == 0 or len(text) >= _SHORTEST):
        return bool(text)
    if len(text) < _SHORTEST:
        return False
    n_upper, n_lower = (sum(map(test, text)) for test in (str.isupper, str.islower))
    is_base64 = n_upper and n_lower and (any(map(str.isdigit, text)) or 5 * n_upper > len(text))
    return bool(is_base64) or len(_HEX.sub("", text)) <= len(text) // 10


def reason_for(text: str, *, readers: Sequence[Layout], known: Iterable[Layout]) -> str:
    """Explain why the ``readers`` could not open a text: wrong key, damage, or another of the ``known`` layouts."""
    tried = {reader.name for reader in readers}
    others = [layout for layout in known if layout.name not in tried]
    every = (*readers, *others)
    if objection := next((objection for layout in every if (objection := layout.objection(text))), None):
        return objection
    for layout in others:
        if isinstance(layout, Authenticated) and layout.open(text) is not None:
            read_as = ", ".join(sorted(tried))
            return f"sealed as {layout.name}, while this content is read as {read_as}; {_advise(layout.name)}"
    alike = sorted((layout for layout in every if layout.fits(text)), key=lambda layout: not layout.marked)
    if alike:
        likeliest = alike[0]
        if isinstance(likeliest, Authenticated):
            return f"looks like {likeliest.name}, but did not authenticate: wrong key or damage"
        if likeliest in readers:
            return f"looks like {likeliest.name}, but did not open: wrong key or damage"
        return f"looks like {likeliest.name}, which does not show changes; {_advise(likeliest.name)} all the same"
    if not text:
        return "empty, which sealed content never is"
    if utf8_of(text) is None:
        return "holds half of a surrogate pair, which is not Unicode: damage"
    return 'in no known layout: damage, or plain text; content_format="plain" reads plain text'


def _advise(name: str) -> str:
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
    "gcm-json": lambda name, binding: json_layout(name, binding.gcm),
    "gcm-iv-ct-tag": lambda name, binding: Joined(name, binding.gcm),
    "gcm-iv-tag-ct": lambda name, binding: Joined(name, binding.gcm, tag_last=False),
    "gcm-iv:tag:ct": lambda name, binding: colon_layout(name, binding.gcm, tag_last=False),
    "gcm-iv:ct:tag": lambda name, binding: colon_layout(name, binding.gcm, tag_last=True),
    "chacha20-poly1305": lambda name, binding: Joined(name, ChaCha20Poly1305(binding.key), iv_sizes=(12,)),
    "cbc-iv:ct": lambda name, binding: CbcColon(name, binding.key),
    "openssl-salted": lambda name, binding: OpenSsl(name, binding.key_text),
}
"""Constructors of layouts by name, in the order in which ``"auto"`` tries the authenticated ones."""

DERIVATIONS: dict[str, Callable[[str], bytes]] = {
    "": bytes.fromhex,
    "ascii": lambda text: text[:32].encode("ascii"),
    "sha256": lambda text: hashlib.sha256(text.encode("ascii")).digest(),
}
"""Derivations of 32 bytes from the key text. All but the first are used only when a format names them."""

UNDERIVED = {OWN, PLAIN, "openssl-salted"}
"""Layouts that fix how the key is used, so that no other derivation can be named."""

PlainRule = Literal["never", "unless sealed", "always"]
"""Rule by which content passes as plain text."""


def bind(name: str, key: Secret, user_id: str, key_version: int) -> Layout:
    """Make the layout of that name under a key; ``name@derivation`` derives the key's bytes in another way."""
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


def every_layout() -> list[str]:
    """List each layout under each derivation of the key, the usual one first."""
    return [
        f"{name}@{derivation}" if derivation else name
        for derivation in DERIVATIONS
        for name in LAYOUTS
        if not derivation or name not in UNDERIVED
    ]


class ParsedFormat(NamedTuple):
    """Parsed ``content_format``."""

    auto: bool
    plain: PlainRule
    layouts: Sequence[str | Layout]


def read_format(content_format: str | Sequence[str] | Codec) -> ParsedFormat:
    """Parse a ``content_format``.

    >>> read_format(["gcm-iv:tag:ct", "plain"])
    ParsedFormat(auto=False, plain='unless sealed', layouts=['gcm-iv:tag:ct'])
    """
    if content_format == "auto":
        return ParsedFormat(True, "unless sealed", list(LAYOUTS))
    if isinstance(content_format, str | Sequence):
        names = [content_format] if isinstance(content_format, str) else list(content_format)
        if not names or "auto" in names or not all(isinstance(name, str) for name in names):
            raise ConfigError('a list of content formats holds the names of layouts; "auto" stands alone')
        layouts = [name for name in names if name != PLAIN]
        if len(layouts) == len(names):
            return ParsedFormat(False, "never", layouts)
        return ParsedFormat(False, "unless sealed" if layouts else "always", layouts)
    if all(callable(getattr(content_format, method, None)) for method in ("seal", "open")):
        return ParsedFormat(False, "never", [CodecLayout(content_format)])
    raise ConfigError(
        "content_format is a name, a list of names, or an object with seal(text) and open(text), "
        f"not {type(content_format).__name__}"
    )


class Rekeying:
    """Reseal one user's content from one key version to the next, in the layout and spelling that it had.

    ``old`` and ``new`` are a ``key_version`` and its key; the authenticated ``layouts`` are tried in their order.

    >>> old, new = (1, Secret("0f1e" * 16)), (2, Secret("2d3c" * 16))
    >>> Rekeying(old, new, user_id="4f0c", layouts=["memframe"]).reseal("mf1.1.AAAA") is None
    True
    """

    def __init__(
        self, old: tuple[int, Secret], new: tuple[int, Secret], *, user_id: str, layouts: Sequence[str]
    ) -> None:
        self._pairs = []
        for name in layouts:
            opener, sealer = (bind(name, key, user_id, version) for version, key in (old, new))
            if not isinstance(sealer, Authenticated):
                raise ConfigError(
                    f"content in {name!r} cannot be sealed with another key, because it is not authenticated"
                )
            self._pairs.append((opener, sealer))

    def reseal(self, sealed: str) -> str | None:
        """Seal content under the new key; None if the old one does not open it."""
        for opener, sealer in self._pairs:
            read = opener.read(sealed)
            if read is not None:
                return sealer.seal(*read)
        return None


_ADVICE = "fetch the credentials again and pass their encryption_key as the service returned it"
_NEED = "need 64 hexadecimal characters (256 bits)"
_UNFIT_KEYS = {
    r"": f"is empty; {_ADVICE}",
    r"0[xX].*": f"begins with 0x; {_NEED} without it",
    r".*\s.*": f"contains spaces or line ends; {_NEED} and nothing else",
    r"(?=.*[^0-9a-fA-F])[A-Za-z0-9+/_-]{43}=?": (
        f"looks like base64; {_NEED}: decode it and pass .hex() of the bytes"
    ),
    r".*[^0-9a-fA-F].*": f"contains characters that are not hexadecimal; {_ADVICE}",
    r".{32}": f"has 128 bits (32 hexadecimal characters); {_NEED}",
    r".{48}": f"has 192 bits (48 hexadecimal characters); {_NEED}",
    r"(?i:(..)\1{31})": f"is one byte repeated, which protects nothing; {_ADVICE}",
}
"""Patterns of keys that are not fit for use, and why; the first that matches counts."""


def check_key(key: Secret) -> None:
    """Refuse a key other than 64 hexadecimal characters; the message says what it is, and never quotes it.

    >>> check_key(Secret("0x" + "5f" * 32))
    Traceback (most recent call last):
    memframe.errors.SealError: the encryption key begins with 0x; need 64 hexadecimal characters (256 bits)
    without it
    """
    fault = fault_of_key(key.reveal())  # no variable of the frame that raises holds the text
    if fault:
        raise SealError(f"the encryption key {fault}")


def fault_of_key(text: str) -> str | None:
    """Explain why a key is not fit for use."""
    for pattern, fault in _UNFIT_KEYS.items():
        if re.fullmatch(pattern, text, re.DOTALL):
            return fault
    if len(text) == 64:
        return None
    return f"has {len(text)} characters{', an odd number' if len(text) % 2 else ''}; {_NEED}; {_ADVICE}"
