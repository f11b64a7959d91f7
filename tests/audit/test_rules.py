"""Rules as data: each example of each table holds, prefilters lose nothing, and no text makes a pattern slow."""

import importlib
import pkgutil
import re
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import memframe.audit
import memframe.cleanup
from memframe.audit.rules import MANY, Rule, RuleTable, load_rules, prefilter_of

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
FOLDER = Path(memframe.audit.__file__).parent / "rules"
TABLES = sorted({path.stem for path in FOLDER.glob("*.toml")} - {"common", "spelling"})
RULES = [rule for name in TABLES for rule in load_rules(name).rules]
each_table = pytest.mark.parametrize("name", TABLES)


def passes(prefilter, text):
    return pc.match_substring_regex(pa.array([text], pa.large_string()), prefilter)[0].as_py()


def changed(text):
    """The same, in capitals, between blanks and lines, and with a sign beyond ASCII."""
    return [text, f"  {text.upper()}\nTea", text.replace("e", "\u00e9"), text.replace("i", "\u0130")]


@each_table
def test_each_rule_keeps_to_its_examples(name):
    for rule in load_rules(name).rules:
        assert rule.finds, f"shows nothing that it finds: {rule}"
        assert rule.misses, f"shows nothing that it must not find: {rule}"
        assert [text for text in rule.finds if not rule.regex.search(text)] == [], rule
        assert [text for text in rule.misses if rule.regex.search(text)] == [], rule


@each_table
def test_no_prefilter_loses_a_match(name):
    for rule in load_rules(name).rules:
        texts = [other for text in [*rule.finds, *rule.misses] for other in changed(text)]
        found = [text for text in texts if rule.regex.search(text)]
        assert [text for text in found if not passes(rule.prefilter, text)] == [], rule


@pytest.mark.parametrize(
    ("pattern", "flags", "matched", "ruled_out"),
    [
        (r"(?<!not )\btea\b(?! (?:pot|(?:cup|[)]))s?)", re.IGNORECASE, "Tea for two", "coffee"),
        (r"\Aa[$(]b{2}\Z", 0, "a$bb", "a$b"),
        (r"tea$", 0, "tea\n", "tea\nfor two"),
        (r"(?P<a>[0-9])-(?P=a)", 0, "1-1", "1+1"),
        (r"^tea$", re.MULTILINE, "for two\ntea", "for tea"),
        (r"a.b", re.DOTALL, "a\nb", "ab"),
        (r"(?P<left>\w+) a{,3}[0-9]{12,40}c", 0, "b aaa0123456789012c", "b aaa012345c"),
        (r"(?>a+)[]x]{2,}?b*+", 0, "aa]x", "a]b"),
        (r"caf\w", 0, "caf\u00e9", "caf-"),
        (r"x\s\d[\w-]:", 0, "x\u00a0\u0664\u00e9:", "x 1 :"),
        (r"a[^\W\d_]b", 0, "a\u00e9b", "a b"),
        (r"k(?i:elvin)", re.IGNORECASE, "\u212aELVIN", "Kelly"),
        (r"tip", re.IGNORECASE, "T\u0130P", "tap"),
    ],
)
def test_a_prefilter_matches_what_its_pattern_does(pattern, flags, matched, ruled_out):
    compiled = re.compile(pattern, flags)
    assert compiled.search(matched)
    assert [passes(prefilter_of(compiled), text) for text in (matched, ruled_out)] == [True, False]


@pytest.mark.parametrize(
    "pattern",
    [
        re.compile(r"(a)\1"),
        re.compile("(a)?(?(1)b)"),
        re.compile("a # b", re.VERBOSE),
    ],
)
def test_what_has_no_prefilter_is_refused(pattern):
    with pytest.raises(ValueError, match=r"prefilter|remarks"):
        prefilter_of(pattern)


@pytest.mark.parametrize("n_others", [0, 3 * MANY])
def test_a_column_gives_what_its_texts_give(n_others):
    table = RuleTable(
        "tea", tuple(Rule(group="tea", finds=(), misses=(), pattern=word) for word in ("tea", "two"))
    )
    texts = [*["cocoa"] * n_others, "tea for two", None, "two", "coffee"]
    found = {place: [match.found[0] for match in some] for place, some in table.search(pa.array(texts))}
    assert found == {n_others: ["tea", "two"], n_others + 2: ["two"]}
    groups = RuleTable("tea", (*table.rules, Rule(group="milk", finds=(), misses=(), words="milk")))
    said = groups.groups_in(pa.array([*texts[:-1], "milk and tea"]), "tea", "milk")
    assert said[n_others:] == [{"tea"}, set(), {"tea"}, {"tea", "milk"}]
    assert not any(said[:n_others])


def test_weights_add_up_once_a_rule():
    rules = [
        Rule(group=word, finds=(), misses=(), words=f"{word}, cup", weight=2) for word in ("tea", "milk")
    ]
    table = RuleTable("tea", tuple(rules))
    assert (table.weigh("tea, more tea and milk"), table.only("tea").weigh("tea, more tea and milk")) == (
        4,
        2,
    )
    with pytest.raises(ValueError, match="'tee'"):
        table.only("tee")


def test_what_is_shown_to_contributors_works(capsys):
    shown = re.findall(r"```(\w+)\n(.*?)```", CONTRIBUTING.read_text("utf-8"), re.DOTALL)
    rule = msgspec.toml.decode(dict(shown)["toml"], type=dict[str, list[Rule]])["rule"][0]
    assert [bool(rule.regex.search(text)) for text in (*rule.finds, *rule.misses)] == [True, True, False]
    for language, code in shown:
        if language == "python":
            exec(compile(code, "CONTRIBUTING.md", "exec"), {})  # noqa: S102 - a file of ours
    assert capsys.readouterr().out.startswith("['m2']\n")


# ---- no text makes a pattern slow

LENGTH = 250
"""Characters of the short text."""

N_TIMES = 8
"""How many times a short text the long one is."""

CHEAP_S = 0.0002
"""CPU seconds of a search of the long text that need no further look: a quadratic one would take longer."""

MOST_TIMES = N_TIMES**1.5
"""Halfway between linear and quadratic: what a search of the long text may cost, in searches of the short one."""

MEASURED_S = 0.5
"""CPU seconds of searches before a pattern is called slow: a busy machine slows some of them, not the best of all."""


PIECES = (
    "a",
    "1",
    " ",
    "a ",
    "1 ",
    ".",
    "a.",
    "a-",
    "\n",
    "'",
    "(",
    "/",
    ":",
    "\u00e9",
    "a@",
    "is is ",
    "://",
)


def pieces_for(pattern, examples):
    """Return pieces that a pattern may stop over, again and again: its words, what it finds, and their beginnings."""
    words = re.findall(r"[^\W_]+", re.sub(r"\\.", " ", pattern.pattern))[:12]
    halves = [
        text[: len(text) * part // 2] for text in (" ".join(words[:6]), *examples[:3]) for part in (1, 2)
    ]
    return dict.fromkeys([*(f"{text} " for text in (*words, *halves) if text), *PIECES])


def search_s(pattern, text):
    start = time.process_time()
    for _ in pattern.finditer(text):
        pass
    return time.process_time() - start


def is_slow(pattern, piece, measured_s):
    short = piece * (LENGTH // len(piece) + 1)
    if search_s(pattern, short * N_TIMES) < CHEAP_S:
        return False
    short_s = long_s = float("inf")
    start = time.process_time()
    while time.process_time() - start < measured_s:
        short_s = min(short_s, search_s(pattern, short))
        long_s = min(long_s, search_s(pattern, short * N_TIMES))
        if long_s <= MOST_TIMES * max(short_s, CHEAP_S / N_TIMES):
            return False
    return True


def slow_piece(pattern, examples=(), measured_s=MEASURED_S):
    """Return the first piece of text that makes a pattern slow where it is repeated; None where none does."""
    return next(
        (piece for piece in pieces_for(pattern, examples) if is_slow(pattern, piece, measured_s)), None
    )


OWN_TEXTS = {"rules"}
"""A module whose patterns read patterns, and no memories."""


def compiled_patterns():
    """Every compiled pattern that a module of the audit or the cleanup holds, by the name of the place."""
    found, tabled = {}, {(rule.regex.pattern, rule.regex.flags) for rule in RULES}
    packages = (memframe.audit, memframe.cleanup)
    infos = [
        info
        for package in packages
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    for info in infos:
        if info.name.split(".")[2] in OWN_TEXTS:
            continue
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            for number, pattern in enumerate(patterns_in(value)):
                key = (pattern.pattern, pattern.flags)
                if key not in tabled:
                    found.setdefault(key, (f"{info.name.partition('.')[2]}.{name}-{number}", pattern))
    return dict(found.values())


def patterns_in(value, depth=0):
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif isinstance(value, Rule):
        yield value.regex
    elif isinstance(value, Mapping) and depth < 4:
        for item in value.values():
            yield from patterns_in(item, depth + 1)
    elif isinstance(value, tuple | list | frozenset | set) and depth < 4 and len(value) < 2000:
        for item in value:
            yield from patterns_in(item, depth + 1)


def test_patterns_in_modules_are_linear():
    pieces = {name: slow_piece(pattern) for name, pattern in compiled_patterns().items()}
    assert len(pieces) > 50
    assert {name: piece for name, piece in pieces.items() if piece is not None} == {}


@each_table
def test_rules_are_linear(name):
    for rule in load_rules(name).rules:
        assert slow_piece(rule.regex, rule.finds + rule.misses) is None, rule


@pytest.mark.parametrize("pattern", ["a+b", r"\bfoo\b(?:[^.]|\.\d)*bar", r"\w+@x", "(?:a|ab)*c"])
def test_slow_patterns_are_noticed(pattern):
    assert slow_piece(re.compile(pattern), measured_s=0.1) is not None
