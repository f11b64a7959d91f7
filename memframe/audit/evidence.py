"""Evidence and labels of memories for people, and masked texts for a judge, without secrets."""

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
"""Words about secrets: in a text with one of them, any other word may be the secret."""

_PREFILTER = "(?i)" + _SECRET.pattern.replace("i", r"[i\x{130}\x{131}]")
"""The same pattern for RE2, which takes a hundredth of the time.

Python also matches the Turkish letters for i without regard to case, RE2 does not.
"""

_IDENTIFYING = re.compile(r"\d{6}|(?=.{0,40}\d)(?=.{0,40}[^\W\d]).{8}|@|.{25}")
"""Words that are shortened in evidence, because they may identify somebody or open something."""


def is_sensitive(text: str) -> bool:
    """Return True for a text with a word about secrets, so that none of its words may be shown.

    >>> is_sensitive("The padlock opens with the PIN 4071."), is_sensitive("The rent is 640 pounds.")
    (True, False)
    """
    return _SECRET.search(text) is not None


class SensitiveTexts:
    """Test the texts of a column for words about secrets, with one prefilter for all of them.

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
        """Return True if one of the texts has a word about secrets."""
        return any(self._may_be[row] and is_sensitive(self._texts[row].as_py()) for row in rows)


def quote_words(words: Iterable[str], *, sensitive: bool) -> str:
    """Show words as evidence: in the open, or by their first characters and lengths.

    >>> quote_words(["640", "sk82hd92kx"], sensitive=False), quote_words(["4071"], sensitive=True)
    ('640 s… (10)', '4… (4)')
    """
    return " ".join(
        f"{word[0]}… ({len(word)})" if sensitive or _IDENTIFYING.search(word) else word for word in words
    )


_MAX_QUOTED = 6
"""Words of each text that a difference quotes."""


def describe_difference(words: Sequence[str], others: Sequence[str]) -> str:
    """Describe which words with a value only another text has, and which only this one has; the first few of each.

    Words with a digit are left out, because they may be parts of a secret that no check has found. Callers leave out
    texts with words about secrets.

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
            quoted = quote_words(alone[:_MAX_QUOTED], sensitive=False)
            more = " …" * (len(alone) > _MAX_QUOTED)
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
"""True for checks whose evidence may contain words of memories; the evidence of a check of your own may, too."""

MASKED = frozenset(check for check, holds_words in HOLDS_WORDS.items() if not holds_words)
"""Checks whose evidence contains no words of memories, or only masked ones."""

FINDERS: Mapping[Check, Callable[[Memories], pd.DataFrame]] = {
    "secret": find_secrets,
    "personal_data": find_personal_data,
}
"""Checks whose values must not be shown, with their functions."""

WITHHELD = "withheld, as it would show a secret or personal data"
"""Evidence of a finding that names no memory, if secrets were found."""

NOT_SHOWN = "(not shown, as it speaks of a secret)"
"""Label of a memory whose text has a word about secrets, although no secret was found in it."""

_LABEL_LETTERS = 72
"""Characters of a title, or of the first words, in the label of a memory."""

_OPEN_KINDS = frozenset({"url", "name", "address"})
"""Personal data that evidence may show, because memories are about people and places."""

_N_LETTERS = 4
"""Consecutive characters of a secret that evidence must not show."""

_WORD = re.compile(r"[^\s\"'«»“”„()\[\]<>,;]+")
"""A word of evidence, which is shown or masked as a whole."""

_MASK_END = re.compile(r" \([0-9,]+ characters\)")
"""End of a mask, after its first characters."""


def withhold(
    findings: pd.DataFrame, memories: pd.DataFrame, *, known: Collection[Check] = ()
) -> pd.DataFrame:
    """Mask secrets and personal data of the memories concerned in the evidence of findings.

    Parameters
    ----------
    findings : DataFrame
    memories : DataFrame
        The audited memories.
    known : collection of str
        Checks of `FINDERS` whose findings are among the given ones; the others are run here.
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
    masked: dict[str, str] = {}  # many findings have the same evidence

    def mask(text: str, values: Collection[str]) -> str:
        if values:
            return _mask_evidence(text, values)
        if text not in masked:
            masked[text] = _mask_evidence(text, ())
        return masked[text]

    for row in rows:
        memory_id, related_id, text = ids[row], related_ids[row], evidence[row]
        values = {*hidden.get(memory_id, ()), *hidden.get(related_id, ())}
        # a finding without an id may be about any memory, so that its evidence may quote any of the values
        evidence[row] = WITHHELD if hidden and memory_id is None else mask(text, values)
    return findings.assign(evidence=pd.array(evidence, "str"))


def labels_of(
    memories: pd.DataFrame, ids: Container[str | None], *, with_place: bool = True
) -> dict[str, str]:
    """Return the labels of chosen memories, by id: the title or the first words, with secrets masked.

    Both are shown if several memories have the title, which is then the heading of a section. The label of a memory
    from a file also has its entity, if there is one, and its place in the file, unless that is shown elsewhere.

    A text with a word about secrets in which no secret was found is not shown, because any of its words may be one.

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
    are_placed = with_place and "place" in concerned.columns
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
        where = " of ".join(part for part in (place, file) if are_placed and isinstance(part, str) and part)
        labels[memory_id] = f"{label} ({where})" if where else label
    return labels


def make_mask(memories: pd.DataFrame) -> Callable[[str | None, str], str]:
    """Return a function that masks secrets and personal data in a text of one of these memories, given its id.

    A text with a word about secrets is not shown if no secret was found in the memory. White space is joined.

    >>> mask = make_mask(pd.DataFrame({"id": ["m1"], "content": ["Door code:\\n2580#"]}))
    >>> mask("m1", "Door code:\\n2580#")
    'Door code: (5 characters)'
    """
    secrets, personal = (find(memories) for find in (find_secrets, find_personal_data))
    hidden = _find_hidden(memories, [secrets, personal])
    with_secret = set(_read_ids(secrets["id"]))

    def mask(memory_id: str | None, text: str) -> str:
        text = " ".join(text.split())
        if is_sensitive(text) and memory_id not in with_secret:
            return NOT_SHOWN
        return _mask_evidence(text, {" ".join(value.split()) for value in hidden.get(memory_id, ())})

    return mask


_N_AROUND = 60
"""Characters of a memory that are shown on either side of a secret."""


def quote_secrets(memories: pd.DataFrame, findings: pd.DataFrame) -> dict[tuple[str, str, int], str]:
    """Quote the words around each secret that was found, by id, field and start, with all secrets masked.

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
    """Return True for each id that is among the wanted ones; `Series.isin` takes twenty times as long for many."""
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
    """Return the values that must not be shown, by the id of the memory."""
    hidden: defaultdict[str | None, set[str]] = defaultdict(set)
    for part in spans:
        for memory_id, value, kind in values_of(memories, part):
            if kind not in _OPEN_KINDS:
                hidden[memory_id].add(value)
    return hidden


def _mask_evidence(evidence: str, hidden: Iterable[str]) -> str:
    """Mask hidden values in evidence, words that contain a part of one, and words that look like a secret.

    >>> _mask_evidence("«use Blue$kies1 at home» and «blue$ki», not ~lmlyD2zM*9", ["Blue$kies1"])
    '«use (10 characters) at home» and «(7 characters)», not (11 characters)'
    """
    for text in sorted(hidden, key=len, reverse=True):
        evidence = evidence.replace(text, mask_text(text))
    pieces = {
        text[start : start + _N_LETTERS]
        for text in map(str.casefold, hidden)
        for start in ([0] if len(text) <= _N_LETTERS else range(1, len(text) - _N_LETTERS + 1))
    }
    lengths = {len(piece) for piece in pieces}

    def mask(word: re.Match[str]) -> str:
        core = word[0].rstrip(".:!?…")
        small = core.casefold()
        # looked up, because a long text may have thousands of words and thousands of pieces
        parts = (small[start : start + n] for n in lengths for start in range(len(small) - n + 1))
        is_part = not pieces.isdisjoint(parts) and not _MASK_END.match(word.string, word.end())
        return mask_text(core) + word[0][len(core) :] if is_part or looks_drawn(core) else word[0]

    return _WORD.sub(mask, evidence)


# ---- texts for a judge: masked, or withheld

_MAX_SENT_CHARS = 2_000
"""Characters of a masked text that a judge gets; the rest is cut off."""
_MIN_CHARS_ELSEWHERE = 6
"""Fewest characters of a secret that is masked in other memories as well; shorter ones are ordinary numbers there."""

_MARK = re.compile(r"\[redacted: ([a-z ]{1,30}?)( \d+)?\]")
_MARK_OR_WORD = re.compile(rf"(?P<mark>{_MARK.pattern})|[^\s\"'«»“”()\[\]<>,;]+")
_LIKE_A_SECRET = re.compile(
    r"(?<![\d.:/-])\d{4}|(?=[!-~]{0,40}\d)(?=[!-~]{0,40}[A-Za-z])[!-~]{6}"
    r"|(?=[!-~]{0,40}[A-Za-z])(?=[!-~]{0,40}[$#*%^&!+=~])[!-~]{6}|@|[!-~]{25}"
)
"""Words that are masked although no check finds them: numbers of four digits and more, letters mixed with digits or
signs, addresses, and very long words."""

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
"""A day in any spelling. Dates are not masked, because two versions often differ in the day alone."""
_BEFORE_YEAR = re.compile(
    r"\b(?:in|since|from|until|till|by|before|after|year|(?:early|mid|late|spring|summer|autumn|fall|winter|"
    r"jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]{0,6}\.?|seit|im|depuis|en|desde|del?)\s?$",
    re.IGNORECASE,
)
"""Words before a year, which is then not masked; any other number of four digits may be a PIN."""


class Masks:
    """Masked texts of memories that a judge may be asked about.

    Values are searched for in the folded texts (`fold`), and masked in the original ones. The same value has the same
    mask in all texts of a question, so that a judge can compare them. In a sentence with a word about secrets in which
    none was found, all words that carry a value are masked. A memory is withheld if a secret is found after masking,
    or if nothing but masks is left.

    Parameters
    ----------
    memories : DataFrame
    findings : DataFrame
        Findings of the whole store; the secrets among them are masked in all texts.
    ids : collection of str
        Ids of the memories to mask.
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
            value.strip(): kind for _, value, kind in spans if len(value.strip()) >= _MIN_CHARS_ELSEWHERE
        }
        with_secret = set(secrets["id"])
        self._withheld = {memory_id for memory_id, text in self._texts.items() if text is None}
        self._sensitive_spans = {
            memory_id: _find_sensitive_sentences(text.text)
            for memory_id, text in self._texts.items()
            if text is not None and memory_id not in with_secret and is_sensitive(text.text)
        }
        marked = {
            memory_id: self._mask_hidden(memory_id, [memory_id], {})
            for memory_id in self._texts
            if memory_id not in self._withheld
        }
        self._withheld |= {
            memory_id for memory_id in self._sensitive_spans if _has_only_masks(marked[memory_id])
        }
        frame = pd.DataFrame({"id": [*marked], "content": [*marked.values()]}, dtype="str")
        for find in FINDERS.values():  # a text in which one is still found is not sent
            findings = find(_fold_texts(frame))
            self._withheld |= set(findings["id"][findings["action"] != "none"])

    @property
    def withheld(self) -> set[str]:
        """Ids of the memories that a judge is not asked about."""
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
        """Mask the hidden values of some memories in a text, the longest first, and words that look like a secret."""
        folded = self._texts[memory_id]
        assert folded is not None  # noqa: S101 - for the type checker: a memory without a text is withheld
        hidden = dict(self._everywhere)
        for other in others:
            hidden |= self._hidden.get(other, {})
        values = sorted((value for value in hidden if value and value in folded.text), key=len, reverse=True)
        any_of_them = re.compile("|".join(map(re.escape, values)) or r"(?!)")
        sensitive_spans = self._sensitive_spans.get(memory_id, ())
        pieces, n_copied, end = [], 0, 0
        for value in (*any_of_them.finditer(folded.text), None):
            until = value.start() if value else len(folded.text)
            masked = list(_mask_words(folded.text, end, until, marks, sensitive_spans))
            if value:
                masked.append((*value.span(), _mark(value[0], hidden[value[0]], marks)))
                end = value.end()
            for *span, mark in masked:
                first, last = folded.span(*span)
                pieces += [folded.original[n_copied:first], mark]
                n_copied = last
        text = "".join([*pieces, folded.original[n_copied:]])
        if len(text) <= _MAX_SENT_CHARS:
            return text
        bracket = text.rfind("[", 0, _MAX_SENT_CHARS)
        may_cut_mark = 0 <= _MAX_SENT_CHARS - bracket < len(redaction_mark("")) + 40
        return f"{text[: bracket if may_cut_mark else _MAX_SENT_CHARS]}…"


_SENTENCE = re.compile(r"[^\n.!?]*(?:[.!?](?!\s)[^\n.!?]*)*(?:[:=]\s*\n[^\n]*)?")
"""A sentence: up to a full stop with a blank behind it, or to the line end; if that follows a colon, the next line too.
"""


def _find_sensitive_sentences(text: str) -> list[tuple[int, int]]:
    """Find the sentences with words about secrets: any other word in them may be a secret that no check has found.

    >>> _find_sensitive_sentences("Tea is in the tin. The padlock opens with the PIN.")
    [(18, 50)]
    """
    return [match.span() for match in _SENTENCE.finditer(text) if is_sensitive(match[0])]


@cache
def _plain_words() -> frozenset[str]:
    """Return words that are no secret in any sentence: those that carry no value, and words about machines."""
    of_machines = frozenset().union(*(load_words("junk")[name] for name in ("subjects", "things", "states")))
    return LIGHT | (of_machines - seed_words())


def _fold_texts(memories: pd.DataFrame) -> pd.DataFrame:
    names = [name for name in TEXT_FIELDS if name in memories.columns]
    columns = {name: memories[name].map(lambda text: fold(text).text, na_action="ignore") for name in names}
    return memories.assign(**columns)


def _mask_words(
    text: str, start: int, end: int, marks: dict[str, str], sensitive_spans: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int, str]]:
    """Yield the spans of words in a part of a text that look like a secret, each with its mark.

    In a sensitive span these are all words that carry a value.
    """
    for word in _MARK_OR_WORD.finditer(text, start, end):
        core, before = word[0].rstrip(".:!?"), text[max(0, word.start() - 16) : word.start()]
        is_year = _YEAR.fullmatch(core) and _BEFORE_YEAR.search(before)
        if not core or word["mark"] or is_year or _DATE.fullmatch(core):
            continue
        is_in_sensitive = any(first <= word.start() < last for first, last in sensitive_spans)
        if (is_in_sensitive and not _is_plain(core)) or _LIKE_A_SECRET.search(core):
            yield word.start(), word.start() + len(core), _mark(core, "value", marks)


def _has_only_masks(text: str) -> bool:
    """Return True if a masked text has no word left that carries a value."""
    return all(_is_plain(word[0]) for word in _WORD_LEFT.finditer(_MARK.sub(" ", text)))


_WORD_LEFT = re.compile(r"[^\W\d_]+")


def _is_plain(word: str) -> bool:
    """Return True for a word that is no secret in any sentence, or that is itself a word about secrets."""
    small = word.casefold().strip("*_-,;")
    return small in _plain_words() or _SECRET.fullmatch(small.removesuffix("s")) is not None


def _mark(value: str, kind: str, marks: dict[str, str]) -> str:
    """Return the mark of a value, numbered by kind; `marks` keeps those of the question."""
    if value not in marks:
        mark = redaction_mark(kind)
        number = 1 + sum(other.startswith(mark[:-1]) for other in marks.values())
        marks[value] = f"{mark[:-1]} {number}]"
    return marks[value]
