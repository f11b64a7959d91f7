"""Vocabularies: lists of words that lie beside the code as text, in sections."""

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
