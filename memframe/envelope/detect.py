"""Judging content that no layout opened: is it plain text, and if not, what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memframe.envelope.alphabets import utf8_of
from memframe.envelope.layouts import Authenticated, Layout

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
    """Whether anything about a text looks sealed, so that it must not pass as plain.

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
        Whether other content of the same user was sealed. Then a single word, a long text without the
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
    """Whether the characters of a text are spread as in base64, or nearly all hexadecimal."""
    n_upper, n_lower = (sum(map(test, text)) for test in (str.isupper, str.islower))
    has_digits = any(map(str.isdigit, text))
    is_base64 = n_upper and n_lower and (has_digits or 5 * n_upper > len(text))
    return bool(is_base64) or len(_HEX.sub("", text)) <= len(text) // 10


def reason_for(text: str, *, readers: Sequence[Layout], known: Iterable[Layout]) -> str:
    """Why a text could not be opened, in words that name its key, its layout or damage.

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
        or _in_another(text, others, tried)
        or _unopened(text, readers, others)
        or _unknown(text)
    )


def _in_another(text: str, others: Sequence[Layout], tried: set[str]) -> str | None:
    provable = (layout for layout in others if isinstance(layout, Authenticated))
    layout = next((layout for layout in provable if layout.open(text) is not None), None)
    if layout is None:
        return None
    return f"sealed as {layout.name}, while this content is read as {_listed(tried)}; {_advice(layout.name)}"


def _unopened(text: str, readers: Sequence[Layout], others: Sequence[Layout]) -> str | None:
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
    """Marks first, as they leave no doubt; the sort keeps what was tried before what was not."""
    return 0 if layout.marked else 1


def _unknown(text: str) -> str:
    if not text:
        return "empty, which no sealed content is"
    if utf8_of(text) is None:
        return "holds half of a surrogate pair, which is not Unicode: damage"
    return 'in no known layout: damage, or plain text; content_format="plain" reads plain text'


def _advice(name: str) -> str:
    return f'content_format="{name}" reads it'


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
