"""Neither key nor content is in anything that prints: errors, displays, attributes, tracebacks."""

import copy
import pickle
import traceback
from pathlib import Path

import pytest

from memframe.envelope import LAYOUTS, Envelope
from memframe.errors import MemframeError
from memframe.secret import Secret

KEY = "8f3c1d5e7a9b0c2d4e6f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5"
OTHER_KEY = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f809"
CANARY = "canary-of-the-content"
NEEDLES = [KEY, KEY.upper(), KEY[:32], str(bytes.fromhex(KEY))[2:-1], CANARY, CANARY[::-1]]
READABLE = [*LAYOUTS, "plain", "auto"]


def envelope(content_format="auto", key=KEY):
    return Envelope(Secret(key), user_id="u", key_version=1, content_format=content_format)


def assert_clean(text):
    assert not [needle for needle in NEEDLES if needle in text]


@pytest.mark.parametrize("content_format", READABLE)
def test_an_envelope_shows_nothing_and_is_not_copied(content_format):
    subject = envelope(content_format)
    subject.open_many([subject.seal(CANARY)])
    for shown in (repr(subject), str(subject), f"{subject}", repr(vars(subject)), repr(subject._readers)):
        assert_clean(shown)
    for turn in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            turn(subject)


class Codec:
    def seal(self, text):
        raise ValueError(text)

    open = seal


def failures():
    sealed = {name: envelope(write).seal(CANARY) for name, write in zip(LAYOUTS, LAYOUTS, strict=True)}
    for text in [*sealed.values(), *(text[:-4] for text in sealed.values()), CANARY + "\ud800"]:
        for content_format in (*LAYOUTS, "auto", Codec()):
            yield lambda text=text, form=content_format: envelope(form, OTHER_KEY).open(text)
            yield lambda text=text, form=content_format: envelope(form).open(text)
    yield lambda: envelope().seal(CANARY + "\ud800")
    yield lambda: envelope(Codec()).seal(CANARY)
    yield lambda: envelope(key=KEY + "ab")
    yield lambda: envelope(key=KEY[:32])


def caught_from(attempt):
    try:
        attempt()
    except MemframeError as error:
        return error
    return None


def test_errors_and_all_that_they_were_raised_from_are_clean():
    errors = [error for error in map(caught_from, failures()) if error]
    assert len(errors) > 300
    for error in errors:
        assert error.__context__ is None
        assert_clean("".join(traceback.format_exception(error)) + repr(error.args))


@pytest.mark.parametrize(
    "settings",
    [{"key": KEY + "ab"}, {"key": KEY[:32]}, {"content_format": "jwe@md5"}, {"content_format": ["auto"]}],
)
def test_tracebacks_with_local_variables_do_not_show_the_key(settings):
    error = caught_from(lambda: envelope(**settings))
    stack = traceback.TracebackException.from_exception(error, capture_locals=True).stack
    ours = [frame for frame in stack if "memframe" in Path(frame.filename).parts]
    assert ours
    assert_clean(repr([frame.locals for frame in ours]))
