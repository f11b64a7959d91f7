"""Addresses of networks: mail, web, IP, and the hardware of a network card."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address

from memframe.audit.text import Span

_MAIL = re.compile(
    r"(?<![\w.+%'-])[\w.+%'-]{1,64}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}(?:[^\W\d_]{2,24}"
    r"|xn--[a-z0-9-]{2,59})(?![\w-])"
)
_REPOSITORY = re.compile(r"git@[\w.-]+:")

_URL = re.compile(
    r"(?<![\w@.-])(?:(?:https?|ftps?|sftp|wss?)://|www\.(?=[\w-]{1,63}\.))[^\s<>\"'`|\\^{}]{2,2000}",
    re.IGNORECASE,
)
_CREDENTIALS = re.compile(r"[a-z]+://[^\s/:@]{1,100}:[^\s/@]{1,200}@", re.IGNORECASE)
_STOPS, _BRACKETS = ".,;:!?*_~", {")": "(", "]": "["}

_IPV4 = re.compile(r"(?<![\w.-])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![\w-]|\.[0-9])")
_IPV6 = re.compile(
    r"(?<![\w:.])(?=[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f:]{6,39}(?:(?<=:)[0-9]{1,3}(?:\.[0-9]{1,3}){3})?(?![\w:]|\.[0-9])"
)
_NUMBERED = re.compile(
    r"\b(?:v|version|release|build|ver\.?|firmware|section|chapter|clause|paragraph|§|update|patch|driver|kernel"
    r"|chrome|safari)"
    r"[\s:]*(?:to|from|is|=)?\s*\Z",
    re.IGNORECASE,
)
_HOSTED = re.compile(
    r"\b(?:ip|host|server|dns|address|adresse|ping|router|gateway|subnet|ssh|proxy|printer|nas|camera|at"
    r"|on|from|connect\w*)"
    r"\b[^0-9.;]{0,24}\Z",
    re.IGNORECASE,
)
_SMALL_PARTS = re.compile(r"(?!10\.)(?:1?[0-9]\.){3}1?[0-9]")
_WELL_KNOWN = frozenset({"8.8.8.8", "8.8.4.4", "1.1.1.1", "9.9.9.9"})
_BEHIND = 32

_MAC = re.compile(r"(?<![\w:-])[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}(?![\w:-])")
_NO_CARD = frozenset({"0" * 12, "f" * 12})

MARKS = r"@[\pL\pN]|://|(?i:www\.)|[0-9]\.[0-9]{1,3}\.[0-9]|[0-9A-Fa-f]:[0-9A-Fa-f]{0,4}:|::[0-9A-Fa-f]|[0-9A-Fa-f]{2}-[0-9A-Fa-f]{2}-[0-9A-Fa-f]{2}-"
"""A pattern of RE2 that every text with such an address matches."""


def find_addresses(text: str) -> Iterator[Span]:
    """Addresses of all these kinds; a pattern runs only where the sign stands that it needs."""
    if "@" in text:
        yield from find_mail(text)
    if "://" in text or "www." in text.lower():
        yield from find_urls(text)
    yield from find_ips(text)
    yield from find_macs(text)


def find_mail(text: str) -> Iterator[Span]:
    """Addresses of electronic mail."""
    for match in _MAIL.finditer(text):
        start = match.start() + len(match[0]) - len(match[0].lstrip(".'%+-"))
        if not _REPOSITORY.match(text, start):
            yield Span("email", start, match.end(), 1.0)


def find_urls(text: str) -> Iterator[Span]:
    """Addresses of the web; those with a user's password are a kind of their own.

    >>> [span.kind for span in find_urls("see www.example.org/a_(b), or ftp://me:secret@example.org")]
    ['url', 'url_credentials']
    """
    for match in _URL.finditer(text):
        url = _without_stops(match[0])
        kind = "url_credentials" if _CREDENTIALS.match(url) else "url"
        yield Span(kind, match.start(), match.start() + len(url), 1.0)


def find_ips(text: str) -> Iterator[Span]:
    """Addresses of the internet protocol, version 4 and 6; numbers of versions and of the machine itself are none."""
    for match in (*_IPV4.finditer(text), *_IPV6.finditer(text)):
        before = text[max(0, match.start() - _BEHIND) : match.start()]
        if not _is_version(match[0], before) and _is_somewhere(match[0]):
            yield Span("ip", match.start(), match.end(), 0.9)


def find_macs(text: str) -> Iterator[Span]:
    """Addresses of network hardware."""
    for match in _MAC.finditer(text):
        digits = match[0].replace(match[1], "").lower()
        if digits not in _NO_CARD and (match[1] == ":" or not digits.isdecimal()):
            yield Span("mac", match.start(), match.end(), 0.9)


def _is_version(number: str, before: str) -> bool:
    """Whether something is numbered so; four small numbers are a version unless the text speaks of a machine."""
    is_small = _SMALL_PARTS.fullmatch(number) is not None and number not in _WELL_KNOWN
    return _NUMBERED.search(before) is not None or (is_small and not _HOSTED.search(before))


def _without_stops(url: str) -> str:
    """An address without the punctuation of the sentence around it."""
    url = url.rstrip(_STOPS)
    while url[-1:] in _BRACKETS and url.count(url[-1]) > url.count(_BRACKETS[url[-1]]):
        url = url[:-1].rstrip(_STOPS)
    return url


def _is_somewhere(text: str) -> bool:
    """Whether an address belongs to some machine: neither malformed, nor of this machine, nor of many at once."""
    try:
        address: IPv4Address | IPv6Address = ip_address(text)
    except ValueError:
        return False
    if address.version == 6 and not any(map(str.isdecimal, text)):
        return False  # words, of which some languages join two by colons
    return not (
        address.is_loopback or address.is_unspecified or address.is_multicast or text.startswith("255.")
    )
