"""A key that is not fit for use is refused, in words that say why; content goes from one key to the next."""

import pytest

from memframe.envelope import LAYOUTS, Envelope
from memframe.envelope.detect import Rekeying
from memframe.errors import ConfigError, SealError
from memframe.secret import Secret

GOOD = "8f3c1d5e7a9b0c2d4e6f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5"

UNFIT = {
    "empty": ("", "is empty; fetch the credentials again"),
    "odd": (GOOD[:61], "has 61 characters, an odd number"),
    "twice": (GOOD * 2, "has 128 characters; need 64"),
    "0x": ("0x" + GOOD, "begins with 0x"),
    "space within": (GOOD[:32] + " " + GOOD[32:], "contains spaces or line ends"),
    "base64": ("jzwdXnqbDC1Ob4CRorPE1eb3CBkqO0xdbn-AkaKzxNU=", "looks like base64"),
    "quoted": (f'"{GOOD}"', "contains characters that are not hexadecimal"),
    "full-width digits": ("\uff11" * 64, "contains characters that are not hexadecimal"),
    "128 bits": (GOOD[:32], r"has 128 bits \(32 hexadecimal characters\)"),
    "192 bits": (GOOD[:48], r"has 192 bits \(48 hexadecimal characters\)"),
    "one byte": ("aB" * 32, "is one byte repeated"),
}


@pytest.mark.parametrize(("text", "reason"), UNFIT.values(), ids=UNFIT)
def test_an_unfit_key_is_refused_with_its_reason(text, reason):
    with pytest.raises(SealError, match=f"^the encryption key {reason}") as caught:
        Envelope(Secret(text), user_id="u", key_version=1)
    quoted = [text[start : start + 6] for start in range(len(text) - 5)]
    assert not any(part in str(caught.value) for part in quoted)


def test_plain_text_needs_no_key_to_be_read():
    for text, _ in UNFIT.values():
        plain = Envelope(Secret(text), user_id="u", key_version=1, content_format="plain")
        assert plain.open("Likes tea") == "Likes tea"
        with pytest.raises(SealError, match=r"^the encryption key "):
            plain.seal("Likes tea")


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


def test_layouts_that_show_no_changes_are_refused_by_name():
    with pytest.raises(ConfigError, match="'cbc-iv:ct' cannot be sealed with another key"):
        Rekeying(OLD, NEW, user_id="4f0c", layouts=["cbc-iv:ct"])
