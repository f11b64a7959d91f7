"""Evidence for people: words of memories, of which none may give a secret away."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

_SECRET = re.compile(
    r"pass ?(?:word|code|phrase|wort)|kennwort|contrase|mot de passe|wachtwoord|\bpin\b|\bpins\b|secret|token|api.?key|"
    r"\bkeys?\b|\bcode\b|seed|recover|mnemonic|credential|login|\bcvv|\bcvc|\biban\b|\bcard\b|\baccount\b|\bssn\b|"
    r"social security|passport|security (?:question|answer)|maiden|unlock|combination|geheim|密码|口令|كلمة",
    re.IGNORECASE,
)
"""Where one of these stands, any other word may be the secret."""

_SIEVE = "(?i)" + _SECRET.pattern.replace("i", r"[i\x{130}\x{131}]")
"""The same for RE2, which takes a hundredth of the time; an i may be a Turkish one, which Python alone knows."""

_TELLING = re.compile(r"\d{6}|(?=.*\d)(?=.*[^\W\d]).{8}|@|.{25}")


def is_delicate(text: str) -> bool:
    """Whether a text speaks of secrets, so that none of its words may be shown.

    >>> is_delicate("The padlock opens with the PIN 4071."), is_delicate("The rent is 640 pounds.")
    (True, False)
    """
    return _SECRET.search(text) is not None


class Delicate:
    """Which texts of a column speak of secrets.

    >>> Delicate(pa.array(["The padlock opens with the PIN 4071.", "The rent is 640 pounds."])).any_of(1)
    False
    """

    def __init__(self, texts: pa.Array) -> None:
        self._texts, self._may_be = texts, pc.match_substring_regex(texts, _SIEVE).to_pylist()

    def any_of(self, *rows: int) -> bool:
        return any(self._may_be[row] and is_delicate(self._texts[row].as_py()) for row in rows)


def shown(words: Iterable[str], *, delicate: bool) -> str:
    """Words as evidence: in the open, or their first characters and lengths.

    >>> shown(["640"], delicate=False), shown(["4071"], delicate=True), shown(["sk82hd92kx"], delicate=False)
    ('640', '4… (4)', 's… (10)')
    """
    return " ".join(_masked(word) if delicate or _TELLING.search(word) else word for word in words)


def _masked(word: str) -> str:
    return f"{word[0]}… ({len(word)})"
