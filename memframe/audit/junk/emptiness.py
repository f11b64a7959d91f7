"""Emptiness: texts that say nothing, or where a template was not filled in."""

from __future__ import annotations

import re

from memframe.audit.junk.signs import Sign, quoted
from memframe.audit.vocabulary import read_vocabulary

_WORDS = read_vocabulary(__package__, "fillers.txt")
_FILLERS, _BETWEEN = _WORDS["fillers"] | _WORDS["between"], _WORDS["between"]
_HOLLOW, _NEGATIONS = _WORDS["hollow"] | _WORDS["classes"] | _WORDS["between"], _WORDS["negations"]
_MAX_WORDS, _MAX_HOLLOW = 4, 14
_WORD = re.compile(r"[^\W_]+(?:[/'’-][^\W_]+)*")

_HOLE = (
    r"(?:\{\{?\s*[\w. ]+\s*\}?\}|\$\{[\w.]+\}|<(?:insert |your |user )?[a-z_ ]{2,30}>"
    r"|\[(?:insert |your |user'?s? )?[A-Za-z_ ]{2,30}\]|%\([\w]+\)s|%[sd]\b|_{3,}|\bYYYY-MM-DD\b)"
)
_UNFILLED = re.compile(
    rf"(?:\b(?:is|are|was|named|called|likes?|prefers?|in|at|from|of|for|to|as|named|dear|hello"
    rf"|hi)(?: (?:an?|the))?|[:=]"
    rf"|^)\s*{_HOLE}|{_HOLE}(?:'s)?\s+(?:is|likes?|prefers?|lives|"
    r"works|has|wants|said)\b",
    re.IGNORECASE,
)
_NO_VALUE = re.compile(
    r"\b(?:name|age|city|location|job|occupation|color|colour|food|hobby|preference|birthday|email|phone"
    r"|address"
    r"|language|value|user|info|information|interest|gender|company)s?"
    r"\s*(?:is|are|:|=|was)\s*(?:null|none|undefined|nan|n/a|unknown|not (?:provided|specified|mentioned"
    r"|available"
    r"|known|given)|unspecified|\[object Object\])\W*$"
    r"|\[object Object\]|\blorem ipsum dolor\b|^\W*lorem ipsum\W*$|\bdolor sit amet\b"
    r"|\b(?:has|have|did|does)(?: not|n['’]t) (?:yet )?(?:provided?|shared?|mention(?:ed)?|g[ai]ven?|stated?"
    r"|disclosed?) (?:his|her|their|any|an?) (?:name|age|location|preferences?|details|information|job|birthday)\W*$"
    r"|^\W*(?:\w+(?: \w+)?\s*:\s*(?:null|none|unknown|n/a|-)?\s*[,;|/\n]?\s*){2,}$"
    r"|^\W*(?:user['’]?s? )?[^\W\d_]+(?: [^\W\d_]+)?\s*[:=]\s*(?:\[\s*\]|\{\s*\}|\"\")?\s*$",
    re.IGNORECASE,
)
_ROW = re.compile(r"(\w)\1+")
_CODE = re.compile(
    r"\b(?:templates?|placeholders?|braces|brackets|jinja|syntax|variables?|f-strings?|mustache|handlebars"
    r"|shell|bash|regex|format"
    r"|code|html|tags?|component)\b",
    re.IGNORECASE,
)

MARKS = (
    r"(?i)^\W*(?:(?:the |this )?(?:users?|assistant|conversation|greetings?|mood|feel\w*|person|info|nothing"
    r"|something)\b[^.\n]{0,90}"
    r"|(?:[\pL\pN]+(?:[/'’-][\pL\pN]+)*\W*){0,4})[.!]?\W*$|[{\[<$%_][\w{( \]}]|[:=]\s*$|YYYY|(?:null|none"
    r"|undefined|\bnan\b|n/a|unknown"
    r"|unspecified|not (?:provided|specified"
    r"|mentioned|available|known|given)|lorem ipsum|dolor sit)"
)
"""A pattern of RE2 that every such text matches."""


def judge_emptiness(text: str) -> Sign | None:
    """Next to nothing, or a template that was not filled in.

    >>> judge_emptiness("...").kind, judge_emptiness("User's name is {{name}}").kind
    ('near_empty', 'template')
    >>> judge_emptiness("Vegetarian.")
    """
    words = [word.lower() for word in _WORD.findall(text)]
    if not words or (len(words) <= _MAX_WORDS and _is_filler(words)):
        return Sign("near_empty", 0.95, f"says nothing: {quoted(text)}" if words else "holds no word")
    if _NO_VALUE.search(text) or (_UNFILLED.search(text) and not _CODE.search(text)):
        return Sign("template", 0.9, f"a template that was not filled in: {quoted(text)}")
    if _is_hollow(words):
        return Sign("near_empty", 0.9, f"says what is true of anybody: {quoted(text)}")
    return None


def _is_hollow(words: list[str]) -> bool:
    """Whether a sentence about somebody uses only words that fit everybody; that something is missing may be a fact."""
    if len(words) > _MAX_HOLLOW or not _HOLLOW.issuperset(words):
        return False
    is_denied = not _NEGATIONS.isdisjoint(words)
    return not (is_denied and not _WORDS["classes"].isdisjoint(words)) and not _BETWEEN.issuperset(words)


def _is_filler(words: list[str]) -> bool:
    """Whether words only fill a place, with a number at most: "test 3", "aaa"."""
    named = [word for word in words if not word.isdecimal()] or words
    return all(word in _FILLERS or _ROW.fullmatch(word) for word in named) and not _BETWEEN.issuperset(named)
