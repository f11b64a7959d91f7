"""The vault: whose key, found where, made once, and what it says when something does not open."""

import multiprocessing
import stat

import pytest

import memframe as mf
from memframe.keystore import KEY_FILE, KEYRING_ENTRY, DataKey, LocalCipher, open_local_cipher
from memframe.secret import Secret
from tests.canaries import found_in, shown_by
from tests.keyrings import LockedKeyring, MemoryKeyring

PLACE = "run r1, row 3"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "state"


def test_without_a_keyring_the_key_lies_in_a_file_for_its_owner_alone(folder):
    folder.mkdir(mode=0o755)
    cipher, path = open_local_cipher(folder, open_keyring=None), folder / KEY_FILE
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not found_in(f"{cipher!r} {cipher.keys} {vars(cipher)}", {"key": path.read_text().strip()})
    with pytest.raises(mf.JournalError, match=f"{KEY_FILE}/state"):
        open_local_cipher(path / "state", open_keyring=None)
    path.chmod(0o644)
    with pytest.raises(mf.JournalError, match="chmod 600"):
        open_local_cipher(folder, open_keyring=None)


def test_a_keyring_that_keeps_things_closed_keeps_the_key_and_no_file_does(folder):
    ring = MemoryKeyring()
    sealed = open_local_cipher(folder, open_keyring=lambda: ring).seal(b"tea", associated_data=PLACE)
    assert not (folder / KEY_FILE).exists()
    assert len(ring.entries[KEYRING_ENTRY]) == 64
    assert open_local_cipher(folder, open_keyring=lambda: ring).open(sealed, associated_data=PLACE) == b"tea"
    assert ring.log == [("set", KEYRING_ENTRY)]


class ForgetfulKeyring(MemoryKeyring):
    def set_password(self, service, username, password):
        """Accepts, and keeps nothing."""


class PlainKeyring(MemoryKeyring):
    priority = 0.5


@pytest.mark.parametrize("backend", [ForgetfulKeyring, PlainKeyring, LockedKeyring])
def test_a_keyring_that_does_not_keep_the_key_leaves_it_to_the_file(folder, backend):
    open_local_cipher(folder, open_keyring=backend)
    assert (folder / KEY_FILE).exists()


def test_what_was_sealed_before_there_was_a_keyring_still_opens(folder):
    sealed = open_local_cipher(folder, open_keyring=None).seal(b"tea", associated_data=PLACE)
    ring = MemoryKeyring(data_key="0f" * 32)
    vault = open_local_cipher(folder, open_keyring=lambda: ring)
    assert vault.open(sealed, associated_data=PLACE) == b"tea"
    sealed = vault.seal(b"new", associated_data=PLACE)
    assert LocalCipher((DataKey(Secret("0f" * 32)),)).open(sealed, associated_data=PLACE) == b"new"


def test_a_key_that_is_not_here_is_named_with_what_to_do(folder):
    ring = MemoryKeyring()
    sealed = open_local_cipher(folder, open_keyring=lambda: ring).seal(b"tea", associated_data=PLACE)
    key = DataKey(Secret(ring.entries[KEYRING_ENTRY]))
    with pytest.raises(
        mf.JournalError, match=f"{PLACE}: .*{key.id.hex()}.*did not open: KeyringLocked.*unlocked"
    ) as caught:
        open_local_cipher(folder, open_keyring=lambda: LockedKeyring(**ring.entries)).open(
            sealed, associated_data=PLACE
        )
    for text in shown_by(caught.value):
        assert not found_in(text, ring.entries)


@pytest.mark.parametrize("text", ["", "0f" * 31, "not hexadecimal"])
def test_a_damaged_key_is_refused_and_not_replaced(folder, text):
    folder.mkdir(mode=0o700)
    (folder / KEY_FILE).touch(mode=0o600)
    (folder / KEY_FILE).write_text(text + "\n")
    with pytest.raises(mf.JournalError, match="damaged"):
        open_local_cipher(folder, open_keyring=None)
    assert (folder / KEY_FILE).read_text() == text + "\n"


def test_processes_that_begin_at_once_make_one_key(folder):
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        ids = pool.map(key_id_of, [folder] * 4, chunksize=1)
    assert len(set(ids)) == 1


def key_id_of(folder):
    return open_local_cipher(folder, open_keyring=None).keys[0].id
