"""Passwords in command lines: after the option by which a program takes one.

What a letter means is the program's: ``-p`` is a password to ``sshpass`` and a port to ``ssh``. So each program has its
own option, and only long options with the name of a secret are known for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memframe.audit.language.vocabulary import one_of
from memframe.audit.secret.passwords import is_strong
from memframe.audit.secret.plain_words import is_plain
from memframe.audit.secret.randomness import is_placeholder
from memframe.audit.text import Span


class _Grammar(NamedTuple):
    """How some programs take a password: their names, and what stands right before it."""

    programs: str
    option: str


_NAME = r"[\w.@+\\-]{1,64}"
_APART, _GLUED = r"[ =]", r" ?"
_GRAMMARS = (
    _Grammar("curl, wget, https?, xh, aria2c", rf"(?:-u|--user|-a|--auth){_GLUED}=?[\"']?{_NAME}:"),
    _Grammar("lftp, ncftp", rf"-u {_NAME},"),
    _Grammar("sshpass", rf"-p{_GLUED}"),
    _Grammar("plink, pscp, psftp", "-pw "),
    _Grammar("rdesktop, ipmitool", rf"-[pP]{_APART}"),
    _Grammar("redis-cli", rf"(?:-a|--pass){_APART}?"),
    _Grammar(r"(?:mysql|mariadb)[\w-]{0,12}", "-p"),
    _Grammar("docker login, podman login, buildah login, skopeo login", rf"-p{_APART}?"),
    _Grammar("sqlcmd, bcp, isql, osql, tsql, mosquitto_(?:pub|sub), zip, unzip", rf"-P{_APART}?"),
    _Grammar("7z[ar]?, 7zz, rar, unrar", "-h?p"),
    _Grammar("ldap(?:search|modify|add|delete|passwd|whoami)", rf"-w{_APART}?"),
    _Grammar("xfreerdp, wfreerdp, mstsc", "/p:"),
    _Grammar(r"net use [^\n]{0,80}\\[\w$.-]{1,40}", "(?!/)"),
    _Grammar("smbclient, rpcclient, smbget, winexe, net", rf"(?:-U|--user){_APART}{_NAME}%"),
    _Grammar("openssl", r"(?:-k |-pass(?:in|out)? pass:)"),
    _Grammar("htpasswd", rf"-[A-Za-z]{{0,4}}b[A-Za-z]{{0,4}} (?:[\w./~-]{{1,80}} )?{_NAME} "),
    _Grammar("wpa_passphrase", r"(?:\"[^\"\n]{1,32}\"|[\w.-]{1,32}) "),
)
_LONG_OPTION = (
    r"\s--?[a-z-]{0,20}(?:password|passwd|passphrase|pass|secret|token|api[-_]?key)(?:[ ]|=)"
    r"[\"']?(?P<long>[^\s\"'`]{4,200})"
)
_PIPED = (
    r"\becho\s(?:-n\s)?[\"']?(?P<piped>[^\s\"'|]{4,100})[\"']?\s?\|\s?"
    r"(?:sudo\s-S|passwd\s--stdin|docker\slogin|cryptsetup|gpg)\b"
    rf"|\becho\s[\"']?{_NAME}:(?P<pair>[^\s\"'|:]{{4,100}})[\"']?\s?\|\s?(?:sudo\s)?chpasswd\b"
)
_WORD = r"[\"']?(?P<word>[^\s\"'`|;]{3,200})"


def _pattern(grammar: _Grammar) -> re.Pattern[str]:
    """The program, any other options, its own one, and the password."""
    return re.compile(
        rf"(?<![\w./-]){one_of(grammar.programs)}\s(?:[^\n|]{{0,200}}?\s)??{grammar.option}{_WORD}"
    )


_COMMANDS = tuple(map(_pattern, _GRAMMARS))
_NAMED, _FROM_PIPE = re.compile(_LONG_OPTION), re.compile(_PIPED)
_FIRST_WORDS = one_of(*(grammar.programs for grammar in _GRAMMARS)).replace(r"[^\n]{0,80}\\[\w$.-]{1,40}", "")

_TOOLS = one_of(
    shells="sudo, bash, zsh, xargs, grep, sed, awk, jq",
    databases="psql, pg_dump, pg_restore, pg_isready, mysql, mysqldump, mariadb, redis-cli, mongosh, sqlite3",
    networks="ssh, scp, sftp, rsync, curl, wget",
    builds="git, npm, npx, pnpm, yarn, python3?, pip, uv, pytest, mvn, gradle, php",
    machines="docker(?:-compose)?, podman, kubectl, terraform, ansible(?:-playbook)?, aws, gcloud, systemctl",
)
_WORDS = "(?:make|node|cargo)"
_OTHERS = one_of("su, sh, env, export, source, echo, cd, ls, cat, tee, head, tail, go, rails, rake, helm")
"""Commands that are words as well, of which a pass phrase may be made."""

_PATH = r"(?:\.{0,2}/[\w.-]|[\w-]+\.(?:sh|py)\b)"
_END = r"(?=[\s\"'`)]|\Z)"
_NEXT = (
    rf"(?:&&|\|\||[;&|])(?=(?:{_TOOLS}|{_WORDS}|{_OTHERS}){_END}|{_PATH})|(?:&&|\|\|){_END}"
    r"|[;&](?=[A-Za-z_][\w.-]{0,40}=)"  # the next field of a query or a connection string
)
_ASSIGNED = rf"{_NEXT}|(?:&&|\|\|)(?=[a-z][\w-]*\s)|\s+(?=(?:{_TOOLS})\s|{_PATH})"
_NEXT_AFTER = (
    (re.compile(r"\b[A-Z][A-Z0-9_]*=\Z"), re.compile(rf"{_ASSIGNED}|\s+(?={_WORDS}\s)")),
    (re.compile(r"=\Z"), re.compile(_ASSIGNED)),
    (re.compile(""), re.compile(_NEXT)),
)
"""Beginnings before a value, and where the next command or field begins behind it: what a shell assigns ends with a
blank, what people tell may be a phrase."""

_QUOTED = re.compile(r"[\"'][^\s\"'=]{0,64}\Z")
"""Text before a value that a quotation mark closes: the mark, and the name of a user at most."""

_SHORTEST, _LONGEST = 3, 200

MARKS = rf"\b{_FIRST_WORDS}\s|--?[a-z-]{{0,20}}(?:pass|secret|token|api[-_]?key)|\becho\s[^|\n]{{4,120}}\|"
"""A pattern of RE2 that every text with such a password matches."""


def find_in_commands(text: str) -> Iterator[Span]:
    """Passwords that a command line hands to its program.

    >>> text = "docker login -u bot -p hunter2boat; ssh -p 2222 nas; mysql -p$DB_PASS shop"
    >>> [text[span.start : span.end] for span in find_in_commands(text)]
    ['hunter2boat']
    """
    for pattern in (*_COMMANDS, _FROM_PIPE):
        for match in pattern.finditer(text):
            start, end = _whole(text, *match.span(str(match.lastgroup)))
            if is_password(text[start:end]):
                yield Span("password", start, end, 0.9)
    for match in _NAMED.finditer(text):
        start, end = _whole(text, *match.span("long"))
        word = text[start:end]
        if is_password(word) and (is_strong(word) or _is_mixed_case(word)):
            yield Span("password", start, end, 0.9)


def _whole(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where a value begins and ends, with all that stands within its quotation marks."""
    opened = _QUOTED.search(text[max(0, start - _LONGEST) : start])
    closed = text.find(opened[0][0], end, end + _LONGEST) if opened else -1
    return start, end if closed < 0 or "\n" in text[end:closed] else closed


def without_next_command(text: str, span: Span) -> Span:
    """Return a secret without the command or the field that follows it without a blank.

    >>> text = "DB_PASSWORD=Blue!Whale88;psql -h db"
    >>> cut = without_next_command(text, Span("password", 12, 29, 0.9))
    >>> text[cut.start : cut.end]
    'Blue!Whale88'
    """
    before = text[max(0, span.start - _LONGEST) : span.start]
    if _QUOTED.search(before):
        return span
    pattern = next(pattern for assigned, pattern in _NEXT_AFTER if assigned.search(before))
    following = pattern.search(text, span.start + _SHORTEST, span.end + _LONGEST)
    return (
        span if following is None or following.start() >= span.end else span._replace(end=following.start())
    )


def is_password(word: str) -> bool:
    """Whether what stands in the place of a password is one, and no variable, placeholder or option."""
    return not is_placeholder(word) and not is_plain(word) and word[0] not in "$-<%@"


def _is_mixed_case(word: str) -> bool:
    """Capitals within a word: no word of a sentence has them."""
    return word[1:] != word[1:].lower() and not word.isupper()
