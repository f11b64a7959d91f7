"""Outputs: what tools print for whoever runs them, stored as a memory.

A tool prints in a form of its own: a prefix, a table, a count of what it did to files, a line of a log. So a text must
be such a form as a whole, or begin a line with what nobody writes by hand; a memory that quotes one in a sentence
("the error ENOENT means that the mount is gone") tells something.
"""

from __future__ import annotations

import json
import re

from memframe.audit.junk.signs import Sign, quoted
from memframe.audit.language.vocabulary import one_of, read_vocabulary
from memframe.audit.sieve import sieve_of

_KEYS = read_vocabulary(__package__, "machine_words.txt")["keys"]

_LOG_LINE = re.compile(
    r"\s*\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?\S{0,12}\]?\s+(?:\S{1,40}\s+)?\W?"
    r"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\b"
    r"|\s*\[?(?:TRACE|DEBUG|ERROR|FATAL)\]?\s?[:|-]\s"
    r"|\s*\[?(?:INFO|WARN|NOTICE)\]?(?:\s?[:|-]\s\s?[A-Z]|\s{2,}\S)"
)
_LINE = r"^[ \t]{0,16}"
_PATH = r"[\w./~\\-]{1,120}"
_SHELL = one_of(
    "bash, zsh, sh, fish, dash, curl, wget, ssh, scp, git, make, docker, npm, pnpm, yarn, cargo, gcc"
)
_BEGINNING = re.compile(
    one_of(
        python=rf"{_LINE}Traceback \(most recent call last\), {_LINE}[\w.]+(?:Error|Exception|Warning):[ ]",
        java=rf"{_LINE}Exception in thread[ ], {_LINE}at [\w.$<>]+\([\w.]+:[0-9]+\)",
        javascript=rf"\AError: [A-Z][^.\n]{{3,80}}(?:\n|\Z), {_LINE}Uncaught \w+Error\b",
        crashes=rf"{_LINE}(?:npm (?:ERR!|WARN)|error\[E[0-9]+\]|panic: |Segmentation fault|fatal: |make: \*\*\* )",
        programs=rf"{_LINE}(?:-)?{_SHELL}: (?:\([0-9]+\) )?(?:line [0-9]+: )?[^\n]{{3,120}}\Z",
        prefixes=rf"{_LINE}(?:warning|error|remote|hint|sudo|note): [^\n]{{3,160}}\Z, \AE: [A-Z],"
        r" \A\[[0-9]{2}:[0-9]{2}:[0-9]{2}\][ ], \AW: [A-Z], \ATraceback: ",
        http=r"^HTTP/[0-9.]+ [0-9]{3}, \AHTTP (?:error )?[1-5][0-9]{2}(?: [A-Z][a-z]+){0,3}\W*\Z",
        shells=rf"{_LINE}\$ [a-z]+[ ], \APermission denied \(",
        pages=r"\A\s*<(?:!(?:doctype|DOCTYPE) html|html|head|body|\?xml)\b",
        results=r"\A\s*</?(?:tool_result|function_results?|tool_response|stdout|stderr|result)>",
        git=rf"{_LINE}diff --git a/, \AOn branch \S+\n, {_LINE}\[[\w/.-]+ [0-9a-f]{{7,12}}\][ ],"
        rf" ^[ \t]*[0-9]+ files? changed,[ ][0-9]+",
        listings=rf"{_LINE}[dl-](?:[r-][w-][xsStT-]){{3}}[@+.]?\s+[0-9], \Atotal [0-9]+\n",
        compilers=rf"{_LINE}{_PATH}\.\w{{1,5}}[:(][0-9]+(?:[:,\s][0-9]+)?\)?[: -]+(?:fatal )?(?:error|warning|note)\b",
        testers=rf"{_LINE}(?:FAILED|PASSED|ERROR|PASS|FAIL) {_PATH}\.\w+(?:::\S+)?(?:[ ]\(|[ ]-[ ]|\s*$), ^={{6}}=*[ ]",
        bars=r"(?<![█▉▊▋▌▍▎▏#=])[█▉▊▋▌▍▎▏#=]{4,}+[>.\s]{0,40}\]?\|?\s*[0-9], [0-9]{1,3}%\|[^|\n]{3}",
        daemons=rf"{_LINE}[a-z][\w.-]{{2,20}}\[[0-9]+\]:[ ]",
        pings=r"\APING \S+ \(, ^[0-9]+ bytes from[ ]",
    ),
    re.MULTILINE,
)
"""With what a line begins that nobody writes by hand."""

_N = r"[0-9][0-9.,]*(?:[ ]?[km]i?b)?"
_COUNTED = one_of(
    "lines?, rows?, bytes, kb, mb, files?, items?, elements?, links?, forms?, matches, results?, hits,"
    " replacements?, packages?, edits?, hunks?, records?, entries, tokens, characters, chars, pages?"
)
_DID = one_of(
    "read, wrote, written, edited, fetched, downloaded, saved, created, loaded, found, listed, searched,"
    " patched, updated, deleted, moved, copied, opened, parsed, returned, generated, scanned, extracted"
)
_ELEMENT = one_of(
    "element, selector, button, field, link, input, page, form, tab, menu, checkbox, bottom, top"
)
_HANDLED = one_of("clicked, typed, navigated, scrolled, hovered, pressed, filled, submitted, tapped")
_PRINTED = one_of("screenshot, output, page, response, file, image, snapshot, document")
_DONE = one_of(
    "taken, captured, truncated, omitted, loaded, saved, returned, received, rendered, generated, closed"
)
_FILE = rf"{_PATH}[/.]\w+"
_MEASURED = one_of(
    who="session(?:_id)?, request_id, trace_id, run_id, job_id, pid, worker, agent_id",
    time=r"turns?, latency(?:_ms)?, duration(?:_ms)?, elapsed, uptime",
    amounts=r"(?:\w+_)?tokens, retries, attempts?, cpu, rss",
)
_MEASURE = one_of(
    _MEASURED,
    "cost(?:_usd)?, model, status, exit(?:_code)?, code, level, event, ts, timestamp, mem, load, ms",
)
_PLACE = rf"(?:{_FILE}|{_N}\s{_COUNTED}|https?://\S+|[\"'`][^\"'`\n]{{1,60}}[\"'`])"
_TOOLS = r"(?:[a-z]+_[a-z_]+|(?:the )?(?:tool(?: call)?|command|process|exec|search|script))"
_WHOLE = re.compile(
    one_of(
        work=rf"{_DID}\s(?:{_FILE}\W{{1,2}})?\(?{_N}\s{_COUNTED}(?:\s(?:from|to|in|into|at|of|for)\s{_PLACE})?,"
        rf" {_DID}\s{_FILE}(?:[ ]?[:(][^\n]{{0,80}})?, {_DID}\shttps?://\S+[^\n]{{0,80}}",
        nothing=r"no (?:results?|matches|files) (?:were )?found(?: (?:for|in)\b[^\n]{0,80})?",
        calls=rf"{_TOOLS} ['\"`]?[\w ./:-]{{0,60}}['\"`]? ?(?:returned|failed|timed out|exited|succeeded|completed)"
        r"\b[^\n]{0,120}",
        requests=r"(?:api |http |tool |function |network )?(?:call|request|fetch|query|connection) (?:failed|succeeded"
        r"|returned|timed out|refused|reset)\b[^\n]{0,80}",
        pages=rf"{_HANDLED} (?:on |to |into |in |over )?"
        rf"(?:the )?(?:{_ELEMENT}|https?://\S+|[#.][\w-]+)[^\n]{{0,80}}",
        states=rf"{_PRINTED} (?:was )?{_DONE}(?:[:,( ][^\n]{{0,80}})?",
        builders=r"(?:removing|creating|pulling|pushing|resolving|unpacking|enumerating|counting|fetching) [a-z]+"
        r" [a-z]* ?[0-9a-f]{6}[0-9a-f]*, step [0-9]+/[0-9]+ : [A-Z]+ [^\n]{1,80}, ok\s+\S+/\S+\s+[0-9.]+s",
        ends=r"(?:exec|command|process) \w+ \([^()\n]{3,80}\), killed(?: by \w+)?, terminated, aborted"
        r"(?: \(core dumped\))?, (?:tool|function) (?:result|output|response): [^\n]{0,120}",
        counts=rf"(?:[\w ]{{2,24}}: )?{_N}\s{_COUNTED}(?:,[ ]{_N}\s{_COUNTED}){{1,4}}",
        tests=r"=*[ ]?[0-9]+ (?:passed|failed)(?:,[ ][0-9]+ \w+){0,4} in [0-9.]+ ?s(?:econds)?[ ]?=*",
        packages=r"successfully installed [\w. -]+, added [0-9]+ packages[^\n]{0,80}, requirement already satisfied"
        r"[^\n]{0,120}, collecting [\w.-]+\n[^\0]{0,2000},"
        r" (?:compiling|downloading|installing|building) [\w.-]+ v?[0-9][^\0]{0,2000}",
        training=r"epoch [0-9]+/[0-9]+\b[^\n]{0,120}",
        searches=r"search results(?: for [^:\n]{1,60})?: 1[.)] [^\0]{0,2000}",
        numbers=r"(?:session|conversation|request|trace|run|thread|turn)[ _-]?id\s?[:=#]?\s?[\w-]{3,60},"
        r" model\s?[:=]\s?(?:claude|gpt|gemini|llama|mistral|deepseek|qwen)[\w.:/-]{0,40},"
        rf" tokens?\s?[:=]\s?{_N}[^\n]{{0,40}}",
        answers=r"[1-5][0-9][0-9] (?:ok|created|no content|not found|forbidden|unauthori[sz]ed|bad (?:gateway|request)"
        r"|internal server error|service unavailable|too many requests)",
        codes=r"(?:command |process )?exit(?:ed)?(?: with)? (?:code|status)[: ] ?[0-9]{1,3}, tool_\w+: [^\n]{0,120}",
        measures=rf"(?=[^\n]*\b{_MEASURED}=)(?:{_MEASURE}=[^\s=]+[\s,;]{{0,3}}){{2,12}}",
    )
    + r"[.!\s]*\Z",
    re.IGNORECASE,
)
"""What a tool says when it is done, and nothing else."""

_TABLE = re.compile(
    r"\A[^\n]*?\b[A-Z][A-Za-z%]+(?:\s{2,}[A-Z][A-Za-z% ]*?){2,}\s*(?:\n\S[^\n]*\s{2,}\S[^\0]*)?\Z"
)
_FORMULA = re.compile(r"\s*=[A-Z]{2,}\([^\n]*\)\s*")
_FENCE = re.compile(r"\A\s*```\w*\s*\n(?P<inside>[^\0]*?)(?:\n```\s*)?\Z")
_SCORE = 0.9

MARKS = one_of(
    beginnings=r"^\s*[$<{\[=`], ^\s*=[A-Z], ^\s*[dl-][r-][w-], ^total [0-9], ^On branch, ^PING",
    levels="TRACE, DEBUG, INFO, NOTICE, WARN, ERROR, FATAL, CRITICAL",
    crashes=r"Traceback \(, (?:Error|Exception|Warning)\b, Exception in thread, \.java:, panic: ",
    faults="Segmentation, Uncaught",
    http="HTTP[/ ][0-9e]",
    programs=rf"(?i:{_SHELL}): , npm (?:ERR|WARN), make: , fatal: , Permission denied, diff --git, files? changed",
    compilers=r"[:(][0-9]+.{0,8}(?:error|warning|note)",
    tests=r"\b(?:FAILED|PASSED|PASS|FAIL)\b, [0-9] (?:passed|failed)",
    bars=r"%\|, [█#=]{4}, bytes from",
    work=rf"(?i:^\W*(?:{_DID}|{_TOOLS}|no|killed|terminated|aborted|added|collecting|compiling|downloading|installing"
    r"|building|epoch|successfully|requirement|search|api|http|call|request|query|connection|clicked|typed|navigated"
    r"|scrolled|hovered|pressed|filled|submitted|tapped|screenshot|output|page|response|file|image|snapshot|document"
    r"|removing|creating|pulling|pushing|resolving|unpacking|enumerating|counting|fetching|step|ok)\s)",
    prefixes=r"(?i:^\s*(?:warning|error|remote|hint|sudo|note|e|w|traceback)): , ^\[[0-9]{2}:",
    counts=rf"(?i:[0-9] (?:{_COUNTED}))",
    codes=r"(?i:^\W*(?:command |process )?exit(?:ed)? |^tool_)",
    measures=rf"(?i:^\s*{_MEASURE}=)",
    numbers=r"(?i:^\W{0,3}(?:(?:session|conversation|request|trace|run|thread|turn)[ _-]?id|model|tokens?)\s?[:=# ])",
    answers=r"(?i:^\W{0,3}[1-5][0-9][0-9] [a-z ]{2,24}\W*$)",
    daemons=r"^[a-z][\w.-]{2,20}\[[0-9]+\]:",
    columns=r"[A-Z][A-Za-z%]+[ ]{2}[^\n]*[ ]{2}[A-Z]",
)
"""A pattern of RE2 that every output matches."""

SIEVE = r"^\s*[{\[]|" + sieve_of(_BEGINNING, _LOG_LINE, _TABLE, _FORMULA, _FENCE, _WHOLE)
"""The same, and finer: JSON, or one of these."""


def judge_output(text: str) -> Sign | None:
    """What a tool printed: a traceback, a line of a log, a table, an answer in JSON, what it did to how many files.

    >>> judge_output("Edited src/index.ts: 3 replacements.").kind
    'tool_output'
    >>> judge_output("Error EADDRINUSE means that the old server still runs")
    """
    fenced = _FENCE.match(text)
    printed = fenced["inside"] if fenced else text
    if _has_form(printed) or _is_answer(printed):
        return Sign("tool_output", _SCORE, f"printed by a tool: {quoted(text)}")
    return None


def _has_form(text: str) -> bool:
    if _BEGINNING.search(text) or _LOG_LINE.match(text) or _FORMULA.fullmatch(text) or _TABLE.match(text):
        return True
    return _WHOLE.match(text.lstrip()) is not None


def _is_answer(text: str) -> bool:
    """Whether a text is JSON that says how a call went, and nothing about anybody."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return bool(value) and isinstance(value, dict | list) and _tells_of_call(value) is True


def _tells_of_call(value: object) -> bool:
    """Whether all fields have the names that machines give them; lists may be empty, but not of mere words."""
    if isinstance(value, dict):
        return _KEYS.issuperset(map(str.lower, value)) and all(
            _tells_of_call(part) for part in value.values() if isinstance(part, dict | list)
        )
    return isinstance(value, list) and all(map(_tells_of_call, value))
