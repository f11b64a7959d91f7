"""The published AES-GCM vectors of NIST, through our layouts and not only through the cipher."""

import cryptography_vectors
import pytest

from memframe.envelope.detect import bind
from memframe.secret import Secret


def nist_vectors():
    """Decryption vectors with a 256 bit key, 96 bit nonce, 128 bit tag and no associated data."""
    section, vector = {}, {}
    with cryptography_vectors.open_vector_file("ciphers/AES/GCM/gcmDecrypt256.rsp", "r") as lines:
        for line in map(str.strip, lines):
            name, _, value = (part.strip() for part in line.strip("[]").partition("="))
            if line.startswith("["):
                section[name] = value
            elif line and not line.startswith("#"):
                vector[name] = value
            elif vector:
                if (section["IVlen"], section["AADlen"], section["Taglen"]) == ("96", "0", "128"):
                    yield vector
                vector = {}


VECTORS = list(nist_vectors())
LAYOUTS = {
    "gcm-iv-ct-tag": "{IV}{CT}{Tag}",
    "gcm-iv-tag-ct": "{IV}{Tag}{CT}",
    "gcm-iv:tag:ct": "{IV}:{Tag}:{CT}",
    "gcm-iv:ct:tag": "{IV}:{CT}:{Tag}",
    "gcm-json": '{{"iv":"{IV}","data":"{CT}","tag":"{Tag}"}}',
}


def test_the_vectors_are_there_both_good_and_bad():
    n_bad = sum("FAIL" in vector for vector in VECTORS)
    assert (len(VECTORS), n_bad) == (75, 33)


@pytest.mark.asvs("11.2.1", "11.3.2")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_good_vectors_open_to_their_plaintext_and_bad_ones_do_not_open(layout):
    for vector in VECTORS:
        sealed = LAYOUTS[layout].format_map(vector)
        expected = None if "FAIL" in vector else bytes.fromhex(vector["PT"])
        assert bind(layout, Secret(vector["Key"]), "u", 1).open(sealed) == expected
