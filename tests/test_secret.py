"""A Secret stays closed in every way by which values get out by accident."""

import copy
import json
import pickle

import msgspec
import pytest

from memframe.secret import Secret

CANARY = "canary-4711-value"


@pytest.mark.parametrize(
    "show",
    [
        repr,
        str,
        "{}".format,
        "{:>40}".format,
        "%s".__mod__,
        lambda secret: str([secret]),
        lambda secret: str({"key": secret}),
        lambda secret: str(dir(secret)),
        lambda secret: str(copy.deepcopy(secret)),
    ],
)
def test_it_never_shows(show):
    assert CANARY not in show(Secret(CANARY))


@pytest.mark.parametrize("send", [pickle.dumps, json.dumps, msgspec.json.encode, copy.copy(vars), hash])
def test_it_never_travels(send):
    with pytest.raises(TypeError):
        send(Secret(CANARY))


def test_it_compares_with_secrets_and_never_with_text():
    assert Secret(CANARY) == Secret(CANARY)
    assert Secret(CANARY) != Secret("another")
    assert Secret(CANARY) != CANARY
    assert Secret("\ud800") == Secret("\ud800")


def test_bytes_and_none_are_refused_with_their_type():
    with pytest.raises(TypeError, match="not bytes"):
        Secret(b"x")
