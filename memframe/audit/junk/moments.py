"""Moments: what was true for a minute, such as the step of a task.

A long undertaking has steps and percentages as well; what makes a moment of it is a process of a machine, or
that nothing but the moment is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from memframe.audit.junk.signs import Sign, quoted
from memframe.audit.language.vocabulary import one_of
from memframe.audit.sieve import sieve_of


def _sign(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_PROCESS = one_of(
    r"""(?:unit |integration |e2e )?tests?(?: run| suite)?, builds?, compil\w+, install\w*, pip, npm, yarn,
    docker, command, script, migrations?, download\w*, upload\w*, deploy\w*, pipeline, ci, job, query,
    request, response, api, server, tool(?: call)?, output, process\w*, files?, reading, writing, function,
    code, terminal, agent, subagent, search\w*, index\w*, container, import, export, sync\w*, confirmation,
    approval, input, dependenc\w+, packages?, repository, repo,
    user (?:input|reply|response|confirmation|approval), commit, pull request, pr, branch, lint\w*,
    format\w*, render\w*, training run, epoch, batch, crawl\w*, scrap\w+, task, subtask, todo, pytest, jest,
    cargo, webpack, module, codebase"""
)
_OF_MACHINES = one_of(
    r"""compil\w+, install\w*, npm, docker, migrations?, deploy\w*, pipeline, downloads?, downloading,
    uploads?, uploading, scripts?, query, api, server, wizard, container, epoch, crawl\w*, lint\w*, repo\w*,
    builds? #[0-9]+"""
)
_RUNNING = one_of(
    """running, executing, processing, installing, building, compiling, downloading, uploading, deploying,
    debugging, testing, refactoring, fetching, loading, parsing, scanning, reading, writing, searching,
    indexing, syncing, generating, analy[sz]ing, working on, waiting (?:for|on), blocked (?:by|on), retrying"""
)
_THING = one_of(
    """file, image, screenshot, error, message, link, document, snippet, log, code, page, tab, button, menu,
    window, terminal, browser, editor, pdf, photo, picture, text"""
)

_STRONG = (
    _sign(
        r"\b(?:currently|now|presently|right now|at the moment|in progress|still|busy)\b[^.\n]{0,30}"
        rf"\b{_RUNNING}\b[^.\n]{{0,40}}\b{_PROCESS}\b"
    ),
    _sign(
        r"\b(?:waiting|awaiting)(?: for| on)?[^.\n]{0,20}\b(?:api|server|tool|model|user|ci|build"
        r"|command)(?:['’]s)? "
        r"(?:response|reply|output|results?|input|approval|confirmation)\b"
        rf"|\b(?:waiting|waits|awaiting|pending)\b(?: for"
        rf"| on)?[^.\n]{{0,40}}\b{_PROCESS}\b[^.\n]{{0,30}}\b(?:to )?"
        + one_of(
            "finish, complete, return, respond, load, end, start, pass, arrive, exit, come back, be ready"
        )
        + r"\w*|\b(?:waiting|awaiting)(?: for| on) (?:the )?user to \w+\b"
        r"|\bawaiting (?:user |final )?(?:approval|confirmation|review|input|response|reply)\b"
    ),
    _sign(
        r"^\W{0,3}(?:(?:the )?(?:user|assistant|agent) is )?(?:currently |now |about to )?"
        + one_of("running, executing, installing, compiling, deploying, run, execute, calling, fetching")
        + rf"\b[^.\n]{{0,60}}\b{_PROCESS}\b[^.\n]{{0,40}}(?:\.{{3}}|…|\.?$)"
    ),
    _sign(
        r"^\W{0,3}(?:i will now|i['’]ll now|let me|i am going to|i['’]m going to|next i will"
        r"|now i)\b[^\n]{0,120}"
        rf"\b{_PROCESS}\b"
    ),
    _sign(
        r"^\W{0,3}(?:the )?(?:agent|assistant) is (?:currently |now |about to |busy |in the middle of )\w+ing\b"
    ),
    _sign(
        r"^\W{0,3}(?:the )?user (?:has |is )?(?:just |now |currently )?"
        + one_of("uploaded, pasted, attached, clicked, opened, closed, viewing, looking at, scrolling")
        + rf" (?:an?|the|his|her|their) (?:\w+ )?{_THING}\b"
        r"|^\W{0,3}(?:the )?user asked to (?:open|close|run|read|show|list) (?:the )?(?:file|folder"
        r"|directory|page|tab|script)\b"
    ),
)
"""A process of a machine, or somebody at work with one."""

_STEP = _sign(
    rf"\b{one_of('step, phase, stage, task, part, item, file, page, chunk, batch, epoch, iteration')}"
    r" #?[0-9]+ ?(?:of|/) ?#?[0-9]+\b|^\W{0,3}step [0-9]+:|\bon step [0-9]+\b"
    r"|\b[0-9]+ ?(?:of|/) ?[0-9]+ (?:steps|tasks|items|files|pages|chunks|batches|tests)\b"
)
_SHARE = _sign(
    r"\b[0-9]{1,3}(?:\.[0-9]+)? ?(?:%|percent) (?:complete|completed|done|finished|through)\b|\bin progress\b"
    r"|\bprogress:? [0-9]{1,3} ?%|\.{3} ?[0-9]{1,3} ?%\W*$"
)
_WEAK = (
    _STEP,
    _SHARE,
    _sign(
        r"^\W{0,3}(?:task|todo|status|current (?:task|step|state|status|goal|objective)|next (?:step"
        r"|action)s?|in progress"
        r"|progress|wip|blocked|next|pending)\s?(?:#?[0-9]+)?\s?[:=-]"
    ),
    _sign(
        r"(?:^|[:;] )\W{0,3}(?:download|upload|install|compil|build|deploy|process|fetch|load|index"
        r"|render|generat|analy[sz]"
        r"|migrat|import|export|test|scann?)ing\b"
    ),
    _sign(r"\bright now\b|^\W{0,3}(?:currently|working on|in the middle of) \w+ing\b"),
    _sign(r"\bexit code [0-9]+|\bcommits? (?:ahead|behind)\b|\bcurrent (?:file|branch)\b"),
    re.compile(r"\b(?:PR|MR|pull request|merge request) #?[0-9]+"),
    re.compile(
        r"\bCI\b|\b(?:linter|compiler|type ?checker|mypy|eslint) (?:reports?|shows?|found|complains)\b"
    ),
    _sign(r"\bbranch [\w-]+/[\w-]+"),
    _sign(
        r"\b(?:builds?|tests?|lint\w*|pipeline|deployment|deploy|compilation|migrations?)(?: (?:run|suite))?"
        r"(?: is| are| has| have)? (?:failed|failing|passed|passing|broken|green|red)\b|\bfailing tests?\b"
    ),
)
"""How far something is, and where it got stuck."""

_TECHNICAL = (
    re.compile(
        r"(?<![\w/])(?:[\w.-]{1,100}/){0,30}[\w-]{1,100}\.(?:py|[jt]sx?|rs|go|java|cpp|rb|sh|md|json|ya?ml|toml|txt|pdf"
        r"|csv|log)\b"
        r"|\bhttps?://|\bsrc/\w"
    ),
    re.compile(r"\bline [0-9]+\b"),
    _sign(
        r"\b(?:run|restart|deploy|rebuild|install|commit|push|merge|refactor|renam|lint|debug|rebase|fix)\w*"
        r" (?:the |a |an )?(?:\w+ )?"
        + one_of(
            r"""migrations?, server, tests?, build, script, service, branch, code, module, function, variable,
    dependenc\w+, packages?, app, container, linter, pipeline, bug, errors?, files"""
        )
        + r"\b"
    ),
)
"""What is spoken of at the keyboard, also by people who tell something that lasts."""

_LASTING = _sign(
    r"\b(?:prefers?|always|usually|every|each|never|because|wants?|likes?|decided|since (?:19|20)[0-9]{2}"
    r"|for (?:\w+ )?(?:years|months)|before (?:you|we|\w+ing)|means|whenever|or (?:they|it) (?:will )?fails?"
    r"|how we|in (?:this|our|my) (?:project|repo))\b"
)
_ANY_PROCESS, _OF_A_MACHINE = _sign(rf"\b(?:{_PROCESS}|deployment)\b"), _sign(rf"\b{_OF_MACHINES}(?!\w)")
_FEW_WORDS, _LONGEST, _ENOUGH = 5, 400, 2

MARKS = (
    r"(?i)\b(?:step|phase|stage|task|part|item|file|page|chunk|batch|epoch|iteration) #?[0-9]"
    r"|[0-9] ?(?:of|/) ?[0-9]|%"
    r"|percent|progress|currently|\bnow\b|presently|at the moment|\bstill\b|\bbusy\b|waiting|waits"
    r"|await|pending|\w+ing\b"
    r"|^\W{0,3}(?:run|execute|task|todo|status|current|next|wip|blocked|i will|i['’]ll|let me"
    r"|i am going|i['’]m going)"
    r"|about to|\buser |exit code|commits|current (?:file|branch)|\b(?:ci|pr|mr)\b|pull request|branch"
    r"|linter|compiler"
    r"|failed|passed|broken"
)
"""A pattern of RE2 that every such text matches."""

SIEVE = sieve_of(*_STRONG, *_WEAK)
"""The same, and finer: one of these has to be there."""


def judge_moment(text: str) -> Sign | None:
    """The state of a task.

    >>> judge_moment("User is currently on step 2 of 5: waiting for pip to finish installing.").kind
    'task_state'
    >>> judge_moment("User is currently learning Dutch")
    """
    if len(text) > _LONGEST:
        return None
    n_strong, n_weak = _n_found(_STRONG, text), _n_found(_WEAK, text)
    if not (n_strong or n_weak):
        return None
    n_technical = _n_found(_TECHNICAL, text)
    if n_weak and not n_strong:
        n_technical += _n_found((_STEP, _SHARE), text) > 0 and _OF_A_MACHINE.search(text) is not None
        is_of_machine = _ANY_PROCESS.search(text) is not None or len(text.split()) <= _FEW_WORDS
        n_weak *= n_technical > 0 or is_of_machine
    n_lasting = _LASTING.search(text) is not None
    if not (n_strong or n_weak) or 2 * n_strong + n_weak + n_technical - 2 * n_lasting < _ENOUGH:
        return None
    return Sign("task_state", 0.9, f"the state of a task: {quoted(text)}")


def _n_found(signs: Iterable[re.Pattern[str]], text: str) -> int:
    return sum(sign.search(text) is not None for sign in signs)
