"""Moments: what was true for a minute, such as the step of a task, or that somebody said hello.

A long undertaking has steps and percentages as well; what makes a moment of it is a process of a machine, or
that nothing but the moment is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from memframe.audit.junk.signs import Sign, quoted

_PROCESS = (
    r"(?:unit |integration |e2e )?tests?(?: run| suite)?|build|compil\w+|install\w*|pip|npm|yarn|docker|command"
    r"|script|migration|"
    r"download\w*|upload\w*|deploy\w*|pipeline|ci|job|query|request|response|api|server|tool(?: call)?|output"
    r"|process\w*|"
    r"files?|reading|writing|function|code|terminal|agent|subagent|search\w*|index\w*|container|import|export"
    r"|sync\w*|"
    r"confirmation|approval|user (?:input|reply|response|confirmation|approval)|input|dependenc\w+|package"
    r"|repository|repo|commit|"
    r"pull request|pr|branch|lint\w*|format\w*|render\w*|training run|epoch|batch|crawl\w*|scrap\w+|task|subtask|todo"
)
_STEP = re.compile(
    r"\b(?:step|phase|stage|task|part|item|file|page|chunk|batch|epoch|iteration) #?[0-9]+ ?(?:of|/) ?#?[0-9]+\b"
    r"|\b[0-9]+ ?(?:of|/) ?[0-9]+ (?:steps|tasks|items|files|pages|chunks|batches|tests)\b|^\W{0,3}step [0-9]+:",
    re.IGNORECASE,
)
_SHARE = re.compile(
    r"\b[0-9]{1,3}(?:\.[0-9]+)? ?(?:%|percent) (?:complete|completed|done|finished|through)\b"
    r"|\bprogress:? [0-9]{1,3} ?%|\.{3} ?[0-9]{1,3} ?%\W*$|\bin progress\b",
    re.IGNORECASE,
)
_NOW = re.compile(
    rf"\b(?:currently|now|presently|right now|at the moment|in progress|still|busy)\b[^.\n]{{0,30}}\b(?:running"
    rf"|executing|processing|installing"
    rf"|building|compiling|downloading|uploading|deploying|debugging|testing|refactoring|fetching|loading|parsing"
    rf"|scanning|reading|writing"
    rf"|searching|indexing|syncing|generating|analy[sz]ing|working on|waiting (?:for|on)|blocked (?:by|on)"
    rf"|retrying)\b[^.\n]{{0,40}}\b(?:{_PROCESS})\b",
    re.IGNORECASE,
)
_WAITING = re.compile(
    r"\b(?:waiting|awaiting)(?: for| on)?[^.\n]{0,20}\b(?:api|server|tool|model|user|ci|build|command)(?:['’]s)? "
    r"(?:response|reply|output|results?|input|approval|confirmation)\b|"
    rf"\b(?:waiting|waits|awaiting|pending)\b(?: for"
    rf"| on)?[^.\n]{{0,40}}\b(?:{_PROCESS})\b[^.\n]{{0,30}}\b(?:to )?(?:finish|complete|return|respond|"
    r"load|end|start|pass|arrive|exit|come back|be ready)\w*",
    re.IGNORECASE,
)
_RUNNING = re.compile(
    rf"^\W{{0,3}}(?:(?:the )?(?:user|assistant|agent) is )?(?:currently |now |about to )?(?:running|executing"
    rf"|installing|compiling|deploying|"
    rf"run|execute|calling|fetching|downloading"
    rf"|uploading)\b[^.\n]{{0,60}}\b(?:{_PROCESS})\b[^.\n]{{0,40}}(?:\.{{3}}|…|\.?$)",
    re.IGNORECASE,
)
_STATUS = re.compile(
    r"^\W{0,3}(?:task|todo|status|current (?:task|step|state|status|goal|objective)|next (?:step|action)s?"
    r"|in progress|progress|wip|blocked|next)"
    r"\s?(?:#?[0-9]+)?\s?[:=-]",
    re.IGNORECASE,
)
_PLAN = re.compile(
    rf"^\W{{0,3}}(?:i will now|i['’]ll now|let me|i am going to|i['’]m going to|next i will"
    rf"|now i)\b[^\n]{{0,120}}\b(?:{_PROCESS})\b",
    re.IGNORECASE,
)
_DOING = re.compile(
    r"(?:^|[:;] )\W{0,3}(?:download|upload|install|compil|build|deploy|process|fetch|load|index|render|generat"
    r"|analy[sz]|migrat|import|export|test|scann?)ing\b",
    re.IGNORECASE,
)
_TECHNICAL = (
    re.compile(
        r"(?<![\w/])(?:[\w.-]+/)*[\w-]+\.(?:py|[jt]sx?|rs|go|java|cpp|rb|sh|md|json|ya?ml|toml|txt|pdf|csv|log)\b"
        r"|\bhttps?://"
    ),
    re.compile(r"\bline [0-9]+\b"),
    re.compile(
        r"\b(?:run|restart|deploy|rebuild|install|commit|push|merge|refactor|rename|lint|debug|rebase|fix)\w*"
        r" (?:the |a |an )?(?:\w+ )?(?:migrations?|server|tests?|build|script|service|branch|code|module|function"
        r"|variable|dependenc\w+|packages?|app|container|linter|pipeline|bug|errors?)\b",
        re.IGNORECASE,
    ),
)
"""What is spoken of at the keyboard, also by people who tell something that lasts."""

_STUCK = (
    re.compile(
        r"\bexit code [0-9]+|\bcommits? (?:ahead|behind)\b|\bcurrent (?:file|branch)\b", re.IGNORECASE
    ),
    re.compile(r"\b(?:PR|MR|pull request|merge request) #?[0-9]+"),
    re.compile(r"\bCI\b"),
    re.compile(r"\bbranch [\w-]+/[\w-]+", re.IGNORECASE),
    re.compile(
        r"\b(?:builds?|tests?|lint\w*|pipeline|deployment|deploy|compilation|migrations?)(?: (?:run|suite))?"
        r"(?: is| are| has| have)? (?:failed|failing|passed|passing|broken|green|red)\b|\bfailing tests?\b",
        re.IGNORECASE,
    ),
)
"""Where a task stands."""

_AT_WORK = re.compile(
    r"^\W{0,3}(?:the )?(?:agent|assistant) is (?:currently |now |about to |busy |in the middle of )\w+ing\b"
    r"|\bawaiting (?:user |final )?(?:approval|confirmation|review|input|response|reply)\b"
    r"|^\W{0,3}(?:the )?user (?:has |is )?(?:just |now |currently )?(?:uploaded|pasted|attached|clicked"
    r"|opened|viewing|looking at"
    r"|scrolling) (?:an?|the|his|her|their) (?:\w+ )?(?:file|image|screenshot|error|message|link|document"
    r"|snippet|log|code"
    r"|page|tab|button|menu|pdf|photo|picture|text)\b"
    r"|^\W{0,3}(?:the )?user asked to (?:open|close|run|read|show|list) (?:the )?(?:file|folder|directory"
    r"|page|tab|script)\b",
    re.IGNORECASE,
)
_RIGHT_NOW = re.compile(
    r"\bright now\b|^\W{0,3}currently \w+ing\b|^\W{0,3}working on \w+ing\b", re.IGNORECASE
)
_ANY_PROCESS = re.compile(rf"\b(?:{_PROCESS}|deployment|builds?)\b", re.IGNORECASE)
_FEW_WORDS = 5

_LASTING = re.compile(
    r"\b(?:prefers?|always|usually|every|each|never|because|wants?|likes?|decided|since (?:19|20)[0-9]{2}"
    r"|for (?:\w+ )?(?:years|months))\b",
    re.IGNORECASE,
)
_LONGEST, _ENOUGH = 400, 2

_HELP = (
    r"(?:(?:hello|hi|hey|sure|of course|certainly|great|thanks|thank you|you['’]re welcome|i['’]m sorry"
    r"|sorry|okay|no problem"
    r"|absolutely)[!,. ]*)?(?:how (?:can|may) i (?:help|assist)(?: you)?(?: today)?|(?:i can"
    r"|i['’]d be happy to|happy to)"
    r" (?:help|assist)(?: you)?(?: with (?:that|this|anything else))?|let me know if (?:you (?:need|have)|there['’]s)"
    r" any[^.!?\n]{0,40}|is there anything else[^.!?\n]{0,40}|i can(?:no|['’])t (?:help|assist) with (?:that|this)"
    r"|as mentioned (?:earlier|above|before)|feel free to ask[^.!?\n]{0,40})[.!?]*\s*"
)
"""What assistants say to everybody."""

_SESSION = re.compile(
    rf"(?:{_HELP})+|"
    r"\W{0,3}(?:(?:start|end|beginning) of (?:the )?(?:conversation|session|chat)[.!]?\s*"
    r"|(?:the )?(?:assistant|ai|bot) (?:has )?"
    r"(?:answered|responded|replied|helped|greeted|apologi[sz]ed|acknowledged"
    r"|thanked)(?: (?:to )?(?:the )?(?:user|question"
    r"|request|message)(?:['’]s \w+)?)*[.!]?\s*|(?:the )?(?:conversation|session|chat|dialogue"
    r"|call) (?:was |has |is )?(?:started|begun|began|ended"
    r"|resumed|closed|timed out|"
    r"initiated|opened|over|finished|reset|active)(?: at [\w :.-]+| on [\w :.,-]+| with (?:the )?(?:user"
    r"|assistant))?[.!]?\s*|"
    r"(?:the )?users? (?:has |have |just )?(?:said (?:hello|hi|hey|goodbye|bye|good \w+|thanks|thank you|ok|okay"
    r"|yes|no)|greeted(?: the)?"
    r"(?: assistant| ai| agent| bot)?|thanked(?: the)?(?: assistant| ai| agent| bot)?"
    r"|acknowledged(?: the (?:response|answer|message))?|says? (?:goodbye|hello|hi|thanks|ok|yes|no)"
    r"|(?:wants|needs) help"
    r"|is chatting(?: with the (?:assistant|ai))?|sent an? (?:image|message|file|photo)"
    r"|typed ['\"]?\w{1,8}['\"]?|replied \w{2,5}"
    r"|asked (?:the )?(?:assistant|ai|me|you) to (?:remember|save|store|note) (?:something|this|that|it)|"
    r"logged (?:in|out|on|off)|signed (?:in|out)|started (?:a |the )?(?:new )?(?:conversation|session|chat)"
    r"|ended (?:the )?(?:conversation|"
    r"session|chat)|asked (?:a|another|the|some) questions?|sent (?:a|another) message|opened the (?:app|chat)"
    r"|is (?:now )?(?:online|offline|"
    r"active|idle|typing|away|here)|did not (?:respond|reply|answer)|(?:is )?wait(?:s|ing)|replied|responded"
    r"|confirmed|agreed)"
    r"(?: (?:to|with|at|from|on|for|again|about)(?: [\w:.'-]+){1,4})?[.!]?\s*)+",
    re.IGNORECASE,
)

MARKS = (
    r"(?i)(?:step|phase|stage|task|part|item|file|page|chunk|batch|epoch|iteration) #?[0-9]+ ?(?:of|/) ?#?[0-9]"
    r"|percent|%|progress|currently|\bnow\b"
    r"|presently|at the moment|\bstill\b|\bbusy\b|waiting|waits|await|pending|running|executing|install|compiling"
    r"|deploying|calling|fetching|download"
    r"|upload|^\W{0,3}(?:run|execute|task|todo|status|current|next|wip|blocked|i will|i['’]ll|let me|i am going"
    r"|i['’]m going|about to)"
    r"|conversation|session|\bchat|dialogue|\bcall\b|\buser|assistant|agent|how (?:can|may) i|help"
    r"|let me know|anything else"
    r"|as mentioned|feel free|\.(?:py|js|ts|md|json|txt)\b|exit code|commits|\bCI\b|\bPR\b|failing|failed"
    r"|working on|right now"
    r"|compil|fetch"
)
"""A pattern of RE2 that every such text matches."""


def judge_moment(text: str) -> Sign | None:
    """The state of a task, or an event of a conversation, that means nothing later.

    >>> judge_moment("User is currently on step 2 of 5: waiting for pip to finish installing.").kind
    'task_state'
    >>> judge_moment("User is currently learning Dutch")
    >>> judge_moment("Conversation started. User said hello.").kind
    'session_noise'
    """
    if len(text) > _LONGEST:
        return None
    if _SESSION.fullmatch(text):
        return Sign("session_noise", 0.95, f"an event of a conversation: {quoted(text)}")
    n_strong = _n_found((_NOW, _WAITING, _RUNNING, _PLAN, _AT_WORK), text)
    n_weak = _n_found((_STEP, _SHARE, _STATUS, _DOING, _RIGHT_NOW, *_STUCK), text)
    n_technical = _n_found(_TECHNICAL, text)
    is_of_machine = _ANY_PROCESS.search(text) is not None or len(text.split()) <= _FEW_WORDS
    if not n_strong and not (n_weak and (n_technical or is_of_machine)):
        return None
    if 2 * n_strong + n_weak + n_technical - 2 * (_LASTING.search(text) is not None) < _ENOUGH:
        return None
    return Sign("task_state", 0.9, f"the state of a task: {quoted(text)}")


def _n_found(signs: Iterable[re.Pattern[str]], text: str) -> int:
    return sum(sign.search(text) is not None for sign in signs)
