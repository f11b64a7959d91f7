"""Reports of machines: heartbeats, scheduled jobs, how a service is.

A report is told by its words: nearly all of them, numbers and identifiers aside, are those that machines use of
themselves. A memory that speaks of machines has words of its own: "Ilka backs up her photos every night".
"""

from __future__ import annotations

import re

from memframe.audit.junk.signs import Sign, quoted
from memframe.audit.language.vocabulary import one_of, read_vocabulary

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
_NONE = one_of("no, 0, zero")
_NOTHING = re.compile(
    rf"%|\b{_NONE} "
    + one_of(
        waiting="new, pending, further, unread, upcoming",
        happened="changes?, updates?, errors?, issues?, results?",
    )
    + r"\b",
    re.IGNORECASE,
)
_POST = one_of("e?mails?, messages?, events?, articles?, updates?, notifications?, alerts?")
_NO_NEWS = re.compile(
    one_of(
        post=rf"\b{_NONE} (?:new |unread |pending |upcoming )*(?:\w+ )?{_POST}\b",
        counts=r"\b0 (?:new|unread|pending)\b",
        nothing=r"\bnone (?:available|found)\b, \bnothing (?:to do|to report|new|needed|pending|urgent|requir\w+)\b",
        faults=rf"\b{_NONE} (?:errors|alerts|warnings|issues|failures)\b",
    ),
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    one_of(
        numbers=r"#[0-9]+, \b(?:job|task|process|pid|request|run|build|poll) [0-9]+\b",
        identifiers=r"\bid [0-9a-f-]{4,}",
        amounts=r"\b[0-9]+(?:\.[0-9]+)? ?(?:ms|s|secs?|seconds|minutes|kb|mb|gb|%)(?!\w), \bexit [0-9]+",
    ),
    re.IGNORECASE,
)
_PEOPLE = re.compile(
    r"(?<!\A)\b(?:user['’]s|he|she|they|his|her|their|my|mine|every|each|nightly|because|prefers?|wants?|likes?)\b"
    r"|\A\W*(?:the )?user['’]s|\b(?!UTC|GMT|[A-Z]{2,4}\b)[A-Z][a-z]+['’]s\b",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    r"\A\W*(?:the )?user['’]s\b|\b(?:if|when|whenever|unless|must|should|because|instead of"
    r"|twins?|bab(?:y|ies)|f(?:o?e)tus|child(?:ren)?|patient|wife|husband|mother|father|dog|cat)\b",
    re.IGNORECASE,
)
"""What is told to be heeded another time, in whatever words."""

_TIME = one_of("date, time, day, datetime, timestamp")
_NOW = re.compile(
    rf"\W*(?:the )?(?:current |today['’]s )?{_TIME}(?: (?:and|/) time)?(?: is|:|=)\W{{0,3}}"
    r"(?:[a-z]{3,9},? |[0-9]|[a-z]{3,6}day\W*$).{0,60}"
    r"|\W*today is \w+(?:day)?[,;.][^\n]{0,80}",
    re.IGNORECASE,
)
"""The time of the day, which every conversation is told."""

_ZONE = r"(?: ?(?:Z|UTC|[+-][0-9]{2}:?[0-9]{2}))?"
_STAMP = (
    rf"(?:[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ][0-9]{{2}}:[0-9]{{2}}(?::[0-9]{{2}}(?:\.[0-9]{{1,9}})?)?{_ZONE}"
    r"|[0-9]{10}(?:[0-9]{3})?)"
)
_PULSE = r"(?:heart-?beat|keep-?alive)"
_FINE = r"(?:ok(?:ay)?|alive|ack(?:nowledged)?|received|sent|healthy)"
_PING = re.compile(
    rf"\W*(?:{_STAMP}\W+)?(?:heartbeat_ok|no_reply|{_PULSE}\W{{1,3}}(?:is |was )?{_FINE})(?:\W+{_STAMP})?\W*"
    rf"|\W*{_STAMP}\W+{_PULSE}\W*|\W*{_PULSE}\W+{_STAMP}\W*",
    re.IGNORECASE,
)
"""A status ping and nothing else; what its interval is, or that it failed, may be worth knowing."""

_LONGEST, _MAX_TOKENS, _MANY_THINGS, _FEW_WORDS = 400, 48, 2, 2
_PULSES = _WORDS["pulses"]

MIN_KNOWN, MIN_KNOWN_TIMED = 0.86, 0.7
"""Share of tokens that must be words of machines, numbers or identifiers; and where a machine is named with a time."""

MARKS = r"(?i)\b" + one_of(
    pulses="heartbeat, ping, pong, keep-?alive, health ?check, watchdog, no_reply, liveness, readiness, uptime",
    silence="still, nothing",
    schedules="cron, tick\\b, briefing, tarea, tâche, schedule[rd], timer, trigger, batch, poll, polling, poller",
    watching="monitor(?:ing)?, loop, event",
    work=r"job, task, bot\b, agent, script, run, build, pipeline, process, worker, queue, check, status, scan",
    programs="daemon, service, server, systems?, systemd, container, deploy, rollout, failover, gateway",
    stores="database, db, storage, backup, sync, rsync, snapshot, autosave, replication, vacuum, migration, cache",
    changes="update, import, export, index, reindex, indexer, cleanup, rotation, refresh, compact, flush",
    machines="memory, context, cache, lock, cpu, ram, disk, network, node, cluster, usage, rate limit",
    connections="socket, websocket, webhook, endpoint, api, token, session, connection, telemetry, log",
    post=r"inbox, e?mails?\b, messages\b, notifications\b, unread, upcoming, remind, feed, rss\b",
    told=r"price, weather, current (?:date|time), today is, \bnote\b",
)
"""A pattern of RE2 that every report matches."""


def judge_report(text: str) -> Sign | None:
    """A heartbeat, or the report of a scheduled job.

    >>> judge_report("HEARTBEAT_OK").kind, judge_report("Heartbeat failed at 03:00").kind
    ('heartbeat', 'status_report')
    >>> judge_report("Cron job 'nightly-sync' finished: 0 new, 0 changed, 0 removed.").kind
    'status_report'
    >>> judge_report("Ilka's backup runs every night at 03:00")
    """
    if len(text) <= _LONGEST and _PING.fullmatch(text):
        return Sign("heartbeat", 0.95, f"a status ping: {quoted(text)}")
    if len(text) > _LONGEST or _ADVICE.search(text):
        return None
    if _NOW.fullmatch(text):
        return Sign("status_report", 0.9, f"tells what time it was: {quoted(text)}")
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
    return Sign("status_report", 0.95, f"the report of a machine: {quoted(text)}")


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
