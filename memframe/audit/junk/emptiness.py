"""Emptiness: texts that say nothing, or where a template was not filled in."""

from __future__ import annotations

import re
from unicodedata import category

from memframe.audit.junk.signs import Sign, quoted
from memframe.audit.language.vocabulary import one_of, read_vocabulary

_WORDS = read_vocabulary(__package__, "fillers.txt")
_FILLERS, _BETWEEN = _WORDS["fillers"] | _WORDS["between"], _WORDS["between"]
_HOLLOW, _NEGATIONS = _WORDS["hollow"] | _WORDS["classes"] | _WORDS["between"], _WORDS["negations"]
_MAX_WORDS, _MAX_HOLLOW = 4, 14
_WORD = re.compile(r"[^\W_]+(?:[/'’-][^\W_]+)*")

_HOLE = one_of(
    braces=r"\{\{?\s*[\w. ]+\s*\}?\}, \$\{[\w.]+\}",
    brackets=r"<(?:insert |your |user )?[a-z_ ]{2,30}>, \[(?:insert |your |user'?s? )?[A-Za-z_ ]{2,30}\]",
    formats=r"%\([\w]+\)s, %[sd]\b, \bYYYY-MM-DD\b",
    lines=r"_{3,}",
)
_BEFORE_A_HOLE = one_of(
    verbs="is, are, was, named, called, likes?, prefers?",
    places="in, at, from, of, for, to, as",
    greetings="dear, hello, hi",
)
_AFTER_A_HOLE = one_of("is, likes?, prefers?, lives, works, has, wants, said")
_UNFILLED = re.compile(
    rf"(?:\b{_BEFORE_A_HOLE}(?: (?:an?|the))?|[:=]|^)\s*{_HOLE}|{_HOLE}(?:'s)?\s+{_AFTER_A_HOLE}\b",
    re.IGNORECASE,
)
_FIELD = one_of(
    person="name, age, gender, birthday, job, occupation, company",
    reach="email, phone, address, city, location, language",
    taste="color, colour, food, hobby, preference, interest",
    anything="value, user, info, information",
)
_NOT_KNOWN = one_of("provided, specified, mentioned, available, known, given")
_NO_VALUE_AT_ALL = one_of(
    programs=r"null, none, undefined, nan, \[object Object\]",
    people=rf"n/a, unknown, unspecified, not {_NOT_KNOWN}",
)
_HAS_NOT = rf"{one_of('has, have, did, does')}(?: not|n['’]t) (?:yet )?"
_TOLD = one_of("provided?, shared?, mention(?:ed)?, g[ai]ven?, stated?, disclosed?")
_WHOSE = one_of("his, her, their, any, an?")
_DETAIL = one_of("name, age, location, preferences?, details, information, job, birthday")
_NO_VALUE = re.compile(
    one_of(
        field=rf"\b{_FIELD}s?\s*(?:is|are|:|=|was)\s*{_NO_VALUE_AT_ALL}\W*$",
        objects=r"\[object Object\], ^\W*(?:undefined|null|nan) \w+s\b",
        printers=r"\blorem ipsum dolor\b, ^\W*lorem ipsum\W*$, \bdolor sit amet\b",
        untold=rf"\b{_HAS_NOT}{_TOLD} {_WHOSE} {_DETAIL}\W*$",
        forms=r"^\W*+(?:\w++(?: \w++)?\s*+:\s*+(?:(?:null|none|unknown|n/a|-)\s*+)?(?:[,;|/\n]\s*+)?){2,}+$",
        unsaid=rf"\b{_FIELD}s?\s(?:has|have)(?: not|n['’]t) (?:yet )?been {_NOT_KNOWN}\W*$",
        cut=r"^\W*(?:the )?user (?:is|has|prefers|likes|wants|needs|works (?:at|as|for|in)|lives in)\s*[.…]*\s*$",
        empty=r"^\W*(?:user['’]?s? )?[^\W\d_]+(?: [^\W\d_]+)?\s*[:=]\s*(?:\[\s*\]|\{\s*\}|\"\")?\s*$",
    ),
    re.IGNORECASE,
)
_ROW = re.compile(r"(\w)\1+")
_BLANK = re.compile(r"P.|Z.|Cc|Cf|Sm|Sk")
"""Unicode categories of characters that say nothing alone: punctuation, blanks, lines of signs; an emoji may."""

_CODE = re.compile(
    r"\b"
    + one_of(
        templates="templates?, placeholders?, braces, brackets, jinja, mustache, handlebars, f-strings?",
        languages="shell, bash, regex, html, code, syntax, variables?, format, tags?, component",
    )
    + r"\b",
    re.IGNORECASE,
)
"""Whoever speaks of templates may show one."""

_SHORT = one_of(
    about=r"(?:the |this )?(?:users?|assistant|conversation|greetings?|mood|feel\w*|person|info|nothing|something)\b"
    r"[^.\n]{0,90}",
    few=r"(?:[\pL\pN]+(?:[/'’-][\pL\pN]+)*\W*){0,4}",
)
_LOOKS = one_of(
    holes=r"[{\[<$%_][\w{( \]}], [:=]\s*$, YYYY",
    values=rf"null, none, undefined, \bnan\b, n/a, unknown, unspecified, not {_NOT_KNOWN}",
    printers="lorem ipsum, dolor sit",
)
MARKS = rf"(?i)^\W*{_SHORT}[.!]?\W*$|{_LOOKS}"
"""A pattern of RE2 that every such text matches."""


def judge_emptiness(text: str) -> Sign | None:
    """Next to nothing, or a template that was not filled in.

    >>> judge_emptiness("...").kind, judge_emptiness("test 3").kind, judge_emptiness("User's name is {{name}}").kind
    ('empty', 'near_empty', 'template')
    >>> judge_emptiness("Vegetarian.")
    """
    if all(_BLANK.match(category(character)) for character in text):
        return Sign("empty", 0.95, "holds no word")
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
    tells = _WORDS["classes"] | _WORDS["wishes"]
    return not (is_denied and not tells.isdisjoint(words)) and not _BETWEEN.issuperset(words)


def _is_filler(words: list[str]) -> bool:
    """Whether words only fill a place, with a number at most: "test 3", "aaa"."""
    named = [word for word in words if not word.isdecimal()] or words
    return all(word in _FILLERS or _ROW.fullmatch(word) for word in named) and not _BETWEEN.issuperset(named)
