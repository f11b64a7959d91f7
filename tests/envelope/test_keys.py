"""A key that is not fit for use is refused, in words that say why and never quote it."""

import pytest

from memframe.envelope import Envelope
from memframe.errors import SealError
from memframe.secret import Secret

GOOD = "8f3c1d5e7a9b0c2d4e6f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5"

UNFIT = {
    "empty": ("", "is empty; fetch the credentials again"),
    "odd": (GOOD[:61], "has 61 characters, an odd number"),
    "one short": (GOOD[:63], "has 63 characters, an odd number; need 64"),
    "one more": (GOOD + "a", "has 65 characters, an odd number; need 64"),
    "twice": (GOOD * 2, "has 128 characters; need 64"),
    "0x": ("0x" + GOOD, "begins with 0x"),
    "0X": ("0X" + GOOD[2:], "begins with 0x"),
    "space within": (GOOD[:32] + " " + GOOD[32:], "contains spaces or line ends"),
    "line end": (GOOD + "\n", "contains spaces or line ends"),
    "blank": ("   ", "contains spaces or line ends"),
    "base64": ("jzwdXnqbDC1Ob4CRorPE1eb3CBkqO0xdbn-AkaKzxNU=", "looks like base64"),
    "base64 unpadded": ("jzwdXnqbDC1Ob4CRorPE1eb3CBkqO0xdbn+AkaKzxNU", "looks like base64"),
    "quoted": (f'"{GOOD}"', "contains characters that are not hexadecimal"),
    "full-width digits": ("\uff11" * 64, "contains characters that are not hexadecimal"),
    "128 bits": (GOOD[:32], r"has 128 bits \(32 hexadecimal characters\)"),
    "192 bits": (GOOD[:48], r"has 192 bits \(48 hexadecimal characters\)"),
    "zeros": ("00" * 32, "is one byte repeated"),
    "one byte": ("aB" * 32, "is one byte repeated"),
}


@pytest.mark.parametrize(("text", "reason"), UNFIT.values(), ids=UNFIT)
def test_an_unfit_key_is_refused_with_its_reason(text, reason):
    with pytest.raises(SealError, match=f"^the encryption key {reason}") as caught:
        Envelope(Secret(text), user_id="u", key_version=1)
    quoted = [text[start : start + 6] for start in range(len(text) - 5)]
    assert not any(part in str(caught.value) for part in quoted)


@pytest.mark.parametrize("text", [GOOD, GOOD.upper(), GOOD[:32] + GOOD[32:].upper()])
def test_either_case_is_accepted(text):
    sealed = Envelope(Secret(text), user_id="u", key_version=1).seal("tea")
    assert Envelope(Secret(GOOD), user_id="u", key_version=1).open(sealed) == "tea"


@pytest.mark.parametrize("text", [text for text, _ in UNFIT.values()], ids=UNFIT)
def test_plain_text_needs_no_key_to_be_read(text):
    plain = Envelope(Secret(text), user_id="u", key_version=1, content_format="plain")
    assert plain.open("Likes tea") == "Likes tea"
    with pytest.raises(SealError, match=r"^the encryption key "):
        plain.seal("Likes tea")
