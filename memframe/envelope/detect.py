"""Judging content that no layout opened: is it plain text, and if not, what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memframe.envelope.alphabets import spelling
from memframe.envelope.layouts import Layout

_SHORTEST = 38
"""Characters of the shortest sealed content: nonce and tag, 28 bytes, in base64 without padding."""

_SPELLED = re.compile(r"[A-Za-z0-9+/=_:.-]")
_HEX = re.compile(r"[0-9a-fA-F:]")
_MARKS = re.compile(
    r"\s*mf1\.[0-9.]"  # ours
    r"|\s*eyJ[A-Za-z0-9_-]{8,}\."  # JWE
    r"|gAAAAA"  # Fernet
    r"|U2FsdGVkX1"  # OpenSSL's Salted__
    r'|[^"]{0,8}"(iv|nonce|data|ciphertext|content|encrypted|ct|tag|authTag|auth_tag)"\s*:\s*"[A-Za-z0-9+/=_-]{16,}'
)

CBC = "cbc-iv:ct"
OPENSSL = "openssl-salted"


def looks_sealed(text: str, *, among_sealed: bool) -> bool:
    """Whether anything about a text looks sealed, so that it must not pass as plain.

    It looks sealed if it begins with a mark (of ours, JWE, Fernet, OpenSSL, or a JSON field with
    encoded bytes), or if it has the length of a nonce and a tag, all its characters but one in a
    hundred (and one more) are those of base64, hexadecimal, colons and full stops, and it mixes
    small letters, capitals and digits as encodings do, or is hexadecimal. Prose has a space every
    few letters; an address is told by its ``://``.

    Parameters
    ----------
    text : str
    among_sealed : bool
        Whether other content of the same user was sealed: then a text of one word, or one long
        enough without the mix, looks sealed too.

    Examples
    --------
    >>> looks_sealed("Likes tea, hates coffee.", among_sealed=True)
    False
    >>> looks_sealed("00" * 28, among_sealed=False)
    True
    """
    if _MARKS.match(text):
        return True
    foreign = len(_SPELLED.sub("", text))
    if "://" in text or foreign > 1 + len(text) // 100:
        return False
    if among_sealed and (foreign == 0 or len(text) >= _SHORTEST):
        return bool(text)
    return len(text) >= _SHORTEST and _is_mixed(text)


def _is_mixed(text: str) -> bool:
    kinds = [any(test(sign) for sign in text) for test in (str.islower, str.isupper, str.isdigit)]
    return all(kinds) or len(_HEX.sub("", text)) <= 1 + len(text) // 100


def reason_for(text: str, *, readers: Sequence[Layout], known: Iterable[Layout]) -> str:
    """Why a text could not be opened, in words that name its key, its layout or damage.

    Parameters
    ----------
    text : str
    readers : sequence of Layout
        The layouts that were tried.
    known : iterable of Layout
        Every authenticated layout, to recognise what was not tried.
    """
    tried = {reader.name for reader in readers}
    others = [layout for layout in known if layout.name not in tried]
    objections = (layout.objection(text) for layout in (*readers, *others))
    return (
        next((objection for objection in objections if objection), None)
        or _in_another(text, others, tried)
        or _unauthentic(text, readers, others)
        or _unprotected(text)
        or _unknown(text)
    )


def _in_another(text: str, others: Iterable[Layout], tried: set[str]) -> str | None:
    layout = next((layout for layout in others if layout.open(text) is not None), None)
    if layout is None:
        return None
    return f"sealed as {layout.name}, while this content is read as {_listed(tried)}; {_advice(layout.name)}"


def _unauthentic(text: str, readers: Iterable[Layout], others: Iterable[Layout]) -> str | None:
    layouts = sorted((*readers, *others), key=lambda layout: not layout.marked)
    layout = next((layout for layout in layouts if layout.fits(text)), None)
    return (
        None if layout is None else f"looks like {layout.name}, but did not authenticate: wrong key or damage"
    )


def _unprotected(text: str) -> str | None:
    name = unprotected_layout(text)
    return name and f"looks like {name}, which does not show changes; {_advice(name)}"


def unprotected_layout(text: str) -> str | None:
    """The layout without authentication that a text looks like."""
    if text.startswith("U2FsdGVkX1"):
        return OPENSSL
    iv, colon, data = text.partition(":")
    read, body = spelling(iv), spelling(data)
    blocks = colon and read and body and len(read.raw) == 16 and body.raw and len(body.raw) % 16 == 0
    return CBC if blocks else None


def _unknown(text: str) -> str:
    if not text:
        return "empty, which no sealed content is"
    return 'in no known layout: damage, or plain text; content_format="plain" reads plain text'


def _advice(name: str) -> str:
    return f'content_format="{name}" reads it'


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
