r"""Rules as data: tables of patterns with weights and examples, compiled and prefiltered by one loader.

A table is a file ``rules/NAME.toml``. ``[define]`` names fragments, which patterns insert as ``{name}``; all tables may
use those of ``common.toml``. Each ``[[rule]]`` has a ``pattern`` (Python `re`, without regard to case; one, or a list
of which any may match; ``^`` and ``$`` are the ends of a line, ``\A`` and ``\Z`` of the text) or ``words`` (whole words
or phrases, separated by commas), its ``group``, and examples: texts that it ``finds`` and similar ones that it
``misses``, which are tests. A file ``rules/NAME.txt`` has lists of words in ``[sections]``.

Whether a rule matches a text is decided by Python's `re`. Before that, RE2 searches whole columns with a prefilter,
which is derived from Python's pattern and matches at least as many texts: it rules out most of them in a hundredth of
the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

MANY = 64
"""Fewest texts for which a prefilter is used: compiling one takes as long as searching some dozens of texts."""


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """One row of a table."""

    group: str
    finds: tuple[str, ...]
    """Texts that the pattern matches."""
    misses: tuple[str, ...]
    """Similar texts that it does not match."""
    pattern: str | tuple[str, ...] = ()
    words: str = ""
    weight: float = 1
    kind: str = ""
    """Kind of the findings, if the table has several."""
    language: str = ""
    exact_case: bool = False
    options: Mapping[str, str | float | bool] = {}
    """Further settings, whose meaning depends on the table."""

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern, compiled."""
        words = (rf"\b{one_of(self.words)}\b",) if self.words else ()
        patterns = words or ((self.pattern,) if isinstance(self.pattern, str) else self.pattern)
        case = re.NOFLAG if self.exact_case else re.IGNORECASE
        return re.compile("|".join(patterns), case | re.MULTILINE)

    @cached_property
    def prefilter(self) -> str:
        """The prefilter: a pattern of RE2 that matches at least as many texts."""
        return prefilter_of(self.regex)


class Match(NamedTuple):
    """Match of a rule in a text."""

    rule: Rule
    found: re.Match[str]


@dataclass(frozen=True)
class RuleTable:
    """Rules of a table, or of some of its groups.

    >>> table = load_rules("junk").only("ping")
    >>> [(match.rule.kind, match.found[0]) for match in table.find("heartbeat ok")]
    [('heartbeat', 'heartbeat ok')]
    """

    name: str
    rules: tuple[Rule, ...]

    def only(self, *groups: str) -> RuleTable:
        """Choose the rules of some groups.

        Raises
        ------
        ValueError
            There is no such group.
        """
        unknown = set(groups) - {rule.group for rule in self.rules}
        if unknown:
            raise ValueError(f"the table {self.name!r} has no group {sorted(unknown)[0]!r}")
        return RuleTable(self.name, tuple(rule for rule in self.rules if rule.group in groups))

    def find(self, text: str) -> Iterator[Match]:
        """Yield the first match of each rule that matches a text, in the order of the table."""
        for rule in self.rules:
            if found := rule.regex.search(text):
                yield Match(rule, found)

    def weigh(self, text: str) -> float:
        """Add up the weights of the rules that match a text, each once."""
        return sum(rule.weight for rule in self.rules if rule.regex.search(text))

    def weigh_all(self, texts: pa.Array) -> list[float]:
        """Weigh each text of a column; for many texts, each rule has its own prefilter."""
        weights = [0.0] * len(texts)
        for rule in self.rules:
            places = matching_places(texts, [rule.regex])
            for place, text in zip(places.to_pylist(), texts.take(places).to_pylist(), strict=True):
                if rule.regex.search(text):
                    weights[place] += rule.weight
        return weights

    def search(self, texts: pa.Array) -> Iterator[tuple[int, list[Match]]]:
        """Yield the place of each text of a column that rules match, with the matches as of `find`."""
        for place, rules in self.candidates(texts):
            text = texts[place].as_py()
            matches = [Match(rule, found) for rule in rules if (found := rule.regex.search(text))]
            if matches:
                yield place, matches

    def groups_in(self, texts: pa.Array, *groups: str) -> list[frozenset[str]]:
        """Return for each text of a column those of some groups that have a rule which matches it."""
        found: list[frozenset[str]] = [frozenset()] * len(texts)
        for group in groups:
            for place, rules in self.only(group).candidates(texts):
                text = texts[place].as_py()
                if any(rule.regex.search(text) for rule in rules):
                    found[place] |= {group}
        return found

    def candidates(self, texts: pa.Array) -> Iterator[tuple[int, list[Rule]]]:
        """Yield the place of each text that may match, with the rules that may match it; for few texts, with all."""
        places = matching_places(texts, [rule.regex for rule in self.rules])
        if len(places) < MANY:
            yield from ((place, list(self.rules)) for place in places.to_pylist())
            return
        chosen = texts.take(places)
        rules_of: list[list[Rule]] = [[] for _ in range(len(places))]
        for rule in self.rules:
            for place in pc.indices_nonzero(pc.match_substring_regex(chosen, rule.prefilter)).to_pylist():
                rules_of[place].append(rule)
        for place, rules in zip(places.to_pylist(), rules_of, strict=True):
            if rules:
                yield place, rules


def matching_places(texts: pa.Array, patterns: Sequence[re.Pattern[str]]) -> pa.Array:
    """Return the places of texts that some pattern may match; of few texts, all but the missing ones."""
    if len(texts) < MANY:
        return pc.indices_nonzero(texts.is_valid())
    return pc.indices_nonzero(pc.match_substring_regex(texts, prefilter_of(*patterns)))


@cache
def load_rules(name: str) -> RuleTable:
    """Read the table ``rules/NAME.toml``.

    Raises
    ------
    ValueError
        A row is invalid; the message names the table.
    """
    return RuleTable(name, fill_rules(_decode(name).rule, load_fragments(name), f"rules/{name}.toml"))


def fill_rules(rules: Iterable[Rule], fragments: Mapping[str, str], file: str) -> tuple[Rule, ...]:
    """Return rules with their fragments filled in.

    Raises
    ------
    ValueError
        A rule has neither or both of pattern and words, or names an unknown fragment; the message names the file.
    """
    filled = []
    for rule in rules:
        if bool(rule.pattern) == bool(rule.words):
            raise ValueError(f"{file}: a rule of {rule.group!r} needs either a pattern or words")
        patterns = (rule.pattern,) if isinstance(rule.pattern, str) else rule.pattern
        whole = tuple(_fill(_LINE_END.sub("", pattern), fragments, file) for pattern in patterns if pattern)
        filled.append(msgspec.structs.replace(rule, pattern=whole, words=_fill(rule.words, fragments, file)))
    return tuple(filled)


@cache
def load_fragments(name: str) -> Mapping[str, str]:
    """Read the fragments of a table and of ``common.toml``, each as one pattern."""
    fragments: dict[str, str] = {}
    for key, words in chain(_decode("common").define.items(), _decode(name).define.items()):
        fragments[key] = one_of(_fill(words, fragments, f"rules/{name}.toml"))
    return fragments


@cache
def load_words(name: str) -> Mapping[str, frozenset[str]]:
    """Read the words of ``rules/NAME.txt`` by section; lines that begin with ``#`` are comments."""
    sections: dict[str, list[str]] = {}
    words: list[str] = []
    for line in read_table(f"{name}.txt").splitlines():
        if line.startswith("["):
            words = sections.setdefault(line.strip("[]"), [])
        elif not line.startswith("#"):
            words.extend(line.split())
    return {section: frozenset(words) for section, words in sections.items()}


def load_fragment(name: str, table: str = "common") -> list[str]:
    """Read the words or patterns of one fragment, in their order."""
    return [word for word in _COMMA.split(" ".join(_decode(table).define[name].split())) if word]


class _Table(Struct, forbid_unknown_fields=True):
    define: dict[str, str] = {}
    rule: list[Rule] = []


def read_table(name: str) -> str:
    """Return the text of a file of the folder of rules."""
    return files("memframe.audit").joinpath("rules", name).read_text("utf-8")


def _decode(name: str) -> _Table:
    try:
        return msgspec.toml.decode(read_table(f"{name}.toml"), type=_Table)
    except msgspec.DecodeError as error:
        raise ValueError(f"rules/{name}.toml: {error}") from error


_FRAGMENT = re.compile(r"(?<!\\)\{([a-z][a-z0-9_]*)\}")
_LINE_END = re.compile(r"\n\s*")


def _fill(text: str, fragments: Mapping[str, str], file: str) -> str:
    def fragment(found: re.Match[str]) -> str:
        if found[1] not in fragments:
            raise ValueError(f"{file}: no fragment {found[0]} is defined above its use")
        return fragments[found[1]]

    return _FRAGMENT.sub(fragment, text)


def one_of(*lists: str) -> str:
    r"""Build a pattern for one of several words or patterns, separated by a comma and a blank or a line end.

    A comma and a blank within a pattern are written ``\, ``.

    Raises
    ------
    ValueError
        A comma within a group or a class of characters separates two parts of a pattern.

    Examples
    --------
    >>> one_of("file, error message, tests?")
    '(?:file|error message|tests?)'
    >>> one_of("(?:dear, all)")
    Traceback (most recent call last):
    ...
    ValueError: '(?:dear' is not a whole pattern: a comma and a blank set patterns apart, write "\, " within one
    """
    words = dict.fromkeys(word for text in lists for word in _COMMA.split(" ".join(text.split())) if word)
    for word in words:
        bare = _ESCAPED_OR_CLASS.sub("", word)
        if "[" in bare or bare.count("(") != bare.count(")"):
            hint = 'is not a whole pattern: a comma and a blank set patterns apart, write "\\, " within one'
            raise ValueError(f"{word!r} {hint}")
    return f"(?:{'|'.join(words)})" if len(words) != 1 else next(iter(words))


_COMMA = re.compile(r"(?<!\\),(?: |$)")
_ESCAPED_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]")

# ---- from a pattern of Python to one of RE2 that matches at least as much

_TOKEN = re.compile(
    r"""(?P<escaped>\\.)
    |(?P<one_of>\[\^?\]?(?:\\.|[^\]\\])*\])
    |(?P<looking>\(\?<?[=!])
    |(?P<same>\(\?P=\w+\))
    |(?P<refused>\(\?\()
    |(?P<group>\((?:\?P<\w+>|\?>|(?!\?)))
    |(?P<flags>\(\?[a-z-]*:)
    |(?P<end>\))
    |(?P<times>[*+?]|\{(?P<least>[0-9]*)(?P<comma>,?)(?P<most>[0-9]*)\})[+?]?
    |(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_MAX_REPEATS = 8
"""Most repeats that a prefilter counts; more would make the automaton of RE2 large and slow."""

_BEYOND_ASCII = r"\x{80}-\x{10ffff}"
_CLASSES = {"w": rf"\w{_BEYOND_ASCII}", "d": rf"0-9{_BEYOND_ASCII}", "s": rf"\s\x0b\x1c-\x1f{_BEYOND_ASCII}"}
"""Classes that hold all of Unicode in Python and only ASCII in RE2, with any character beyond ASCII added."""

_TURKISH_I = r"[\x{130}\x{131}]"
"""Letters that match an "i" without regard to case in Python, but not in RE2."""


def prefilter_of(*patterns: re.Pattern[str]) -> str:
    r"""Derive a pattern of RE2 that matches every text which some pattern matches, and a few others.

    It has no lookarounds and no ends of words, and counts no more than `_MAX_REPEATS`.

    Raises
    ------
    ValueError
        A pattern refers to a group by its number, or is a verbose one.

    Examples
    --------
    >>> tea = prefilter_of(re.compile(r"(?<!no )\bTEA\b", re.IGNORECASE), re.compile("coffee"))
    >>> pc.match_substring_regex(pa.array(["Tea for two", "no tea", "cocoa"]), tea).to_pylist()
    [True, True, False]
    """
    translated = dict.fromkeys(map(_translate, patterns))
    is_any_case = any(pattern.flags & re.IGNORECASE or "(?i" in pattern.pattern for pattern in patterns)
    return "|".join([_TURKISH_I] * is_any_case + [*translated])


def _translate(pattern: re.Pattern[str]) -> str:
    if pattern.flags & re.VERBOSE:
        raise ValueError(f"a pattern with remarks has to be written without them: {pattern.pattern!r}")
    letters = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
    flags = "".join(letter for letter, flag in letters.items() if pattern.flags & flag)
    end = "$" if pattern.flags & re.MULTILINE else r"\n?\z"
    parts, depth = [], 0
    for token in _TOKEN.finditer(pattern.pattern):
        if depth or token.lastgroup == "looking":  # lookarounds are left out, with all groups within them
            depth += token.lastgroup in {"looking", "group", "flags", "refused"}
            depth -= token.lastgroup == "end"
        else:
            parts.append(_translate_token(token, end))
    return f"(?{flags}:{''.join(parts)})"


def _translate_token(token: re.Match[str], end: str) -> str:
    match token.lastgroup, token[0][1:2]:
        case "group", _:
            return "(?:"
        case "times", _:
            return _count(token)
        case "escaped", "b" | "B":
            return ""
        case "escaped", "w" | "d" | "s" as letter:
            return f"[{_CLASSES[letter]}]"
        case "escaped", "Z":
            return r"\z"
        case "one_of", "^":
            opposite = re.search(r"\\([WDS])", token[0])
            return f"[{_CLASSES[opposite[1].lower()]}]" if opposite else token[0]
        case "one_of", _:
            return re.sub(r"\\([wds])", lambda found: _CLASSES[found[1]], token[0])
        case "same", _:  # a back-reference may be any text
            return "(?s:.*)"
        case ("refused", _) | ("escaped", "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9"):
            raise ValueError(f"a prefilter cannot refer to groups: {token.string!r}")
    return end if token[0] == "$" else token[0]


def _count(token: re.Match[str]) -> str:
    """Translate a quantifier to one that allows at least as many repeats."""
    if not token["least"] and not token["most"]:
        return token["times"]
    least, most = int(token["least"] or 0), int(token["most"] or token["least"] or 0)
    if most <= _MAX_REPEATS and not (token["comma"] and not token["most"]):
        return f"{{{least},{most}}}"
    return f"{{{min(least, _MAX_REPEATS)},}}"
