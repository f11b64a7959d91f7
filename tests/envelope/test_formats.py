"""Plain text among sealed content, the names of formats, and codecs of one's own."""

import json
import os
import shutil
import subprocess

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pybase64 import b64encode_as_string

from memframe.envelope import LAYOUTS, Envelope
from memframe.errors import ConfigError, SealError
from memframe.secret import Secret

WRITABLE = [name for name in LAYOUTS if name not in {"cbc-iv:ct", "openssl-salted"}]


class TestPlainText:
    PLAIN = (
        "",
        "Vegetarian",
        "Likes tea, hates coffee.",
        "https://github.com/Org/Repo/blob/0123456789ABCdef/Path/to/File.py",
        "東京に住んでいる。そして毎日電車で通勤しているが、時々自転車にも乗ることがある",
        '{"name": "Bob", "tags": ["a", "b"]}',
        "Donaudampfschifffahrtsgesellschaftskapitänsmütze",
        "prefers_dark_mode_in_every_editor_and_terminal",
        "line one\nline two\n" * 20,
    )

    @pytest.mark.parametrize("text", PLAIN)
    def test_what_does_not_look_sealed_passes_unless_a_layout_was_named(self, text, envelope):
        assert envelope().open_many([text, None]) == ([text.encode(), None], {}, 1)
        with pytest.raises(SealError, match="empty" if not text else "plain"):
            envelope("gcm-iv-ct-tag").open(text)

    @pytest.mark.parametrize("name", WRITABLE)
    def test_sealed_content_that_cannot_be_read_never_passes(self, name, envelope):
        foreign = Envelope(Secret("ab12" * 16), user_id="x", key_version=2, write_format=name)
        opened = envelope().open_many([foreign.seal(text) for text in ("Likes tea", "", "x" * 900)])
        assert opened.plain == [None] * 3
        assert all("wrong key or damage" in reason for reason in opened.errors.values())

    @pytest.mark.parametrize(
        "sealed",
        [
            "RNpyhAbnx3GEuxx7://bRb89mAhrBgfZ8lvMpVA==:gZzYk55p9wrZpA==",
            "abcdefghijklmnop:gZzYk55p9wrZpA==://bRb89mAhrBgfZ8lvMpVA==",
        ],
    )
    def test_base64_after_a_colon_is_not_taken_for_an_address(self, sealed, envelope):
        assert envelope().open_many([sealed]).plain == [None]

    def test_among_sealed_content_a_single_word_is_taken_for_damage(self, envelope, sealed_as):
        opened = envelope().open_many(["Vegetarian", "Likes tea, hates coffee.", sealed_as("jwe")])
        assert opened.plain == [None, b"Likes tea, hates coffee.", b"Likes tea"]
        assert 'content_format="plain"' in opened.errors[0]
        assert opened.n_plain == 1

    def test_by_name_everything_is_plain(self, envelope, sealed_as):
        texts = ["Vegetarian", sealed_as("jwe"), "00" * 40]
        assert envelope("plain").open_many(texts) == ([text.encode() for text in texts], {}, 3)

    def test_in_a_list_plain_text_passes_where_it_does_not_look_sealed(self, envelope, sealed_as):
        opened = envelope(["jwe", "plain"]).open_many(["Likes tea, a lot", sealed_as("gcm-iv-ct-tag")])
        assert opened.plain == [b"Likes tea, a lot", None]

    def test_half_a_surrogate_pair_is_neither_opened_nor_sealed(self, envelope):
        assert "surrogate" in envelope("plain").open_many(["a\ud800"]).errors[0]
        with pytest.raises(SealError, match="surrogate"):
            envelope().seal("a\ud800")


class TestFormats:
    @pytest.mark.parametrize(
        "content_format",
        ["gcm", "memframe@sha256", "openssl-salted@ascii", "jwe@md5", [], ["auto", "jwe"], [3], object()],
    )
    def test_a_format_that_is_not_known_is_refused(self, content_format, envelope):
        with pytest.raises(
            ConfigError, match=r"memframe, jwe, .*, plain" if content_format == "gcm" else r"content.format"
        ):
            envelope(content_format)

    @pytest.mark.rfc("8725 3.6a")
    @pytest.mark.parametrize(
        ("header", "reason"),
        [
            ('{"alg":"RSA-OAEP","enc":"A256GCM"}', "another algorithm"),
            ('{"alg":"dir","enc":"A128GCM"}', "another algorithm"),
            ('{"alg":"dir","enc":"A256GCM","zip":"DEF"}', "with zip"),
            ('{"alg":"dir","enc":"A256GCM","crit":["x"]}', "with crit"),
            ('{"alg":"dir","enc":', "header is damaged"),
        ],
    )
    def test_a_jwe_of_another_kind_says_of_which(self, header, reason, envelope):
        encoded = b64encode_as_string(header.encode()).rstrip("=")
        with pytest.raises(SealError, match=reason):
            envelope().open(f"{encoded}..AAAAAAAAAAAAAAAA.AAAA.AAAAAAAAAAAAAAAAAAAAAA")

    def test_content_that_is_not_text_is_refused(self, envelope, key):
        nonce = os.urandom(12)
        sealed = b64encode_as_string(nonce + AESGCM(key).encrypt(nonce, b"\xff\xfe", None))
        with pytest.raises(SealError, match="not UTF-8"):
            envelope().open(sealed)


class Codec:
    """A codec whose two turns are one function."""

    def __init__(self, turn):
        self.seal = self.open = turn


class TestCodecs:
    def test_a_codec_seals_and_opens(self, envelope):
        reader = envelope(Codec(lambda text: text[::-1]))
        assert reader.seal("Likes tea") == "aet sekiL"
        assert reader.open_many(["aet sekiL", None]) == ([b"Likes tea", None], {}, 0)
        assert reader.write_layout == "codec"

    @pytest.mark.parametrize(
        ("turn", "reason"),
        [
            (lambda text: {}[text], "raised KeyError"),
            (lambda text: None, "returned NoneType"),
            (lambda text: "a\ud800", "not Unicode"),
        ],
    )
    def test_a_codec_that_fails_is_named_and_its_message_is_not(self, turn, reason, envelope):
        reader = envelope(Codec(turn))
        assert reason in reader.open_many(["Likes tea"]).errors[0]
        for attempt in (reader.open, reader.seal) if "Unicode" not in reason else (reader.open,):
            with pytest.raises(SealError, match=reason) as caught:
                attempt("Likes tea")
            assert "tea" not in str(caught.value)
            assert caught.value.__context__ is None


class TestSpellings:
    """What other programs put around sealed content, or derive from the key, beyond the golden files."""

    @pytest.mark.parametrize(
        ("change", "is_read"),
        [
            ({"v": 1}, True),
            ({"version": "1", "alg": "A256GCM"}, True),
            ({"v": 2}, False),
            ({"v": True}, False),
            ({"tag": 1}, False),
            ({"else": "x"}, False),
        ],
    )
    def test_json_may_name_algorithm_and_version_and_is_written_alike(
        self, change, is_read, envelope, sealed_as
    ):
        text = json.dumps(json.loads(sealed_as("gcm-json")) | change)
        reader = envelope()
        assert reader.open_many([text]).plain == [b"Likes tea" if is_read else None]
        if is_read:
            assert json.loads(reader.seal("Likes tea")).items() >= change.items()

    @pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
    @pytest.mark.parametrize("digest", ["md5", "sha256"])
    def test_what_openssl_seals_is_read_by_name_with_either_digest(self, digest, envelope, key):
        command = ["openssl", "enc", "-aes-256-cbc", "-a", "-md", digest, "-pass", f"pass:{key.hex()}"]
        made = subprocess.run(command, input="Likes tea", capture_output=True, check=True, text=True)
        assert envelope("openssl-salted").open(made.stdout) == "Likes tea"
