"""Languages of a store, detected by scripts and function words, and the languages that rules about wording cover.

A report that finds nothing outdated among Turkish memories must not be read as «nothing is outdated», so it names the
languages of the store, and those that its rules cover.
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
"""Languages that are detected, by their codes."""

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
"""The most frequent words of languages in Latin letters. English words are left out of the other languages, because
names, titles and code contain them in any language."""

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
"""Characters of one language, or of one script with its most frequent language; the first that matches counts."""

_SHARED_SCRIPTS = {"ja": "zh", "uk": "ru"}
"""Languages with some letters of their own, each with the language whose script it uses otherwise."""

_WORD_SETS = {code: frozenset(words.split()) for code, words in _WORDS.items()}
_ALL_WORDS = frozenset().union(*_WORD_SETS.values())
_MIN_FOREIGN = 0.3
"""Least share of a text's letters in a script; with fewer, a name in that script would decide the language."""
_MIN_WORDS = 2
"""Fewest function words by which a language in Latin letters is detected; a title or a name has none."""

_MAX_CHARS = 400
"""Characters at the beginning of a text by which its language is detected."""

_N_TEXTS = 2_000
"""Texts of a store, evenly spread, by which the shares of languages are estimated."""

_MIN_SHARE = 0.03
"""Least share of the texts of a language that is named."""

_OTHER = "other"
"""Code of the languages that are not detected."""
_MANY_WORDS = 12
"""Fewest words of a text that counts as in another language if it has fewer than `_MIN_WORDS` function words."""
_MIN_OTHER = 0.8
"""Least share of such texts for which other languages are named; a store of one detected language has some as well."""

_WORD = re.compile(r"[^\W\d_]+")


def language_of(text: str) -> str | None:
    """Detect the language of a text, and return its code; None for too few words, or for a tie of two languages.

    >>> [language_of(text) for text in ("Ada lives in the old mill.", "Ада живёт в Москве.", "Ada: 12 km")]
    ['en', 'ru', None]
    """
    text = text[:_MAX_CHARS]
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
    """Describe the languages of a store, and which of them each table of rules covers; yield nothing for English.

    Parameters
    ----------
    texts : iterable of str
    looked_for : mapping
        Names of the tables of rules, by the words for what they find.

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
    words = _WORD.findall(text[:_MAX_CHARS].casefold())
    return len(words) >= _MANY_WORDS and sum(word in _ALL_WORDS for word in words) < _MIN_WORDS


def _name(code: str) -> str:
    return LANGUAGES.get(code, "languages that cannot be told")


def languages_of(table: str) -> frozenset[str]:
    """Return the codes of the languages that a table has rules for."""
    return frozenset({"en"} | {rule.language for rule in load_rules(table).rules if rule.language})
