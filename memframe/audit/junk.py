"""Junk: memories that state no fact about anybody, found by repetition, by form, by words and by wording.

Word lists are in ``rules/junk.txt``, patterns of wording in ``rules/junk.toml``. Only kinds that are found without
understanding the text (a row without a word, a heartbeat, a copy) are proposed for a delete or a merge. Everything
that is found by wording is for review.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from memframe.audit.findings import Finding, Proposal, list_findings
from memframe.audit.forms import find_forms
from memframe.audit.keeper import owners_of
from memframe.audit.planted import with_hidden
from memframe.audit.rules import load_rules, load_words, matching_places
from memframe.audit.signs import Sign, detect_signs, quote
from memframe.audit.text import Memories, MemoryTexts, without_long_contents
from memframe.audit.tokenize import are_ascii, fit_pattern
from memframe.fields import MEMORY_FIELDS
from memframe.frames import read_texts

_TABLE, _WORDS = load_rules("junk"), load_words("junk")

ACTIONS: Mapping[str, Proposal] = {"empty": "delete", "heartbeat": "delete", "repeated": "merge"}
"""Proposals for the kinds that are found without understanding the text; all others are for review."""

_LOW = {"empty", "near_empty", "fragment", "template", "session_noise", "form", "transcript"}
"""Kinds of low severity; all others are of medium severity."""


def find_junk(memories: Memories) -> pd.DataFrame:
    """Find prompts, reports of machines, messages of memory tools, repeats, templates and empty rows.

    The patterns are for English, with some for German, Spanish and French. A made-up fact that occurs a few times is
    not found, because its wording is that of a true one. Tasks and small talk are found in a few plain forms only,
    because project notes have the same wording.

    Parameters
    ----------
    memories : DataFrame
        Needs ``id`` and ``content``; looks at ``title``, ``summary``, ``tags``, ``user_id`` and ``created_at``.

    Returns
    -------
    DataFrame
        Findings of the kinds ``empty heartbeat repeated near_repeat form status_report system_prompt feedback_loop
        task_state session_noise tool_output template near_empty fragment transcript``, one per memory; ``related_id``
        is the memory that stays. The proposal is ``delete`` for ``empty`` and ``heartbeat`` if title and summary add no
        word, ``merge`` with the first one for ``repeated``, and ``review`` for all others.

    Examples
    --------
    >>> contents = ["heartbeat ok 2026-01-02T03:00:00Z", "Likes tea", "Memory updated successfully."]
    >>> find_junk(pd.DataFrame({"id": ["m1", "m2", "m3"], "content": contents}))[["kind", "id", "action"]]
                kind  id  action
    0      heartbeat  m1  delete
    1  feedback_loop  m3  review
    """
    texts = MemoryTexts.of(memories)
    memories, ids = texts.memories, texts.ids
    store = _DistinctTexts.of(_without_hidden(without_long_contents(texts)))
    groups = count()
    found = _find_form_members(memories, store, groups)
    found.update(_find_repeats(store, groups))
    for number, sign in detect_signs(store.distinct).items():
        for row in store.rows_of[number]:
            # members of a form stay one, because they are decided together, unless a rule may delete or merge them
            if sign.kind in ACTIONS or row not in found or found[row].kind != "form":
                found[row] = sign
    found.update(_find_tool_words(store))
    transcripts, logs = _find_transcripts(memories, store), _find_logs(memories, store)
    less_specific = chain(
        _sign_together(
            "transcript", "words of a conversation, not a memory of it", transcripts, store, groups
        ),
        _sign_together("status_report", "a line from the log of a heartbeat", logs, store, groups),
        _find_parts(memories, store),
    )
    for row, sign in less_specific:
        found.setdefault(row, sign)
    return list_findings(
        Finding(
            check="junk",
            kind=sign.kind,
            severity="low" if sign.kind in _LOW else "medium",
            id=ids[row],
            field="content",
            related_id=None if sign.related is None else ids[sign.related],
            group=sign.group,
            score=sign.score,
            evidence=sign.evidence,
            action=_choose_action(memories, row, sign, store.text_of(row)),
        )
        for row, sign in sorted(found.items(), key=itemgetter(0))
    )


def _without_hidden(texts: MemoryTexts) -> MemoryTexts:
    """Return the texts without contents that have hidden characters, because these may spell another text."""
    is_hidden = with_hidden(texts)
    return texts.without_contents(is_hidden) if is_hidden.any() else texts


class _DistinctTexts(NamedTuple):
    """Contents of a frame, each text once."""

    distinct: list[str]
    number_of: list[int | None]
    """Number of the text of each row; None if there is none."""
    rows_of: list[list[int]]
    """Rows of each text, the oldest first."""
    owners: list[str]

    @classmethod
    def of(cls, texts: MemoryTexts) -> _DistinctTexts:
        encoded, memories = pc.dictionary_encode(texts.column("content")), texts.memories
        numbers = encoded.indices.to_pylist()
        ages = memories["created_at"] if "created_at" in memories.columns else pd.Series(range(len(memories)))
        rows_of: list[list[int]] = [[] for _ in range(len(encoded.dictionary))]
        for row in ages.reset_index(drop=True).sort_values(kind="stable").index:
            if numbers[row] is not None:
                rows_of[numbers[row]].append(row)
        return cls(encoded.dictionary.to_pylist(), numbers, rows_of, list(map(str, owners_of(texts))))

    def text_of(self, row: int) -> str:
        number = self.number_of[row]
        return "" if number is None else self.distinct[number]


def _choose_action(memories: pd.DataFrame, row: int, sign: Sign, content: str) -> Proposal:
    """Return the proposal of the kind, or "review" if a delete would lose a word of another field.

    The title or the summary may hold a word that the content lacks; if there is no content, a tag may.
    """
    action = ACTIONS.get(sign.kind, "review")
    if action != "delete":
        return "review" if sign.related is None else action
    words = set(_WORD.findall(content.casefold()))
    other_fields = _OTHER_TEXTS if words else (*_OTHER_TEXTS, "tags")
    cells = [memories[name].iloc[row] for name in other_fields if name in memories.columns]
    # missing cells are None or NaN
    other_text = " ".join(str(cell) for cell in cells if isinstance(cell, Iterable))
    return action if words.issuperset(_WORD.findall(other_text.casefold())) else "review"


_WORD = re.compile(r"\w+")

_OTHER_TEXTS = tuple(
    field.name for field in MEMORY_FIELDS if field.on_merge == "compare words" and field.name != "content"
)
"""Text fields of a memory other than its content, which may hold words that the content lacks."""


# ---- repeats

_MIN_COPIES = 5
"""Fewest equal memories that are a repeat, so that a fact which came up in a few conversations is none."""

_TIMES_USUAL = 3
"""Multiple of the store's usual number of copies from which on a text is a repeat.

The usual number is the most copies that 95 % of the texts have, because in some stores every text has several.
"""

_MIN_SHARED = 0.75
"""Smallest share of the words of a repeated text and its variant, taken together, that both have."""

_N_FIRST = 4
"""Words at the beginning that a repeated text and its variant have in common, so that not all pairs are compared."""


_REPEATS = {True: ("repeated", "one of", 0.9), False: ("near_repeat", "much like", 0.7)}
"""Kind, beginning of the evidence and score, of equal texts and of variants."""


def _find_repeats(store: _DistinctTexts, groups: Iterator[int]) -> dict[int, Sign]:
    """Find texts that one person has unusually often, and their variants; the first of each stays, for review."""
    if len(store.number_of) < _MIN_COPIES:
        return {}
    rows_of: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    lower = pc.utf8_lower(pa.array(store.distinct, pa.large_string()))
    between_words = fit_pattern(r"[^\pL\pN_]+", is_ascii=are_ascii(lower))
    words_of = pc.utf8_trim_whitespace(pc.replace_substring_regex(lower, between_words, " "))
    for text, rows in zip(words_of.to_pylist(), store.rows_of, strict=True):
        for row in rows if text else ():
            rows_of[store.owners[row], text].append(row)
    # the most frequent text is left out, so that its own copies do not raise the bound
    counts = sorted(map(len, rows_of.values()))[:-1]
    n_usual = counts[int(0.95 * (len(counts) - 1))] if counts else 0
    min_copies = max(_MIN_COPIES, _TIMES_USUAL * n_usual)
    repeated = {key: sorted(rows) for key, rows in rows_of.items() if len(rows) >= min_copies}
    if not repeated:
        return {}
    beginnings: defaultdict[tuple[str, ...], list[tuple[str, str]]] = defaultdict(list)
    for owner, text in rows_of.keys() - repeated.keys():
        beginnings[owner, *text.split()[:_N_FIRST]].append((owner, text))
    order = {row: place for place, row in enumerate(row for rows in store.rows_of for row in rows)}
    found: dict[int, Sign] = {}
    for ((owner, text), rows), group in zip(repeated.items(), groups, strict=False):
        first = min(rows, key=order.__getitem__)
        # blanks and a full stop do not matter; other signs and capitals may carry a value
        plain = {row: " ".join(store.text_of(row).split()).rstrip(".") for row in rows}
        is_exact = {row: plain[row] == plain[first] for row in rows}
        for key in sorted(beginnings[owner, *text.split()[:_N_FIRST]]):
            if _is_variant(key[1], text):
                is_exact |= dict.fromkeys(rows_of[key], False)
        for row in is_exact.keys() - found.keys():  # a variant of several texts is one of the first of them
            kind, how, score = _REPEATS[is_exact[row]]
            evidence = f"{how} {len(rows):,} equal memories: {quote(store.text_of(row))}"
            found[row] = Sign(kind, score, evidence, None if row == first else first, group)
    return found


def _is_variant(text: str, repeated: str) -> bool:
    """Return True if a text has most words of a repeated one, and no other number, which would be another fact."""
    words, others = repeated.split(), set(text.split())
    if len(words) <= _N_FIRST:
        return False
    own = set(words)
    has_other_number = any(map(str.isdecimal, "".join(own ^ others)))
    return not has_other_number and len(own & others) / len(own | others) >= _MIN_SHARED


# ---- forms


def _find_form_members(
    memories: pd.DataFrame, store: _DistinctTexts, groups: Iterator[int]
) -> dict[int, Sign]:
    """Find the members of forms, with the share of their source's memories that have the same form."""
    sources = read_texts(memories, "source").fillna("").tolist() if "source" in memories.columns else None
    n_by_source = Counter(sources or ())
    owners = [store.owners[rows[0]] for rows in store.rows_of]
    found: dict[int, Sign] = {}
    for form, group in zip(find_forms(store.distinct, owners), groups, strict=False):
        rows = [row for place in form.places for row in store.rows_of[place]]
        evidence = f"one of {len(rows):,} texts of one form: {quote(store.text_of(rows[0]))}"
        from_source = Counter(sources[row] for row in rows) if sources else Counter()
        for row in rows:
            source = sources[row] if sources else ""
            share = from_source[source] / n_by_source[source] if source else 0.0
            share_words = f"; {share:.0%} of what {source} writes" if source else ""
            found[row] = Sign("form", 0.7, evidence + share_words, group=group)
    return found


# ---- sections of notes: a note is read line by line, so that often only its heading says what a line is

_MIN_TOGETHER = 5
"""Fewest transcripts, or lines of logs, of one person that are decided together."""

RowsByOwner = Mapping[str, set[int]]


def _find_transcripts(memories: pd.DataFrame, store: _DistinctTexts) -> RowsByOwner:
    """Find turns of conversations, and all other lines under the heading of a conversation with such a turn.

    Turns that somebody wrote as examples of an answer are left out.
    """
    rows_of: defaultdict[str, set[int]] = defaultdict(set)
    turns = _TABLE.only("turns", "examples").search(pa.array(store.distinct, pa.large_string()))
    for number, matches in turns:
        if all(match.rule.group == "turns" for match in matches):
            for row in store.rows_of[number]:
                rows_of[store.owners[row]].add(row)
    (heading,) = _TABLE.only("title_of_turns").rules
    for (title, owner), rows in _find_rows_by_title(memories, store).items():
        if heading.regex.match(title) and not rows.isdisjoint(rows_of[owner]):
            rows_of[owner] |= rows
    return rows_of


def _find_logs(memories: pd.DataFrame, store: _DistinctTexts) -> RowsByOwner:
    """Find lines under a heading that is an entry of the log of a heartbeat."""
    rows_of: defaultdict[str, set[int]] = defaultdict(set)
    (entry,) = _TABLE.only("log").rules
    for (title, owner), rows in _find_rows_by_title(memories, store).items():
        if entry.regex.match(title):
            rows_of[owner] |= rows
    return rows_of


def _sign_together(
    kind: str, words: str, rows_of: RowsByOwner, store: _DistinctTexts, groups: Iterator[int]
) -> Iterator[tuple[int, Sign]]:
    for rows in rows_of.values():
        group = next(groups) if len(rows) >= _MIN_TOGETHER else None
        for row in sorted(rows):
            yield row, Sign(kind, 0.8, f"{words}: {quote(store.text_of(row))}", group=group)


def _find_rows_by_title(memories: pd.DataFrame, store: _DistinctTexts) -> Mapping[tuple[str, str], set[int]]:
    """Return the rows with a content for each title and owner."""
    rows_of: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    if "title" in memories.columns:
        for row, title in enumerate(read_texts(memories, "title").fillna("").tolist()):
            if title and store.number_of[row] is not None:
                rows_of[title, store.owners[row]].add(row)
    return rows_of


# ---- parts of a text: lead-ins, fields and questions without the rest

_PARTS = {
    "lead_in": "ends in a colon, and nothing follows",
    "field": "a field without the rest of its record",
    "question": "only a question",
}
"""Beginning of the evidence of a fragment, by group of rules."""


def _find_parts(memories: pd.DataFrame, store: _DistinctTexts) -> Iterator[tuple[int, Sign]]:
    """Find memories that are only a lead-in («Next steps:»), a field («Status: open») or a question.

    Memories with a summary or with a title of their own are left out. A title that several memories share is the
    heading of a section: its fields are found, and its questions are not, because they may be a list.
    """
    nothing = np.zeros(len(memories), bool)
    titles, summaries = (
        read_texts(memories, name).notna().to_numpy(bool) if name in memories.columns else nothing
        for name in ("title", "summary")
    )
    shared = memories["title"].duplicated(keep=False).to_numpy(bool) if titles.any() else nothing
    for number, (first, *_) in _TABLE.only(*_PARTS).search(pa.array(store.distinct, pa.large_string())):
        sign = Sign("fragment", 0.8, f"{_PARTS[first.rule.group]}: {quote(store.distinct[number])}")
        has_context = summaries | (titles if first.rule.group == "question" else titles & ~shared)
        yield from ((row, sign) for row in store.rows_of[number] if not has_context[row])


# ---- messages of a memory tool around a text that it keeps, also several around each other

(_WRAPPING,), (_AGAIN,), (_LABEL,) = (_TABLE.only(name).rules for name in ("wrapping", "again", "label"))
_MAX_LAYERS = 12
"""Layers that are taken off a text at most."""
_MAX_WRAPPED_CHARS = 2_000
"""Most characters of a text that is unwrapped; a longer one is a document."""
_ENDS = " \t\n\"'“”„«».!"
"""Characters that are stripped from the inner text."""
_NO_FACT = re.compile(
    r"(?:(?:[0-9]+|no|none|nothing|successfully|success|ok|done|true|updated|deleted|added|skipped|items?|results?|found|"
    r"merged|removed|\W)\s*)*",
    re.IGNORECASE,
)


def _unwrap(text: str) -> tuple[str, int] | None:
    """Take the messages of a memory tool off a text: return the inner text and the layers; None if there are none.

    >>> _unwrap('Memory stored: "Memory stored: likes tea."')
    ('likes tea', 2)
    >>> _unwrap("Memory updated successfully."), _unwrap("Has a good memory for faces")
    (('', 1), None)
    """
    inner, depth, n_repeats = text.strip(), 0, 0
    while depth + n_repeats < _MAX_LAYERS:
        if match := _WRAPPING.regex.match(inner):
            depth += 1
        elif match := _AGAIN.regex.match(inner):
            n_repeats += 1
        else:
            break
        inner = inner[match.end() :].strip()
    if not depth and n_repeats < 2:  # many memories begin with one "User said"
        return None
    inner = inner.strip(_ENDS)
    return "" if _NO_FACT.fullmatch(inner) else inner, depth + max(0, n_repeats - 1)


def _find_tool_words(store: _DistinctTexts) -> Iterator[tuple[int, Sign]]:
    """Find messages of a memory tool around nothing, around a fact that another memory contains, or in layers."""
    column = pa.array(store.distinct, pa.large_string())
    numbers = matching_places(column, (_WRAPPING.regex, _AGAIN.regex)).to_pylist()
    short = (number for number in numbers if len(store.distinct[number]) <= _MAX_WRAPPED_CHARS)
    wrapped = {number: unwrapped for number in short if (unwrapped := _unwrap(store.distinct[number]))}
    rows = sorted((row, number) for number in wrapped for row in store.rows_of[number])
    words_in = {row: _content_words(wrapped[number][0]) for row, number in rows}
    containing = _find_containing(store, {row: words for row, words in words_in.items() if words}, wrapped)
    keepers: dict[tuple[str, frozenset[str]], int] = {}
    for row, number in rows:
        (inner, depth), text, keeper = wrapped[number], store.distinct[number], containing.get(row)
        if keeper is None and inner:
            if depth == 1 and _LABEL.regex.match(text):
                continue  # a plain label before a fact that no other memory contains
            keeper = keepers.setdefault((store.owners[row], words_in[row]), row)
        score = 0.95 if not inner or depth > 1 else 0.8
        evidence = f"a message of a memory tool: {quote(text)}"
        yield row, Sign("feedback_loop", score, evidence, None if keeper == row else keeper)


_EMPTY_WORDS = _WORDS["recital"] | _WORDS["recited"] | _WORDS["light"]
_LETTERS = re.compile(r"[^\W_]+")


def _content_words(text: str) -> frozenset[str]:
    """Return the words of a text that carry a meaning, without the "s" of a plural or a verb."""
    words = frozenset(_LETTERS.findall(text.casefold())) - _EMPTY_WORDS
    return frozenset(word.removesuffix("s") for word in words) - {""}


def _find_containing(
    store: _DistinctTexts, words_in: Mapping[int, frozenset[str]], wrapped: Mapping[int, Any]
) -> dict[int, int]:
    """Find for each row the first memory of the same person that contains all its words and is not wrapped."""
    wanted = frozenset[str]().union(*words_in.values())
    holders: defaultdict[str, list[int]] = defaultdict(list)
    some_word = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(wanted)))})", re.IGNORECASE)
    column = pa.array(store.distinct if wanted else [], pa.large_string())
    for number in matching_places(column, [some_word]).to_pylist():
        if number not in wrapped:
            for word in wanted & _content_words(store.distinct[number]):
                holders[word].append(number)
    found = {}
    for row, words in words_in.items():
        counts = Counter(number for word in words for number in holders[word])
        full = (number for number, n in counts.items() if n == len(words))
        rows = [other for number in full for other in store.rows_of[number][:1]]
        rows = [other for other in rows if store.owners[other] == store.owners[row]]
        if rows:
            found[row] = min(rows)
    return found
