"""Sieves: patterns of RE2 that rule most texts out, made from the patterns of Python that have the last word.

RE2 takes a hundredth of the time, and cannot do all that Python can. So a sieve lets more through: it looks neither
ahead nor back, counts only to a few, and takes every text with a sign beyond ASCII, of which the two think otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_TOKEN = re.compile(
    r"""(?P<escaped>\\.)
    |(?P<one_of>\[\^?\]?(?:\\.|[^\]\\])*\])
    |(?P<looking>\(\?<?[=!])
    |(?P<group>\((?:\?P<\w+>|\?>|(?!\?)))
    |(?P<flags>\(\?[a-z-]*:)
    |(?P<end>\))
    |(?P<times>[*+?]|\{(?P<least>[0-9]*)(?P<comma>,?)(?P<most>[0-9]*)\})[+?]?
    |(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_MOST = 8
"""Repeats that are counted: more would make the sieve large, and slow."""

_BEYOND_ASCII = r"[^\t\n\r -~]"


def sieve_of(*patterns: re.Pattern[str]) -> str:
    r"""A pattern of RE2 that matches every text in which any of some patterns is found, and others.

    >>> import pyarrow as pa, pyarrow.compute as pc
    >>> sieve = sieve_of(re.compile(r"(?<!no )\bTEA\b", re.IGNORECASE), re.compile("coffee"))
    >>> pc.match_substring_regex(pa.array(["Tea for two", "no tea", "cocoa", "C\u00e9cile"]), sieve).to_pylist()
    [True, True, False, True]
    """
    return "|".join([_BEYOND_ASCII, *dict.fromkeys(map(_translated, patterns))])


def _translated(pattern: re.Pattern[str]) -> str:
    if pattern.flags & re.VERBOSE:
        raise ValueError("a pattern with remarks has to be written without them")
    flags = "".join(
        letter
        for letter, flag in (("i", re.IGNORECASE), ("m", re.MULTILINE), ("s", re.DOTALL))
        if pattern.flags & flag
    )
    end = "$" if pattern.flags & re.MULTILINE else r"\n?\z"
    parts = (_part(token, end) for token in _seen(_TOKEN.finditer(pattern.pattern)))
    return f"(?{flags}:{''.join(parts)})"


def _seen(tokens: Iterable[re.Match[str]]) -> Iterator[re.Match[str]]:
    """What of a pattern is left when nothing looks ahead or back."""
    depth = 0
    for token in tokens:
        if depth or token.lastgroup == "looking":
            depth += token.lastgroup in {"looking", "group", "flags"}
            depth -= token.lastgroup == "end"
        else:
            yield token


def _part(token: re.Match[str], end: str) -> str:
    match token.lastgroup:
        case "group":
            return "(?:"
        case "times":
            return _times(token)
        case "escaped":
            return token[0].replace(r"\Z", r"\z")
        case "other":
            return end if token[0] == "$" else token[0]
    return token[0]


def _times(token: re.Match[str]) -> str:
    """How often something comes, at least as freely."""
    if not token["least"] and not token["most"]:
        return token["times"]
    least, most = int(token["least"] or 0), int(token["most"] or token["least"] or 0)
    if most <= _MOST and not (token["comma"] and not token["most"]):
        return f"{{{least},{most}}}"
    return f"{{{min(least, _MOST)},}}"
