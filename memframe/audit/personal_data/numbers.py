"""Numbers of people: runs of digits, and which of them are cards, telephones or social security numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memframe.audit.personal_data.cards import SHORTEST as SHORTEST_CARD
from memframe.audit.personal_data.cards import is_card
from memframe.audit.personal_data.numbering import country_of
from memframe.audit.personal_data.phones import is_told_phone, phone_score
from memframe.audit.text import Span

_RUN = re.compile(
    r"(?:(?<![\w#$€£%])|(?<=[A-Za-z]#))(?<![A-Za-z][-./_])(?<![0-9][.,:/-])"
    r"(?:\(?\+[ (]?)?\(?[0-9](?:[ \u00a0().\-–/]{0,3}[0-9]){6,30}+(?![%€£]|[.,:/-]?[0-9])"
)
_EXTENSION = re.compile(r"\s?(?:x|ext\.?|extension|durchwahl|dw\.?)\s?[0-9]{1,6}(?!\w)", re.IGNORECASE)
_GAP = re.compile(r"(?: ?[-–/] |  +| (?=[(+]| ?[0-9]{12,19}(?![0-9]))|(?<=[0-9]{12}) )")
_SSN = re.compile(r"(?!000|666|9)[0-9]{3}(?P<sign>[- ]?)(?!00)[0-9]{2}(?P=sign)(?!0000)[0-9]{4}")
_SAID_SSN = re.compile(r"\b(?:ssn|social security|soc\.? sec|social)\b[^0-9]{0,40}\Z", re.IGNORECASE)
_SAID_CARD = re.compile(
    r"card|visa|mastercard|amex|american express|maestro|karte|carte|tarjeta|carta|cartão", re.IGNORECASE
)
_OF_A_THING = re.compile(
    r"\b(?:ean|gtin|upc|isbn|issn|imei|iccid|bar ?code|strichcode|sku|asin|order|tracking|parcel|serial|invoice"
    r"|membership|member|contract|policy|meter)\b[^0-9]{0,16}\Z",
    re.IGNORECASE,
)
"""What says of a number that some thing or paper has it, whatever its check digit."""

_GOES_ON = re.compile(r"-\w")
_BEHIND, _AHEAD = 48, 32

MARKS = r"[0-9](?:[ \x{a0}().\-–/]{0,3}[0-9]){6}"
"""A pattern of RE2 that every text with such a number matches."""


def find_numbers(text: str) -> Iterator[Span]:
    """Cards, telephone numbers and social security numbers.

    >>> text = "Card 4111 1111 1111 1111, SSN 219-09-9999, call +49 30 23125 417; built in 2019-2020."
    >>> [(span.kind, text[span.start : span.end]) for span in find_numbers(text)]
    [('card', '4111 1111 1111 1111'), ('ssn', '219-09-9999'), ('phone', '+49 30 23125 417')]
    """
    for match in _RUN.finditer(text):
        is_open = match[0].count("(") > match[0].count(")")
        found = _number(text, match.start() + is_open, match.end())
        if found:
            yield found
        else:
            yield from filter(None, (_number(text, *part) for part in _parts(match)))


def _number(text: str, start: int, end: int) -> Span | None:
    number = text[start:end]
    before, after = text[max(0, start - _BEHIND) : start], text[end : end + _AHEAD]
    is_of_a_thing = _OF_A_THING.search(before) is not None
    if (
        not is_of_a_thing
        and len(number) >= SHORTEST_CARD
        and is_card(number, is_told=_SAID_CARD.search(before) is not None)
    ):
        return Span("card", start, end, 0.95)
    is_told_ssn = _SAID_SSN.search(before) is not None
    may_be_ssn = "-" in number and not is_of_a_thing and not _GOES_ON.match(after)
    if _SSN.fullmatch(number) and (is_told_ssn or may_be_ssn):
        return Span("ssn", start, end, 0.9)
    extension = _EXTENSION.match(text, end)
    score = phone_score(number, before, "" if extension else after)
    country = country_of(number) if number.lstrip("(").startswith("+") else ""
    if score is None or (country is None and not is_told_phone(before, after)):
        return None
    return Span("phone", start, extension.end() if extension else end, score, country or "")


def _parts(run: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Where a run of digits that is nothing as a whole may be two numbers side by side."""
    start = run.start()
    for gap in (*_GAP.finditer(run[0]), None):
        end = run.start() + gap.start() if gap else run.end()
        if gap or start > run.start():
            yield start, end
        start = run.start() + gap.end() if gap else end
