"""Sieves: what RE2 looks at first, a column at a time, rules out no text that the patterns behind it match."""

import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from memframe.audit.evidence import Delicate, is_delicate
from memframe.audit.junk import _JUDGES, moments, outputs, prompts
from memframe.audit.secrets import seeds
from memframe.audit.sieve import sieve_of
from tests.audit import batches, junk_corpus, secret_corpus, seen, unseen

SECRETS = [*secret_corpus.TOLD, *secret_corpus.CLEAN, *seen.TOLD, *seen.CLEAN, *unseen.TOLD, *unseen.CLEAN]
JUNK = [text for corpus in (junk_corpus, seen, unseen) for texts in corpus.JUNK.values() for text in texts]
JUNK += [text for name in batches.NAMES for text, _ in batches.read_batch(name).store()]


def changed(texts):
    """The same also in capitals, between blanks and lines, and with signs beyond ASCII."""
    return [one for text in texts for one in (text, f"  {text.upper()}\nTea", text.replace("e", "\u00e9"))]


def passed(sieve, texts):
    return pc.match_substring_regex(pa.array(texts, pa.large_string()), sieve).to_pylist()


def test_what_is_delicate_passes_the_sieve():
    texts = [shout for text in SECRETS for shout in (text, text.upper(), text.upper().replace("I", "\u0130"))]
    delicate = Delicate(pa.array(texts))
    found = [delicate.any_of(row) for row in range(len(texts))]
    assert found == list(map(is_delicate, texts))
    assert 0 < sum(found) < len(found)


@pytest.mark.parametrize(
    ("pattern", "flags", "matched", "ruled_out"),
    [
        (r"(?<!not )\btea\b(?! (?:pot|(?:cup|[)]))s?)", re.IGNORECASE, "Tea for two", "steam"),
        (r"\Aa[$(]b{2}\Z", 0, "a$bb", "a$b"),
        (r"tea$", 0, "tea\n", "tea\nfor two"),
        (r"^tea$", re.MULTILINE, "for two\ntea", "for tea"),
        (r"a.b", re.DOTALL, "a\nb", "ab"),
        (r"(?P<left>\w+) a{,3}[0-9]{12,40}c", 0, "b aaa0123456789012c", "b aaa012345c"),
        (r"(?>a+)[]x]{2,}?b*+", 0, "aa]x", "a]b"),
        (r"caf\w\b", 0, "caf\u00e9", "caf-"),
        (r"k(?i:elvin)", re.IGNORECASE, "\u212aELVIN", "Kelly"),
    ],
)
def test_a_sieve_matches_what_its_pattern_does(pattern, flags, matched, ruled_out):
    compiled = re.compile(pattern, flags)
    assert compiled.search(matched)
    assert passed(sieve_of(compiled), [matched, ruled_out]) == [True, False]


@pytest.mark.parametrize("pattern", [re.compile(r"(a)\1"), re.compile("tea # for two", re.VERBOSE)])
def test_what_cannot_be_sieved_is_refused(pattern):
    with pytest.raises(ValueError, match=r".+"):
        passed(sieve_of(pattern), ["tea"])


@pytest.mark.parametrize(
    "pattern", [*moments._STRONG, *moments._WEAK, outputs._LOG_LINE, outputs._WHOLE, seeds._SAID]
)
def test_each_pattern_lets_through_what_it_matches(pattern):
    texts = [text for text in changed([*JUNK, *SECRETS[::3]]) if pattern.search(text)]
    assert all(passed(sieve_of(pattern), texts))


@pytest.mark.parametrize(
    ("judge", "sieve"),
    [(judge, sieve) for judge, (_, *sieves) in _JUDGES for sieve in sieves],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_junk_passes_its_sieve(judge, sieve):
    texts = [text for text in changed(JUNK) if judge(text)]
    assert texts
    assert all(passed(sieve, texts))


def test_sieves_rule_most_texts_out():
    assert sum(passed(moments.SIEVE, SECRETS)) < len(SECRETS) / 3
    assert sum(passed(prompts.SIEVE, SECRETS)) < len(SECRETS) / 3
