"""Redirect addresses of clients: which one a request may name, and what its page says about it.

An address matches when it is the registered one, character by character. The one exception is RFC 8252
section 7.3: a program on the user's own machine listens on whatever port is free, so that the port of
an ``http`` address whose host is a loopback IP literal is left out of the comparison.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_LOOPBACK = re.compile(
    r"(http://(?:127\.0\.0\.1|\[::1\]))(?::([0-9]{1,5}))?((?:[/?].*)?)", re.ASCII | re.DOTALL
)


def redirect_matches(registered: str, sent: str) -> bool:
    """Whether a redirect address that was sent is the one that was registered.

    >>> redirect_matches("http://127.0.0.1/callback", "http://127.0.0.1:51004/callback")
    True
    >>> redirect_matches("https://app.example/callback", "https://app.example/callback/")
    False
    """
    if sent == registered:
        return True
    loopback = _without_port(registered)
    return loopback is not None and loopback == _without_port(sent)


def _without_port(uri: str) -> str | None:
    match = _LOOPBACK.fullmatch(uri)
    if match is None or not 0 < int(match[2] or 80) <= 65_535:
        return None
    return match[1] + match[3]


def form_target(uri: str) -> str:
    """The redirect's origin as a source of a content security policy.

    The policy's grammar has no IPv6 addresses, for which only the scheme can be named.

    >>> form_target("https://app.example:8443/callback?from=memframe")
    'https://app.example:8443'
    >>> form_target("http://[::1]:51004/callback")
    'http:'
    """
    parts = urlsplit(uri)
    return f"{parts.scheme}:" if "[" in parts.netloc else f"{parts.scheme}://{parts.netloc}"
