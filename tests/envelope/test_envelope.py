"""An envelope opens what it sealed and what others sealed, by the rules of marks and locks."""

import os
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st
from pybase64 import b64encode_as_string

from memframe.envelope import LAYOUTS
from memframe.envelope.layouts import associated_data
from memframe.errors import ConfigError, SealError

UNAUTHENTICATED = ("cbc-iv:ct", "openssl-salted")
WRITABLE = [name for name in LAYOUTS if name not in UNAUTHENTICATED]
MARKED = ["memframe", "jwe", "fernet", "gcm-json"]
UNMARKED = [name for name in WRITABLE if name not in MARKED]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


class TestRoundTrips:
    @pytest.mark.parametrize("name", WRITABLE)
    @given(text=TEXTS)
    def test_any_text_comes_back(self, name, text, envelope, sealed_as):
        sealed = sealed_as(name, text)
        assert envelope(name).open(sealed) == text
        assert envelope().open(sealed) == text

    @pytest.mark.parametrize("name", WRITABLE)
    @given(texts=st.lists(st.none() | TEXTS, max_size=9))
    def test_a_column_comes_back_in_its_order(self, name, texts, envelope):
        writer = envelope(write_format=name)
        opened = envelope().open_many([None if text is None else writer.seal(text) for text in texts])
        assert opened.plain == [None if text is None else text.encode() for text in texts]
        assert opened.errors == {}
        assert opened.n_plain == 0

    @pytest.mark.parametrize("name", WRITABLE[1:])  # our own layout fixes how the key is used
    @pytest.mark.parametrize("derivation", ["ascii", "sha256"])
    def test_a_named_derivation_of_the_key_reads_and_writes(self, name, derivation, envelope):
        other = envelope(f"{name}@{derivation}")
        assert other.open(other.seal("Likes tea")) == "Likes tea"
        with pytest.raises(SealError, match=f"sealed as {name}@{derivation}"):
            envelope(name).open(other.seal("Likes tea"))

    def test_the_same_text_is_never_sealed_twice_alike(self, envelope):
        writer = envelope()
        assert len({writer.seal("Likes tea") for _ in range(1000)}) == 1000

    def test_half_a_surrogate_pair_is_not_sealed(self, envelope):
        with pytest.raises(SealError, match="surrogate"):
            envelope().seal("a\ud800")

    def test_no_rows_are_no_rows(self, envelope):
        assert envelope().open_many([]) == ([], {}, 0)


class TestOurOwnLayout:
    def test_it_is_what_its_description_says(self, envelope, key):
        mark, version, body = envelope().seal("Likes tea").split(".")
        raw = b64decode(body, validate=True)
        bound = b"\0\0\0\3mf1\0\0\0\4ab-1\0\0\0\0012"
        assert (mark, version) == ("mf1", "2")
        assert AESGCM(key).decrypt(raw[:12], raw[12:], bound) == b"Likes tea"

    def test_fields_cannot_be_shifted_into_one_another(self):
        assert associated_data("u1", 2) != associated_data("u", 12)

    def test_capitals_in_a_user_id_make_no_difference(self, envelope, sealed_as):
        assert envelope(user_id="aB-1").open(sealed_as("memframe")) == "Likes tea"

    def test_content_of_another_user_does_not_open(self, envelope, sealed_as):
        with pytest.raises(SealError, match="looks like memframe, but did not authenticate"):
            envelope(user_id="ab-2").open(sealed_as("memframe"))

    def test_content_of_another_key_version_says_so(self, envelope):
        sealed = envelope(key_version=1).seal("Likes tea")
        with pytest.raises(SealError, match="sealed with key_version 1, these credentials hold 2"):
            envelope().open(sealed)

    def test_a_key_version_cannot_be_rewritten(self, envelope):
        sealed = envelope(key_version=1).seal("Likes tea").replace("mf1.1.", "mf1.2.")
        with pytest.raises(SealError, match="did not authenticate"):
            envelope().open(sealed)

    @pytest.mark.parametrize("version", [-1, True, "2", 2.0, None])
    def test_a_key_version_is_a_whole_number(self, version, envelope):
        with pytest.raises(ConfigError, match="key_version"):
            envelope(key_version=version)


class TestMarksAndLocks:
    @pytest.mark.parametrize("first", UNMARKED)
    @pytest.mark.parametrize("second", UNMARKED)
    def test_the_first_unmarked_layout_locks_and_another_is_named(self, first, second, envelope, sealed_as):
        opened = envelope().open_many([sealed_as(first), sealed_as(second)])
        assert opened.plain[0] == b"Likes tea"
        if first == second:
            assert opened.errors == {}
        else:
            assert opened.plain[1] is None
            assert opened.errors[1].startswith(f"sealed as {second}, while")

    @pytest.mark.parametrize("first", WRITABLE)
    @pytest.mark.parametrize("marked", MARKED)
    def test_marked_layouts_are_read_whatever_came_before(self, first, marked, envelope, sealed_as):
        reader = envelope()
        texts = [sealed_as(first), sealed_as(marked), sealed_as(first)]
        assert reader.open_many(texts) == ([b"Likes tea"] * 3, {}, 0)
        assert reader.open_many(texts) == ([b"Likes tea"] * 3, {}, 0)

    def test_a_lock_lasts(self, envelope, sealed_as):
        reader = envelope()
        reader.open(sealed_as("gcm-iv:tag:ct"))
        assert reader.layout == "gcm-iv:tag:ct"
        with pytest.raises(SealError, match="sealed as gcm-iv-ct-tag"):
            reader.open(sealed_as("gcm-iv-ct-tag"))
        assert reader.layout == "gcm-iv:tag:ct"

    def test_empty_content_does_not_lock_as_two_layouts_write_it_alike(self, envelope, sealed_as):
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

    def test_threads_that_start_at_once_lock_one_layout_between_them(self, envelope, sealed_as):
        texts = [sealed_as(name) for name in UNMARKED]
        barrier = Barrier(len(texts))

        def read(reader, text):
            barrier.wait()
            return reader.open_many([text]).plain[0]

        with ThreadPoolExecutor(len(texts)) as pool:
            for _ in range(50):
                reader = envelope()
                opened = list(pool.map(read, [reader] * len(texts), texts))
                assert opened.count(b"Likes tea") == 1
                assert UNMARKED[opened.index(b"Likes tea")] == reader.layout

    def test_a_layout_that_comes_second_in_a_race_is_not_accepted(self, envelope):
        reader = envelope()
        first, second = reader._unmarked[:2]
        assert reader._accept(first, "sealed", b"plain")
        assert not reader._accept(second, "sealed", b"plain")


class TestWriting:
    def test_without_having_read_it_writes_our_own(self, envelope):
        assert envelope().write_layout == "memframe"
        assert envelope().layout is None

    @pytest.mark.parametrize("name", WRITABLE)
    def test_it_writes_what_it_read(self, name, envelope, sealed_as):
        reader = envelope()
        reader.open(sealed_as(name))
        assert reader.write_layout == name

    def test_what_others_write_goes_before_our_own(self, envelope, sealed_as):
        reader = envelope()
        reader.open_many([sealed_as("memframe"), sealed_as("jwe"), sealed_as("fernet")])
        assert reader.write_layout == "jwe"

    def test_write_format_goes_before_all(self, envelope, sealed_as):
        reader = envelope(write_format="fernet")
        reader.open(sealed_as("jwe"))
        assert reader.seal("Likes tea").startswith("gAAAAA")

    def test_a_format_that_was_named_is_written_before_anything_was_read(self, envelope):
        assert envelope("gcm-iv:tag:ct").write_layout == "gcm-iv:tag:ct"
        assert envelope(["plain", "cbc-iv:ct", "jwe"]).write_layout == "jwe"

    @pytest.mark.asvs("11.3.1", "11.3.2")
    @pytest.mark.parametrize("name", ["plain", *UNAUTHENTICATED])
    def test_what_shows_no_changes_is_never_written(self, name, envelope):
        assert envelope(name).write_layout == "memframe"
        with pytest.raises(ConfigError, match="read only"):
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
