"""An envelope opens what it sealed and what others sealed, and nothing else."""

import os

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pybase64 import b64encode_as_string

from memframe.envelope import Envelope
from memframe.errors import SealError
from memframe.secret import Secret

KEY = bytes(range(1, 33))


def envelope(**settings):
    return Envelope(Secret(KEY.hex()), **({"user_id": "u", "key_version": 2} | settings))


@pytest.mark.parametrize(
    "name", ["memframe", "gcm-iv-ct-tag", "gcm-iv-tag-ct", "gcm-iv:tag:ct", "gcm-iv:ct:tag"]
)
@pytest.mark.parametrize("text", ["a", "Likes tea", "ü\0𝄞" * 9])
def test_what_was_sealed_opens_under_auto_and_by_name(name, text):
    sealed = envelope(write_format=name).seal(text)
    for content_format in ("auto", name, ["gcm-iv:tag:ct", name]):
        reader = envelope(content_format=content_format)
        assert reader.open(sealed) == text
        assert reader.layout == name
        assert reader.write_layout == name


def test_base64_as_webcrypto_programs_write_it_opens():
    nonce = os.urandom(12)
    sealed = b64encode_as_string(nonce + AESGCM(KEY).encrypt(nonce, b"Likes tea", None))
    assert envelope().open(sealed) == "Likes tea"


def test_content_under_another_key_is_refused():
    sealed = Envelope(Secret("ab12" * 16), user_id="u", key_version=2).seal("Likes tea")
    with pytest.raises(SealError, match="wrong key or damage"):
        envelope().open(sealed)
