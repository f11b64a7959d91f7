"""Wrappers: what may stand around a text without adding to it, as patterns of RE2 for texts in lower case."""

from __future__ import annotations

_TELLERS = (
    r"(?:the |this |my |our )?"
    r"(?:user|person|client|customer|speaker|human|owner|i|we|they|he|she|it|assistant|ai)"
)
_HEDGES = (
    r"(?:(?:has|have|had|was|is|been|also|just|once|recently|previously|earlier|already|clearly|can|do|should|must|"
    r"would like to|need to) )*"
)
_TELLING = (
    r"(?:said|says|say|stated|states|mentioned|mentions|told|tells|noted|notes|note|explained|explains|shared|shares|"
    r"reported|reports|confirmed|confirms|indicated|indicates|revealed|expressed|added|adds|wrote|writes|wants|wanted|"
    r"asked|asks|remember|remembers|remembered|recall|recalls|recalled|know|knows|believe|think|learned|learnt|"
    r"understand|informed|informs|let me know|pointed out|disclosed|claims|claimed|declared)"
)
_LISTENERS = r"(?: (?:me|us|you|the assistant|the ai|the bot|to me|to you|here|in chat|earlier|once|today))*"
_BODY = r"(?:(?: to| for me to| me to)? (?:remember|note|know|recall|save|record|keep in mind))?"
_LABELS = (
    r"(?:note|notes|reminder|memo|memory|memories|fyi|fact|facts|info|information|important|remember|please remember|"
    r"don't forget|do not forget|keep in mind|noted|saved|stored|update|updated|log|entry|record|todo|summary|btw|ps|"
    r"p\.s\.|observation|context|detail|details|user info|user fact|user note|user memory|user preference|system note|"
    r"it is known|it was mentioned|it was said|it was noted|it is noted|it has been noted|it should be noted|"
    r"it is worth (?:remembering|noting|knowing)|user|human|client|customer|hey|hi|hello|ok|okay|well|"
    r"(?:according to|from|in) (?:the |our |my |this )?(?:last |latest |previous |earlier )?"
    r"(?:user|client|customer|chat|conversation|call|session)|as (?:the )?user (?:said|stated|mentioned|noted)|"
    r"notiz|hinweis|merke|nota|recordatorio|rappel|remarque|for the record|for reference|"
    r"(?:saved|added|stored) (?:to|in) memory|memory (?:updated|saved)|just so you know|by the way|quick note|"
    r"side note|good to know|worth noting|also|one more thing|"
    r"as (?:already |previously )?(?:mentioned|noted|said|stated|discussed)(?: (?:above|earlier|before))?|"
    r"heads up|psa|nb|n\.b\.|"
    r"(?:stored|saved|quick|key|new|known|relevant|important|useful) (?:fact|note|info|detail|memory|reminder))"
)
_ABOUT = r"(?: (?:to (?:self|me|myself)|(?:about|from|for) (?:the )?user|noted|saved))?(?: ?#\d+)?"
_END = r"(?: that\b|[\])!]| *[:,\x{2013}\x{2014}]| *- )"
_ELSEWHERE = (
    r"(?:der|die) (?:be)?nutzer(?:in)? (?:hat |möchte )?(?:mir )?(?:sagt|sagte|gesagt|meint|erzählt|erwähnt)e?,? dass"
    r"(?: er| sie)?\b|l['\x{2019}]utilisat(?:eur|rice) (?:m['\x{2019}])?(?:a )?"
    r"(?:dit|mentionn[eé]|indiqu[eé]|précis[eé]) qu(?:e\b|['\x{2019}](?:il|elle)\b)|"
    r"(?:el usuario|la usuaria) (?:me )?(?:ha )?(?:dijo|dice|dicho|mencionó|"
    r"menciona|comentó|indicó|indica) que\b"
)
WRAPPER = (
    rf"^(?:[^\pL\pN]*(?:{_TELLERS} {_HEDGES}{_TELLING}{_LISTENERS}{_BODY}{_END}"
    rf"|{_TELLERS} {_HEDGES}(?:told|tells|informed|reminded|asked) (?:me|us|you)\b"
    rf"|{_TELLERS} {_HEDGES}(?:said|says|mentioned|mentions|stated|states|noted|confirmed|shared)"
    r" (?:i|he|she|they|we)\b"
    rf"|{_LABELS}{_ABOUT}{_END}|{_ELSEWHERE}))+[^\pL\pN]*"
)
"""What may stand before a text without adding to it: «The user said that», «Note to self:» (RE2, lower case)."""

WRAPPER_AFTER = (
    rf"[^\pL\pN]+(?:(?:or so |as )?{_TELLERS} {_HEDGES}{_TELLING}{_LISTENERS}(?: so| this| that| it)?|noted|saved|"
    r"confirmed|verified|source: ?\w+|just so you know|lol|"
    r"(?:as |was )?(?:mentioned|noted|said|stated|saved|told|heard)"
    r" (?:in passing|in chat|earlier|before|above|previously|recently|for later|for reference|already)|"
    r"remember (?:this|that)|(?:please )?(?:remember|note)(?: this| that| it)?|got it|for the record|fyi|btw)"
    r"[^\pL\pN]*$"
)
