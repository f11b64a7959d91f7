"""Content goes from one key to the next in the layout and spelling that it had."""

import pytest

from memframe.envelope import LAYOUTS, Envelope
from memframe.envelope.detect import Rekeying
from memframe.errors import ConfigError, SealError
from memframe.secret import Secret

OLD, NEW = (1, Secret("0f1e" * 16)), (2, Secret("2d3c" * 16))


def envelope_under(numbered_key, *, user_id="4f0c", **formats):
    version, key = numbered_key
    return Envelope(key, user_id=user_id, key_version=version, **formats)


AUTHENTICATED = [name for name in LAYOUTS if name not in {"cbc-iv:ct", "openssl-salted"}]


@pytest.mark.parametrize("layout", AUTHENTICATED)
@pytest.mark.parametrize("plain", ["Likes tea", "Straße 😀", ""])
def test_what_the_old_key_sealed_opens_with_the_new_one_alone(layout, plain):
    sealed = envelope_under(OLD, write_format=layout).seal(plain)
    rekeying = Rekeying(OLD, NEW, user_id="4f0c", layouts=[layout])
    resealed = rekeying.reseal(sealed)
    assert envelope_under(NEW, content_format=layout).open(resealed) == plain
    assert len(resealed) == len(sealed)
    with pytest.raises(SealError):
        envelope_under(OLD, content_format=layout).open(resealed)
    assert rekeying.reseal(resealed) is None


def test_what_does_not_open_is_none():
    rekeying = Rekeying(OLD, NEW, user_id="4f0c", layouts=AUTHENTICATED)
    of_another_user = envelope_under(OLD, user_id="another").seal("Likes tea")
    for sealed in ("4tFrXdN5uC1sQ0bEJ2ZJ3w==", "", "plain", of_another_user):
        assert rekeying.reseal(sealed) is None


def test_the_spelling_of_each_text_is_kept():
    upper = envelope_under(OLD, write_format="gcm-iv:tag:ct").seal("Likes tea").upper()
    assert Rekeying(OLD, NEW, user_id="4f0c", layouts=AUTHENTICATED).reseal(upper).isupper()


def test_layouts_that_show_no_changes_are_refused_by_name():
    with pytest.raises(ConfigError, match="'cbc-iv:ct' cannot be carried"):
        Rekeying(OLD, NEW, user_id="4f0c", layouts=["cbc-iv:ct"])
