"""Telephone numbers, written as in many countries.

A number that begins with + or is grouped as in some country speaks for itself. Others look like any number, and
are one only beside words such as "call", "mobile" or "Fax:".
"""

from __future__ import annotations

import re

MIN_DIGITS, MAX_DIGITS = 7, 15
"""Of a number that can be called (E.164 for the upper bound)."""

SURE, LIKELY, TOLD = 0.95, 0.8, 0.7
"""Scores: written internationally, in the manner of some country, or only said to be a telephone number."""

_INTERNATIONAL = re.compile(r"\(?\+[ (]?[1-9][0-9 ().\-–/\u00a0]*")
_PREFIXED = re.compile(r"00[1-9][0-9]{0,2}[ ().-][0-9 ().\-–/\u00a0]*")
_AMERICAN = re.compile(
    r"(?:1[ .-])?(?:\([0-9]{3}\)[ .-]?|[2-9][0-9]{2}(?P<sign>[ .-]))[0-9]{3}(?(sign)(?P=sign)|[ .-])[0-9]{4}"
    r"|[2-9][0-9]{2}/[0-9]{3}-[0-9]{4}"
)
_TRUNK = re.compile(r"(?=.{10})\(?0[1-9][0-9]{0,4}\)?(?:[ ./–-]{1,3}[0-9]{2,8}){1,5}|0[1-9][0-9]{8,9}")
_TRUNKLESS = re.compile(
    r"[1-9][0-9] 9?[0-9]{4}-[0-9]{4}"  # Brazil
    r"|8[ -]?\(?[0-9]{3}\)?[ -]?[0-9]{3}[ -][0-9]{2}[ -]?[0-9]{2}"  # Russia
    r"|\(?[0-9]{2}\)?(?:[0-9]{2})?[/ -][0-9]{3}[/-][0-9]{4}|[0-9]{2}-[0-9]/[0-9]{3}[ -][0-9]{4}"  # Hungary
)
_BRACKETED = re.compile(r"\([0-9]{2,5}\) ?[0-9]{2,4}[ -]?[0-9]{2,5}(?:[ -][0-9]{2,5})?")
_GROUPED = re.compile(r"\(?[0-9]{2,5}\)?(?:[ .-][0-9]{2,8}){1,4}|[0-9]{7,12}|\([0-9]{2,5}\)[ -]?[0-9]{4,8}")
_PAIRS = re.compile(r"0[1-9](?: [0-9]{2}){5,}")
"""Of digits in pairs French numbers have five; more are a row of numbers."""

_SHORTEST_PREFIXED = 11
_NO_PHONE = re.compile(
    r"[0-9]{5}-[0-9]{4}|\+[0-9]{1,2}\.[0-9]+|"  # an American postal code, a decimal
    r"(?:19|20)[0-9]{2}[-./ ](?:0?[1-9]|1[0-2])[-./ ](?:0?[1-9]|[12][0-9]|3[01])(?:[ -].*)?"
    r"|(?:0?[1-9]|[12][0-9]|3[01])[-./ ](?:0?[1-9]|[12][0-9]|3[01])[-./ ](?:19|20)[0-9]{2}(?:[ -].*)?"
    r"|(?:19|20)[0-9]{2}(?:[ –/-]{1,3}(?:19|20)[0-9]{2})+"
)

_CALLED = (
    r"phones?|telephones?|tel|cell(?:phone|ular)?|mobile|landline|fax|call(?:s|ed|ing)?|rings?|dial(?:led|s|ing)?"
    r"|whatsapp"
    r"|signal|sms|text(?:s|ed|ing)?|messages? to|answering at|reach(?:ed|able|es)?(?: \w+){0,3} (?:at|on|under|by)"
    r"|contact(?: \w+){0,2}|hotline|helpline|emergency|switchboard|extension"
    r"|telefon\w*|handy\w*|mobil\w*|fon|festnetz|rufnummer|anruf\w*|erreichbar"
    r"|t[eé]l[eé]phone|portable|t[eé]l|appel\w*|joindre|tel[eé]fono|m[oó]vil|celular|ll[aá]m\w+"
    r"|telefoon\w*|mobiel\w*|gsm|bel(?:len)?|cellulare|chiam\w+|telefone|telem[oó]vel|ligar|puhelin\w*"
    r"|тел|телефон|моб|電話|电话|手机|携帯"
)
_BEFORE = re.compile(
    rf"(?<![^\W_])(?:{_CALLED})(?![^\W_])[^0-9;!?]{{0,32}}\Z|(?:電話|电话|手机|携帯)[^0-9]{{0,16}}\Z",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\bnumbers?(?: is| are|:):? *\Z", re.IGNORECASE)
_MAIL = re.compile(r"@[\w-]+(?:\.[\w-]+)+>?\s?[,;|/]?\s\Z")
_LINE_BEFORE, _LINE_AFTER = re.compile(r"[^\W\d_][^\n]*\n[ \t]*\Z"), re.compile(r"[ \t]*(?:\n|\Z)")
"""A number alone on a line under others, as below a letter."""

_LABEL = re.compile(
    r"(?:^|[\n,;|])\s*(?:home|office|work|desk|direct|private|main|privat|büro|bureau|maison|casa|oficina"
    r"|[ptmfhc])\s*[:.]\s*\Z",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"\s{0,2}[-–(,/]?\s?(?:office|fax|mobile|mobil|cell|home|work|desk|landline|phone|whatsapp|privat|handy|bureau"
    r"|portable)\b"
    r"|,? (?:is|was|are) (?:my|his|her|their|our|your|the)(?: \w+)? (?:numbers?|phone|cell|mobile|fax|line)\b"
    r"|\s?[,;|/]?\s?<?[\w.+-]{1,64}@",
    re.IGNORECASE,
)
_SOMETHING_ELSE = re.compile(
    r"(?<![^\W_])(?:order|invoice|ref(?:erence)?|policy|serial|part|isbn|issn|ean|upc|gtin|sku|asin|barcode"
    r"|tracking|parcel"
    r"|ticket|case|model|version|build|article|item|product|account|acct|konto\w*|kunden\w*|customer"
    r"|member(?:ship)?|booking"
    r"|reservation|confirmation|flight|licen[cs]e|plate|lat(?:itude)?|lon(?:gitude)?|coordinates?|gps|vin|imei"
    r"|meeting|zoom"
    r"|webinar|room|iso|din|rfc|bestell\w*|rechnung\w*|auftrag\w*|steuer\w*|tax|vat|iban|bic|doi|arxiv|pmid|patent"
    r"|claim"
    r"|batch|lot|code|pin|password|id|no|nr|commit|port|card|visa|mastercard|amex|population|price|total|sum|score"
    r"|amount"
    r"|pages?|hash|uid|pid)\b[\w .:#()-]{0,16}\Z",
    re.IGNORECASE,
)
_WITHIN_A_CODE = re.compile(r"(?:[A-Z]+[0-9]|[0-9]+[A-Z])[A-Z0-9]* \Z")
"""Before a group of digits that belongs to a longer code: "1Z 999 AA1 01 2345 6784"."""


def is_told_phone(before: str, after: str) -> bool:
    """Whether the text around a number says that it is a telephone's, or puts it where one stands.

    >>> is_told_phone("call me on ", ""), is_told_phone("", " is my number"), is_told_phone("order ", "")
    (True, True, False)
    """
    is_line = _LINE_BEFORE.search(before) is not None and _LINE_AFTER.match(after) is not None
    is_said = any(words.search(before) for words in (_BEFORE, _LABEL, _MAIL))
    return is_line or is_said or _AFTER.match(after) is not None


def phone_score(number: str, before: str, after: str) -> float | None:
    """How sure it is that a number can be called; None where it cannot, or nothing says so.

    Parameters
    ----------
    number : str
        Digits with the signs between them.
    before, after : str
        Some characters of the text around it.

    Examples
    --------
    >>> phone_score("+49 30 23125 417", "", ""), phone_score("030 23125 417", "", "")
    (0.95, 0.8)
    >>> phone_score("9472 7916", "call me on ", ""), phone_score("9472 7916", "order ", "")
    (0.7, None)
    """
    n_digits = sum(map(str.isdecimal, number))
    if _NO_PHONE.fullmatch(number) or _PAIRS.fullmatch(number):
        return None
    if _PREFIXED.fullmatch(number) and n_digits < _SHORTEST_PREFIXED:
        return None
    if _INTERNATIONAL.fullmatch(number):
        return SURE if MIN_DIGITS < n_digits <= MAX_DIGITS + 1 else None
    if not MIN_DIGITS <= n_digits <= MAX_DIGITS + 1:
        return None
    is_told = is_told_phone(before, after)
    if not is_told and (_SOMETHING_ELSE.search(before) or _WITHIN_A_CODE.search(before)):
        return None
    is_told = is_told or _NUMBER.search(before) is not None
    if any(shape.fullmatch(number) for shape in (_AMERICAN, _TRUNK, _PREFIXED, _TRUNKLESS)):
        return LIKELY
    if _BRACKETED.fullmatch(number) and n_digits > MIN_DIGITS:
        return LIKELY
    return TOLD if is_told and _GROUPED.fullmatch(number) else None
