"""The way to a service: through which proxies, and whose certificates are trusted."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import requests

from memframe.errors import ConfigError


def way_to(origin: str, *, trust_env: bool, ca_bundle: str | None) -> dict[str, Any]:
    """Options of `requests` for an origin: what was given, else what the environment says.

    The environment does not count for plain http, which is spoken to this machine only; passwords of a netrc file
    are no part of it.

    Raises
    ------
    ConfigError
        The environment names certificates that are not there.

    Examples
    --------
    >>> way_to("https://m.example", trust_env=False, ca_bundle="root.pem")
    {'proxies': {}, 'verify': 'root.pem', 'cert': None}
    """
    if not trust_env or origin.startswith("http://"):
        return {"proxies": {}, "verify": ca_bundle or True, "cert": None}
    found = requests.Session().merge_environment_settings(origin, {}, None, ca_bundle, None)
    if isinstance(found["verify"], str):
        checked_bundle("REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE", found["verify"])
    return {name: found[name] for name in ("proxies", "verify", "cert")}


def checked_bundle(name: str, ca_bundle: str | PathLike[str]) -> str:
    """The path of root certificates, which must be there; ``name`` is where it was said.

    Raises
    ------
    ConfigError
    """
    path = Path(ca_bundle).expanduser()
    if not path.exists():
        raise ConfigError(
            f"{name} names {ca_bundle}, which is not there: correct it, or leave it out to trust the usual certificates"
        )
    return str(path)
