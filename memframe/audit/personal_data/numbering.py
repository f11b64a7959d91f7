"""Numbering plans: whether an international telephone number is possible, and in which country."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


def country_of(number: str) -> str | None:
    """Return the code of the country of a number that begins with +; None if there can be no such number."""
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
    """Import the library when the first number is met: it takes a tenth of a second."""
    return import_module("phonenumbers")
