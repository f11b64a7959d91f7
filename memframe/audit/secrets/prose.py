"""Find secrets that people tell in a sentence: passwords, PINs, door codes, recovery codes, security answers.

A keyword announces a secret ("the wifi password"). Its value follows a link ("is", a colon, "was changed to"), or comes
before the keyword ("uses hunter2 as the password"), or is anywhere else in the sentence and has the shape of a secret
("for the lockbox, Maria said try 2710"). After a link any word may be a value. Elsewhere the weights of its shape, of
the keyword and of the words between them are added up, and compared with `ENOUGH`. Words and weights are data
(`rules/secret_prose.toml`).

Only the text near a keyword is read, so that the time is proportional to the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Literal, NamedTuple

from memframe.audit.rules import Rule, load_rules, prefilter_of
from memframe.audit.secrets.shapes import (
    LAST_LATIN,
    POSTAL_DIGITS,
    READERS,
    STOPS,
    YEAR,
    Candidate,
    Link,
    pattern_of,
)
from memframe.audit.secrets.values import (
    WIDE_STOPS,
    closes_code,
    is_amount,
    is_elided,
    is_identifier,
    is_mixed,
    is_placeholder,
    is_plain,
    is_strong,
    looks_drawn,
    names_a_thing,
)
from memframe.audit.text import Span

_RULES = load_rules("secret_prose")
KEYWORDS = {rule.group: rule for rule in _RULES.rules if "read" in rule.options}
_WITHIN = {name for name, rule in KEYWORDS.items() if rule.options.get("within")}
"""Groups of keywords that may begin within a word."""
_READ = {name: read for name, rule in KEYWORDS.items() if (read := READERS.get(str(rule.options["read"])))}
"""Readers of the value by the group of its keyword; a group without one counts as evidence only."""


def _any_of(rules: Mapping[str, Rule]) -> Rule:
    named = {name: f"(?P<{name}>{rule.regex.pattern})" for name, rule in rules.items()}
    whole = "|".join(pattern for name, pattern in named.items() if name not in _WITHIN)
    within = "|".join(pattern for name, pattern in named.items() if name in _WITHIN)
    pattern = rf"(?<![^\W_])(?:{whole})(?!\w)|{within}"
    return Rule(group="keyword", finds=(), misses=(), pattern=pattern, exact_case=True)


KEYWORD = _any_of(KEYWORDS)
"""Pattern of all keywords, with a group for each, for texts in small letters."""

ASCII_KEYWORD = _any_of({name: rule for name, rule in KEYWORDS.items() if rule.options.get("ascii", True)})
"""The same pattern without keywords of other scripts; it takes half the time for texts of ASCII."""

PREFILTER = "|".join(
    (
        prefilter_of(*(KEYWORDS[name].regex for name in _WITHIN)),
        rf"(?:\A|[^0-9A-Za-z])(?:{prefilter_of(*(rule.regex for rule in KEYWORDS.values()))})(?:\z|[^0-9A-Za-z_])",
    )
)
"""A pattern of RE2 that every text with a secret near a keyword matches."""

_SMALL = {
    ord(capital): capital.lower() for capital in map(chr, range(0x41, 0x530)) if len(capital.lower()) == 1
} | {ord("İ"): "i"}
"""Table for `str.translate` to small letters, which keeps the length of a text."""

_MAX_SENTENCE_CHARS = 320
"""Characters of a sentence that are read; a longer one is a table, or code."""
_MAX_KEYWORDS = 12
"""Keywords of a sentence that are read. Of 3,883 sentences with a keyword, 3 have more, and with 6 the findings are the
same; without a bound, hostile texts take a sixth longer."""
_MAX_VALUES = 12
"""Values of a sentence that are read; a sentence with more is a table."""


class Keyword(NamedTuple):
    """Occurrence of a word that announces a secret."""

    group: str
    start: int
    end: int


def find_in_prose(text: str) -> Iterator[Span]:
    """Find secrets near a keyword.

    >>> text = "Her password for the bakery is hunter2. The PDF is protected, open it with Rechnung!0815"
    >>> sorted({text[span.start : span.end] for span in find_in_prose(text)})
    ['Rechnung!0815', 'hunter2']
    """
    small = text.translate(_SMALL)
    keywords = list(_find_keywords(text, small))
    found_at: dict[Keyword, int] = {}
    for keyword in keywords:
        for _, span in _find_linked(text, small, keyword):
            found_at.setdefault(keyword, span.start)
            yield span
    yield from _find_within(text, small, keywords, found_at)


def _find_keywords(text: str, small: str) -> Iterator[Keyword]:
    for match in (ASCII_KEYWORD if small.isascii() else KEYWORD).regex.finditer(small):
        start, end = match.span()
        is_test = match.lastgroup == "loose" and text[start:end].isupper()  # "PASS"
        if not is_test and not pattern_of("about").match(small[end : end + 40]):
            yield Keyword(str(match.lastgroup), start, end)


# ---- values after a link, and before a keyword

_CHARS_TO_LINK = 120
"""Characters after a keyword in which its links are searched."""
_CHARS_OF_VALUE = 240
"""Characters from the beginning of a value that its reader gets."""
_CHARS_BEFORE = 120
"""Characters before a keyword that decide on its meaning."""
_MAX_LINKS = 4
"""Links that are tried after one keyword."""

_BARE = re.compile(rf"[^\s\"“”«»`<>{WIDE_STOPS}]{{1,200}}")
_GOES_ON = re.compile(rf"[^\s\"“”«»`<>{WIDE_STOPS}]*+")
"""Rest of a value behind the part that its reader gets."""
_QUOTED = re.compile(r"[\"“„«`‘'](?P<quoted>[^\"“”„«»`\n]{1,120}?)[\"”“»`’'](?!\w)")
_REVERSIBLE = frozenset({"password", "pin", "code", "lock_code"})
"""Groups of keywords whose value may come before them."""


def _find_linked(text: str, small: str, keyword: Keyword) -> Iterator[tuple[Link, Span]]:
    """Find the values that a link ties to a keyword, after or before it, each with the link."""
    if keyword.group in _READ:
        yield from _find_after(text, small, keyword)
        yield from _find_before(text, small, keyword)


def _find_after(text: str, small: str, keyword: Keyword) -> Iterator[tuple[Link, Span]]:
    """Find the value that follows a keyword, directly or after words and a link, and those that it was changed to."""
    end = 0  # of the last value
    for link, begin, purpose in _links_after(small, keyword):
        is_next = not end or (link == "set" and begin > end)
        if is_next and (span := _read(text, small, keyword, begin, link, purpose)):
            yield link, span
            end = span.end


def _links_after(small: str, keyword: Keyword) -> Iterator[tuple[Link, int, str]]:
    """Yield the links after a keyword, each with the beginning of its value and the words of the purpose before it."""
    end, limit = keyword.end, min(len(small), keyword.end + _CHARS_TO_LINK)
    before = small[max(0, keyword.start - _CHARS_BEFORE) : keyword.start]
    next_to = pattern_of("right_beside").match(small, end, limit)
    closes_quote = small[end : end + 1] in ("'", '"', "`") and before.count(small[end]) % 2 == 1
    if next_to and not closes_quote:
        yield "beside", next_to.end(), ""
    begin = end
    for _ in range(_MAX_LINKS):
        match = pattern_of("link").search(small, begin, limit)
        if match is None:
            return
        purpose = small[end : match.start()]
        if link := _kind_of_link(match, purpose, keyword.group, before):
            yield link, match.end(), purpose
        if match.end() - match.start() == 1:
            return  # the next search would find the same sign again
        begin = match.end() - 1  # the last sign of one link may be the first of the next


_MAY_BE_DESCRIBED = frozenset({"password", "pin", "code"})
"""Groups of keywords that a comma may link to their value after a description."""
_IN_TABLES = frozenset({"password", "foreign", "key"})
"""Groups of keywords whose value may be in the next cell of a table."""

_SAME_AS: dict[str, Link] = {"later": "named", "to": "set"}
"""Links by the groups of the pattern that are not called like their link."""


def _kind_of_link(match: re.Match[str], purpose: str, group: str, before: str) -> Link | None:
    """Return the kind of a link; None if it does not belong to the keyword."""
    name = str(match.lastgroup)
    if name == "comma" and group != "answer":  # "is my dog's name, ..."
        return "named" if group in _MAY_BE_DESCRIBED and pattern_of("described").match(purpose) else None
    if name == "to" and not pattern_of("changed").search(before):
        return None
    if "|" in match[0] and group not in _IN_TABLES:
        return None
    if match[0].startswith(("'", "’")) and ":" not in match[0] and purpose:  # "is on the router's label"
        return None
    if name == "later" or pattern_of("purpose").match(purpose):
        return _SAME_AS.get(name, name)  # type: ignore[arg-type]
    return "named" if name in ("is", "colon") and pattern_of("named").match(purpose) else None


def _find_before(text: str, small: str, keyword: Keyword) -> Iterator[tuple[Link, Span]]:
    """Find a value before its keyword: "hunter2 is the wifi password", "uses hunter2 as a password"."""
    before = small[max(0, keyword.start - _CHARS_BEFORE) : keyword.start]
    if not before[-1:].isspace() or keyword.group not in _REVERSIBLE:
        return
    match = pattern_of("reversed").search(before)
    if match is None or pattern_of("of_all").match(small[keyword.end : keyword.end + 40]):
        return
    group = "bare" if match["bare"] else "quoted"
    start, end = (keyword.start - len(before) + place for place in match.span(group))
    begin = start - 1 if group == "quoted" else start  # a quoted value is read from its quotation mark
    link: Link = "is" if pattern_of("chosen").search(before[: match.start(group)]) else "reversed"
    span = _read(text, small, keyword, begin, link, "")
    if span is not None and span.end == end:
        yield link, span


def _read(text: str, small: str, keyword: Keyword, begin: int, link: Link, purpose: str) -> Span | None:
    """Return the secret that begins at a place; None if there is none."""
    rule = KEYWORDS[keyword.group]
    quoted = _QUOTED.match(text, begin)
    if quoted and closes_code(text, begin):
        return None
    if quoted:
        begin += 1  # after the quotation mark
    candidate = Candidate(
        rest=text[begin : begin + _CHARS_OF_VALUE],
        quoted=quoted["quoted"] if quoted else None,
        bare=bare[0] if (bare := _BARE.match(text, begin)) else "",
        link=link,
        keyword=small[keyword.start : keyword.end],
        purpose=purpose,
        before=small[max(0, keyword.start - _CHARS_BEFORE) : keyword.start],
    )
    found = _READ[keyword.group](candidate)
    if found is None or is_elided(candidate.rest, found.end):
        return None
    start, end = begin + found.start, begin + found.end
    is_label = text[start:end].isalpha() and text.startswith(": ", end)
    if is_label:  # "password for ada: sudo: no password was given"
        return None
    basis = _basis_of(candidate, text[start:end], str(rule.options["read"]))
    if quoted is None and end == begin + len(candidate.bare):
        end = _GOES_ON.match(text, end).end()  # type: ignore[union-attr]
    return Span(rule.kind, start, end, found.score, basis=basis)


_DIRECT: frozenset[Link] = frozenset({"is", "colon", "set"})
"""Links that put a value directly after its label."""

_LABELS = frozenset({"password", "key", "pin", "access_code", "recovery", "once", "totp"})
"""Kinds of values whose keywords have one meaning; "pass" and "login" have others."""


def _basis_of(candidate: Candidate, text: str, read: str) -> str:
    """Return "label" for a value without blanks that is no word and follows its label, else "sentence"."""
    has_blanks = any(map(str.isspace, text))
    is_no_word = any(map(str.isdecimal, text)) or is_mixed(text)
    is_direct = candidate.link in _DIRECT or (
        candidate.link == "beside" and pattern_of("closed").match(candidate.rest[len(text) :]) is not None
    )
    follows_label = is_direct or (candidate.link in ("beside", "named", "dash") and looks_drawn(text))
    return "label" if read in _LABELS and not has_blanks and is_no_word and follows_label else "sentence"


# ---- values anywhere in the sentence of a keyword


class Evidence(NamedTuple):
    """Evidence that a value is a secret or, with a negative weight, that it is none."""

    what: str
    weight: float


EVIDENCE = {
    "turns": Evidence("turns of a dial", 3),
    "groups": Evidence("pairs of digits", 3),
    "digits": Evidence("digits", 2),
    "keys": Evidence("digits with a # or *", 3),
    "year": Evidence("a year", 1),
    "blocks": Evidence("blocks of capitals and digits", 4),
    "short": Evidence("a few capitals and digits", 1),
    "mixed": Evidence("letters with digits or signs", 3),
    "strong": Evidence("letters with digits and signs", 4),
    "opened": Evidence("a keyword for a code next to a lock", 2),
    "supported": Evidence("a second keyword", 1),
    "led": Evidence("a link to the keyword", 2),
    "close": Evidence("words about its purpose alone between", 1),
    "apart": Evidence("other words between", -1),
    "far": Evidence("far from its keyword", -1),
    "doubted": Evidence("a word against a secret", -3),
}
"""Evidence by name. The evidence of a keyword has the weight of its rule (`rules/secret_prose.toml`)."""

ENOUGH = 5
"""Least weight of the evidence for a secret: for instance a shape, a keyword that announces one, and a link.

Among the texts of the tests, 4 finds nine values that are no secrets («Her password is older than her iPhone12»), and 6
misses three secrets («If the alarm goes off, enter 3391»).
"""

_LOOSE_SHAPES = frozenset({"word", "digits", "short", "blocks"})
"""Shapes that many other values have as well."""

_SIGN = re.compile(r"[!@#$%^&*+=~|<>?]")

_OF_DIGITS = frozenset(
    {"pin", "unlock", "once", "lock", "lock_code", "code", "compound_code", "recovery"}
) | {"foreign_pin", "foreign_code", "code_of_lock"}
"""Groups of keywords that announce digits, or digits and dashes."""
_OF_WORDS = frozenset({"password", "foreign", "login", "address", "network", "recovery"})
"""Groups of keywords that announce words with digits and signs."""

_CHARS_FAR = 60
"""Characters between a value and its keyword beyond which the distance counts against it."""

_LONG_NUMBER = 6
"""Fewest digits of a number that may be a password."""

_SCORE = 0.7
"""Score of a value that is found by evidence alone, which is the lowest of a value after a link."""


class _Place(NamedTuple):
    """Place of a value that has the shape of a secret."""

    shape: str
    """Group of the pattern of values that matches it."""
    evidence: Evidence
    """Evidence of its characters alone."""
    before: str
    """Text before it in its sentence, in small letters."""
    start: int
    end: int


def describe_evidence(text: str) -> Iterator[str]:
    """Describe the evidence for and against each value of a text, found or not.

    A value after a link is found by the link alone. One that is elsewhere in the sentence of a keyword is found if the
    weights of its evidence add up to `ENOUGH`.

    >>> texts = ["Her wifi password is hunter2.", "He uses hunter2 as the password.", "For the shed punch in 4071."]
    >>> texts += ["To open the gate, dial 4071#", "Gate code and the year 1987"]
    >>> texts += ["Password reset link was sent to Kx9!pq22"]
    >>> for text in texts:
    ...     print(*describe_evidence(text))
    hunter2 (found): keyword password, link "is"
    hunter2 (found): keyword password, link "reversed"
    4071 (5, found): digits +2, keyword lock +1, a link to the keyword +2
    4071# (6, found): digits with a # or * +3, keyword lock +1, a link to the keyword +2
    1987 (2, not found): a year +1, keyword lock +1, a second keyword +1, other words between -1
    Kx9!pq22 (5, found): letters with digits and signs +4, keyword password +2, ...
    """
    small = text.translate(_SMALL)
    keywords = list(_find_keywords(text, small))
    found_at: dict[Keyword, int] = {}
    linked = set()
    for keyword in keywords:
        for link, span in _find_linked(text, small, keyword):
            found_at.setdefault(keyword, span.start)
            linked.add(span.start)
            yield f'{text[span.start : span.end]} (found): keyword {keyword.group}, link "{link}"'
    for place, evidence, _ in _weigh_places(text, small, keywords, found_at):
        if place.start in linked:
            continue
        listed = ", ".join(f"{one.what} {one.weight:+g}" for one in evidence)
        total = _weigh(evidence)
        outcome = "found" if total >= ENOUGH else "not found"
        yield f"{text[place.start : place.end]} ({total:g}, {outcome}): {listed}"


def _weigh(evidence: list[Evidence]) -> float:
    return sum(one.weight for one in evidence)


def _find_within(
    text: str, small: str, keywords: list[Keyword], found_at: Mapping[Keyword, int]
) -> Iterator[Span]:
    """Find secrets anywhere in the sentence of a keyword, by the weight of their evidence."""
    for place, evidence, kind in _weigh_places(text, small, keywords, found_at):
        if _weigh(evidence) >= ENOUGH:
            yield Span(kind, place.start, place.end, _SCORE, basis="sentence")


def _weigh_places(
    text: str, small: str, keywords: list[Keyword], found_at: Mapping[Keyword, int]
) -> Iterator[tuple[_Place, list[Evidence], str]]:
    """Yield places with the shape of a secret in the sentences of keywords, each with its evidence and kind.

    Of several keywords in a sentence, the one with the most weight of evidence counts.
    """
    if not keywords:
        return
    first = 0  # place of the first keyword that is not before the sentence
    for sentence in pattern_of("sentence").finditer(small):
        begin, end = sentence.start(), min(sentence.end(), sentence.start() + _MAX_SENTENCE_CHARS)
        while first < len(keywords) and keywords[first].start < begin:
            first += 1
        near = [word for word in islice(keywords, first, first + _MAX_KEYWORDS) if word.end <= end]
        places = list(_find_places(text, small, begin, end)) if near else []
        doubts = [EVIDENCE["doubted"]] if places and pattern_of("doubt").search(small, begin, end) else []
        for place in places:
            best: tuple[list[Evidence], str] | None = None
            for word in near:
                if found_at.get(word, 0) > place.start:  # before the linked value is the name of its user
                    continue
                collected = _collect_evidence(word, near, small, place)
                if not collected:
                    continue
                evidence = [place.evidence, *collected, *doubts]
                if best is None or _weigh(evidence) > _weigh(best[0]):
                    best = evidence, KEYWORDS[word.group].kind
            if best is not None:
                yield place, *best


def _find_places(text: str, small: str, begin: int, end: int) -> Iterator[_Place]:
    """Find values in a sentence that have the shape of a secret, without those behind the name of another thing."""
    for match in islice(pattern_of("value").finditer(text, begin, end), _MAX_VALUES):
        shape, value = str(match.lastgroup), match[0].rstrip(STOPS + "!?")
        start = match.start()
        if shape == "word":
            value = match[0].rstrip(STOPS)
            if value.startswith("**"):  # bold in Markdown
                start, value = start + 2, value.strip("*")
        evidence = _evidence_of(shape, value)
        stop, before = start + len(value), small[begin:start]
        is_other = shape in _LOOSE_SHAPES and pattern_of("other_name").search(before[-60:])
        if evidence and not is_other and not pattern_of("unit").match(small[stop : stop + 40]):
            yield _Place(shape, evidence, before, start, stop)


def _evidence_of(shape: str, value: str) -> Evidence | None:
    """Return the evidence of the characters of a value; None if they are not those of a secret."""
    if is_placeholder(value) or (shape == "short" and is_amount(value)):
        return None
    if shape == "word":
        is_name = is_identifier(value) or names_a_thing(value) or max(value, default="") > LAST_LATIN
        if is_name or not is_strong(value):
            return None
        has_both = _SIGN.search(value) is not None and any(map(str.isdecimal, value))
        return EVIDENCE["strong" if has_both else "mixed"]
    if value[0] == "*" or value[-1] in "#*":
        return EVIDENCE["keys"]
    if value[0] == "#":  # the number of an issue or a pull request
        return None
    return EVIDENCE["year" if YEAR.fullmatch(value) else shape]


def _collect_evidence(
    word: Keyword, keywords: list[Keyword], small: str, place: _Place
) -> list[Evidence] | None:
    """Collect the evidence that a keyword announces the value at a place; None if it announces no such value."""
    if not _may_announce(word, place, small):
        return None
    # the keyword may stand before or after the value
    between = small[min(word.end, place.end) : max(word.start, place.start)]
    groups = {other.group for other in keywords}
    is_supported = bool(groups - {word.group, "code", "lock", "key"}) or (
        word.group == "lock" and "code" in groups
    )
    link = _link_between(word, place, between, is_lone_lock=word.group == "lock" and not is_supported)
    weight = KEYWORDS[word.group].weight
    if place.shape == "word" and weight == 1 and link != "led":
        return None  # next to a login, a network or an address, most such words are names
    evidence = [Evidence(f"keyword {word.group}", weight)]
    if weight < 0 and pattern_of("opened").search(small[max(0, word.start - 16) : word.end]):
        evidence = [EVIDENCE["opened"]]
    if is_supported:
        evidence.append(EVIDENCE["supported"])
    evidence.append(EVIDENCE[link])
    if len(between) > _CHARS_FAR:
        evidence.append(EVIDENCE["far"])
    return evidence


def _link_between(
    word: Keyword, place: _Place, between: str, *, is_lone_lock: bool
) -> Literal["led", "close", "apart"]:
    """Return the evidence of the words between a value and its keyword; a door without a code needs a deed («dial»)."""
    if pattern_of("deed").search(place.before[-60:]):
        return "led"
    if is_lone_lock:
        return "apart"
    if word.end > place.start:
        return "led" if pattern_of("behind").match(between) else "apart"
    if pattern_of("lead").search(place.before[-60:]) or pattern_of("beside").match(between):
        return "led"
    return "close" if pattern_of("named_for").match(between) else "apart"


def _may_announce(word: Keyword, place: _Place, small: str) -> bool:
    """Return True if a keyword of this group announces values of this shape, and is not part of the value."""
    if word.start < place.end and place.start < word.end:
        return False
    if (word.group == "once" and place.evidence.weight == 1) or (
        word.group == "address" and word.start > place.start
    ):
        return False
    n = place.end - place.start
    is_long_number = place.shape == "digits" and n >= _LONG_NUMBER and word.end <= place.start
    if (
        word.group == "password"
        and place.shape in ("groups", "digits")
        and "code" in small[word.start : word.end]
    ):
        return True
    if place.shape == "word" or (word.group in ("password", "foreign", "recovery") and is_long_number):
        return word.group in _OF_WORDS
    if word.group == "recovery":
        return place.shape == "blocks"
    is_postal = n == POSTAL_DIGITS and re.match(r"pin[ -]?code", small[word.start : word.end])
    return word.group in _OF_DIGITS and not is_postal


# ---- answers to security questions

_CHARS_AROUND = 160
"""Characters before and after a mention of security in which an answer is searched."""
_CHARS_TO_ANSWER = 80
"""Characters after a question in which its answer begins."""

SAFETY = pattern_of("safety")
ASKED = tuple(rule.regex for rule in _RULES.only("asked").rules)


def find_answers(text: str) -> Iterator[Span]:
    """Find answers to security questions: behind a question, or in a fact of a life near a mention of security.

    >>> text = "Security question: first pet. The answer is Biscuit"
    >>> [text[span.start : span.end] for span in find_answers(text)]
    ['Biscuit']
    """
    found = [
        span
        for pattern in ASKED
        for match in pattern.finditer(text)
        if (span := _answer_at(text, match.end(), 0.9))
    ]
    yield from found
    if found:
        return
    for safety in islice(SAFETY.finditer(text), _MAX_KEYWORDS):
        begin, end = max(0, safety.start() - _CHARS_AROUND), safety.end() + _CHARS_AROUND
        for life in pattern_of("of_a_life").finditer(text, begin, end):
            links = pattern_of("answer_link").finditer(text, life.end(), life.end() + _CHARS_TO_ANSWER)
            for place in (life.end() + 1, *(link.end() for link in links)):
                if span := _answer_at(text, place, 0.8, without_words=True):
                    yield span
                    return


def _answer_at(text: str, place: int, score: float, *, without_words: bool = False) -> Span | None:
    """Return the answer that begins at a place; None for words that describe an answer ("easy to guess")."""
    match = pattern_of("answer_shape").match(text[place : place + _CHARS_TO_ANSWER])
    if match is None or (without_words and match["word"]):
        return None
    group = str(match.lastgroup)
    if match["quoted"] is None and is_plain(match[group].split(maxsplit=1)[0]):
        return None
    start, end = place + match.start(group), place + match.end(group)
    return Span("security_answer", start, end, score, basis="sentence")
