"""Moments: what was true for a minute, such as the step of a task, or that somebody said hello.

A long undertaking has steps and percentages as well; what makes a moment of it is a process of a machine, or
that nothing but the moment is told.
"""

from __future__ import annotations

import re

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
    r"\b(?:step|phase|stage|task|part|item|file|page|chunk|batch|epoch|iteration) #?[0-9]+ ?(?:of|/) ?#?[0-9]+\b",
    re.IGNORECASE,
)
_SHARE = re.compile(
    r"\b[0-9]{1,3}(?:\.[0-9]+)? ?(?:%|percent) (?:complete|completed|done|finished|through)\b"
    r"|\bprogress:? [0-9]{1,3} ?%",
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
    r"|in progress|progress|wip|blocked)"
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
_LASTING = re.compile(
    r"\b(?:prefers?|always|usually|every|each|never|because|wants?|likes?|decided|since (?:19|20)[0-9]{2}"
    r"|for (?:\w+ )?(?:years|months))\b",
    re.IGNORECASE,
)
_LONGEST, _ENOUGH = 400, 2

_SESSION = re.compile(
    r"\W{0,3}(?:(?:the )?(?:conversation|session|chat|dialogue|call) (?:was |has |is )?(?:started|begun|began|ended"
    r"|resumed|closed|timed out|"
    r"initiated|opened|over|finished|reset|active)(?: at [\w :.-]+| on [\w :.,-]+| with (?:the )?(?:user"
    r"|assistant))?[.!]?\s*|"
    r"(?:the )?users? (?:has |have |just )?(?:said (?:hello|hi|hey|goodbye|bye|good \w+|thanks|thank you|ok|okay"
    r"|yes|no)|greeted(?: the)?"
    r"(?: assistant| ai| agent| bot)?|thanked(?: the)?(?: assistant| ai| agent| bot)?"
    r"|acknowledged(?: the (?:response|answer|message))?|"
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
    r"|conversation|session|\bchat\b|dialogue|\bcall\b|\buser"
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
    n_strong = sum(sign.search(text) is not None for sign in (_NOW, _WAITING, _RUNNING, _PLAN))
    n_weak = sum(sign.search(text) is not None for sign in (_STEP, _SHARE, _STATUS, _DOING))
    if 2 * n_strong + n_weak - 2 * (_LASTING.search(text) is not None) < _ENOUGH:
        return None
    return Sign("task_state", 0.9, f"the state of a task: {quoted(text)}")
