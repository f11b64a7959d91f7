"""Numbering plans: whether an international telephone number is possible, and in which country.

Asks the library `phonenumbers` where it is installed (``pip install 'memframe[audit]'``).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

AVAILABLE = find_spec("phonenumbers") is not None


def country_of(number: str) -> str | None:
    """Code of the country of a number that begins with +; None if there can be no such number.

    Empty where nobody knows, as the library is not there.
    """
    if not AVAILABLE:
        return ""
    book = _phonenumbers()
    try:
        parsed = book.parse(number, None)
    except book.NumberParseException:
        return None
    if not book.is_possible_number(parsed):
        return None
    region: str = book.region_code_for_country_code(parsed.country_code)
    return region


@cache
def _phonenumbers() -> Any:
    return import_module("phonenumbers")
