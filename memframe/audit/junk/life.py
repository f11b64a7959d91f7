"""Life: what belongs to somebody's life, and speaks against a memory being junk."""

from __future__ import annotations

from memframe.audit.junk.signs import Signal
from memframe.audit.language.vocabulary import one_of

_MONTHS = one_of(
    "january, february, march, april, june, july, august, september, october, november, december"
)
LIFE = (
    Signal.of(  # tastes and habits, and what they last
        4,
        r"\b"
        + one_of(
            tastes=r"prefers?, preference, loves?, hates?, likes, favou?rite, allerg\w+, decided, because",
            habits="always, usually, every, each, never, whenever, often, twice, once",
            times="(?:week|month|year)ly, nightly, daily",
            spans=r"since (?:19|20)[0-9]{2}, for (?:\w+ )?(?:years|months|decades), years, months",
        )
        + r"\b",
    ),
    Signal.of(  # times of a life
        3,
        r"\b(?:19|20)[0-9]{2}\b(?![-:])",
        rf"\b(?:{_MONTHS}|spring|summer|autumn|winter|next year|one day|weekend)\b",
        r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b",
    ),
    Signal.of(  # people, and what happens to them
        3,
        r"\b"
        + one_of(
            family=r"""wife, husband, partner, son, daughter, mother, father, mum, dad, kids?, child(?:ren)?, brother,
            sister, grand\w+, family, baby, friends?, dog, cat""",
            events=r"pregnan\w+, wedding, marri\w+, divorc\w+, custody, adoption, visa, asylum, green card",
            losses="funeral, burial, grave, tombstone, rehab",
            helpers="doctor, therapist, lawyer, landlord, boss for",
            health=r"""patient, transplant, chemo\w*, surgery, diagnos\w+, kidney, heart, sober, diet, eye, blood,
            medical, hospital, dos(?:e|age), antibiotics?, medication, pills?, treatment, life support, hospice""",
            learning="degree, thesis, phd, novel, university, school, exam, certificate, driving",
            living="house, flat, garden, job, career, club, church, band, choir",
        )
        + r"\b",
    ),
    Signal.of(  # what is somebody's own
        2,
        r"\A\W{0,3}(?:the )?user['’]s (?!current task|task\b)",
        r"\A\W{0,3}(?!User|The|Assistant|Agent)[A-Z][a-z]+['’]s ",
    ),
    Signal.of(  # how a team works, and what somebody does in life
        2,
        r"\b(?:team|company|project|repo(?:sitory)?|our|we)\b[^.]{0,30}\b"
        + one_of("uses?, runs?, keeps?, needs?, requires?, takes?, has, have, returns?, is, are, must")
        + r"\b",
        r"\b(?:works? (?:as|at|for|in)|lives?|moved|plans to|learn(?:s|ing)?|teaches|studies|owns?|collects?)\b",
    ),
    Signal.of(  # how a program always behaves, and what it takes: of no user and no assistant, and of no moment
        3,
        r"\A\W{0,3}(?!(?:the )?(?:users?|assistant|agent|bot|ai|model)\b)[^.:;\n]{2,60}?\b"
        + one_of(
            takes="needs?, must, requires?, depends on, works only, expects, supports",
            lives="lives? in, live under, is kept in, are kept in, is built from, belongs to, is owned by",
            happens="happens? (?:on|when|if|automatically), appears? (?:when|if|on), fails? (?:on|if|when|with)",
            means="means, is caused by, because of, instead of, rather than, only (?:on|in|with|when|if|after)",
        )
        + r"\b(?! to be \w+ed\b)",
    ),
    Signal.of(3, r"\bbefore (?:the|any|each|every) [^.\n]{2,40}\b(?:or (?:they|it) fails?|must|needs?)\b"),
    Signal.of(3, r"\b(?:wants|likes) (?!th[eio]|that|an? |to |it |his |her |more |another )[a-z]+ ?\w*s\b"),
    Signal.of(3, r"\b(?:before (?:you|we)|how we|everything|in (?:this|our|my) (?:project|repo))\b"),
    Signal.of(2, r"\b(?:from now on|in future|please remember|remember:|don['’]t|do not|must(?: not)?)\b"),
)
"""What belongs to a life."""
