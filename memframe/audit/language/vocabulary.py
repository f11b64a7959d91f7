"""Vocabularies: lists of words, as text beside the code in sections, or in the code in named groups."""

from __future__ import annotations

import re
from importlib.resources import files


def read_vocabulary(package: str, name: str) -> dict[str, frozenset[str]]:
    """The words of a file by section: ``[section]`` stands above its words, and after ``#`` stands a remark.

    Parameters
    ----------
    package : str
        Which the file lies in.
    name : str
        Of the file.
    """
    sections: dict[str, list[str]] = {}
    words: list[str] = []
    for line in files(package).joinpath(name).read_text("utf-8").splitlines():
        if line.startswith("["):
            words = sections.setdefault(line.strip("[]"), [])
        elif not line.startswith("#"):
            words.extend(line.split())
    return {section: frozenset(words) for section, words in sections.items()}


def one_of(*lists: str, **groups: str) -> str:
    r"""A pattern for one of several words or phrases, which commas set apart; each may be a pattern itself.

    The names of groups tell readers what belongs together; the pattern tries all in the order in which they are given.
    A comma with a blank that belongs to a pattern itself is written ``\,``, which patterns take for a comma.

    Raises
    ------
    ValueError
        A comma within a group or a class of characters set a pattern apart.

    Examples
    --------
    >>> one_of("file, error message, tests?")
    '(?:file|error message|tests?)'
    >>> one_of(english="door, gate", german="tür, tor")
    '(?:door|gate|tür|tor)'
    >>> print(one_of(r"dear\, all, hello"))
    (?:dear\, all|hello)
    >>> one_of("(?:dear, all)")
    Traceback (most recent call last):
    ...
    ValueError: '(?:dear' is no whole pattern: a comma and a blank set patterns apart, write "\, " within one
    """
    words = [word for group in (*lists, *groups.values()) for word in _COMMA.split(" ".join(group.split()))]
    for word in words:
        _check_whole(word)
    return f"(?:{'|'.join(words)})"


_COMMA = re.compile(r"(?<!\\), ")
_ESCAPED_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]")


def _check_whole(pattern: str) -> None:
    bare = _ESCAPED_OR_CLASS.sub("", pattern)
    if "[" in bare or bare.count("(") != bare.count(")"):
        message = 'is no whole pattern: a comma and a blank set patterns apart, write "\\, " within one'
        raise ValueError(f"{pattern!r} {message}")
