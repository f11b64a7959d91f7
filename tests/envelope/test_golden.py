"""What Node programs sealed opens here, in every layout and from every form of the key."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from memframe.envelope import LAYOUTS, Envelope
from memframe.envelope.alphabets import BASE64URL_BARE
from memframe.errors import SealError
from memframe.secret import Secret

HERE = Path(__file__).parent / "golden"
GOLDEN = json.loads((HERE / "golden.json").read_text("utf-8"))
UNAUTHENTICATED = ("cbc-iv:ct", "openssl-salted")


def envelope_for(golden, content_format="auto"):
    return Envelope(
        Secret(golden["key"]),
        user_id=golden["user_id"],
        key_version=golden["key_version"],
        content_format=content_format,
    )


def is_automatic(row):
    return "@" not in row["content_format"] and row["content_format"] not in UNAUTHENTICATED


def check_by_name(golden):
    for row in golden["rows"]:
        envelope = envelope_for(golden, row["content_format"])
        assert envelope.open(row["sealed"]) == row["plain"], (row["content_format"], row["form"])


def test_golden_content_of_every_layout_opens_by_its_name():
    assert {row["content_format"].partition("@")[0] for row in GOLDEN["rows"]} == LAYOUTS.keys()
    check_by_name(GOLDEN)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_content_that_node_seals_now_opens():
    command = [shutil.which("node"), HERE / "make.js"]
    made = subprocess.run(command, capture_output=True, check=True)
    fresh = json.loads(made.stdout)
    assert [row["form"] for row in fresh["rows"]] == [row["form"] for row in GOLDEN["rows"]]
    check_by_name(fresh)


def test_golden_content_opens_under_auto_which_then_writes_the_same_form():
    for row in filter(is_automatic, GOLDEN["rows"]):
        envelope = envelope_for(GOLDEN)
        assert envelope.open(row["sealed"]) == row["plain"]
        assert envelope.layout == envelope.write_layout == row["content_format"]
        again = envelope.seal(row["plain"])
        assert again != row["sealed"]
        assert envelope_for(GOLDEN, row["content_format"]).open(again) == row["plain"]
        if row["content_format"] == "gcm-json":  # indentation is not kept, keys and algorithm are
            again, before = json.loads(again), json.loads(row["sealed"])
            assert [(key, len(text)) for key, text in again.items()] == [
                (k, len(t)) for k, t in before.items()
            ]
        else:
            assert (len(again), again.count(":")) == (len(row["sealed"]), row["sealed"].count(":"))


@pytest.mark.parametrize("content_format", ["auto", "gcm-iv:tag:ct"])
def test_content_under_a_derived_key_is_named_and_not_opened(content_format):
    row = next(row for row in GOLDEN["rows"] if row["content_format"] == "gcm-iv:tag:ct@sha256")
    with pytest.raises(SealError, match='content_format="gcm-iv:tag:ct@sha256" reads it'):
        envelope_for(GOLDEN, content_format).open(row["sealed"])


@pytest.mark.asvs("11.3.1", "11.3.3", "11.4.1")
def test_unauthenticated_content_is_named_and_not_opened():
    for row in GOLDEN["rows"]:
        if row["content_format"] in UNAUTHENTICATED:
            with pytest.raises(SealError, match=f'content_format="{row["content_format"]}" reads it'):
                envelope_for(GOLDEN).open(row["sealed"])


def with_a_bit_changed(text):
    for at, sign in enumerate(text):
        for bit in range(8):
            yield text[:at] + chr(ord(sign) ^ 1 << bit) + text[at + 1 :]


def cut_off(text):
    """Every beginning of a text, but for those that want nothing but ``=`` signs at the end."""
    for length in range(1, len(text.rstrip("="))):
        yield text[:length]


SHORT = [row for row in GOLDEN["rows"] if row["plain"] == "a" and is_automatic(row)]
ONE_EACH = {row["content_format"]: row for row in SHORT}  # the last form of each, which is the oddest


@pytest.mark.parametrize("row", ONE_EACH.values(), ids=ONE_EACH)
def test_every_change_is_refused(row):
    """By the layout that is named, among other content, and (but for what is cut off) where nothing was read before."""
    bits = list(with_a_bit_changed(row["sealed"]))
    texts = [*bits, *cut_off(row["sealed"])]
    opened = envelope_for(GOLDEN, row["content_format"]).open_many(texts)
    assert opened.plain == [None] * len(texts)
    assert opened.errors.keys() == set(range(len(texts)))
    bits, texts = bits[::5], texts[::5]  # each of the eight bits in turn
    opened = envelope_for(GOLDEN).open_many([row["sealed"], *texts])
    assert (opened.plain, opened.n_plain) == ([b"a"] + [None] * len(texts), 0)
    assert envelope_for(GOLDEN).open_many(bits).plain == [None] * len(bits)


def test_a_change_of_case_or_padding_alone_is_refused_in_every_form():
    for row in SHORT:
        sealed, envelope = row["sealed"], envelope_for(GOLDEN, row["content_format"])
        texts = [sealed[:at] + sealed[at:].swapcase() for at in range(0, len(sealed), 3)]
        texts += [sealed + "\n", sealed + " ", " " + sealed, sealed + ":"]
        if "base64url" not in row["form"]:  # there the signs are optional, as writers differ
            texts += [sealed + "=", sealed + "=="]
        parts = sealed.split(":")
        if len(parts) == 3:
            texts += [":".join([*parts[:n], parts[n].rstrip("="), *parts[n + 1 :]]) for n in range(3)]
        texts = [text for text in texts if text not in (sealed, sealed.swapcase())]
        assert envelope.open_many(texts).plain == [None] * len(texts), row["form"]


@pytest.mark.parametrize("layout", ["gcm-iv:tag:ct", "gcm-iv:ct:tag", "gcm-json"])
def test_a_byte_that_moves_from_one_part_to_the_next_is_refused(layout):
    row = next(row for row in GOLDEN["rows"] if row["content_format"] == layout and len(row["plain"]) == 64)
    envelope = envelope_for(GOLDEN, layout)
    assert envelope.open(row["sealed"]) == row["plain"]  # from here on the quick way is taken, too
    for between in (":", '","tag":"'):
        left, found, right = row["sealed"].rpartition(between)
        if found:
            for moved in (left[:-2] + found + left[-2:] + right, left + right[:2] + found + right[2:]):
                assert envelope.open_many([moved]).plain == [None]


def test_a_jwe_with_a_wrapped_key_or_a_shifted_tag_is_refused():
    row = next(row for row in GOLDEN["rows"] if row["content_format"] == "jwe")
    envelope = envelope_for(GOLDEN, "jwe")
    head, _, iv, *sealed = row["sealed"].split(".")
    data, tag = map(BASE64URL_BARE.decode, sealed)
    shifted = [BASE64URL_BARE.encode(part) for part in (data + tag[:1], tag[1:])]
    assert envelope.open(".".join([head, "", iv, *sealed])) == row["plain"]
    for text in (".".join([head, "AAAA", iv, *sealed]), ".".join([head, "", iv, *shifted])):
        assert envelope.open_many([text]).plain == [None]
