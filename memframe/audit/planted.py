"""Planted text: hidden characters, marks of chat templates, links that carry data out, encoded instructions.

A memory is part of the prompt of the machine that reads it, so whoever can write a memory can instruct that machine. A
text with hidden characters is never a copy of another text, and is never kept in place of one (`hidden_in`,
`with_hidden`).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from memframe.audit.evidence import is_sensitive
from memframe.audit.findings import Finding, Proposal, Severity, list_findings
from memframe.audit.rules import load_rules, matching_places, prefilter_of
from memframe.audit.text import BIDI, SELECTORS, TAGS, ZERO_WIDTH, Memories, MemoryTexts, mask_text
from memframe.display import number_of
from memframe.fields import MEMORY_FIELDS

# ---- hidden characters

_OVERRIDES = "\u202d\u202e"
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_CONTROLS = "\x00-\x08\x0e-\x1f\x7f"
_HIDDEN = re.compile(f"[{TAGS}{SELECTORS}{BIDI}{ZERO_WIDTH}{_PRIVATE}{_CONTROLS}]")
_MAY_HIDE = prefilter_of(_HIDDEN)
_NOT_PLAIN = re.compile(r"[^\t-\r -~]")
"""Any character but the visible ones of ASCII and its blanks."""
_OF_SERVICE = frozenset(field.name for field in MEMORY_FIELDS if not field.is_editable) | {"content_error"}

_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_JOINING = (
    _RIGHT_TO_LEFT
    + "\u0900-\u0fff\u1000-\u109f\u1780-\u18af\u1a20-\u1aaf\u1b00-\u1b7f\ua840-\uaaff\U00011000-\U000116ff"
)
_UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
)
_PICTURE = "\xa9\xae\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_LATIN = "A-Za-z\xc0-\u05ff"
_FLAG = (
    "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    "|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_ORDINARY = re.compile(
    "|".join(
        (
            "\\A\ufeff",  # a byte-order mark
            _FLAG,  # of England, Scotland and Wales
            f"(?<=[{_PICTURE}{SELECTORS}])\u200d(?=[{_PICTURE}])",  # families, professions
            f"(?<=[^\\s{_LATIN}{SELECTORS}])[{SELECTORS}](?![{SELECTORS}])",
            f"(?<=[{_JOINING}])[\u200c\u200d]{{1,2}}|[\u200c\u200d](?=[{_JOINING}])",
            f"(?<=[{_UNSPACED}])\u200b|\u200b(?=[{_UNSPACED}])",  # where a line may break
            "(?<=[^\\W\\d_])\xad(?=[^\\W\\d_])",  # shows only at the end of a line
            "(?<=[\u1100-\u11ff\u3130-\u318f])[\u115f\u1160\u3164]|[\u115f\u1160\u3164](?=[\u1100-\u11ff\u3130-\u318f])",
        )
    )
)
"""Invisible characters that scripts and emoji need, or that are usual in texts; these are not hidden."""
_ORDINARY_MARKS = re.compile(f"(?![{_OVERRIDES}])[{BIDI}]")
_HAS_RIGHT_TO_LEFT = re.compile(f"[{_RIGHT_TO_LEFT}]")


def hidden_in(text: str) -> list[int]:
    """Return the places of characters that are invisible or change what is seen, and that no script needs.

    >>> hidden_in("tea\\u200bpot"), hidden_in("\\U0001f469\\u200d\\U0001f52c")
    ([3], [])
    """
    places = [found.start() for found in _HIDDEN.finditer(text)]
    if not places:
        return []
    ordinary = {place for found in _ORDINARY.finditer(text) for place in range(*found.span())}
    if _HAS_RIGHT_TO_LEFT.search(text):
        ordinary.update(found.start() for found in _ORDINARY_MARKS.finditer(text))
    return [place for place in places if place not in ordinary]


def without_hidden(text: str) -> str:
    """Return a text without its hidden characters.

    >>> without_hidden("Ada likes t\\u200bea.")
    'Ada likes tea.'
    """
    hidden = frozenset(hidden_in(text))
    return "".join(letter for place, letter in enumerate(text) if place not in hidden) if hidden else text


def with_hidden(memories: Memories) -> NDArray[np.bool_]:
    """Return True for rows with hidden characters in any text, in tags, or in a column of your own."""
    return MemoryTexts.of(memories).by_row(_find_rows_with_hidden)


def _find_rows_with_hidden(texts: MemoryTexts) -> NDArray[np.bool_]:
    found = np.zeros(len(texts), bool)
    for name, column in texts.memories.items():
        if name in _OF_SERVICE:
            continue
        if isinstance(column.dtype, pd.StringDtype):
            whole = texts.column(str(name))  # all of it, also beyond the characters that other checks read
            rows = matching_places(whole, [_NOT_PLAIN])
            cells = [*zip(rows.to_pylist(), whole.take(rows).to_pylist(), strict=True)]
        elif column.dtype == object:
            cells = [*enumerate(map(_join_texts, column.tolist()))]
        else:
            continue
        for row, text in cells:
            if not found[row] and not (text.isascii() and text.isprintable()):
                found[row] = bool(hidden_in(text))
    return found


def _join_texts(cell: object) -> str:
    if isinstance(cell, str):
        return cell
    return "\n".join(part for part in cell if isinstance(part, str)) if isinstance(cell, tuple | list) else ""


# ---- the check

_KINDS: dict[str, tuple[Severity, Proposal, float]] = {
    "tag_characters": ("high", "strip", 1.0),
    "zero_width": ("high", "strip", 0.9),
    "bidirectional": ("high", "review", 0.9),  # removing one changes the visible order
    "private_use": ("medium", "review", 0.7),  # a font may show one
    "chat_mark": ("high", "review", 0.9),
    "link": ("high", "review", 0.9),
    "encoded": ("high", "review", 0.9),
}
"""Severity, proposal and score of each kind."""

_INSIDE = r"(?<=[^\W_])[{0}]+(?=[^\W_])"
_SHAPES = (
    ("tag_characters", re.compile(f"[{TAGS}]+|[{SELECTORS}]{{3,}}")),
    ("bidirectional", re.compile(f"[{_OVERRIDES}]|{_INSIDE.format(BIDI)}")),
    ("zero_width", re.compile(f"{_INSIDE.format(ZERO_WIDTH)}|[{ZERO_WIDTH}]{{4,}}|{_INSIDE.format(SELECTORS)}")),
    ("private_use", re.compile(_INSIDE.format(_PRIVATE))),
)  # fmt: skip

_TABLE = load_rules("planted")
_MARKS, _INSTRUCTION, _ABOUT = (
    _TABLE.only(*groups) for groups in (("chat_mark", "image", "link"), ("instruction",), ("about",))
)
_QUOTED = re.compile(
    r"```.{0,20000}?(?:```|\Z)|`[^`\n]{1,2000}`|[\"“«„][^\"“”«»„\n]{1,2000}[\"”»“]|^[ \t]{0,3}>[^\n]{0,2000}",
    re.DOTALL | re.MULTILINE,
)
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/]{24,4000}={0,2}(?![A-Za-z0-9+/_=-])")
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){16,2000}(?![0-9A-Fa-f])")
_SENTENCE = re.compile(r"[A-Za-z']{2,20}(?:[ ,.:;]{1,2}[A-Za-z']{1,20}){2}")


class _Planted(NamedTuple):
    kind: str
    start: int
    end: int
    evidence: str


def find_planted(memories: Memories) -> pd.DataFrame:
    """Find text that people do not see, or that instructs the machine which reads a memory.

    It finds tag, zero-width, bidirectional and private-use characters inside words, marks of chat templates, links that
    would carry data out, and base64 or hexadecimal text that decodes to an instruction. It leaves out characters that
    scripts and emoji need (joiners, variation selectors, marks of right-to-left scripts), text in code or quotes, and
    texts about such attacks. It does not look for instructions in plain words.

    Parameters
    ----------
    memories : DataFrame
        Needs ``id``; looks at ``title``, ``summary`` and ``content``.

    Returns
    -------
    DataFrame
        Findings of the kinds ``tag_characters zero_width bidirectional private_use chat_mark link encoded``, one per
        kind and text. The action is ``strip``, which removes hidden characters, or ``review``.

    Examples
    --------
    >>> memories = pd.DataFrame({"id": ["m1", "m2"], "content": ["Likes tea.\\U000e0048\\U000e0069", "Likes tea."]})
    >>> find_planted(memories)[["kind", "id", "evidence"]].values.tolist()
    [['tag_characters', 'm1', '2 hidden characters (U+E0048 U+E0069): “Hi”']]
    """
    prefilter = "|".join([_MAY_HIDE, *(rule.prefilter for rule in _MARKS.rules), "[A-Za-z0-9+/]{24}"])
    texts = MemoryTexts.of(memories)
    found = []
    for text in texts.search(folded=False).narrow(prefilter):
        for one in _find_in(text.text):
            severity, _, score = _KINDS[one.kind]
            action, why = _choose_action(one, text.text)
            found.append(
                Finding(
                    check="planted",
                    kind=one.kind,
                    severity=severity,
                    id=texts.ids[text.row],
                    field=text.field,
                    start=one.start,
                    end=one.end,
                    score=score,
                    evidence=one.evidence + why,
                    action=action,
                )
            )
    return list_findings(found)


def _choose_action(one: _Planted, text: str) -> tuple[Proposal, str]:
    action = _KINDS[one.kind][1]
    if action == "strip" and not without_hidden(text).strip():
        return "review", "; the text has no other characters"
    return action, ""


def _find_in(text: str) -> Iterator[_Planted]:
    if hidden := frozenset(hidden_in(text)):
        yield from _find_characters(text, hidden)
    if next(_ABOUT.find(text), None):
        return
    open_text = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)
    kinds = set()
    for match in _MARKS.find(open_text):
        if match.rule.kind not in kinds:
            kinds.add(match.rule.kind)
            words = (
                "a mark of chat templates"
                if match.rule.kind == "chat_mark"
                else "a link that would carry data out"
            )
            yield _Planted(match.rule.kind, *match.found.span(), f"{words}: {_quote(match.found[0])}")
    yield from _find_encoded(open_text)


def _find_characters(text: str, hidden: frozenset[int]) -> Iterator[_Planted]:
    for kind, shape in _SHAPES:
        runs = [found for found in shape.finditer(text) if not hidden.isdisjoint(range(*found.span()))]
        if runs:
            letters = [text[place] for found in runs for place in range(*found.span()) if place in hidden]
            codes = " ".join(f"U+{ord(letter):04X}" for letter in letters[:3]) + " …" * (len(letters) > 3)
            decoded = _decode_hidden(letters)
            evidence = f"{number_of(len(letters), 'hidden character', 'hidden characters')} ({codes})"
            yield _Planted(
                kind,
                runs[0].start(),
                runs[-1].end(),
                f"{evidence}: {_quote(decoded)}" if decoded else evidence,
            )


def _decode_hidden(letters: Iterable[str]) -> str:
    """Return the text that tag characters or variation selectors encode."""
    spelled = []
    for code in map(ord, letters):
        if 0xE0020 <= code <= 0xE007E:
            spelled.append(code - 0xE0000)
        elif 0xFE00 <= code <= 0xFE0F:
            spelled.append(code - 0xFE00)
        elif 0xE0100 <= code <= 0xE01EF:
            spelled.append(code - 0xE0100 + 16)
    decoded = "".join(map(chr, spelled))
    return decoded if decoded.isascii() and decoded.isprintable() else ""


def _find_encoded(text: str) -> Iterator[_Planted]:
    for pattern in (_BASE64, _HEX):
        for found in pattern.finditer(text):
            decoded = _decode(found[0], is_hex=pattern is _HEX)
            if decoded and next(_INSTRUCTION.find(decoded), None):
                yield _Planted("encoded", *found.span(), f"encoded: {_quote(decoded)}")
                return


def _decode(word: str, *, is_hex: bool) -> str | None:
    try:
        data = (
            bytes.fromhex(word) if is_hex else base64.b64decode(word + "=" * (-len(word) % 4), validate=True)
        )
        decoded = data.decode("utf-8")
    except (binascii.Error, ValueError):  # most long words are not encoded
        return None
    return decoded if _SENTENCE.search(decoded) and decoded.replace("\n", " ").isprintable() else None


_N_SHOWN = 80


def _quote(decoded: str) -> str:
    """Quote a decoded text with visible characters alone; one with a word about secrets is masked."""
    if is_sensitive(decoded):
        return mask_text(decoded)
    line = " ".join(decoded.split())
    line = "".join(letter if letter.isprintable() else "·" for letter in line)
    return f"“{line if len(line) <= _N_SHOWN else line[: _N_SHOWN - 1] + '…'}”"
