"""The versions of memframe, and of everything that it runs on."""

from __future__ import annotations

import platform
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version


@cache
def package_version() -> str:
    """Return the version of memframe that is installed."""
    return version("memframe")


def show_versions() -> None:
    """Print the versions of memframe, Python, the operating system and all libraries, for an error report.

    Examples
    --------
    >>> show_versions()  # doctest: +ELLIPSIS
    memframe ...
    """
    rows = {
        "memframe": package_version(),
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    for name in _libraries():
        try:
            rows[name] = version(name)
        except PackageNotFoundError:
            rows[name] = "-"
    width = max(map(len, rows))
    for name, number in rows.items():
        print(f"{name:{width}} {number}")  # noqa: T201 - what it is for


def _libraries() -> list[str]:
    """Return the names of all dependencies but those of tests and docs, in alphabetical order."""
    found = set()
    for line in requires("memframe") or []:
        extra = re.search(r"extra == ['\"](\w+)", line)
        name = re.match(r"[\w.-]+", line)
        if name and not (extra and extra[1] in {"test", "docs"}):
            found.add(name[0])
    return sorted(found - {"memframe"}, key=str.casefold)
