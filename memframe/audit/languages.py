"""Languages of a store, told by scripts and function words, and those that rules about wording know.

A report that finds nothing outdated among Turkish memories must not be read as «nothing is outdated»: it says in which
languages a store is, and in which of them its rules know the words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from memframe.audit.rules import load_rules

LANGUAGES: Mapping[str, str] = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "pt": "Portuguese",
    "it": "Italian",
    "nl": "Dutch",
    "pl": "Polish",
    "ru": "Russian",
    "uk": "Ukrainian",
    "el": "Greek",
    "zh": "Chinese",
    "ja": "Japanese",
    "ko": "Korean",
    "ar": "Arabic",
    "he": "Hebrew",
    "hi": "Hindi",
    "th": "Thai",
}
"""Languages that can be told, by their codes."""

_WORDS: Mapping[str, str] = {
    "en": """the and is of to in that for with was are on has not from this an at by be have it they she he
    user i you my we or if but when what how can will do does did so no as more than all any about
    into out up its his her their your our which who there been only use uses me""",
    "de": "der die das und ist nicht ein eine mit für auf von zu im den dem sie er wir hat wird sind ich auch des",
    "fr": "de le la les et est des une dans pour pas sur avec du au aux il elle nous qui que je sont cette ce en",
    "es": "de el la los las es una en por con para del que se su al lo como está más son muy yo",
    "pt": "de os uma em por com para não da que se na dos das como está mais são seu eu",
    "it": "il lo la gli le una per con non del della che si di nel sono alla dei più suo ha",
    "nl": "de het een en van niet op met voor zijn dat te aan er ook bij naar hij zij wij heeft wordt ik",
    "pl": "na nie się jest że jak po dla od ma są przez tym ale czy jego jej który oraz",
}
"""The most frequent words of languages in Latin letters; those that English has, too, are left out of the others,
as names, titles and code hold them everywhere."""

_SCRIPTS: Mapping[str, re.Pattern[str]] = {
    "ja": re.compile(r"[\u3040-\u30ff]"),
    "ko": re.compile(r"[\uac00-\ud7af]"),
    "zh": re.compile(r"[\u4e00-\u9fff]"),
    "uk": re.compile(r"[іїєґ]", re.IGNORECASE),
    "ru": re.compile(r"[\u0400-\u04ff]"),
    "el": re.compile(r"[\u0370-\u03ff]"),
    "ar": re.compile(r"[\u0600-\u06ff]"),
    "he": re.compile(r"[\u0590-\u05ff]"),
    "hi": re.compile(r"[\u0900-\u097f]"),
    "th": re.compile(r"[\u0e00-\u0e7f]"),
}
"""Characters of one language, or of one script and the language that most people write in it; the first one counts."""

_SHARED_SCRIPTS = {"ja": "zh", "uk": "ru"}
"""Languages that have letters of their own among those of another one."""

_WORD_SETS = {code: frozenset(words.split()) for code, words in _WORDS.items()}
_ALL_WORDS = frozenset().union(*_WORD_SETS.values())
_MIN_FOREIGN = 0.3
"""Share of letters in another script: a name in it makes no language."""
_MIN_WORDS = 2
"""Function words that tell a language in Latin letters; a title or a name has none."""

_LETTERS = 400
"""Characters of a text that are looked at."""

_N_TEXTS = 2_000
"""Texts of a store that are looked at, evenly spread: shares do not ask for more."""

_MIN_SHARE = 0.03
"""Share of the texts from which on a language is named."""

_OTHER, _MANY_WORDS, _MIN_OTHER = "other", 12, 0.8
"""Texts of so many words without two function words above are in another language, if a share of the store is so."""

_WORD = re.compile(r"[^\W\d_]+")


def language_of(text: str) -> str | None:
    """Tell the language of a text by its code; None where it has too few words, or those of several languages.

    >>> [language_of(text) for text in ("Ada lives in the old mill.", "Ада живёт в Москве.", "Ada: 12 km")]
    ['en', 'ru', None]
    """
    text = text[:_LETTERS]
    words = _WORD.findall(text.casefold())
    n_letters = sum(map(len, words))
    for code, pattern in _SCRIPTS.items() if not text.isascii() else ():
        script = _SCRIPTS[_SHARED_SCRIPTS.get(code, code)]
        n_of_script = len(script.findall(text)) + (len(pattern.findall(text)) if code == "ja" else 0)
        if pattern.search(text) and n_of_script >= _MIN_FOREIGN * n_letters:
            return code
    counts = Counter({code: sum(word in known for word in words) for code, known in _WORD_SETS.items()})
    (best, most), (_, second) = counts.most_common(2)
    return best if most >= _MIN_WORDS and most > second else None


def describe_languages(texts: Iterable[str], looked_for: Mapping[str, str]) -> Iterator[str]:
    """Say which languages a store is in, and what is looked for in which of them; nothing where all is English.

    Parameters
    ----------
    texts : iterable of str
    looked_for : mapping
        What is looked for, in words, to its table of rules.

    >>> list(describe_languages(["Ada lives in the old mill."] * 3, {"Outdated texts": "stale"}))
    []
    >>> list(describe_languages(["Ада живёт в Москве.", "에이다는 서울에 산다."], {"Outdated texts": "stale"}))
    ['The texts are in Russian (50%), Korean (50%). Outdated texts: looked for in Russian, not in Korean.']
    """
    texts = list(texts)
    texts = texts[:: max(1, len(texts) // _N_TEXTS)]
    counts = Counter(
        code or _OTHER for text in texts if (code := language_of(text)) or _is_of_other_words(text)
    )
    shares = {
        code: n / counts.total()
        for code, n in counts.most_common()
        if n >= (_MIN_OTHER if code == _OTHER else _MIN_SHARE) * counts.total()
    }
    if shares.keys() <= {"en"}:
        return
    sentences = [
        "The texts are in " + ", ".join(f"{_name(code)} ({share:.0%})" for code, share in shares.items())
    ]
    for what, table in looked_for.items():
        known = languages_of(table)
        covered, missing = (
            ", ".join(_name(code) for code in shares if (code in known) is is_known)
            for is_known in (True, False)
        )
        parts = (f"looked for in {covered}" if covered else "", f"not in {missing}" if missing else "")
        sentences.append(
            f"{what}: {', '.join(filter(None, parts)) if covered else f'not looked for in {missing}'}"
        )
    yield ". ".join(sentences) + "."


def _is_of_other_words(text: str) -> bool:
    words = _WORD.findall(text[:_LETTERS].casefold())
    return len(words) >= _MANY_WORDS and sum(word in _ALL_WORDS for word in words) < _MIN_WORDS


def _name(code: str) -> str:
    return LANGUAGES.get(code, "languages that cannot be told")


def languages_of(table: str) -> frozenset[str]:
    """Return the codes of the languages that a table has rules for."""
    return frozenset({"en"} | {rule.language for rule in load_rules(table).rules if rule.language})
