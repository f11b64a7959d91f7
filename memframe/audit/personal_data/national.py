"""National numbers of people: identity cards, taxes, social security, health; with their check digits.

What a number must be is asked of the library `python-stdnum`. Numbers that look like any other count only beside
their name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from memframe.audit.text import Span


class _Scheme(NamedTuple):
    country: str
    module: str
    """Of stdnum."""
    shape: str
    name: str = ""
    """What must stand before the number, where its shape is that of many others."""


_SCHEMES = (
    _Scheme("Spain", "es.nif", r"[XYZ]?[0-9]{7,8}[ -]?[A-Z]"),
    _Scheme("Italy", "it.codicefiscale", r"[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]"),
    _Scheme("France", "fr.nir", r"[12] ?[0-9]{2} ?[0-9]{2} ?[0-9][0-9AB] ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}"),
    _Scheme("Brazil", "br.cpf", r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}"),
    _Scheme("Belgium", "be.nn", r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2}"),
    _Scheme("Switzerland", "ch.ssn", r"756\.?[0-9]{4}\.?[0-9]{4}\.?[0-9]{2}"),
    _Scheme("Sweden", "se.personnummer", r"(?:19|20)?[0-9]{6}[-+][0-9]{4}"),
    _Scheme("Finland", "fi.hetu", r"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-Y]"),
    _Scheme("China", "cn.ric", r"[0-9]{17}[0-9X]"),
    _Scheme("South Korea", "kr.rrn", r"[0-9]{6}-[0-9]{7}"),
    _Scheme("Mexico", "mx.curp", r"[A-Z]{4}[0-9]{6}[HMX][A-Z]{5}[0-9A-Z][0-9]"),
    _Scheme(
        "Germany", "de.idnr", r"[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}", r"steuer|id-?nr|identifikation|tax"
    ),
    _Scheme("Netherlands", "nl.bsn", r"[0-9]{9}", r"bsn|burgerservice|sofi"),
    _Scheme("Poland", "pl.pesel", r"[0-9]{11}", r"pesel"),
    _Scheme("Denmark", "dk.cpr", r"[0-9]{6}-?[0-9]{4}", r"cpr|personnummer"),
    _Scheme("Norway", "no.fodselsnummer", r"[0-9]{6} ?[0-9]{5}", r"f[øo]dsels|personnummer"),
    _Scheme("Turkey", "tr.tckimlik", r"[0-9]{11}", r"kimlik|t\.?c\."),
    _Scheme("India", "in_.aadhaar", r"[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}", r"aadh?aa?r"),
    _Scheme("India", "in_.pan", r"[A-Z]{5}[0-9]{4}[A-Z]", r"\bpan\b"),
    _Scheme("Canada", "ca.sin", r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3}", r"\bsin\b|social insurance"),
    _Scheme("Australia", "au.tfn", r"[0-9]{3} ?[0-9]{3} ?[0-9]{3}", r"tfn|tax file"),
    _Scheme("South Africa", "za.idnr", r"[0-9]{13}", r"\bid\b|identity"),
    _Scheme("Ireland", "ie.pps", r"[0-9]{7}[A-W][A-IW]?", r"pps"),
    _Scheme("United Kingdom", "gb.nhs", r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4}", r"nhs"),
)
_BEHIND = 48
_ANY = re.compile(
    "(?<![A-Za-z0-9.-])(?:"
    + "|".join(f"({scheme.shape})" for scheme in _SCHEMES)
    + r")(?![A-Za-z0-9]|[.-][0-9])"
)

MARKS = r"[0-9]{6}|[0-9]{3}[ .-][0-9]{3}|[0-9]{4}[ .-][0-9]{4}|[0-9]{2}[ .][0-9]{2}|[A-Z]{4}[0-9]{2}"
"""A pattern of RE2 that every text with such a number matches."""


def find_national(text: str) -> Iterator[Span]:
    """National numbers of people, by country."""
    for match in _ANY.finditer(text):
        before = text[max(0, match.start() - _BEHIND) : match.start()].lower()
        for scheme in _SCHEMES:
            if _is_of(scheme, match[0], before):
                yield Span("national_id", match.start(), match.end(), 0.9, scheme.country)
                break


def _is_of(scheme: _Scheme, number: str, before: str) -> bool:
    return (
        (not scheme.name or re.search(scheme.name, before) is not None)
        and re.fullmatch(scheme.shape, number) is not None
        and bool(_stdnum(scheme.module).is_valid(number))
    )


@cache
def _stdnum(module: str) -> Any:
    return import_module(f"stdnum.{module}")
