"""Secrets: keys and tokens of machines, and passwords, PINs and codes that people tell an assistant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import pandas as pd

from memframe.audit.findings import Proposal
from memframe.audit.rules import prefilter_of
from memframe.audit.secrets import keys, prose
from memframe.audit.secrets.repeats import find_repeats
from memframe.audit.secrets.values import is_published
from memframe.audit.text import (
    Memories,
    MemoryTexts,
    Pass,
    Rating,
    Span,
    Text,
    fold,
    span_findings,
    spans_found,
)

_ACTIONS: Mapping[str, Proposal] = {
    "shape": "redact",  # the key of a known maker, a private key, a seed phrase that is called one
    "address": "redact",  # a password in an address, between a name and a host
    "label": "redact",  # a value without blanks directly behind a word for secrets
    "repeat": "redact",  # another occurrence of such a value
    "sentence": "review",  # a value that is a secret by the meaning of its sentence
    "published": "review",  # a value that its text calls a default, a trial or an example
}
"""Proposal for a secret, by the basis of its finding: values that rest on an interpretation are not redacted."""

_SURE = frozenset(basis for basis, action in _ACTIONS.items() if action == "redact")
_PUBLISHABLE = frozenset({"address", "label"})
"""Bases of secrets that may be published, such as a default password; an issued key is never a default."""

_CHARS_BEFORE, _CHARS_AFTER = 60, 24
"""Characters around a secret in which words such as "default" are searched."""

_MEDIUM = frozenset({"one_time_code"})
"""Kinds of medium severity, because they are valid for a short time only."""

SECRET_LANGUAGES = (
    "Arabic", "Chinese", "Dutch", "English", "French", "German", "Hebrew", "Hindi", "Italian", "Japanese", "Korean",
    "Persian", "Polish", "Portuguese", "Russian", "Spanish", "Thai", "Turkish", "Ukrainian",
)  # fmt: skip
"""Languages in which the words for a password, a PIN and the code of a door are known."""

_OTHER_LANGUAGES = (
    f"Passwords, PINs and codes told in a language other than {', '.join(SECRET_LANGUAGES[:-1])} and "
    f"{SECRET_LANGUAGES[-1]}; whole "
    "sentences about them are understood in English alone, and some in German, French and Spanish."
)

_IN_COMMANDS = frozenset({"password", "key", "token", "pin"})
"""Kinds whose value may be in a command line, with another command behind it."""

_MAX_CHARS_ALONE = 80
"""Most characters of a content that is a secret and nothing else."""

_PASSES = (
    Pass(prefilter_of(keys.PEM, keys.PUTTY), keys.find_private_keys),
    Pass(prefilter_of(keys.TOKEN_MARK), keys.find_tokens),
    *(
        Pass(prefilter_of(*(rule.regex for rule in rules)), partial(keys.find_in_places, rules=rules))
        for rules in (keys.PLACES, keys.PAIRS, keys.COMMAND_RULES)
    ),
    Pass(keys.ASSIGNED_PREFILTER, keys.find_assigned),
    Pass(keys.PHRASE_PREFILTER, keys.find_seed_phrases),
    Pass(prose.PREFILTER, prose.find_in_prose),
    Pass(prefilter_of(prose.SAFETY, *prose.ASKED), prose.find_answers),
)


def find_secrets(memories: Memories) -> pd.DataFrame:
    """Find secrets in titles, summaries and contents, one finding for each span.

    Finds secrets of machines: tokens of some hundred makers by their shape, private keys, seed phrases, values that are
    assigned to names such as ``DB_PASSWORD`` and look like a secret, and passwords in addresses, connection strings,
    commands and files of programs. Finds secrets in sentences, in English and, less well, in the other languages of
    `SECRET_LANGUAGES`: passwords, PINs, codes of doors and safes, recovery codes, security answers, codes for one
    sign-in.

    Each secret that hardly occurs by chance is also searched for in the other texts, sources and tags of all memories;
    one in a tag has no ``start``. A secret is to be redacted if its shape or a label right before it identifies it. One
    that rests on the meaning of a sentence, or that its text calls a default or an example, is for review.

    Does not find a secret without a keyword and without a shape of its own ("hunter2" alone), a word or a phrase in
    place of a value ("we agreed on trampoline as the password"), or a secret that is split over several memories.
    Hashes of passwords and placeholders are no secrets. `benchmarks/audit_real.py` measures the precision on real
    memories.

    Parameters
    ----------
    memories : DataFrame
        Frame with ``id`` and at least one of ``title``, ``summary`` and ``content``.

    Returns
    -------
    DataFrame
        Findings with ``field``, ``start`` and ``end``; ``kind`` is one of ``token private_key key
        connection_string password pin access_code recovery_code seed_phrase security_answer one_time_code``.
        ``evidence`` shows the first characters at most.

    Examples
    --------
    >>> memories = pd.DataFrame({"id": ["m1", "m2"], "content": ["Door code: 2580#", "Forgot the password"]})
    >>> find_secrets(memories)[["kind", "id", "start", "end", "evidence", "action"]]
              kind  id  start  end          evidence  action
    0  access_code  m1     11   16  (5 characters)  redact
    """
    texts = MemoryTexts.of(memories)
    found = [
        (text, _note_published(text.text, _cut(text.text, span)))
        for text, span in spans_found(texts, _PASSES, also=_under_titles(texts))
    ]
    found = sorted([*found, *find_repeats(texts, found, sure=_SURE)])
    findings = span_findings(texts, found, check="secret", rate=_rate)
    findings.attrs["not_checked"] = (_OTHER_LANGUAGES,)
    return findings


def _cut(text: str, span: Span) -> Span:
    return keys.cut_at_next_command(text, span) if span.kind in _IN_COMMANDS else span


def _note_published(text: str, span: Span) -> Span:
    """Give a secret the basis "published" if the words on its line call it a default, a trial or an example."""
    if span.basis not in _PUBLISHABLE:
        return span
    before = text[max(0, span.start - _CHARS_BEFORE) : span.start].rpartition("\n")[2]
    from_value_on = text[span.start : span.end + _CHARS_AFTER].partition("\n")[0]
    is_public = is_published(text[span.start : span.end], before + from_value_on)
    return span._replace(basis="published") if is_public else span


def _rate(span: Span) -> Rating:
    if span.basis == "published":
        return Rating("low", "review")
    return Rating("medium" if span.kind in _MEDIUM else "high", _ACTIONS[span.basis])


def _under_titles(texts: MemoryTexts) -> Iterator[tuple[Text, Span]]:
    """Find contents that are nothing but the value of a keyword in the title: "Wifi password", "hunter2"."""
    if (
        not {"title", "content"} <= set(texts.memories.columns)
        or not texts.column("title").is_valid().sum().as_py()
    ):
        return
    contents = texts.column("content")
    for row, _, title, _ in texts.search(["title"]).find(prose.PREFILTER):
        content = contents[row].as_py()
        if content and len(content) <= _MAX_CHARS_ALONE:
            offset, folded = len(title) + 2, fold(content).text
            original = content if folded != content else None
            for span in prose.find_in_prose(f"{title}: {folded}"):
                if span.start >= offset and span.end - span.start >= len(folded.strip()) - 1:
                    yield (
                        Text(row, "content", folded, original),
                        span._replace(start=span.start - offset, end=span.end - offset),
                    )
