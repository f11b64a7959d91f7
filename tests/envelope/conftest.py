"""What the tests of the envelope share: envelopes under one key, and content sealed in any layout."""

import pytest

from memframe.envelope import Envelope
from memframe.secret import Secret


@pytest.fixture(scope="session")
def key():
    """The 32 bytes of the key of every `envelope`."""
    return bytes(range(1, 33))


@pytest.fixture(scope="session")
def envelope(key):
    """Maker of envelopes: ``envelope(content_format, **settings)``."""

    def make(content_format="auto", **settings):
        settings = {"user_id": "Ab-1", "key_version": 2} | settings
        return Envelope(Secret(key.hex()), content_format=content_format, **settings)

    return make


@pytest.fixture(scope="session")
def sealed_as(envelope):
    """Sealer: ``sealed_as(layout, text)``."""
    return lambda name, text="Likes tea": envelope(write_format=name).seal(text)
