"""An envelope opens what it sealed and what others sealed, by the rules of marks."""

import os
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given, settings
from hypothesis import strategies as st
from pybase64 import b64encode_as_string

from memframe.envelope import LAYOUTS
from memframe.envelope.detect import UNDERIVED, bind
from memframe.envelope.layouts import associated_data
from memframe.errors import ConfigError, SealError
from memframe.secret import Secret

UNAUTHENTICATED = ("cbc-iv:ct", "openssl-salted")
WRITABLE = [name for name in LAYOUTS if name not in UNAUTHENTICATED]
MARKED = [name for name in WRITABLE if bind(name, Secret("00" * 32), "ab-1", 2).marked]
UNMARKED = [name for name in WRITABLE if name not in MARKED]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
FEW = settings(max_examples=20)


class TestRoundTrips:
    @pytest.mark.parametrize("name", WRITABLE)
    @given(texts=st.lists(st.none() | TEXTS, max_size=9))
    @FEW
    def test_a_column_comes_back_in_its_order(self, name, texts, envelope):
        writer = envelope(write_format=name)
        sealed = [None if text is None else writer.seal(text) for text in texts]
        expected = ([None if text is None else text.encode() for text in texts], {}, 0)
        assert envelope().open_many(sealed) == envelope(name).open_many(sealed) == expected

    @pytest.mark.parametrize("name", [name for name in WRITABLE if name not in UNDERIVED])
    @pytest.mark.parametrize("derivation", ["ascii", "sha256"])
    def test_a_named_derivation_of_the_key_reads_and_writes(self, name, derivation, envelope):
        other = envelope(f"{name}@{derivation}")
        assert other.open(other.seal("Likes tea")) == "Likes tea"
        with pytest.raises(SealError, match=f"sealed as {name}@{derivation}"):
            envelope(name).open(other.seal("Likes tea"))


class TestOurOwnLayout:
    def test_it_is_what_its_description_says(self, envelope, key):
        mark, version, body = envelope().seal("Likes tea").split(".")
        raw = b64decode(body, validate=True)
        bound = b"\0\0\0\3mf1\0\0\0\4ab-1\0\0\0\0012"
        assert (mark, version) == ("mf1", "2")
        assert AESGCM(key).decrypt(raw[:12], raw[12:], bound) == b"Likes tea"

    def test_it_is_bound_to_user_and_key_version(self, envelope, sealed_as):
        assert associated_data("u1", 2) != associated_data("u", 12)
        assert envelope(user_id="aB-1").open(sealed_as("memframe")) == "Likes tea", "capitals do not matter"
        older = envelope(key_version=1).seal("Likes tea")
        for reader, sealed, reason in (
            (
                envelope(user_id="ab-2"),
                sealed_as("memframe"),
                "looks like memframe, but did not authenticate",
            ),
            (envelope(), older, "sealed with key_version 1, these credentials hold 2"),
            (envelope(), older.replace("mf1.1.", "mf1.2."), "did not authenticate"),
        ):
            with pytest.raises(SealError, match=reason):
                reader.open(sealed)

    @pytest.mark.parametrize("version", [-1, True, "2", 2.0, None])
    def test_a_key_version_is_a_whole_number(self, version, envelope):
        with pytest.raises(ConfigError, match="key_version"):
            envelope(key_version=version)


class TestMarks:
    @pytest.mark.parametrize("first", UNMARKED)
    def test_a_row_in_another_unmarked_layout_is_read_if_it_authenticates(self, first, envelope, sealed_as):
        reader = envelope()
        for second in UNMARKED:
            damaged = sealed_as(second)[:-3] + "000"
            opened = reader.open_many([sealed_as(first), sealed_as(second), damaged, sealed_as(first)])
            assert opened.plain == [b"Likes tea", b"Likes tea", None, b"Likes tea"]
            assert "wrong key or damage" in opened.errors[2]
            assert reader.layout == reader.write_layout == first

    @pytest.mark.parametrize("first", WRITABLE)
    def test_marked_layouts_are_read_whatever_came_before(self, first, envelope, sealed_as):
        reader = envelope()
        texts = [sealed_as(name) for marked in MARKED for name in (first, marked)]
        for _ in range(2):
            assert reader.open_many(texts) == ([b"Likes tea"] * len(texts), {}, 0)

    def test_empty_content_names_no_layout_as_two_write_it_alike(self, envelope, sealed_as):
        reader = envelope()
        assert reader.open(sealed_as("gcm-iv-tag-ct", "")) == ""
        assert reader.layout is None
        assert reader.open(sealed_as("gcm-iv-tag-ct")) == "Likes tea"

    def test_a_list_reads_any_of_its_layouts_and_no_other(self, envelope, sealed_as):
        reader = envelope(["gcm-iv:tag:ct", "gcm-iv-tag-ct", "memframe"])
        names = ["gcm-iv-tag-ct", "gcm-iv:tag:ct", "memframe", "gcm-iv-tag-ct", "jwe"]
        opened = reader.open_many([sealed_as(name) for name in names])
        assert opened.plain == [b"Likes tea"] * 4 + [None]
        assert "sealed as jwe" in opened.errors[4]

    def test_one_bad_row_costs_no_other_row(self, envelope, sealed_as):
        texts = [sealed_as("gcm-iv-ct-tag", f"note {n}") for n in range(100)]
        texts[40] = texts[40][:-8] + "AAAAAAA="
        texts[41] = None
        opened = envelope().open_many(texts)
        assert [n for n, plain in enumerate(opened.plain) if plain is None] == [40, 41]
        assert opened.errors.keys() == {40}

    def test_rows_in_another_alphabet_of_the_same_layout_are_read(self, envelope, key):
        texts = []
        for spell in (bytes.hex, b64encode_as_string, lambda raw: raw.hex().upper()):
            nonce = os.urandom(16)
            texts.append(spell(nonce + AESGCM(key).encrypt(nonce, b"Likes tea", None)))
        reader = envelope()
        assert reader.open_many(texts * 3).plain == [b"Likes tea"] * 9

    def test_threads_that_start_at_once_write_one_layout_between_them(self, envelope, sealed_as):
        texts = [sealed_as(name) for name in UNMARKED]
        barrier = Barrier(len(texts))

        def read(reader, text):
            barrier.wait()
            return reader.open_many([text]).plain[0], reader.write_layout

        with ThreadPoolExecutor(len(texts)) as pool:
            for _ in range(50):
                reader = envelope()
                opened = set(pool.map(read, [reader] * len(texts), texts))
                assert opened == {(b"Likes tea", reader.layout)}


class TestWriting:
    def test_it_writes_what_was_named_else_what_it_read_else_our_own(self, envelope, sealed_as):
        assert (envelope().write_layout, envelope().layout) == ("memframe", None)
        for name in WRITABLE:
            reader = envelope()
            reader.open(sealed_as(name))
            assert reader.write_layout == name
        reader = envelope()
        reader.open_many([sealed_as("memframe"), sealed_as("jwe"), sealed_as("fernet")])
        assert reader.write_layout == "jwe", "what others write goes before our own"
        reader = envelope(write_format="fernet")
        reader.open(sealed_as("jwe"))
        assert reader.seal("Likes tea").startswith("gAAAAA")
        assert envelope("gcm-iv:tag:ct").write_layout == "gcm-iv:tag:ct"
        assert envelope(["plain", "cbc-iv:ct", "jwe"]).write_layout == "jwe"

    @pytest.mark.parametrize("name", WRITABLE)
    def test_under_another_key_it_writes_what_it_wrote_before(self, name, envelope, sealed_as):
        reader = envelope()
        reader.open(sealed_as(name))
        for before in (reader, envelope(write_format=name), envelope(name)):
            rekeyed = before.rekey(Secret("0f1e" * 16), 3)
            assert rekeyed.write_layout == rekeyed.rekey(Secret("1e2d" * 16), 4).write_layout == name
            assert rekeyed.open(rekeyed.seal("Likes tea")) == "Likes tea"

    @pytest.mark.asvs("11.3.1", "11.3.2")
    @pytest.mark.parametrize("name", ["plain", *UNAUTHENTICATED])
    def test_what_shows_no_changes_is_never_written(self, name, envelope):
        assert envelope(name).write_layout == "memframe"
        with pytest.raises(ConfigError, match="can only be read"):
            envelope(write_format=name)

    def test_reading_plain_text_does_not_turn_writing_into_it(self, envelope):
        reader = envelope()
        assert reader.open("Likes tea, hates coffee.") == "Likes tea, hates coffee."
        assert reader.seal("Likes tea").startswith("mf1.2.")

    def test_a_jwe_header_is_kept(self, envelope, key):
        header = b64encode_as_string(b'{"alg":"dir","enc":"A256GCM","kid":"k7"}').rstrip("=")
        nonce = os.urandom(12)
        sealed = AESGCM(key).encrypt(nonce, b"Likes tea", header.encode())
        parts = (nonce, sealed[:-16], sealed[-16:])
        reader = envelope()
        reader.open(".".join((header, "", *(b64encode_as_string(part, b"-_").rstrip("=") for part in parts))))
        assert reader.seal("Likes tea").startswith(header + "..")
