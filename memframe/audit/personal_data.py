"""Personal data: addresses and numbers of people, with their spans in the text.

Check digits and numbering plans are those of the libraries `phonenumbers` and `python-stdnum`. Two tables hold the
rest: shapes of telephone numbers without a country (`rules/phones.toml`), and words around a number that tell what it
is (`rules/personal_data.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Literal, NamedTuple, Protocol

import pandas as pd

from memframe.audit.rules import Rule, load_rules
from memframe.audit.secrets.values import is_placeholder
from memframe.audit.text import Memories, MemoryTexts, Pass, Rating, Span, span_findings, spans_found

__all__ = ["find_ibans", "find_personal_data", "presidio_names"]

_RATINGS = {
    "card": Rating("high", "review"),
    "ssn": Rating("high", "review"),
    "url_credentials": Rating("high", "review"),
    "national_id": Rating("high", "review"),
    "iban": Rating("medium", "review"),
    "phone": Rating("low", "review"),
    "email": Rating("low", "review"),
    "ip": Rating("low", "review"),
    "mac": Rating("low", "review"),
    "address": Rating("low", "review"),
    "name": Rating("info", "none"),
    "url": Rating("info", "none"),
}
"""Severity and proposal of each kind. The score of a span only decides which of two that overlap is kept; scores are
estimates and not measured."""
_ANY_TEXT = "."
_WITHOUT_NAMES = (
    "Names and postal addresses of people: they need a language model, and none was used to look for them."
)
_RULES = load_rules("personal_data")
_AROUND = {rule.group: rule.regex for rule in _RULES.rules if rule.group != "national_id"}
"""Patterns of the words before or after a number, by group."""

_CHARS_BEFORE, _CHARS_AFTER = 48, 32
"""Characters before and after a number in which these words are searched."""

NameFinder = Callable[[str], Iterable[Span]]
"""Function from a text to its spans of the kinds ``name`` and ``address``."""


def find_personal_data(memories: Memories, *, names: NameFinder | None = None) -> pd.DataFrame:
    """Find personal data in titles, summaries and contents, one finding for each span.

    Finds addresses of mail and web, telephone numbers as they are written in some thirty countries, payment cards
    (Luhn), bank accounts (IBAN, modulo 97), national numbers of people of some twenty countries, addresses of networks
    (IP, MAC), and addresses with a password in them. International telephone numbers are checked against the numbering
    plans of their countries. Some findings have no proposal: addresses of networks, servers, public services, programs
    and examples, addresses of strangers that are to be blocked, mailboxes of an office (``info@``), toll-free numbers.

    Does not find names and postal addresses without a language model (see `names`), nor a telephone number without a
    grouping, a country or a word for telephones next to it. `benchmarks/audit_real.py` measures the precision on real
    memories.

    Parameters
    ----------
    memories : DataFrame
        Frame with ``id`` and at least one of ``title``, ``summary`` and ``content``.
    names : callable, optional
        Function that finds names and addresses in a text, such as one of `presidio_names`.

    Returns
    -------
    DataFrame
        Findings with ``field``, ``start`` and ``end``; ``kind`` is one of ``email phone card iban ssn national_id ip
        mac url url_credentials name address``. ``evidence`` shows the first characters at most.
        ``attrs["not_checked"]`` describes in sentences what was not looked for.

    Examples
    --------
    >>> memories = pd.DataFrame({"id": ["m1"], "content": ["Dr. Kroll, 030 23125 066, desk@vet.example.com"]})
    >>> find_personal_data(memories)[["kind", "start", "end", "evidence"]]
        kind  start  end              evidence
    0  phone     11   24  03… (13 characters)
    1  email     26   46  de… (20 characters)
    """
    passes = (*_PASSES, Pass(_ANY_TEXT, names)) if names else _PASSES
    texts = MemoryTexts.of(memories)
    found = spans_found(texts, passes)
    findings = span_findings(texts, found, check="personal_data", rate=_rate)
    if names is None:
        findings.attrs["not_checked"] = (_WITHOUT_NAMES,)
    return findings


def _rate(span: Span) -> Rating:
    return Rating("info", "none") if span.label == _OF_NOBODY else _RATINGS[span.kind]


class _Analyzer(Protocol):
    def analyze(self, *, text: str, language: str, entities: list[str]) -> list[Any]: ...


def presidio_names(analyzer: _Analyzer, *, language: str = "en", min_score: float = 0.5) -> NameFinder:
    """Make a finder of names and addresses from an analyzer of presidio.

    memframe has no language model. An ``AnalyzerEngine`` of `presidio-analyzer` with a model of your own has one::

        from functools import partial
        from presidio_analyzer import AnalyzerEngine

        find = partial(find_personal_data, names=presidio_names(AnalyzerEngine()))
        audit = memframe.audit_memories(memories, checks={"personal_data": find})

    Parameters
    ----------
    analyzer : presidio_analyzer.AnalyzerEngine
        Analyzer with a model for the language.
    language : str
        Language code of the analyzer.
    min_score : float
        Least score of a span, from 0 to 1.
    """
    kinds = {"PERSON": "name", "LOCATION": "address"}

    def find(text: str) -> Iterator[Span]:
        for found in analyzer.analyze(text=text, language=language, entities=[*kinds]):
            if found.score >= min_score:
                yield Span(kinds[found.entity_type], found.start, found.end, float(found.score))

    return find


# ---- runs of digits: cards, social security numbers, telephones

# not within a word, an amount, a share, a path or a decimal; a "#" may come before it only after a letter
_RUN = re.compile(
    r"(?:(?<![\w#$€£%])|(?<=[A-Za-z]#))(?<![A-Za-z][-./_])(?<![0-9][.,:/-])"
    r"(?:\(?\+[ (]?)?\(?[0-9](?:[ \u00a0().\-–/]{0,3}[0-9]){6,30}+(?![%€£]|[.,:/-]?[0-9])"
)
_EXTENSION = re.compile(r"\s?(?:x|ext\.?|extension|durchwahl|dw\.?)\s?[0-9]{1,6}(?!\w)", re.IGNORECASE)
# where a run may be two numbers: at a dash or slash, at several blanks, before "(", "+" or a card, and after a card
_GAP = re.compile(r"(?: ?[-–/] |  +| (?=[(+]| ?[0-9]{12,19}(?![0-9]))|(?<=[0-9]{12}) )")
_SSN = re.compile(r"(?!000|666|9)[0-9]{3}(?P<sign>[- ]?)(?!00)[0-9]{2}(?P=sign)(?!0000)[0-9]{4}")
_GOES_ON = re.compile(r"-\w")
"""Continuation of a longer number, such as an order number."""
_RUN_PREFILTER = r"[0-9](?:[ \x{a0}().\-–/]{0,3}[0-9]){6}"


def _find_numbers(text: str) -> Iterator[Span]:
    """Find cards, telephone numbers and social security numbers.

    >>> text = "Card 4111 1111 1111 1111, SSN 219-09-9999, call +49 30 23125 417; built in 2019-2020."
    >>> [(span.kind, text[span.start : span.end]) for span in _find_numbers(text)]
    [('card', '4111 1111 1111 1111'), ('ssn', '219-09-9999'), ('phone', '+49 30 23125 417')]
    """
    for match in _RUN.finditer(text):
        is_open = match[0].count("(") > match[0].count(")")  # the bracket belongs to the sentence
        found = _read_number(text, match.start() + is_open, match.end())
        if found:
            yield found
        else:
            yield from filter(None, (_read_number(text, *part) for part in _split_run(match)))


def _read_number(text: str, start: int, end: int) -> Span | None:
    """Return the span of a card, else of a social security number, else of a telephone; None if it is none of them.

    The kind with the best evidence is tested first: a card has a check digit, a telephone number only its grouping and
    the words around it.
    """
    number, after = text[start:end], text[end : end + _CHARS_AFTER]
    before = text[max(0, start - _CHARS_BEFORE) : start]
    is_of_a_thing = _AROUND["thing_before"].search(before) is not None
    is_named_card = _AROUND["card_before"].search(before) is not None
    if not is_of_a_thing and _is_card(number, is_named=is_named_card):
        return Span("card", start, end, 0.95)
    is_named_ssn = _AROUND["ssn_before"].search(before) is not None
    may_be_ssn = "-" in number and not is_of_a_thing and not _GOES_ON.match(after)
    if _SSN.fullmatch(number) and (is_named_ssn or may_be_ssn):
        return Span("ssn", start, end, 0.9)
    extension = _EXTENSION.match(text, end)
    after = "" if extension else after
    score = _score_phone(number, before, after)
    country = _country_of(number) if number.lstrip("(").startswith("+") else ""
    # without a possible country, and without words about telephones around it, it was mistyped or made up
    if score is None or (country is None and _read_words_around(number, before, after) != "phone"):
        return None
    is_in_code = text.count("```", 0, start) % 2 == 1
    is_of_nobody = _is_invented(text, start, end) or (
        country and (_is_of_a_service(number) or (is_in_code and not _is_assigned(number)))
    )
    label = _OF_NOBODY if is_of_nobody else country or ""
    return Span("phone", start, extension.end() if extension else end, score, label)


def _split_run(run: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Split a run of digits at its gaps, because it may be two numbers side by side; yield the spans of the parts."""
    start = run.start()
    for gap in _GAP.finditer(run[0]):
        yield start, run.start() + gap.start()
        start = run.start() + gap.end()
    if start > run.start():  # without a gap, the whole run was read already
        yield start, run.end()


_ISSUERS = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})"  # Visa
    r"|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"  # Mastercard
    r"|3[47][0-9]{13}"  # American Express
    r"|3(?:0[0-59]|[689][0-9])[0-9]{11,16}"  # Diners Club
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2})[0-9]{12,15}"  # Discover
    r"|35(?:2[89]|[3-8][0-9])[0-9]{12,15}|(?:2131|1800)[0-9]{11}"  # JCB
    r"|62[0-9]{14,17}|81[0-9]{14,17}"  # UnionPay
    r"|220[0-4][0-9]{12,15}"  # Mir
    r"|(?:50|5[6-9]|67)[0-9]{10,17}|(?:6304|6390)[0-9]{8,15}"  # Maestro, of 12 to 19 digits
    r"|60[0-9]{14}"  # RuPay
)
_CARD_GROUPS = re.compile(
    r"[0-9]{12,19}|[0-9]{4}(?:([ .-])[0-9]{4}){2}\1[0-9]{1,4}(?:\1[0-9]{1,3})?|[0-9]{4}([ .-])[0-9]{6}\2[0-9]{4,5}"
)


_MIN_UNNAMED_DIGITS = 13
"""Fewest digits of a card without a word for cards before it; shorter numbers are frequent, and one in ten of them has
a valid check digit."""


def _is_card(text: str, *, is_named: bool) -> bool:
    """Return True if a text is the number of a card, in one piece or in the usual groups.

    After a word for cards (`is_named`) the check digit is enough, because the list of issuers is never complete.
    """
    if not _CARD_GROUPS.fullmatch(text):
        return False
    digits = re.sub("[ .-]", "", text)
    has_issuer = len(digits) >= _MIN_UNNAMED_DIGITS and _ISSUERS.fullmatch(digits) is not None
    return (is_named or has_issuer) and bool(_stdnum("luhn").is_valid(digits))


# ---- telephones: a number with + or with the grouping of some country needs no word around it, others do


class _Shape(NamedTuple):
    """Spelling of telephone numbers, or of other numbers that look like them, and its possible numbers of digits."""

    rule: Rule
    digits: range

    @classmethod
    def of(cls, rule: Rule) -> _Shape:
        least, most = str(rule.options.get("digits", "7-16")).split("-")
        return cls(rule, range(int(least), int(most) + 1))


_SHAPES = [_Shape.of(rule) for rule in load_rules("phones").rules]

_LINE_BEFORE = re.compile(r"[^\W\d_][^\n]{0,48}\n[ \t]{0,8}\Z")
_LINE_AFTER = re.compile(r"[ \t]{0,8}(?:\n|\Z)")
"""A number alone on its line under another line, as below a letter."""


def _score_phone(number: str, before: str, after: str) -> float | None:
    """Return the score of a telephone number; None for other numbers, and without evidence that it is one.

    >>> _score_phone("+49 30 23125 417", "", ""), _score_phone("030 23125 417", "", "")
    (0.95, 0.8)
    >>> _score_phone("9472 7916", "call me on ", ""), _score_phone("9472 7916", "order ", "")
    (0.7, None)
    """
    shape = _shape_of(number)
    is_sum = number.startswith("+ ") and before.rstrip()[-1:].isdecimal()
    if shape is None or shape.group == "no_phone" or is_sum:
        return None
    if shape.group == "international":
        return shape.weight
    around = _read_words_around(number, before, after)
    is_phone = around in ("phone", "number") or (not around and shape.group == "national")
    return shape.weight if is_phone else None


def _shape_of(number: str) -> Rule | None:
    """Return the first rule that a whole number fits.

    >>> [shape and shape.kind for shape in map(_shape_of, ["2019-2020", "202-555-0143", "1 2 3 4"])]
    ['years', 'North America', None]
    """
    n_digits = sum(map(str.isdecimal, number))
    fitting = (rule for rule, digits in _SHAPES if n_digits in digits and rule.regex.match(number))
    return next(fitting, None)


def _read_words_around(number: str, before: str, after: str) -> Literal["phone", "number", "other", ""]:
    """Return what the words around a number tell: a telephone, some number, another thing, or nothing.

    Words for telephones count more than words for other things, because many texts have both ("call the office, room 4:
    9472 7916").

    >>> _read_words_around("9472 7916", "call me on ", ""), _read_words_around("9472 7916", "order ", " (home)")
    ('phone', 'other')
    >>> _read_words_around("9472 7916", "my number is ", ""), _read_words_around("9472 7916", "so ", "")
    ('number', '')
    """
    is_account = number.isdecimal() and _AROUND["account_before"].search(before)
    if is_account or _AROUND["no_phone_after"].match(after):
        return "other"
    if _AROUND["phone_before"].search(before):
        return "phone"
    if _AROUND["no_phone_before"].search(before):
        return "other"
    is_line = _LINE_BEFORE.search(before) is not None and _LINE_AFTER.match(after) is not None
    if (is_line and not number.isdecimal()) or _AROUND["phone_after"].match(after):
        return "phone"
    return "number" if _AROUND["phone_number_before"].search(before) else ""


def _country_of(number: str) -> str | None:
    """Return the country code of a number that begins with +; None if no country can have the number."""
    book = _phonenumbers()
    try:
        parsed = book.parse(number, None)
    except book.NumberParseException:
        return None
    if not book.is_possible_number(parsed):
        return None
    region: str = book.region_code_for_country_code(parsed.country_code)
    return region


def _is_assigned(number: str) -> bool:
    """Return True if a number that begins with + is in the plan of its country; most numbers of examples are not."""
    book = _phonenumbers()
    return bool(book.is_valid_number(book.parse(number, None)))


def _is_of_a_service(number: str) -> bool:
    """Return True if a number that begins with + is toll-free, of shared cost, premium-rate or a company's."""
    book = _phonenumbers()
    kinds = book.PhoneNumberType
    kind = book.number_type(book.parse(number, None))
    return kind in (kinds.TOLL_FREE, kinds.PREMIUM_RATE, kinds.SHARED_COST, kinds.UAN)


@cache
def _phonenumbers() -> Any:
    """Import the library on first use, because the import takes a tenth of a second."""
    return import_module("phonenumbers")


@cache
def _stdnum(module: str) -> Any:
    return import_module(f"stdnum.{module}")


# ---- bank accounts, and national numbers of people

_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?:[ \u00a0-]?[A-Za-z0-9]){10,36}")
_IBAN_PREFILTER = r"(?i)\b[a-z]{2}[0-9]{2}[ \x{a0}-]?[a-z0-9]{2}"
_SHORTEST_IBAN, _LONGEST_IBAN = 15, 34


def find_ibans(text: str) -> Iterator[Span]:
    """Find international account numbers, in one piece or in groups.

    >>> text = "IBAN DE89 3704 0044 0532 0130 00 or so"
    >>> [text[span.start : span.end] for span in find_ibans(text)]
    ['DE89 3704 0044 0532 0130 00']
    """
    for match in _IBAN.finditer(text):
        places = [place for place, letter in enumerate(match[0]) if letter.isalnum()]
        # the longest valid beginning, because the next words of the sentence may match as well
        for n in range(min(len(places), _LONGEST_IBAN), _SHORTEST_IBAN - 1, -1):
            end = places[n - 1] + 1
            number = "".join(match[0][place] for place in places[:n]).upper()
            if not match[0][end : end + 1].isalnum() and _stdnum("iban").is_valid(
                number, check_country=False
            ):
                yield Span("iban", match.start(), match.start() + end, 1.0)
                break


_SCHEMES = _RULES.only("national_id").rules
_NATIONAL_ID = re.compile(
    rf"(?<![A-Za-z0-9.-])(?:{'|'.join(scheme.regex.pattern for scheme in _SCHEMES)})(?![A-Za-z0-9]|[.-][0-9])"
)
_NATIONAL_ID_PREFILTER = (
    r"[0-9]{6}|[0-9]{3}[ .-][0-9]{3}|[0-9]{4}[ .-][0-9]{4}|[0-9]{2}[ .][0-9]{2}|[A-Z]{4}[0-9]{2}"
)


def _find_national_ids(text: str) -> Iterator[Span]:
    """Find national numbers of people by the first scheme that accepts them, with the country as label."""
    for match in _NATIONAL_ID.finditer(text):
        before = text[max(0, match.start() - _CHARS_BEFORE) : match.start()].lower()
        for scheme in _SCHEMES:
            is_named = re.search(str(scheme.options.get("name", "")), before) is not None
            if (
                is_named
                and scheme.regex.fullmatch(match[0])
                and _stdnum(str(scheme.options["module"])).is_valid(match[0])
            ):
                yield Span("national_id", match.start(), match.end(), 0.9, scheme.kind)
                break


# ---- addresses of networks: mail, web, IP, and the hardware of a network card

_MAIL = re.compile(
    r"(?<![\w.+%'@-])[\w.+%'-]{1,64}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}(?:[^\W\d_]{2,24}"
    r"|xn--[a-z0-9-]{2,59})(?![\w-])"
)
_BEFORE_MAIL = re.compile(r"[.'%+-]*(?:[\u3000-\u9fff\uac00-\ud7af]+(?=[A-Za-z0-9]))?")
"""Marks and letters before an address that do not belong to it: some languages have no blanks between words."""

_USER_INFO = re.compile(r"://[^\s/@]*\Z")
_REPOSITORY = re.compile(r"git@[\w.-]+:")
_URL = re.compile(
    r"(?<![\w@.-])(?:(?:https?|ftps?|sftp|wss?)://|www\.(?=[\w-]{1,63}\.))[^\s<>\"'`|\\^{}]{2,2000}",
    re.IGNORECASE,
)
_URL_CREDENTIALS = re.compile(r"\A[a-z]{1,10}://[^\s/:@]{1,100}:(?P<word>[^\s/@]{1,200})@", re.IGNORECASE)
_STOPS, _BRACKETS = ".,;:!?*_~", {")": "(", "]": "["}
_IPV4 = re.compile(r"(?<![\w.-])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![\w-]|\.[0-9])")
_IPV6 = re.compile(
    r"(?<![\w:.])(?=[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f:]{6,39}(?:(?<=:)[0-9]{1,3}(?:\.[0-9]{1,3}){3})?(?![\w:]|\.[0-9])"
)
_LISTED = re.compile(
    r"(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:/[0-9]{1,2})?[\s,;|]{1,12}(?:\w{1,10}:\s)?){1,20}\Z"
)
_MAX_LIST_CHARS = 240
"""Most characters of a list of addresses before one: the words before the list are about all of its addresses."""
_SMALL_PARTS = re.compile(r"(?!10\.)(?:[0-9]{1,2}\.){3}[0-9]{1,2}")
"""Four numbers of at most two digits: one address in forty is like that, and nearly every version."""
_WELL_KNOWN = frozenset({"8.8.8.8", "8.8.4.4", "1.1.1.1", "9.9.9.9"})
"""Addresses of public name servers."""
_MAC = re.compile(r"(?<![\w:-])[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}(?![\w:-])")
_MASK = re.compile(r"/[0-9]{1,2}\b")
_OF_NOBODY = "private or public service"
"""Label of an address or number that is no person's: of a network, a public service, a program, an example."""

_NETWORK_PREFILTER = (
    r"@[\pL\pN]|://|(?i:www\.)|[0-9]\.[0-9]{1,3}\.[0-9]|[0-9A-Fa-f]:[0-9A-Fa-f]{0,4}:|::[0-9A-Fa-f]"
    r"|[0-9A-Fa-f]{2}-[0-9A-Fa-f]{2}-[0-9A-Fa-f]{2}-"
)


def _find_network_addresses(text: str) -> Iterator[Span]:
    """Find addresses of mail, web and machines; an address of the web with a password is a kind of its own.

    >>> text = "see www.example.org/a_(b), or ftp://me:secret@example.org; ask ada@example.com"
    >>> [span.kind for span in _find_network_addresses(text)]
    ['email', 'url', 'url_credentials']
    """
    for match in _MAIL.finditer(text) if "@" in text else ():
        lead = _BEFORE_MAIL.match(match[0])
        start = match.start() + (lead.end() if lead else 0)
        before = text[max(0, start - _CHARS_BEFORE) : start]
        is_login = _AROUND["shell_before"].search(before) or _USER_INFO.search(before)
        if not is_login and not _REPOSITORY.match(text, start):
            address = text[start : match.end()]
            is_of_nobody = _is_invented(text, start, match.end()) or any(
                _AROUND[name].match(address) for name in ("no_mail", "office_mail")
            )
            yield Span("email", start, match.end(), 1.0, _OF_NOBODY if is_of_nobody else "")
    for match in _URL.finditer(text) if "://" in text or "www." in text.lower() else ():
        url = _trim_url(match[0])
        found = _URL_CREDENTIALS.match(url)
        label = _OF_NOBODY if found and is_placeholder(found["word"]) else ""
        yield Span("url_credentials" if found else "url", match.start(), match.start() + len(url), 1.0, label)
    for match in (*_IPV4.finditer(text), *_IPV6.finditer(text)):
        start, end = match.span()
        if _is_machine(match[0], text[max(0, start - _CHARS_AFTER) : start]):
            label = "" if _may_be_of_somebody(text, start, end) else _OF_NOBODY
            yield Span("ip", start, end, 0.9, label)
    for match in _MAC.finditer(text):
        digits = match[0].replace(match[1], "").lower()
        is_of_many = int(digits[1], 16) % 2 == 1 or set(digits) == {"0"}  # the bit of a group address
        if not is_of_many and (match[1] == ":" or not digits.isdecimal()):
            yield Span("mac", match.start(), match.end(), 0.9)


def _may_be_of_somebody(text: str, start: int, end: int) -> bool:
    """Return True if an IP address may be a person's: not that of a network, of a server, or of a blocked stranger.

    The words before a list of addresses are about each of them.
    """
    address = ip_address(text[start:end])
    if (
        not address.is_global
        or address.is_reserved
        or text[start:end] in _WELL_KNOWN
        or _MASK.match(text, end)
    ):
        return False
    listed = _LISTED.search(text, max(0, start - _MAX_LIST_CHARS), start)
    begin = listed.start() if listed else start
    before, after = text[max(0, begin - _CHARS_BEFORE) : begin], text[end : end + _CHARS_AFTER]
    if _AROUND["stranger_before"].search(before) or _AROUND["stranger_after"].match(after):
        return False
    return not _is_of_a_server(text, start, end)


def _is_of_a_server(text: str, start: int, end: int) -> bool:
    """Return True if the text around an address is about a server, and not about a visitor with that address."""
    before, after = text[max(0, start - 2 * _CHARS_BEFORE) : start], text[end : end + 2 * _CHARS_AFTER]
    is_of_a_server = _AROUND["server_near"].search(before) or _AROUND["server_near"].search(after)
    return bool(is_of_a_server and not _AROUND["visitor_before"].search(before))


def _is_invented(text: str, start: int, end: int) -> bool:
    """Return True if the text around an address or a number calls it an example."""
    before, after = text[max(0, start - _MAX_LIST_CHARS) : start], text[end : end + _CHARS_AFTER]
    return bool(_AROUND["invented_before"].search(before) or _AROUND["invented_after"].match(after))


def _trim_url(url: str) -> str:
    """Cut off the punctuation of the sentence around an address."""
    url = url.rstrip(_STOPS)
    while url[-1:] in _BRACKETS and url.count(url[-1]) > url.count(_BRACKETS[url[-1]]):
        url = url[:-1].rstrip(_STOPS)
    return url


def _is_machine(text: str, before: str) -> bool:
    """Return True for an address of one machine: no version number, no loopback and no multicast address.

    Four numbers of at most two digits are a version unless the text before them is about a machine.
    """
    is_small = _SMALL_PARTS.fullmatch(text) is not None and text not in _WELL_KNOWN
    if _AROUND["version_before"].search(before) or (is_small and not _AROUND["host_before"].search(before)):
        return False
    try:
        address: IPv4Address | IPv6Address = ip_address(text)
    except ValueError:
        return False
    if address.version == 6 and not any(map(str.isdecimal, text)):
        return False  # some languages join two words by colons
    is_of_nobody = address.is_loopback or address.is_unspecified or address.is_multicast
    return not is_of_nobody and not text.startswith("255.")


_PASSES = (
    Pass(_RUN_PREFILTER, _find_numbers),
    Pass(_IBAN_PREFILTER, find_ibans),
    Pass(_NETWORK_PREFILTER, _find_network_addresses),
    Pass(_NATIONAL_ID_PREFILTER, _find_national_ids),
)
