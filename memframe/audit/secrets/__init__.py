"""Secrets: keys and tokens of machines, and what people tell an assistant in confidence."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd

from memframe.audit.rules import prefilter_of
from memframe.audit.secrets import keys, prose
from memframe.audit.text import Pass, Rating, Span, Text, span_findings, spans_found, texts_with

_HIGH = (
    "token",
    "private_key",
    "key",
    "connection_string",
    "password",
    "pin",
    "access_code",
    "recovery_code",
)
_RATINGS = {
    **dict.fromkeys((*_HIGH, "seed_phrase", "security_answer"), Rating("high", "redact")),
    "one_time_code": Rating("medium", "redact"),
}
_IN_COMMANDS = frozenset({"password", "key", "token", "pin"})
"""Kinds that may stand in a command line, with another command behind them."""

_LONGEST_ALONE = 80

_PASSES = (
    Pass(prefilter_of(keys.PEM, keys.PUTTY), keys.find_private_keys),
    Pass(prefilter_of(keys.TOKEN_MARK), keys.find_tokens),
    *(
        Pass(prefilter_of(*(rule.regex for rule in rules)), partial(keys.find_in_places, rules=rules))
        for rules in (keys.PLACES, keys.PAIRS, keys.COMMANDS)
    ),
    Pass(keys.ASSIGNED_PREFILTER, keys.find_assigned),
    Pass(keys.PHRASE_PREFILTER, keys.find_seed_phrases),
    Pass(prose.PREFILTER, prose.find_in_prose),
    Pass(prefilter_of(prose.SAFETY, *prose.ASKED), prose.find_answers),
)


def find_secrets(memories: pd.DataFrame) -> pd.DataFrame:
    """Find secrets in titles, summaries and contents, one finding each, with its place.

    Finds tokens of some hundred makers by their shape, private keys, seed phrases, values that are assigned to names
    such as ``DB_PASSWORD`` and look like a secret, passwords in addresses, connection strings, commands and the files
    that programs keep them in; and what people tell in a sentence, in English and, less well, in German, French,
    Spanish, Italian, Dutch, Portuguese, the Nordic languages, Chinese and Japanese: passwords, PINs, codes of doors and
    safes, recovery codes, security answers, codes for one sign-in.

    Cannot find a secret that nothing announces and that has no shape of its own ("hunter2" alone), a word or a phrase
    that is no sentence's value ("we agreed on trampoline as the password"), or one that is split over several
    memories. Hashes of passwords and placeholders are no secrets. How right it is, `tests/benchmarks/audit_real.py`
    measures on real memories.

    Parameters
    ----------
    memories : DataFrame
        Needs ``id``, and of ``title``, ``summary`` and ``content`` those in which to look.

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
    found = [
        (text, keys.cut_at_next_command(text.text, span) if span.kind in _IN_COMMANDS else span)
        for text, span in spans_found(memories, _PASSES, also=_under_titles(memories))
    ]
    return span_findings(found, check="secret", ids=memories["id"].tolist(), ratings=_RATINGS)


def _under_titles(memories: pd.DataFrame) -> Iterator[tuple[Text, Span]]:
    """Find contents that are a secret and nothing else, under a title that says so: "Wifi password", "hunter2"."""
    if not {"title", "content"} <= set(memories.columns):
        return
    contents = memories["content"]
    for row, field, title in texts_with(memories, prose.PREFILTER):
        content = contents.iloc[row] if field == "title" else None
        if isinstance(content, str) and 0 < len(content) <= _LONGEST_ALONE:
            offset = len(title) + 2
            for span in prose.find_in_prose(f"{title}: {content}"):
                if span.start >= offset and span.end - span.start >= len(content.strip()) - 1:
                    yield (
                        Text(row, "content", content),
                        span._replace(start=span.start - offset, end=span.end - offset),
                    )
