"""Check addresses of services, and normalise them.

Secrets are sent to these addresses. Therefore everything is refused that makes an address look like another one
or exposes a secret: a user name or password, plain http to another machine, letters outside ASCII, a dot at the
end of the host, blanks and backslashes. Messages never repeat the address, because a secret may have been pasted
in its place.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from memframe.errors import ConfigError
from memframe.secret import Secret, as_secret

DEFAULT_PORTS = {"https": 443, "http": 80}
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_UNSEEN = re.compile(r"[\s\\\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


def check_url(name: str, text: str | Secret) -> str:
    """Normalize the address of a service; an unsafe one is a `ConfigError` that names the setting.

    Scheme and host are returned in lower case, a standard port and a trailing slash are dropped.

    >>> check_url("base_url", "https://API.example.com:443/api/v1/")
    'https://api.example.com/api/v1'
    """
    text = as_secret(text)
    if "?" in text.reveal():
        raise ConfigError(f"{name} has a query (?...) in it: leave it out.")
    _check(name, text)
    parts = urlsplit(text.reveal())
    port = "" if parts.port in {None, DEFAULT_PORTS[parts.scheme]} else f":{parts.port}"
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def check_redirect_uri(name: str, text: str | Secret) -> str:
    """Check a redirect address and return it unchanged, because the OAuth server compares it letter by letter.

    >>> check_redirect_uri("redirect_uri", "http://127.0.0.1/callback/")
    'http://127.0.0.1/callback/'
    """
    text = as_secret(text)
    _check(name, text)
    return text.reveal()


def is_loopback(host: str) -> bool:
    """Return True for a host that is this machine, by name or by number.

    >>> [is_loopback(host) for host in ("localhost", "127.8.0.1", "::1", "127.0.0.1.example.com")]
    [True, True, True, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def same_service(one: str, other: str) -> bool:
    """Return True if two addresses, normalized by `check_url`, belong to the same service.

    On this machine the port is ignored, because it changes with every start; the ids of users tell services apart.

    >>> same_service("http://127.0.0.1:8000/api/v1", "http://localhost:8001/api/v1")
    True
    >>> same_service("https://example.org/api/v1", "https://example.org:8443/api/v1")
    False
    """
    first, second = urlsplit(one), urlsplit(other)
    return one == other or (first.scheme == second.scheme == "http" and first.path == second.path)


def _check(name: str, address: Secret) -> None:
    fault = _fault(address.reveal())
    if fault:  # raised here, where no variable holds the address in the open for a traceback to print
        raise ConfigError(f"{name} {fault}")


def _fault(text: str) -> str | None:
    fault = _fault_of_text(text)
    if fault:
        return fault
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port  # reading the port raises if it is malformed
    except ValueError:
        return "has a broken host or port: write it as https://host:port/path."
    return _fault_of_parts(parts, host or "")


def _fault_of_text(text: str) -> str | None:
    if not text.strip():
        return "is empty: give the address, or unset it, so that the next place is searched."
    if _UNSEEN.search(text):
        return "contains a blank, a backslash or an invisible character: copy the address again."
    if "#" in text:
        return "has a fragment (#...) in it: leave it out."
    return None


def _fault_of_parts(parts: SplitResult, host: str) -> str | None:
    if parts.scheme not in DEFAULT_PORTS:
        return "does not begin with https:// (or http:// on this machine): give the whole address."
    if "@" in parts.netloc:
        return "contains a user name or password, which would be sent and logged: remove it."
    if not host:
        return "has no host: write it as https://host/path."
    if not host.isascii():
        return "has letters outside ASCII in its host, which can look like others: write its xn-- form."
    if host.endswith("."):
        return "has a dot at the end of its host: leave it out."
    if not (_HOST.fullmatch(host) or _is_ipv6(host)):
        return "has a malformed host: write it as https://host/path."
    if not (parts.path + parts.query).isascii():
        return "has letters outside ASCII after its host: write them percent-encoded."
    if parts.scheme == "http" and not is_loopback(host):
        return "uses plain http to another machine, so others could read the secrets in transit: use https."
    return None


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 6 and "%" not in host
    except ValueError:
        return False
