"""Reports of machines: heartbeats, scheduled jobs, lines of logs, tracebacks, what tools print.

A report is told by its words: nearly all of them, numbers and identifiers aside, are those that machines use of
themselves. A memory that speaks of machines has words of its own: "Ilka backs up her photos every night".
"""

from __future__ import annotations

import json
import re

from memframe.audit.junk.signs import Sign, quoted
from memframe.audit.vocabulary import read_vocabulary

_WORDS = read_vocabulary(__package__, "machine_words.txt")
_SUBJECTS, _THINGS, _STATES = _WORDS["subjects"], _WORDS["things"], _WORDS["states"]
_KNOWN = _SUBJECTS | _THINGS | _STATES | _WORDS["between"]

_NAMED = re.compile(r"'[^'\n]{1,60}'|\"[^\"\n]{1,60}\"|`[^`\n]{1,60}`|\[[^\]\n]{1,60}\]|https?://\S+")
_TOKEN = re.compile(r"[^\s,;:!?()]+")
_NUMBER = re.compile(
    r"[^\w]*[0-9][\w.:/%+-]*|[a-z][\w.-]*[_/#@.=-][\w./#@=-]*[\w]|0x[0-9a-f]+|[-–—=+*%|✓✔✅❌⚠️🟢…]+"
)
_CLOCK = re.compile(
    r"[0-9]{1,2}:[0-9]{2}|[0-9]{4}-[0-9]{2}-[0-9]{2}|(?<![0-9])[0-9]{10}(?:[0-9]{3})?(?![0-9])"
)
_NOTHING = re.compile(
    r"%|\b(?:no|0|zero) (?:new|pending|further|unread|upcoming|changes?|updates?|errors?|issues?|results?)\b",
    re.IGNORECASE,
)
_NO_NEWS = re.compile(
    r"\b(?:no|0|zero) (?:new |unread |pending |upcoming )*(?:\w+ )?(?:e?mails?|messages?|events?|articles?|updates?"
    r"|notifications?|alerts?)\b"
    r"|\bnone (?:available|found)\b|\bnothing (?:to do|to report|new|needed|pending|urgent|requir\w+)\b"
    r"|\b0 (?:new|unread|pending)\b"
    r"|\b(?:no|0|zero) (?:errors|alerts|warnings|issues|failures)\b",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"#[0-9]+|\b(?:job|task|process|pid|request|run|build|poll) [0-9]+\b|\bid [0-9a-f-]{4,}"
    r"|\b[0-9]+(?:\.[0-9]+)? ?(?:ms|s|secs?|seconds|minutes|kb|mb|gb|%)(?!\w)|\bexit [0-9]+",
    re.IGNORECASE,
)
_PEOPLE = re.compile(
    r"(?<!\A)\b(?:user['’]s|he|she|they|his|her|their|my|mine|every|each|nightly|because|prefers?|wants?|likes?)\b"
    r"|\A\W*(?:the )?user['’]s|\b(?!UTC|GMT|[A-Z]{2,4}\b)[A-Z][a-z]+['’]s\b",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\W*(?:the )?(?:current |today['’]s )?(?:date|time|day|datetime|timestamp)(?: (?:and|/) time)?(?: is|:|=)"
    r"\W{0,3}(?:[a-z]{3,9},? |[0-9]).{0,60}|\W*today is \w+(?:day)?[,;.][^\n]{0,80}",
    re.IGNORECASE,
)
"""The time of the day, which every conversation is told."""

_LONGEST, _MAX_TOKENS, _MANY_THINGS, _FEW_WORDS = 400, 48, 2, 2
_PULSES = _WORDS["pulses"]

MIN_KNOWN, MIN_KNOWN_TIMED = 0.86, 0.7
"""Share of tokens that must be words of machines, numbers or identifiers; and where a machine is named with a time."""

_LOG_LINE = re.compile(
    r"\s*\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?\S{0,12}\]?\s+(?:\S{1,40}\s+)?\W?"
    r"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\b"
    r"|\s*\[?(?:TRACE|DEBUG|ERROR|FATAL)\]?\s?[:|-]\s"
)
_TRACEBACK = re.compile(
    r"^[ \t]{0,16}Traceback \(most recent call last\)|^[ \t]{0,16}(?:[\w.]+(?:Error|Exception): "
    r"|Exception in thread )|^[ \t]{0,16}at [\w.$<>]+\([\w.]+:[0-9]+\)"
    r"|^[ \t]{0,16}(?:npm ERR!|error\[E[0-9]+\]|panic: |Segmentation fault)|^HTTP/[0-9.]+ [0-9]{3}"
    r"|\AHTTP (?:error )?[1-5][0-9]{2}(?: [A-Z][a-z]+){0,3}\W*\Z"
    r"|^[ \t]{0,16}\$ [a-z]+ ",
    re.MULTILINE,
)
_FORMULA = re.compile(r"\s*=[A-Z]{2,}\([^\n]*\)\s*")
_MACHINE_KEYS = _WORDS["keys"]

MARKS = (
    r"(?i)\b(?:heartbeat|cron|tarea|tâche|bot\b|rss\b|price|weather|current (?:date|time)|today is|nothing"
    r"|still|keep-?alive|health ?check|watchdog|ping|pong|no_reply|backup|sync|scheduler"
    r"|daemon"
    r"|webhook|uptime|deploy"
    r"|container|cache|reindex|indexer|polling|poller|autosave|snapshot|rsync|systemd|rollout|failover|cpu"
    r"|ram|disk"
    r"|liveness|context|snapshot|flush|inbox|\bnote\b|e?mails?\b|messages\b|notifications\b"
    r"|readiness|batch|replication|vacuum|telemetry|job|task|check|status|service|server|worker|queue|process"
    r"|pipeline|build"
    r"|index|connection|token|memory|log|run|script|poll|monitor|system|agent|database|inbox|feed|endpoint"
    r"|session"
    r"|scan|update"
    r"|gateway|websocket|socket|compact|unread|upcoming|remind|rate limit|usage|import|export|migration"
    r"|rotation|cleanup|refresh|storage|network|node|cluster|lock|loop|event|trigger|timer"
    r"|db|api)"
)
"""A pattern of RE2 that every report matches."""

MARKS_OF_OUTPUT = (
    r"Traceback \(|(?:Error|Exception): |Exception in thread|\.java:|npm ERR!|error\[E|panic: "
    r"|Segmentation fault"
    r"|HTTP[/ ][0-9e]"
    r"|^\s*\$ |^\s*[{\[]|^\s*=[A-Z]|(?:TRACE|DEBUG|INFO|NOTICE|WARN|ERROR|FATAL|CRITICAL)"
)
"""The same for what tools print."""


def judge_report(text: str) -> Sign | None:
    """A heartbeat, or the report of a scheduled job.

    >>> judge_report("Cron job 'nightly-sync' finished: 0 new, 0 changed, 0 removed.").kind
    'heartbeat'
    >>> judge_report("Ilka's backup runs every night at 03:00")
    """
    if len(text) > _LONGEST:
        return None
    if _NOW.fullmatch(text):
        return Sign("heartbeat", 0.9, f"tells what time it was: {quoted(text)}")
    tokens = [token.strip(".'’*_<>").lower() for token in _TOKEN.findall(_NAMED.sub(" #1 ", text))]
    tokens = [token for token in tokens if token]
    if not tokens or len(tokens) > _MAX_TOKENS:
        return None
    words = {token for token in tokens if token in _KNOWN or not _NUMBER.fullmatch(token)}
    if not _is_of_machine(words, text) or not _is_state(words, text):
        return None
    n_known = sum(map(_is_known, tokens))
    is_timed = bool(words & _SUBJECTS) and _is_of_now(text) and not _PEOPLE.search(text)
    if n_known < (MIN_KNOWN_TIMED if is_timed else MIN_KNOWN) * len(tokens):
        return None
    return Sign("heartbeat", 0.95, f"the report of a machine: {quoted(text)}")


def _is_of_machine(words: set[str], text: str) -> bool:
    """Whether a machine is spoken of: by something that only machines have, or by two of what people have, too."""
    n_things = len(words & _THINGS)
    is_named = any(sign.search(text) for sign in (_CLOCK, _NAMED, _NUMBERED))
    return (
        bool(words & _SUBJECTS)
        or n_things >= _MANY_THINGS
        or (n_things == 1 and (is_named or len(words) <= _FEW_WORDS))
        or _NO_NEWS.search(text) is not None
    )


def _is_state(words: set[str], text: str) -> bool:
    """Whether it is said how the machine is; of a heartbeat it is enough that there was one."""
    is_heartbeat = bool(words & _PULSES) and words <= _KNOWN
    return bool(words & _STATES) or is_heartbeat or _NOTHING.search(text) is not None


def _is_of_now(text: str) -> bool:
    return _CLOCK.search(text) is not None or _NUMBERED.search(text) is not None


def _is_known(token: str) -> bool:
    return token in _KNOWN or token.removesuffix("s") in _KNOWN or _NUMBER.fullmatch(token) is not None


def judge_output(text: str) -> Sign | None:
    """What a tool printed: a traceback, a line of a log, an answer in JSON, a formula."""
    if _TRACEBACK.search(text) or _LOG_LINE.match(text) or _FORMULA.fullmatch(text) or _is_answer(text):
        return Sign("tool_output", 0.9, f"printed by a tool: {quoted(text)}")
    return None


def _is_answer(text: str) -> bool:
    """Whether a text is JSON that says how a call went, and nothing about anybody."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    while isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, dict) and bool(value) and _MACHINE_KEYS.issuperset(map(str.lower, value))
