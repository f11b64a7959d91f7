"""What a clear error is: of the right class, with thing, cause and next step, and without a secret."""

import re
from typing import Any, NamedTuple

import pytest

import memframe as mf
from memframe.errors import MemframeError
from tests.canaries import found_in, shown_by
from tests.strangers import SECRETS


class Case(NamedTuple):
    """What is done, the error that it must be, and what its message must say."""

    attempt: Any
    kind: type[MemframeError]
    builtin: type[Exception]
    words: tuple[str, ...]


def assert_clear(case, *subjects):
    with pytest.raises(case.kind) as caught:
        case.attempt(*subjects)
    error = caught.value
    assert type(error) is case.kind
    assert isinstance(error, case.builtin)
    missing = [word for word in case.words if not re.search(word, str(error))]
    assert not missing, str(error)
    assert str(error).isprintable()
    for text in shown_by(error):
        assert not found_in(text, SECRETS), text


def refused_setting(attempt, *words):
    return Case(attempt, mf.ConfigError, ValueError, words)
