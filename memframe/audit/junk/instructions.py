"""Instructions: what in a text shows that it was written to an assistant, and how much each sign weighs."""

from __future__ import annotations

from memframe.audit.junk.charters import BEGIN, CHARTERS, MACHINE
from memframe.audit.junk.sayings import SAYINGS
from memframe.audit.junk.signs import Signal
from memframe.audit.language.vocabulary import one_of

_ROLE = rf"you(?: are|['’]re) (?:now )?(?:(?:a|an|the|my)\s)?(?:[\w'’-]+,? ){{0,5}}{MACHINE}\b"
_YOUR = one_of("role, task, job, purpose, goal, name, persona, tone, responses?, output, workspace")
_ROLES = (
    Signal.of(3, rf"\b{_ROLE}"),
    Signal.of(2, rf"{BEGIN}(?:[\w ]{{1,20}}[:>\]]\s*)?{_ROLE}"),
    Signal.of(
        5, rf"{BEGIN}you(?: are|['’]re) an? (?:\w+[ -]){{0,2}}(?:expert|senior|specialist|professional)\b"
    ),
    Signal.of(
        3,
        r"\byou(?: are|['’]re) (?:claude|chatgpt|gpt|gemini|llama|mistral|deepseek|grok)\b",
        r"\bas an ai\b",
    ),
    Signal.of(
        5,
        r"\bi(?: am|['’]m) (?:just )?an ai (?:language model|assistant)\b",
        r"\bas an ai (?:language )?model\b",
    ),
    Signal.of(2, r"\bas an ai\b", r"\byou can(?:no|['’])t\b"),
    Signal.of(
        5, r"\bignore (?:all )?(?:the )?(?:previous|prior|above) instructions\b", r"\A\W*act as (?:an?|my)\b"
    ),
    Signal.of(9, r"\bi want you to act (?:as|like) (?:an? |my )?"),
    Signal.of(2, rf"{BEGIN}(?:you (?:are|have|wake)|you['’]re|your {_YOUR})\b"),
    Signal.of(2, rf"\byour (?:{_YOUR}|answers?|knowledge cutoff|training)\b"),
    Signal.of(
        2,
        rf"{BEGIN}your (?:primary|main|only|sole|first|overall) (?:goal|task|job|role|purpose|aim)\b",
        r"\bmental notes\b|\bsession restarts?\b",
    ),
)
"""Who the assistant is."""

_MD_FILE = one_of(
    agents="soul, agents?, claude, identity, gemini, system",
    contents="user, tools, memory, skills?",
    times="bootstrap, heartbeat, boot",
)
_FILES = rf"(?:\b{_MD_FILE}\.md\b|\.cursorrules|copilot-instructions|memory/\w+)"
_STARTS = (
    Signal.of(3, _FILES),
    Signal.of(2, rf"{_FILES}[^\n]{{0,80}}{_FILES}"),
    Signal.of(2, rf"\b(?:read|load|check|review|follow|open)(?:s|ing)?\b[^.\n]{{0,30}}{_FILES}"),
    Signal.of(3, r"\b(?:heartbeat_ok|no_reply)\b"),
    Signal.of(2, r"\b(?:reply|respond|answer)s? (?:only )?(?:with )?(?:heartbeat_ok|no_reply)\b"),
    Signal.of(
        2,
        r"\b(?:on|at|every|each|after) "
        + one_of("startup, start-up, boot, wake-?up, session start, new session, each session")
        + r"\b",
        r"\b(?:every|each) session\b",
    ),
)
"""Files that agents are started with, and what they do then."""

_HEADING = one_of(
    rules="important, rules?, guidelines?, instructions?, memory instructions, constraints?, persona",
    tools="tools?, available skills, skills, available tools, tools available",
)
_TAG = one_of("system, instructions?, rules?, context, persona, tools?, example, important, guidelines")
_HEADINGS = (
    Signal.of(5, r"^#{2,} ?(?:instructions?|response|system prompt)\b", r"\bknowledge cutoff:"),
    Signal.of(
        3, r"^\W{0,4}(?:system(?: prompt| message| instructions?)?\s?[:>\]|]|im_start\W{0,2}system|sys>>)"
    ),
    Signal.of(1, r"^#{1,6} \w"),
    Signal.of(1, rf"</?{_TAG}>"),
    Signal.of(5, r"<(?:system-reminder|system_reminder|user_memory|core_memory)\b"),
    Signal.of(3, r"^#{1,3} tools?\s*$", r"\bthe \W?\w+\W? tool (?:allows|lets|enables) you\b"),
    Signal.of(3, r"</?(?:system|persona|human|instructions?|rules?|identity)>"),
    Signal.of(2, rf"{BEGIN}{_HEADING}\b\s?:"),
    Signal.of(5, rf"{BEGIN}(?:available (?:skills|tools|functions|agents)|(?:skills|tools) available)\s?:"),
)
"""Headings and tags of prompts."""

_SAY = one_of(
    "respond, reply, answer, output, greet, apologi[sz]e, refuse, cite, summari[sz]e, format, address"
)
_FORBIDDEN = one_of(
    telling="reveal, disclose, respond, reply, apologi[sz]e, refuse, output",
    inventing="fabricate, hallucinate, invent, impersonate, break character",
    data="exfiltrate, save this message, instructions for",
    others="tools?, user(?:['’]s)?",
)
_DUTY = one_of(
    helping="answer, help, assist, guide, greet, address, support",
    keeping="extract, identify, provide, ensure, avoid, save, keep, ask",
    bounds="do not, never, always",
)
_RULES = (
    Signal.of(2, r"\byou (?:must|should|shall|will|may|can|have to|are (?:not )?allowed|have access)\b"),
    Signal.of(
        2, rf"\b(?:you|{MACHINE}) (?:must|should|shall|will|may|can)(?: not| never| always| only)? {_SAY}\b"
    ),
    Signal.of(2, rf"\b(?:never|do not|don['’]t|always|must not|should not)\b[^.\n]{{0,40}}\b{_FORBIDDEN}\b"),
    Signal.of(1, r"\bdo not\b|\bdon['’]t\b|\brules?\b"),
    Signal.of(2, r"\b(?:if|when|whenever|before|after|unless|until) (?:the |a )?users?\b"),
    Signal.of(2, r"\b(?:before|when|while|after) (?:answering|responding|replying)\b"),
    Signal.of(2, rf"(?:^|[.:\n])[ \t]{{0,8}}{_DUTY}\b[^.\n]{{0,60}}\bthe user\b"),
    Signal.of(
        2,
        r"\b(?:be|stay|remain) (?:\w+, )?"
        + one_of("concise, helpful, polite, friendly, honest, brief, professional, accurate, harmless")
        + r"\b",
        r"\bthink step by step\b|\bdestructive commands\b|\bhelp the user\b",
    ),
    Signal.of(
        2,
        r"\b"
        + one_of(
            manner="witty, sarcastic, playful, temperature [0-9.]+, tokens",
            rules="every (?:reply|response|answer), its (?:name|persona|tone|rules)",
        )
        + r"\b",
    ),
    Signal.of(
        2,
        r"\b"
        + one_of(
            wording="output the word, respond with exactly, following fields, clean code, cite (?:your )?sources",
            truth="hallucinate, make things up, make up (?:facts|things|information), step by step, in doubt,[ ]ask",
            harm="credential (?:discovery|harvesting), destructive (?:commands?|operations?)",
            waking="first run, wake up fresh, birth certificate, break character, tools? provided",
        )
        + r"\b",
    ),
)
"""How it is to behave."""

_ANSWERS = (
    Signal.of(1, rf"{BEGIN}(?:respond|reply|answer|output)\b"),
    Signal.of(
        2,
        r"\b(?:respond|reply|answer|output|write)\b (?:only |always |strictly |exclusively )?(?:in|with|as|using|an?) "
        r"(?:valid )?(?:json|markdown|plain text|xml|yaml|the user['’]s language|heartbeat_ok)\b",
    ),
    Signal.of(
        3,
        rf"{BEGIN}(?:respond|reply|answer|return|output)\b[^.\n]{{0,40}}"
        r"\b(?:json|yaml|xml|fields?|word DONE|schema)\b",
        r"\b(?:each|every) (?:new )?session\b[^.\n]{0,40}\byou\b",
        r"\b(?:these|those) files (?:are|survive)\b",
    ),
    Signal.of(
        5,
        rf"{BEGIN}(?:every |each |all |your )?(?:repl(?:y|ies)|responses?|answers?|outputs?|messages?) "
        r"(?:must|should|shall|ha(?:s|ve) to)\b",
        rf"{BEGIN}output format\s?:",
        r"\bas an? (?:\w+ )?(?:assistant|ai|agent|bot),? you\b",
    ),
    Signal.of(
        3,
        r"\b(?:strictly|only|exclusively) (?:from|on|using|with) the (?:given |provided )?"
        r"(?:context|documents?|sources?)\b",
        r"\b(?:guidelines|instructions|rules) to the user\b",
        rf"{BEGIN}your name is \w+\b.*\byou\b",
    ),
)
"""What its answers are to look like."""

_TOOLS = (
    Signal.of(
        2,
        r"\b(?:system (?:prompts?|messages?|instructions?)|your guidelines)\b",
        r"\b(?:these|your|custom|previous|the above|the following) (?:instructions|rules)\b",
    ),
    Signal.of(
        2,
        r"\b(?:remember|save|store|extract|record|memori[sz]e) (?:\w+ ){0,3}"
        r"(?:facts?|information|details|preferences)\b[^.\n]{0,40}\b(?:user|conversations?|chats?|sessions?)\b",
    ),
    Signal.of(
        1,
        r"\b(?:store|ignore|save|remember|persist)\b[^.\n]{0,20}\b(?:facts|greetings|information|durable)\b",
    ),
    Signal.of(
        2,
        r"\b(?:tools?|functions?|plugins?|memory|web search|browsing|code interpreter)\b (?:is |are )?"
        r"(?:enabled|available|disabled)\b",
        r"\b(?:available|following) tools\b|\btool calls?\b|\b(?:call|use|invoke) the \w+ tool\b",
        r"\byou have (?:access to )?(?:the following )?(?:tools|memory)\b",
    ),
    Signal.of(
        3,
        r"\b"
        + one_of(
            prompts="system (?:prompt|message|instruction)s?, knowledge cutoff, language model",
            tools=r"tool polic\w+, tool calls?, sub-?agents?, function(?:s|-?calling)?:[ ]",
            memory="core memory, memory (?:block|instructions|directory|files?)",
            talks="group chats?, context window, session (?:history|restarts?)",
            output="output tokens, markdown fences, code fences",
        ),
    ),
    Signal.of(
        3,
        r"\b(?:you(?: wi|['’])ll be (?:given|provided)|given (?:the|a) (?:following )?(?:conversation|text|document"
        r"|context|question))\b",
        r"\bextract (?:the )?(?:user['’]?s )?(?:facts|preferences|information)\b",
        r"\b(?:the following is an?|\A\W*as the \w+ agent,|this context|(?:across|between) sessions|worker agents?)\b",
        r"\bthe user['’]s (?:instructions|requests?|query|input)\b",
        r"\bact as an? (?:expert|senior|professional|\w+ (?:terminal|interpreter|console))\b",
    ),
)
"""What it works with, and what it is given."""

_NUMBER_OF_ONE = one_of(german=r"ein\w*", romance="une?, una?, uma?, o, a", dutch="een")
_OTHER_LANGUAGES = (
    Signal.of(
        5,
        BEGIN
        + one_of(
            german="du bist, sie sind",
            romance="eres, usted es, tu es, vous [êe]tes, voc[êe] [ée], sei",
            dutch="jij bent, je bent",
        )
        + rf"\s{_NUMBER_OF_ONE}\s(?:[\w'’-]+\s){{0,4}}?"
        + one_of(
            assistants=r"assistent\w*, assistente?, asistente, assistant\w*",
            agents=r"agente?, agent\w*, bot, chatbot, ki\b, modell?o?",
        ),
    ),
    Signal.of(
        5,
        BEGIN
        + one_of(
            german="die ki, der (?:ki-)?(?:assistent|agent|bot)",
            spanish="el (?:asistente|agente|bot), la ia",
            french="l['’](?:assistant|agent|ia), le (?:bot|chatbot)",
        )
        + r"\s"
        + one_of(
            german="soll, muss, darf, kann, wurde angewiesen, hat die anweisung",
            spanish="debe, tiene que, puede, no debe",
            french="doit, ne doit, peut, a pour",
        ),
    ),
    Signal.of(
        2,
        r"\b(?:antworte|responde|réponds|répondez|antwoord|rispondi)\b "
        r"(?:immer |siempre |toujours |uniquement |solo |nur |auf |en |in )",
    ),
)

SIGNALS = (
    *_ROLES,
    *_STARTS,
    *_HEADINGS,
    *_RULES,
    *_ANSWERS,
    *_TOOLS,
    *CHARTERS,
    *SAYINGS,
    *_OTHER_LANGUAGES,
)
"""All of them; what those that a text shows come to is its weight."""
