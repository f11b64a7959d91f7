"""Spelling: what of it says nothing is taken away from texts.

Case, punctuation, accents, wrappers such as «Note:», contractions and the marks of thousands vanish; a decimal, a
time of day or a word stays one word, a digit beside a letter becomes its own, and where a script writes no spaces
each character is a word. All of it runs in Arrow (RE2), a column at a time.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from memframe.audit.language.lexicon import DECIMAL, MINUTES, MONTH
from memframe.audit.language.wrappers import WRAPPER, WRAPPER_AFTER

Rules = tuple[tuple[str, str], ...]
"""Patterns, and what stands instead."""

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"

_SYMBOLS = {
    "€": " euro ",
    "$": " dollar ",
    "£": " pound ",
    "%": " percent ",
    "&": " and ",
    "ß": "ss",
    "👎": " not ",
    "🚫": " not ",
    "❌": " not ",
}
_APOSTROPHE = r"[\x{2019}\x{2018}\x{201b}\x{2bc}\x{2032}\x{b4}`]"
_SIGNS = (
    (r"[\x{ad}\x{200b}-\x{200d}\x{2060}\x{feff}]", ""),  # nobody sees them
    (r"\b([cfj])#", r"\1sharp "),
    (r"\bc\+\+", "cplusplus "),
    (r"(^|[\s(])[\x{2212}-](\d)", r"\1minus \2"),
    (r"\b(ab|[abo])\+", r"\1 positive "),
    (r"\b(ab|[abo])[\x{2212}-]($|[^\pL\pN])", r"\1 negative\2"),
    (r"\bused to (\pL)", r"formerly \1"),
    (r"([,;(]) ?(?:was|were|previously) (\pL)", r"\1 formerly \2"),
    (r"\babout to (\pL)", r"going to \1"),
    (r"\b(each|every) (?:other|second) ", r"\1 alternate "),
    (r"\b(ex|non|step|half|foster|grand|great|god|pre|post|anti|semi|vice)-(\pL)", r"\1\2"),
)
_FILLING = (
    r"\b(?:of course|as far as (?:i know|we know|is known|known)|in fact|by the way|you know|kind of|sort of|"
    r"to be honest|for sure|in general|at the moment|right now|as of now|as it happens|it seems(?: that)?|i think)\b"
)
_WHOLE = r"(?:all|none|no|(?:any|every|no)(?:thing|one|body|where)?)"
_EXCEPT = r"(?:but(?: not)?|bar|apart from|aside from|other than|except for|excluding|save for)"
_CONTRACTIONS = (
    (_FILLING, " "),
    (rf"\b({_WHOLE}(?: (?:of )?(?:the |his |her |their |my )?\pL+)?),? {_EXCEPT} ", r"\1 except "),
    (r"\bcan(?:'t|not)\b", "can not"),
    (r"\b(do|does|did|is|are|was|were|would|should|could|have|has|had|ai|wo)n'?t\b", r"\1 not"),
    (r"'(?:s|re|ve|ll|d|m)\b", ""),
    (r"\bn(?:e |')(\pL+) plus\b", r"not \1"),
    (r"\b[cdjlmnst]'(\pL\pL)", r"\1"),
    (r"\bany more(\W*$|[.,;!?])", r"anymore\1"),
    (r"\b(?:no more than|up to)\b", "at most"),
    (r"\bno (?:less|fewer) than\b", "at least"),
)
_MOMENTS = (
    (r"(\d|\b[ap]\.?m\.?) ?(cet|est)\b", r"\1 \2zone"),  # which are light words of French
    (r"\b(\d{4})-(\d\d)-(\d\d)\b", rf"\3 {MONTH}\2 \1"),
    (r"\b(\d\d?)\. ?(\d\d?)\. ?(\d{4})\b", rf"\1 {MONTH}\2 \3"),
    (r"\b(1[3-9]|2\d|3[01])/(0?[1-9]|1[0-2])/(\d{4})\b", rf"\1 {MONTH}\2 \3"),
    (r"\b(0?[1-9]|1[0-2])/(1[3-9]|2\d|3[01])/(\d{4})\b", rf"\2 {MONTH}\1 \3"),
    (r"(\d) *([ap])\.? ?m\b\.?", rf"\1{MINUTES}\2m"),
    (rf"(\d)[.:](\d\d){MINUTES}([ap]m)", rf"\1{MINUTES}\2{MINUTES}\3"),
)
"""Of the dates in digits those of which it is certain which number is the month."""
_NUMBERS = (
    (r"\b([1-9]\d?\d?)\.(\d\d\d)\b", r"\1\2"),
    (r"(\d)[,\x{202f}\x{a0}](\d\d\d)\b", r"\1\2"),
    (r"(\d)[,\x{202f}\x{a0}](\d\d\d)\b", r"\1\2"),  # once more, as the groups of 1,234,567 share a digit
    (r"(\d)[.,](\d)k\b", r"\1\200"),
    (r"(\d)k\b", r"\1000"),
    (r"(\d)[.,](\d)", rf"\1{DECIMAL}\2"),
    (r"(\d):(\d\d)", rf"\1{MINUTES}\2"),
    (r"(\d)[ -]second\b", r"\1 seconds"),
    (r"(\d)(\pL)", r"\1 \2"),
    (r"(\pL)(\d)", r"\1 \2"),
)


def plain(texts: pa.Array) -> pa.Array:
    """Lower case, wrappers off, contractions written out, words apart.

    >>> plain(pa.array(["Note: the rent isn't 1,250, it's due at 3 PM"])).to_pylist()
    ['the rent is not 1250, it due at 3¦pm']
    """
    texts = pc.replace_substring_regex(pc.utf8_lower(pc.utf8_normalize(texts, "NFKC")), _APOSTROPHE, "'")
    for symbol, name in _SYMBOLS.items():
        texts = pc.replace_substring(texts, symbol, name)
    for pattern in (WRAPPER, WRAPPER_AFTER):
        texts = _unless_empty(pc.replace_substring_regex(texts, pattern, ""), texts)
    for rules in (_SIGNS, _CONTRACTIONS, _MOMENTS, _NUMBERS):
        texts = _replaced(texts, rules)
    return pc.replace_substring_regex(texts, f"([{_UNSPACED}])", r" \1 ")


def _replaced(texts: pa.Array, rules: Rules) -> pa.Array:
    """All rules, one after the other, in the texts in which any of them finds something."""
    found = pc.fill_null(
        pc.match_substring_regex(texts, "|".join(f"(?:{pattern})" for pattern, _ in rules)), False
    )
    some = texts.filter(found)
    for pattern, replacement in rules:
        some = pc.replace_substring_regex(some, pattern, replacement)
    return pc.replace_with_mask(texts, found, some)


def _unless_empty(texts: pa.Array, before: pa.Array) -> pa.Array:
    """A text that is nothing but wrapper stays."""
    return pc.if_else(pc.match_substring_regex(texts, r"[\pL\pN]"), texts, before)
