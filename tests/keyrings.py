"""Keyrings for tests: real backends of the keyring library that keep nothing on this machine."""

import keyring


class MemoryKeyring(keyring.backend.KeyringBackend):
    """A real backend of the keyring library that keeps its entries in memory."""

    priority = 5

    def __init__(self, **entries):
        super().__init__()
        self.entries = entries
        self.log = []

    def get_password(self, service, username):
        assert service == "memframe"
        return self.entries.get(username)

    def set_password(self, service, username, password):
        assert service == "memframe"
        self.log.append(("set", username))
        self.entries[username] = password

    def delete_password(self, service, username):
        assert service == "memframe"
        self.log.append(("delete", username))
        del self.entries[username]


class LockedKeyring(MemoryKeyring):
    def get_password(self, service, username):
        raise keyring.errors.KeyringLocked(f"{service}/{username}")
