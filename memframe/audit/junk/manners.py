"""Manners: that a conversation began or ended, that somebody said thanks, and what assistants say to everybody."""

from __future__ import annotations

import re

from memframe.audit.junk.life import LIFE
from memframe.audit.junk.signs import Sign, quoted, weight_of
from memframe.audit.language.vocabulary import one_of

_TALK = "(?:the )?" + one_of("conversation, chat session, session, chat, dialogue, call")
_MACHINE = one_of("assistant, ai, agent, bot")
_END = r"[.!]?\s*"

_OF_TALK = (
    _TALK
    + r" (?:was |has |is )?"
    + one_of(
        "started, begun, began, ended, resumed, closed, timed out, initiated, opened, over, finished, reset, active"
    )
    + r"(?: at [\w :.-]+| on [\w :.,-]+| with (?:the )?(?:user|assistant))?"
)
_OF_TALKING = one_of(
    small="the, an?, his, her, their, this, that, it, something, everything, all",
    speakers=r"(?:assistant|ai|agent|bot)(?:['’]s)?, user",
    said="reply, answer, response, question, message, request, suggestion, help, information, input, instructions",
    talks="conversation, session, chat, app, topic, link",
    times="earlier, today, again, now, next, utc, am, pm",
)
"""What is spoken of in a conversation about itself."""

_OF_USER = (
    r"(?:the )?users? (?:has |have |just )?"
    + one_of(
        r"""said (?:hello|hi|hey|goodbye|bye|good \w+|thanks|thank you|ok|okay|yes|no),
        says? (?:goodbye|hello|hi|thanks|ok|yes|no|brb), replied \w{2,5}, typed ['"]?\w{1,8}['"]?,
        said (?:thanks|bye|goodbye|hello|hi) and \w+(?: off| out)?, said never ?mind,
        sent an? (?:\w+ )?(?:message|image|photo|file|gif),
        logged in from [\w ]{3,30}, opened an? (?:new )?(?:chat|session|conversation|tab), typed an? [\w ]{3,20},
        jok(?:ed|es) about the (?:weather|delay|assistant|answer), greeted with \W?\w+\W?,
        seems? to (?:enjoy|like|follow|understand|appreciate) (?:the )?(?:conversation|chat|answer|assistant|joke)s?,
        (?:said|typed|wrote) ['"“](?:ok(?:ay)?|yes|no|continue|go (?:on|ahead)|brb|thanks)\b[^'"”]{0,20}\W{0,2},
        (?:greeted|thanked)(?: the)?(?: assistant| ai| agent| bot)?, acknowledged(?: the (?:response|answer|message))?,
        logged (?:in|out|on|off), signed (?:in|out), (?:wants|needs) help, is chatting(?: with the (?:assistant|ai))?,
        started (?:a |the )?(?:new )?(?:conversation|session|chat), ended (?:the )?(?:conversation|session|chat),
        (?:opened|closed|left|joined) the (?:app|chat|conversation), asked (?:a|another|the|some) questions?,
        asked (?:the )?(?:assistant|ai|me|you) to (?:remember|save|store|note) (?:something|this|that|it),
        sent (?:a|an|another) (?:image|message|file|photo), did not (?:respond|reply|answer),

               (?:is )?(?:testing|tests|tested) (?:the |this )?(?:assistant|bot|ai|agent|chat|memory),
        (?:is )?testing (?:whether|if) (?:the )?memory works,
        (?:is )?wait(?:s|ing),
        is (?:now )?(?:online|offline|active|idle|typing|away|here), replied, responded, confirmed,
        agreed(?: to (?:proceed|continue|go (?:on|ahead)))?,
        (?:responded|replied|answered|nodded) (?:affirmative|positive|negative|brief|polite)ly, declined, nodded,
        (?:shared|posted|pasted) (?:an?|some) (?:link|text|code|url|snippet|log),
        asked for (?:clarification|an explanation|more (?:details|information|info|context)),
        (?:re(?:plied|acted|sponded)|answered)
        with an? [\w -]{0,16}(?:emoji|smiley|thumbs?[ -]up|yes|no|nod|smile|sticker|gif)"""
    )
    + rf"(?: (?:to|with|at|from|on|for|again|about)(?: (?:{_OF_TALKING}|[0-9][\w:.-]*)){{1,4}})?"
)
_FEELING = one_of(
    good="gratitude, thanks, satisfaction, appreciation, agreement, interest, approval, excitement, amusement",
    bad="frustration, confusion, surprise, impatience, disappointment, annoyance, doubts?, concern",
)
_MOOD = one_of(
    good="satisfied, happy, pleased, content, fine, amused, in a good mood, excited, relieved, impressed, grateful",
    bad="confused, frustrated, unhappy, annoyed, surprised, unsure, in a bad mood, tired, impatient, disappointed",
)
_HOW = r"(?:(?:briefly|politely|again|also|then|just|suddenly|already) )?"
_AT_WHAT = (
    rf"(?: (?:to|with|at|from|by|about|for|of|in|over|on)(?: (?:{_OF_TALKING}|last|first|previous)){{1,4}})"
)
_NOW = r"(?: (?:today|now|right now|at the moment|tonight|late at night|this morning|again|currently)){0,2}"
_SIGN_OF_FACE = one_of("emojis?, smileys?, smile, thumbs[- ]up, wink, stickers?, gifs?")
_WITH_A_SIGN = rf"(?: (?:with|by|using) (?:an? )?(?:[\w-]+ )?{_SIGN_OF_FACE})"
_ASSISTANT = rf"(?:(?:to )?(?:the )?{_MACHINE}(?:['’]s (?:joke|answer|reply|work|help|response))?)"
_REACTION = rf"(?:the )?users? (?:has |have |had )?{_HOW}" + one_of(
    feels=rf"(?:expressed|expresses|voiced|showed) {_FEELING}{_AT_WHAT}?{_NOW}{_WITH_A_SIGN}?",
    seems=rf"(?:seems|seemed|appears|appeared)(?: to be)? {_MOOD}{_AT_WHAT}?{_NOW}, (?:is|was) {_MOOD}{_AT_WHAT}",
    signs=rf"(?:reacted|replied|responded|answered|sent|(?:ended|closed) {_TALK}){_WITH_A_SIGN}",
    emoji=rf"sent an? (?:[\w-]+ ){{0,2}}{_SIGN_OF_FACE}",
    says=r"(?:said|replied|answered|confirmed|wrote|typed|responded)(?: with)? [\"“'‘][^\"”'’\n]{1,24}[\"”'’]",
    back=r"said (?:that )?(?:they|he|she)(?: would|['’]d| will|['’]ll| is| are) be (?:right )?back(?: soon)?",
    praises=rf"(?:complimented|praised|teased|interrupted|corrected|congratulated) {_ASSISTANT}",
    laughs=rf"(?:laughed|smiled|chuckled)(?: at {_ASSISTANT})?, told {_ASSISTANT} a joke",
    wishes=rf"(?:wished|wishes) {_ASSISTANT} (?:a )?\w+(?: \w+)?, (?:agreed|disagreed) with {_ASSISTANT}",
    asks=rf"asked (?:how {_ASSISTANT} (?:is|was)(?: doing)?|if {_ASSISTANT} (?:is|was) (?:still )?(?:there|ready|ok))",
    moves="""(?:switched|changed|moved on) (?:to )?(?:another|a different|a new|the) topic, changed the subject,
        came back(?: after a (?:short )?break)?, took a (?:short )?break, joined the (?:voice )?(?:channel|call)""",
    pauses=r"paused (?:the )?(?:conversation|chat|session)(?: for [\w ]{3,20})?, repeated the question,"
    r" apologi[sz]ed for the (?:late reply|delay|typo|confusion|interruption|late answer),"
    r" (?:made|corrected) a typo(?: and corrected it)?(?: in the previous message)?",
    writes=rf"is (?:typing|chatting|writing|talking)(?: (?:from|on|via) (?:the|their|his|her|a) (?:phone|laptop|"
    rf"mobile|desktop|tablet))?{_NOW}, is (?:now |currently )(?:online|offline|away|idle|active|typing)",
    silent=r"did not (?:respond|reply|answer|react)(?: to the (?:last )?\w+)?",
)
"""What somebody showed of himself to an assistant, and is over with the conversation."""

_OF_ASSISTANT = (
    rf"(?:the )?{_MACHINE} (?:has )?"
    + one_of("answered, responded, replied, helped, greeted, apologi[sz]ed, acknowledged, thanked")
    + r"(?: (?:to )?(?:the )?(?:user|question|request|message)(?:['’]s \w+)?)*"
)
_POLITE = one_of(
    """hello, hi, hey, sure, of course, certainly, great, thanks, thank you, you['’]re welcome, i['’]m sorry, sorry,
    okay, no problem, absolutely"""
)
_SAID_TO_ALL = one_of(
    r"""how (?:can|may) i (?:help|assist)(?: you)?(?: today)?,
    (?:i can|i['’]d be happy to|happy to) (?:help|assist)(?: you)?(?: with (?:that|this|anything else))?,
    let me know if (?:you (?:need|have)|there['’]s) any[^.!?\n]{0,40}, is there anything else[^.!?\n]{0,40},
    anything else, (?:i['’]m )?glad (?:i could|to) help, i can(?:no|['’])t (?:help|assist) with (?:that|this),
    i(?:['’]ll| will| can) (?:help (?:you )?with|take care of|look into|check) (?:that|this|it)(?: for you)?,
    let me (?:check|look(?: into)?|see|think about)(?: (?:that|this|it))?(?: for you)?,
    (?:but )?i can(?:no|['’])t help with (?:that|this)(?: request)?, (?:oops[,!] )?something went wrong,
    please try again(?: later)?,
    an error occurred(?: while processing (?:your|the) request)?, as mentioned (?:earlier|above|before),
    feel free to ask[^.!?\n]{0,40}"""
)
_FRIENDLY = one_of(
    """thx, ty, thanks(?: so much| a lot)?, thank you(?: so much| very much)?, ok(?:ay)?, hi, hello, hey, bye, yes,
    no, great,
    cool, perfect, nice, got it, good (?:morning|night|evening), sounds good, you['’]re welcome, my pleasure,
    no worries"""
)
_SAID_BY = r"\W{0,4}(?:user|human|assistant|ai|bot|agent|customer)\s?:\s*"
_EXCHANGE = rf"(?:{_SAID_BY}(?:(?:{_FRIENDLY}|{_POLITE}|{_SAID_TO_ALL})[!,.?\s]*)+)+"
_EXPLAINED = one_of(
    said="""explained, described, answered, clarified, summari[sz]ed, told, showed, listed, provided, gave, offered,
    suggested,
    recommended""",
    asked="asked (?:the )?user (?:for|to|if|whether|about|what|which|how), requested",
    looked="searched, looked up, fetched, responded, replied, calculated",
    wrote="wrote, drafted, generated, translated, corrected, rephrased, rewrote, repeated, proposed",
)
_ANSWERED = (
    rf"(?:the )?(?:assistant|ai|(?:chat)?bot) (?:has |then |also |just |had )?{_EXPLAINED}\b[^\n]{{0,140}}"
)
_AFTERMATH = re.compile(
    r"[0-9]|\b(?:agreed|decided|chose|accepted|booked|ordered|will|wants?|likes?|liked|prefers?|because|always|never|every"
    r"|allerg\w+|diagnos\w+)\b|(?<!\A)(?<![.!?]\s)\b(?!AI\b|I\b)[A-Z]"
)
"""What speaks for something in an answer that somebody may want to know later: a name, a number, what came of it."""

_EDGE = one_of("start, end, beginning")
_EVENT = re.compile(
    rf"(?:(?:{_POLITE}[!,. ]*)?{_SAID_TO_ALL}[.!?]*\s*)+|{_EXCHANGE}"
    rf"|\W{{0,3}}(?:(?:{_OF_TALK}|{_OF_USER}|{_REACTION}|{_OF_ASSISTANT}|{_EDGE} of {_TALK}){_END})+",
    re.IGNORECASE,
)
_ANSWER = re.compile(rf"\W{{0,3}}{_ANSWERED}", re.IGNORECASE)
_LONGEST = 400

MARKS = (
    r"(?i)conversation|session|\bchat|dialogue|\bcall\b|\buser|assistant|\bai\b|agent|\bbot\b|how (?:can|may) i|help"
    r"|let me know|anything else|as mentioned|feel free|let me"
    r"|i(?:['’]| wi)ll|went wrong|try again|human:|error occurred|can(?:no|['’])t help"
)
"""A pattern of RE2 that every such text matches."""


def judge_manners(text: str) -> Sign | None:
    """An event of a conversation that means nothing later.

    >>> judge_manners("Conversation started. User said hello.").kind
    'session_noise'
    >>> judge_manners("User said hello to the neighbours and was invited to the summer party")
    """
    if len(text) > _LONGEST or not (_EVENT.fullmatch(text) or _is_answer(text)):
        return None
    return Sign("session_noise", 0.95, f"an event of a conversation: {quoted(text)}")


def _is_answer(text: str) -> bool:
    """Whether it is only said that an assistant answered, or asked in turn."""
    is_told = _ANSWER.fullmatch(text) is not None and not _AFTERMATH.search(text)
    return is_told and not weight_of(LIFE, text)
