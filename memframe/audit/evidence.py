"""Evidence and labels of memories for people, and masked texts for a judge: nothing that gives a secret away."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memframe.audit.findings import Check, plain_columns
from memframe.audit.lexicon import LIGHT
from memframe.audit.personal_data import find_personal_data
from memframe.audit.rules import MANY, load_words
from memframe.audit.secrets import find_secrets
from memframe.audit.secrets.keys import seed_words
from memframe.audit.secrets.values import looks_drawn
from memframe.audit.text import Memories, fold, mask_text, redaction_mark
from memframe.fields import TEXT_FIELDS
from memframe.frames import READ

_SECRET = re.compile(
    r"pass ?(?:word|code|phrase|wort)|kennwort|contrase|mot de passe|wachtwoord|\bpin\b|\bpins\b|secret|token|api.?key|"
    r"\bkeys?\b|\bcode\b|seed|recover|mnemonic|credential|login|\bcvv|\bcvc|\biban\b|\bcard\b|\baccount\b|\bssn\b|"
    r"social security|passport|security (?:question|answer)|maiden|unlock|combination|geheim|密码|口令|كلمة",
    re.IGNORECASE,
)
"""Words beside which any other word may be the secret."""

_PREFILTER = "(?i)" + _SECRET.pattern.replace("i", r"[i\x{130}\x{131}]")
"""The same for RE2, which takes a hundredth of the time; an i may be a Turkish one, which Python alone knows."""

_TELLING = re.compile(r"\d{6}|(?=.{0,40}\d)(?=.{0,40}[^\W\d]).{8}|@|.{25}")


def is_sensitive(text: str) -> bool:
    """Return True for a text that speaks of secrets, so that none of its words may be shown.

    >>> is_sensitive("The padlock opens with the PIN 4071."), is_sensitive("The rent is 640 pounds.")
    (True, False)
    """
    return _SECRET.search(text) is not None


class SensitiveTexts:
    """Find the texts of a column that speak of secrets.

    >>> SensitiveTexts(pa.array(["The padlock opens with the PIN 4071.", "The rent is 640 pounds."])).any_of(1)
    False
    """

    def __init__(self, texts: pa.Array) -> None:
        self._texts = texts

    @cached_property
    def _may_be(self) -> list[bool | None]:
        if len(self._texts) < MANY:
            return [True] * len(self._texts)
        found: list[bool | None] = pc.match_substring_regex(self._texts, _PREFILTER).to_pylist()
        return found

    def any_of(self, *rows: int) -> bool:
        return any(self._may_be[row] and is_sensitive(self._texts[row].as_py()) for row in rows)


def quote_words(words: Iterable[str], *, sensitive: bool) -> str:
    """Show words as evidence: in the open, or by their first characters and lengths.

    >>> quote_words(["640", "sk82hd92kx"], sensitive=False), quote_words(["4071"], sensitive=True)
    ('640 s… (10)', '4… (4)')
    """
    return " ".join(
        f"{word[0]}… ({len(word)})" if sensitive or _TELLING.search(word) else word for word in words
    )


_MOST_QUOTED = 6


def describe_difference(words: Sequence[str], others: Sequence[str]) -> str:
    """Say which words with a value stand in another text alone, and which in this one alone; the first few of each.

    Words with a digit are left out: they may be parts of a secret that no check knows. Callers leave out texts that
    speak of secrets.

    >>> describe_difference("ada likes green tea".split(), "ada likes black tea and chess".split())
    '; only the other has «black chess»; only this one has «green»'
    """
    described = ""
    for owner, some, compared_with in (("the other", others, words), ("this one", words, others)):
        alone = [
            word
            for word in dict.fromkeys(some)
            if word.isalpha() and word not in LIGHT and word not in compared_with
        ]
        if alone:
            quoted = quote_words(alone[:_MOST_QUOTED], sensitive=False)
            more = " …" * (len(alone) > _MOST_QUOTED)
            described += f"; only {owner} has «{_BETWEEN_CHARACTERS.sub('', quoted)}{more}»"
    return described


_BETWEEN_CHARACTERS = re.compile(r"(?<=[\u3040-\u9fff]) (?=[\u3040-\u9fff])")
"""Blanks between characters of Chinese and Japanese, each of which is a word of its own."""

HOLDS_WORDS: Mapping[Check, bool] = {
    "exact_duplicate": False,
    "near_duplicate": True,
    "version": True,
    "stale": True,
    "secret": False,
    "personal_data": False,
    "planted": True,
    "junk": True,
    "missing": False,
    "scores": False,
    "tags": False,
    "sealed": False,
}
"""True for checks whose evidence may contain words of memories, as that of somebody's own check may."""

MASKED = frozenset(check for check, holds_words in HOLDS_WORDS.items() if not holds_words)

FINDERS: Mapping[Check, Callable[[Memories], pd.DataFrame]] = {
    "secret": find_secrets,
    "personal_data": find_personal_data,
}
"""Checks that find what must not be shown."""

WITHHELD = "withheld, as it would show a secret or personal data"

NOT_SHOWN = "(not shown, as it speaks of a secret)"

_LABEL_LETTERS = 72
"""Characters of a title, or of the first words, by which one knows a memory again."""

_OPEN_KINDS = frozenset({"url", "name", "address"})
"""Personal data that evidence may show: it is what memories are about."""

_N_LETTERS = 4
"""Characters in a row that are too much of a secret to show."""

_WORD = re.compile(r"[^\s\"'«»“”„()\[\]<>,;]+")
"""A word of evidence, which is shown or masked as a whole."""

_MASK_END = re.compile(r" \([0-9,]+ characters\)")
"""End of a mask, after its first characters."""


def withhold(
    findings: pd.DataFrame, memories: pd.DataFrame, *, known: Collection[Check] = ()
) -> pd.DataFrame:
    """Mask in the evidence of findings what is secret or personal in the memories concerned.

    Parameters
    ----------
    findings : DataFrame
    memories : DataFrame
        That were audited.
    known : collection of str
        Checks of `FINDERS` whose findings are there already; the others are run here.
    """
    findings = _mask_tag_names(findings)
    checks, ids, related_ids, evidence = plain_columns(findings, "check", "id", "related_id", "evidence")
    rows = [row for row, text in enumerate(evidence) if checks[row] not in MASKED and text is not None]
    if not rows:
        return findings
    concerned = memories[
        _are_among(memories["id"], {cell for row in rows for cell in (ids[row], related_ids[row])})
    ]
    spans = [
        findings[findings["check"] == check] if check in known else find(concerned)
        for check, find in FINDERS.items()
    ]
    hidden = _find_hidden(concerned, spans)
    masked: dict[str, str] = {}  # much of what is said is said of many memories

    def mask(text: str, values: Collection[str]) -> str:
        if values:
            return _mask_evidence(text, values)
        if text not in masked:
            masked[text] = _mask_evidence(text, ())
        return masked[text]

    # of memories without ids nobody can say which of them holds what is hidden
    for row in rows:
        one, other, text = ids[row], related_ids[row], evidence[row]
        is_of_any = hidden and one is None
        evidence[row] = WITHHELD if is_of_any else mask(text, {*hidden.get(one, ()), *hidden.get(other, ())})
    return findings.assign(evidence=pd.array(evidence, "str"))


def labels_of(
    memories: pd.DataFrame, ids: Container[str | None], *, with_place: bool = True
) -> dict[str, str]:
    """Return what chosen memories are called in a report: the title, or the first words, secrets masked.

    Both are shown where several memories have the title, which is the heading of a section then. A memory of a file is
    called by its entity, if it has one, and by its place in the file unless that is shown elsewhere.

    A text that speaks of secrets while none was found in it is not shown at all: any of its words may be one.

    >>> memories = pd.DataFrame({"id": ["m1", "m2", "m3"], "title": ["Tea", None, None], "content": [
    ...     "Likes tea", "Door code: 2580#", "The padlock opens with the usual combination"]})
    >>> labels_of(memories, ["m1", "m2", "m3"])
    {'m1': 'Tea', 'm2': 'Door code: (5 characters)', 'm3': '(not shown, as it speaks of a secret)'}
    """
    is_chosen = _are_among(memories["id"], ids)
    concerned = memories[is_chosen].drop_duplicates("id")
    mask = make_mask(concerned)
    names = [name for name in TEXT_FIELDS if name in concerned.columns]
    titles = memories["title"] if "title" in memories.columns else pd.Series(dtype="str")
    headings = {*titles[titles.duplicated()].dropna()}
    labels = {}
    file = PurePath(memories.attrs.get(READ, {}).get("file", "")).name
    nothing = [None] * len(concerned)
    entities, places = (concerned.get(name, nothing) for name in ("entity", "place"))
    texts_of = zip(*(concerned[name] for name in names), strict=True)
    for memory_id, entity, place, texts in zip(concerned["id"], entities, places, texts_of, strict=True):
        heading = entity if isinstance(entity, str) and entity.strip() else texts[0]
        is_heading = heading is entity or heading in headings
        chosen = (f"{heading}: {texts[-1]}",) if is_heading and isinstance(texts[-1], str) else texts
        text = next((" ".join(text.split()) for text in chosen if isinstance(text, str) and text.strip()), "")
        text = mask(memory_id, text)
        label = text if len(text) <= _LABEL_LETTERS else f"{text[: _LABEL_LETTERS - 1].rstrip()}…"
        where = " of ".join(
            part
            for part in (place, file)
            if with_place and isinstance(part, str) and part and places is not nothing
        )
        labels[memory_id] = f"{label} ({where})" if where else label
    return labels


def make_mask(memories: pd.DataFrame) -> Callable[[str | None, str], str]:
    """Return a function that masks secrets and personal data in a text of one of these memories, given its id.

    A text that speaks of a secret while none was found in the memory is not shown at all. White space is joined.

    >>> mask = make_mask(pd.DataFrame({"id": ["m1"], "content": ["Door code:\\n2580#"]}))
    >>> mask("m1", "Door code:\\n2580#")
    'Door code: (5 characters)'
    """
    secrets, personal = (find(memories) for find in (find_secrets, find_personal_data))
    hidden, with_secret = (
        _find_hidden(memories, [secrets, personal]),
        set(_read_ids(secrets["id"])),
    )

    def mask(memory_id: str | None, text: str) -> str:
        text = " ".join(text.split())
        if is_sensitive(text) and memory_id not in with_secret:
            return NOT_SHOWN
        return _mask_evidence(text, {" ".join(value.split()) for value in hidden.get(memory_id, ())})

    return mask


_N_AROUND = 60
"""Characters of a memory that are shown on either side of a secret."""


def quote_secrets(memories: pd.DataFrame, findings: pd.DataFrame) -> dict[tuple[str, str, int], str]:
    """Quote the words around each secret that was found, by id, field and start; what must not be seen is masked.

    >>> memories = pd.DataFrame({"id": ["m1"], "content": ["The PIN of Ada's card is 2580, and she likes tea."]})
    >>> quote_secrets(memories, find_secrets(memories))
    {('m1', 'content', 25): "The PIN of Ada's card is (4 characters), and she likes tea."}
    """
    is_span = findings["start"].notna() & findings["field"].isin(memories.columns)
    spans = findings[findings["check"].isin([*FINDERS]) & is_span]
    secrets = spans[(spans["check"] == "secret") & spans["id"].notna()]
    concerned = memories[_are_among(memories["id"], {*secrets["id"]})].drop_duplicates("id")
    if concerned.empty:
        return {}
    hidden = _find_hidden(concerned, [spans, *(find(concerned) for find in FINDERS.values())])
    rows = concerned.set_index("id").to_dict("index")
    quotes = {}
    for memory_id, field, start, end in zip(
        *plain_columns(secrets, "id", "field", "start", "end"), strict=True
    ):
        text = rows[memory_id][field]
        before, after = (
            re.sub(r"\s+", " ", _mask_evidence(part, hidden[memory_id]))
            for part in (text[:start], text[end:])
        )
        if not (before + after).strip():
            continue
        if len(before) > _N_AROUND:
            before = "… " + before[-_N_AROUND:].partition(" ")[2]
        if len(after) > _N_AROUND:
            after = after[:_N_AROUND].rpartition(" ")[0] + " …"
        quotes[memory_id, field, start] = before + mask_text(text[start:end]) + after
    return quotes


def _read_ids(column: pd.Series[Any]) -> list[str | None]:
    return [memory_id if isinstance(memory_id, str) else None for memory_id in column.tolist()]


def _are_among(column: pd.Series[Any], wanted: Container[str | None]) -> NDArray[np.bool_]:
    """Find the ids that are among some; `Series.isin` takes twenty times as long for many."""
    return np.array([memory_id in wanted for memory_id in _read_ids(column)], bool)


def _mask_tag_names(findings: pd.DataFrame) -> pd.DataFrame:
    """Mask secrets and personal data in tag names that evidence quotes."""
    checks, evidence = plain_columns(findings, "check", "evidence")
    rows = [row for row, text in enumerate(evidence) if checks[row] == "tags" and text is not None]
    if not rows:
        return findings
    quoting = pd.array(list(dict.fromkeys(evidence[row] for row in rows)), "str")
    names = pd.DataFrame({"id": quoting, "content": quoting})
    hidden = _find_hidden(names, [find(names) for find in FINDERS.values()])
    if not hidden:
        return findings
    for row in rows:
        evidence[row] = _mask_evidence(evidence[row], hidden.get(evidence[row], ()))
    return findings.assign(evidence=pd.array(evidence, "str"))


def values_of(memories: pd.DataFrame, spans: pd.DataFrame) -> Iterator[tuple[str | None, str, str]]:
    """Yield id, text and kind of each span that was found; of several memories with one id, the texts of all."""
    ids, fields, starts, ends, kinds = plain_columns(spans, "id", "field", "start", "end", "kind")
    if not ids:
        return
    places: dict[str, list[int]] = {memory_id: [] for memory_id in ids if memory_id is not None}
    for row, memory_id in enumerate(_read_ids(memories["id"])):
        if memory_id is not None and memory_id in places:
            places[memory_id].append(row)
    columns: dict[str, list[object]] = {}
    for memory_id, field, start, end, kind in zip(ids, fields, starts, ends, kinds, strict=True):
        for row in places.get(memory_id, ()) if start is not None else ():
            if field not in columns:
                columns[field] = memories[field].tolist()
            text = columns[field][row]
            if isinstance(text, str) and text[start:end]:
                yield memory_id, text[start:end], kind


def _find_hidden(memories: pd.DataFrame, spans: Iterable[pd.DataFrame]) -> dict[str | None, set[str]]:
    """Return the texts that nobody shall see, by the id of the memory."""
    hidden: defaultdict[str | None, set[str]] = defaultdict(set)
    for part in spans:
        for memory_id, value, kind in values_of(memories, part):
            if kind not in _OPEN_KINDS:
                hidden[memory_id].add(value)
    return hidden


def _mask_evidence(evidence: str, hidden: Iterable[str]) -> str:
    """Mask hidden texts in evidence, each word that shows a part of one, and what looks like a secret.

    >>> _mask_evidence("«use Blue$kies1 at home» and «blue$ki», not ~lmlyD2zM*9", ["Blue$kies1"])
    '«use (10 characters) at home» and «(7 characters)», not (11 characters)'
    """
    for text in sorted(hidden, key=len, reverse=True):
        evidence = evidence.replace(text, mask_text(text))
    pieces = [
        text[start : start + _N_LETTERS]
        for text in map(str.casefold, hidden)
        for start in ([0] if len(text) <= _N_LETTERS else range(1, len(text) - _N_LETTERS + 1))
    ]

    def mask(word: re.Match[str]) -> str:
        core = word[0].rstrip(".:!?…")
        small = core.casefold()
        is_part = any(piece in small for piece in pieces) and not _MASK_END.match(word.string, word.end())
        return mask_text(core) + word[0][len(core) :] if is_part or looks_drawn(core) else word[0]

    return _WORD.sub(mask, evidence)


# ---- texts for a judge: without secrets and personal data, or none

_LONGEST_SENT = 2_000
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
_NAMED_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_DATE = re.compile(
    r"(?:19\d|20[0-4])\d([-/.])[01]?\d(?:\1[0-3]?\d)?(?:T[0-2]\d(?::?[0-5]\d){1,2}(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|[0-3]?\d([-/.])[01]?\d\2(?:19\d|20[0-4])\d"
    rf"|[0-3]?\d(?:st|nd|rd|th)?[-/.]?{_NAMED_MONTH}(?:[-/.,]?(?:19\d|20[0-4])\d)?"
    rf"|{_NAMED_MONTH}[-/.]?[0-3]?\d(?:st|nd|rd|th)?(?:[-/.,](?:19\d|20[0-4])\d)?"
    rf"|{_NAMED_MONTH}[-/.](?:19\d|20[0-4])\d"
    rf"|(?:19\d|20[0-4])\d[-/.]{_NAMED_MONTH}(?:[-/.][0-3]?\d)?|(?:19\d|20[0-4])\d年(?:[01]?\d月(?:[0-3]?\d日)?)?",
    re.IGNORECASE,
)
"""A day, however it is written: what changes from one version to the next is often that."""
_BEFORE_YEAR = re.compile(
    r"\b(?:in|since|from|until|till|by|before|after|year|(?:early|mid|late|spring|summer|autumn|fall|winter|"
    r"jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]{0,6}\.?|seit|im|depuis|en|desde|del?)\s?$",
    re.IGNORECASE,
)
"""Words before a year, which is then no PIN; any other number of four digits may be one."""


class Masks:
    """Masked texts of memories that a judge may be asked about.

    What is masked is searched for in the folded texts (`fold`), and replaced in the original ones. The same value has
    the same mask in all texts of a question, so that a judge sees that it is the same. Where a sentence speaks of a
    secret and none was found, all of its words that carry a value are masked. A memory is withheld where a secret is
    left after masking, or nothing but masks.

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
        self._texts = {
            memory_id: fold(text) if isinstance(text, str) else None
            for memory_id, text in zip(concerned["id"], concerned["content"], strict=True)
        }
        days = pd.to_datetime(concerned["created_at"], utc=True).dt.strftime("%Y-%m-%d")
        self._days = dict(zip(concerned["id"], days, strict=True))
        concerned = _fold_texts(concerned)
        secrets, personal = find_secrets(concerned), find_personal_data(concerned)
        own = list(values_of(concerned, secrets))
        self._hidden: defaultdict[str | None, dict[str, str]] = defaultdict(dict)
        for memory_id, value, kind in (*values_of(concerned, personal), *own):
            self._hidden[memory_id][value.strip()] = kind
        found = values_of(memories, findings[findings["check"] == "secret"])
        spans = (*((memory_id, fold(value).text, kind) for memory_id, value, kind in found), *own)
        self._everywhere = {
            value.strip(): kind for _, value, kind in spans if len(value.strip()) >= _LEAST_ELSEWHERE
        }
        with_secret = set(secrets["id"])
        self._withheld = {memory_id for memory_id, text in self._texts.items() if text is None}
        self._told = {
            memory_id: _find_told(text.text)
            for memory_id, text in self._texts.items()
            if text is not None and memory_id not in with_secret and is_sensitive(text.text)
        }
        marked = {
            memory_id: self._mask_hidden(memory_id, [memory_id], {})
            for memory_id in self._texts
            if memory_id not in self._withheld
        }
        self._withheld |= {memory_id for memory_id in self._told if _has_only_masks(marked[memory_id])}
        frame = pd.DataFrame({"id": [*marked], "content": [*marked.values()]}, dtype="str")
        for find in FINDERS.values():  # what is left is not sent
            findings = find(_fold_texts(frame))
            self._withheld |= set(findings["id"][findings["action"] != "none"])

    @property
    def withheld(self) -> set[str]:
        """Memories that are not asked about."""
        return self._withheld

    def day_of(self, memory_id: str) -> str:
        """Return the day on which a memory was made; empty where it is not known."""
        day = self._days[memory_id]
        return day if isinstance(day, str) else ""

    def of(self, ids: Sequence[str]) -> list[str | None]:
        """Return the masked texts of the memories of one question, None for those that are withheld."""
        marks: dict[str, str] = {}
        texts = [
            None if memory_id in self._withheld else self._mask_hidden(memory_id, ids, marks)
            for memory_id in ids
        ]
        return [None if text is None else _MARK.sub(r"<\1\2>", text) for text in texts]

    def _mask_hidden(self, memory_id: str, others: Iterable[str], marks: dict[str, str]) -> str:
        """Replace what is hidden of some memories, the longest values first, and what looks like a secret."""
        folded = self._texts[memory_id]
        assert folded is not None  # noqa: S101 - for the type checker: a memory without a text is withheld
        hidden = dict(self._everywhere)
        for other in others:
            hidden |= self._hidden.get(other, {})
        values = sorted((value for value in hidden if value and value in folded.text), key=len, reverse=True)
        any_of_them = re.compile("|".join(map(re.escape, values)) or r"(?!)")
        pieces, at, end = [], 0, 0
        for value in (*any_of_them.finditer(folded.text), None):
            until = value.start() if value else len(folded.text)
            places = list(_cover(folded.text, end, until, marks, self._told.get(memory_id, ())))
            if value:
                places.append((*value.span(), _mark(value[0], hidden[value[0]], marks)))
                end = value.end()
            for *place, mark in places:
                first, last = folded.span(*place)
                pieces += [folded.original[at:first], mark]
                at = last
        text = "".join([*pieces, folded.original[at:]])
        if len(text) <= _LONGEST_SENT:
            return text
        end = text.rfind("[", 0, _LONGEST_SENT)  # perhaps of a mark that would be cut
        return f"{text[: end if 0 <= _LONGEST_SENT - end < len(redaction_mark('')) + 40 else _LONGEST_SENT]}…"


_SENTENCE = re.compile(r"[^\n.!?]*(?:[.!?](?!\s)[^\n.!?]*)*(?:[:=]\s*\n[^\n]*)?")
"""Up to a sign with a blank behind it, or to the end of the line; after a colon the next line, too."""


def _find_told(text: str) -> list[tuple[int, int]]:
    """Find the sentences that speak of secrets: each of their words may be one, as far as no check has found it.

    >>> _find_told("Tea is in the tin. The padlock opens with the PIN.")
    [(18, 50)]
    """
    return [match.span() for match in _SENTENCE.finditer(text) if is_sensitive(match[0])]


@cache
def _plain_words() -> frozenset[str]:
    """Return words that are no secret wherever they stand: those that carry no value, and those of machines."""
    of_machines = frozenset().union(*(load_words("junk")[name] for name in ("subjects", "things", "states")))
    return LIGHT | (of_machines - seed_words())


def _fold_texts(memories: pd.DataFrame) -> pd.DataFrame:
    names = [name for name in TEXT_FIELDS if name in memories.columns]
    columns = {name: memories[name].map(lambda text: fold(text).text, na_action="ignore") for name in names}
    return memories.assign(**columns)


def _cover(
    text: str, start: int, end: int, marks: dict[str, str], told: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int, str]]:
    """Yield the places of words in a part of a text that look like a secret, with their marks.

    Where secrets are told any word is masked that carries a value.
    """
    for word in _MARK_OR_WORD.finditer(text, start, end):
        core, before = word[0].rstrip(".:!?"), text[max(0, word.start() - 16) : word.start()]
        is_year = _YEAR.fullmatch(core) and _BEFORE_YEAR.search(before)
        if not core or word["mark"] or is_year or _DATE.fullmatch(core):
            continue
        is_told = any(first <= word.start() < last for first, last in told) and not _is_plain(core)
        if is_told or _LIKE_A_SECRET.search(core):
            yield word.start(), word.start() + len(core), _mark(core, "value", marks)


def _has_only_masks(text: str) -> bool:
    """Return True if no word is left with which a question could be answered."""
    return all(_is_plain(word[0]) for word in _WORD_LEFT.finditer(_MARK.sub(" ", text)))


_WORD_LEFT = re.compile(r"[^\W\d_]+")


def _is_plain(word: str) -> bool:
    small = word.casefold().strip("*_-,;")
    return small in _plain_words() or _SECRET.fullmatch(small.removesuffix("s")) is not None


def _mark(value: str, kind: str, marks: dict[str, str]) -> str:
    if value not in marks:
        mark = redaction_mark(kind)
        number = 1 + sum(other.startswith(mark[:-1]) for other in marks.values())
        marks[value] = f"{mark[:-1]} {number}]"
    return marks[value]
