"""Vocabularies: lists of words, as text beside the code in sections, or in the code in named groups."""

from __future__ import annotations

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
    """A pattern for one of several words or phrases, which commas set apart; each may be a pattern itself.

    The names of groups tell readers what belongs together; the pattern tries all in the order in which they are given.

    >>> one_of("file, error message, tests?")
    '(?:file|error message|tests?)'
    >>> one_of(english="door, gate", german="tür, tor")
    '(?:door|gate|tür|tor)'
    """
    words = (word for group in (*lists, *groups.values()) for word in " ".join(group.split()).split(", "))
    return f"(?:{'|'.join(words)})"
