"""Masking of memories for a judge: a text without secrets and personal data, or nothing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

import pandas as pd

from memframe.audit.evidence import is_delicate, values_of
from memframe.audit.personal_data import find_personal_data
from memframe.audit.secrets import find_secrets
from memframe.audit.text import redacted

_MAX_CHARACTERS = 2_000
_LEAST_ELSEWHERE = 6
"""Characters of a secret that is masked in other memories, too; shorter ones are ordinary numbers there."""

_MARK = re.compile(r"\[redacted: ([a-z ]{1,30}?)( \d+)?\]")
_MARK_OR_WORD = re.compile(rf"(?P<mark>{_MARK.pattern})|[^\s\"'«»“”()\[\]<>,;]+")
_LIKE_A_SECRET = re.compile(
    r"(?<![\d.:/-])\d{4}|(?=[!-~]{0,40}\d)(?=[!-~]{0,40}[A-Za-z])[!-~]{6}"
    r"|(?=[!-~]{0,40}[A-Za-z])(?=[!-~]{0,40}[$#*%^&!+=~])[!-~]{6}|@|[!-~]{25}"
)
"""Words that are masked although no check knows what they are: long numbers, letters mixed with digits or signs,
addresses, and whatever is very long."""

_YEAR = re.compile(r"(?:19\d|20[0-4])\d")
_DATE = re.compile(r"(?:19\d|20[0-4])\d-[01]\d(?:-[0-3]\d)?")
_BEFORE_YEAR = re.compile(
    r"\b(?:in|since|from|until|till|by|before|after|year|(?:early|mid|late|spring|summer|autumn|fall|winter|"
    r"jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]{0,6}\.?|seit|im|depuis|en|desde|del?)\s?$",
    re.IGNORECASE,
)
"""What stands before a year, so that it is no PIN; any other number of four digits may be one."""


class Masks:
    """Masked texts of memories that a judge may be asked about.

    The same value has the same mask in all texts of a question, so that a judge sees that it is the same. A memory is
    withheld where it speaks of a secret and none was found in it, or where something is left after masking.

    Parameters
    ----------
    memories : DataFrame
    findings : DataFrame
        Of the whole store: secrets that it names are masked wherever they stand.
    ids : collection of str
        The memories concerned.
    """

    def __init__(self, memories: pd.DataFrame, findings: pd.DataFrame, ids: Collection[str]) -> None:
        concerned = memories[memories["id"].isin(list(ids))].drop_duplicates("id")
        self._texts = dict(zip(concerned["id"], concerned["content"], strict=True))
        days = pd.to_datetime(concerned["created_at"], utc=True).dt.strftime("%Y-%m-%d")
        self._days = dict(zip(concerned["id"], days, strict=True))
        secrets, personal = find_secrets(concerned), find_personal_data(concerned)
        own = list(values_of(concerned, secrets))
        self._hidden: defaultdict[str | None, dict[str, str]] = defaultdict(dict)
        for name, value, kind in (*values_of(concerned, personal), *own):
            self._hidden[name][value.strip()] = kind
        named = (*values_of(memories, findings[findings["check"] == "secret"]), *own)
        self._everywhere = {
            value.strip(): kind for _, value, kind in named if len(value.strip()) >= _LEAST_ELSEWHERE
        }
        with_secret = set(secrets["id"])
        self._withheld = {
            name
            for name, text in self._texts.items()
            if not isinstance(text, str) or (is_delicate(text) and name not in with_secret)
        }
        marked = {name: self._marked(name, [name], {}) for name in self._texts if name not in self._withheld}
        frame = pd.DataFrame({"id": [*marked], "content": [*marked.values()]}, dtype="str")
        for find in (find_secrets, find_personal_data):  # what is left is not sent
            found = find(frame)
            self._withheld |= set(found["id"][found["action"] != "none"])

    @property
    def n_withheld(self) -> int:
        """Memories that are not asked about."""
        return len(self._withheld)

    def day_of(self, name: str) -> str:
        """Return the day on which a memory was made; empty where it is not known."""
        day = self._days[name]
        return day if isinstance(day, str) else ""

    def of(self, names: Sequence[str]) -> list[str | None]:
        """Return the masked texts of the memories of one question, None for those that are withheld."""
        marks: dict[str, str] = {}
        texts = [None if name in self._withheld else self._marked(name, names, marks) for name in names]
        return [None if text is None else _MARK.sub(r"<\1\2>", text) for text in texts]

    def _marked(self, name: str, others: Iterable[str], marks: dict[str, str]) -> str:
        """Replace what is hidden of some memories, the longest values first, and what looks like a secret."""

        def cover(word: re.Match[str]) -> str:
            core, before = word[0].rstrip(".:!?"), word.string[max(0, word.start() - 16) : word.start()]
            is_year = _YEAR.fullmatch(core) and _BEFORE_YEAR.search(before)
            if word["mark"] or is_year or _DATE.fullmatch(core) or not _LIKE_A_SECRET.search(core):
                return word[0]
            return _mark(core, "value", marks) + word[0][len(core) :]

        text = str(self._texts[name])
        hidden = dict(self._everywhere)
        for other in others:
            hidden |= self._hidden.get(other, {})
        values = sorted((value for value in hidden if value and value in text), key=len, reverse=True)
        if values:
            any_of_them = "|".join(map(re.escape, values))
            text = re.sub(any_of_them, lambda found: _mark(found[0], hidden[found[0]], marks), text)
        text = _MARK_OR_WORD.sub(cover, text)
        if len(text) <= _MAX_CHARACTERS:
            return text
        end = text.rfind("[", 0, _MAX_CHARACTERS)  # perhaps of a mark that would be cut
        return f"{text[: end if 0 <= _MAX_CHARACTERS - end < len(redacted('')) + 40 else _MAX_CHARACTERS]}…"


def _mark(value: str, kind: str, marks: dict[str, str]) -> str:
    if value not in marks:
        mark = redacted(kind)
        number = 1 + sum(other.startswith(mark[:-1]) for other in marks.values())
        marks[value] = f"{mark[:-1]} {number}]"
    return marks[value]
