"""Seal and open content, in every layout that is known."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from memframe.envelope.alphabets import is_utf8, utf8_of
from memframe.envelope.detect import (
    LAYOUTS,
    OWN,
    PLAIN,
    bind,
    check_key,
    every_layout,
    fault_of_key,
    looks_sealed,
    read_format,
    reason_for,
)
from memframe.envelope.layouts import Authenticated, Codec, Layout, OpenedText, Spelling
from memframe.errors import ConfigError, Hint, SealError
from memframe.secret import Secret

__all__ = ["LAYOUTS", "Codec", "Envelope", "Opened"]

_NOT_TEXT = "opened, but not UTF-8 text: written by a program that stores something else than text"


class Opened(NamedTuple):
    """Result of `Envelope.open_many` for a column.

    ``plain`` has UTF-8, or None where there was no text or it could not be opened. ``errors`` has the reasons by
    position. ``n_plain`` counts texts that were not sealed and passed as plain text.
    """

    plain: list[bytes | None]
    errors: dict[int, str]
    n_plain: int


class Envelope:
    """Seal and open the content of one user under one key.

    Layouts with a mark (ours, JWE, Fernet, JSON) are recognised by it. Among the others ``"auto"`` reads each row in
    the layout that authenticates it, trying that of the previous row first. Content that does not look sealed at all
    passes as plain text and is counted. A name reads only that layout. A list reads each row in any of its layouts,
    tried in that order. Layouts without authentication are read only by name, and never written.

    Content is written in ``write_format``; else in the first authenticated layout that was read (ours only if no
    other was read); else in the first authenticated one that ``content_format`` names; else in ours.

    One envelope may be shared by threads.

    Parameters
    ----------
    key : Secret
        The ``encryption_key`` of the credentials: 64 hexadecimal characters. It is not used by a codec of your own,
        nor to read plain text.
    user_id : str
        Bound to content that is sealed in our own layout, together with ``key_version``.
    key_version : int
    content_format : str, list of str, or Codec
        Formats to read: ``"auto"``, names out of `LAYOUTS` and ``"plain"``, or a codec of your own. A name may say
        how bytes are derived from the key text: ``"gcm-iv:tag:ct@sha256"`` (its SHA-256), ``"gcm-iv:tag:ct@ascii"``
        (its first 32 characters); otherwise the hexadecimal text is decoded.
    write_format : str, optional
        Format to write: the name of an authenticated layout.

    Raises
    ------
    SealError
        The key is not fit for use.
    ConfigError
        A format is unknown, or cannot be written.

    Attributes
    ----------
    content_format : str, list of str, or Codec
        The parameter.

    Notes
    -----
    Nonces are random. With nonces of 96 bits a key is safe for 2**32 sealings (NIST SP 800-38D), which a person's
    memories never reach; sealings by other programs under the same key count too. The source of nonces is not a
    parameter, because two equal nonces would reveal the content.

    Examples
    --------
    >>> envelope = Envelope(Secret("0f1e" * 16), user_id="4f0c", key_version=2)
    >>> sealed = envelope.seal("Likes tea")
    >>> sealed[:6]
    'mf1.2.'
    >>> envelope.open(sealed)
    'Likes tea'
    >>> envelope.open_many([sealed, None, "mf1.1.AAAA"])
    Opened(plain=[b'Likes tea', None, None],
           errors={2: 'sealed with key_version 1, these credentials hold 2'}, n_plain=0)
    """

    def __init__(
        self,
        key: Secret,
        *,
        user_id: str,
        key_version: int,
        content_format: str | Sequence[str] | Codec = "auto",
        write_format: str | None = None,
    ) -> None:
        self.content_format = content_format
        self._key, self._user_id, self._key_version = key, user_id, key_version
        if type(key_version) is not int or key_version < 0:  # True would be 1
            raise ConfigError(f"key_version is a whole number from 0 up, not {key_version!r}")
        self._is_auto, self._plain_rule, layouts = read_format(content_format)
        if write_format is not None or any(isinstance(layout, str) for layout in layouts):
            check_key(key)
        readers = [layout if isinstance(layout, Layout) else self._bind(layout) for layout in layouts]
        self._authenticated = provable = [reader for reader in readers if isinstance(reader, Authenticated)]
        self._readers = provable if self._is_auto else readers
        self._unmarked = [reader for reader in self._readers if not reader.marked]
        self._writer = None if write_format is None else self._writable(write_format)
        self._first_named = None if self._is_auto or not provable else provable[0]
        self._mutex = threading.Lock()
        self._first_unmarked: Layout | None = None
        """First layout without a mark in which a text was opened; set only with ``"auto"``."""
        self._to_write: Authenticated | None = None
        """First layout that was read and can be written; ours is replaced by the first other one."""
        self._last_read: tuple[Layout, Spelling] | None = None
        """Layout and spelling of the last text that was opened: most columns have one of each."""
        self._spellings: dict[str, Spelling] = {}
        """Spelling that was last read in each layout, by its name; content is written in the same spelling."""

    def __repr__(self) -> str:
        return f"<Envelope of user {self._user_id}, key_version {self._key_version}>"

    def rekey(self, key: Secret, key_version: int) -> Envelope:
        """Return an envelope under another key for the same user and formats, which writes in the same layout."""
        rekeyed = Envelope(
            key,
            user_id=self._user_id,
            key_version=key_version,
            content_format=self.content_format,
            write_format=None if self._writer is None else self._writer.name,
        )
        if self._to_write:
            rekeyed._to_write = next(
                reader for reader in rekeyed._authenticated if reader.name == self._to_write.name
            )
            rekeyed._spellings = dict(self._spellings)
        return rekeyed

    @property
    def layout(self) -> str | None:
        """Name of the first layout in which content was opened, preferably one without a mark; None before."""
        known = self._first_unmarked or self._to_write or (self._last_read and self._last_read[0])
        return None if known is None else known.name

    @property
    def write_layout(self) -> str:
        """Name of the layout in which `seal` writes now; reading may change it."""
        return self._write_layout().name

    def seal(self, text: str) -> str:
        """Seal text for the service.

        Raises
        ------
        SealError
            The text is not valid Unicode: it contains half of a surrogate pair.
        """
        plain = utf8_of(text)
        if plain is None:
            raise SealError(
                "content cannot be sealed: it contains half of a surrogate pair, which is not Unicode"
            )
        layout = self._write_layout()
        return layout.seal(plain, self._spellings.get(layout.name))

    def open(self, sealed: str) -> str:
        """Open sealed text.

        Raises
        ------
        SealError
            The text cannot be opened; the message says whether key, layout or damage is the cause.
        """
        plain, errors, _ = self.open_many([sealed])
        if plain[0] is None:
            raise SealError(f"content cannot be opened: {errors[0]}")
        return plain[0].decode()

    def open_many(self, texts: Sequence[str | None]) -> Opened:
        """Open a column of texts; what cannot be opened is an entry in ``errors``, never an exception."""
        opened = self._open_all(texts)
        if None not in opened and all(map(bytes.isascii, opened)):  # type: ignore[arg-type]  # the usual column
            return Opened(opened, {}, 0)
        errors: dict[int, str] = {}
        n_plain = 0
        for index, (text, plain) in enumerate(zip(texts, opened, strict=True)):
            if plain is None:
                if text is None:
                    continue
                opened[index] = self._as_plain(text)
                if opened[index] is None:
                    tried = sorted(self._readers, key=lambda reader: reader is not self._first_unmarked)
                    errors[index] = reason_for(text, readers=tried, known=self._known)
                else:
                    n_plain += 1
            elif not plain.isascii() and not is_utf8(plain):
                opened[index], errors[index] = None, _NOT_TEXT
        return Opened(opened, errors, n_plain)

    def _open_all(self, texts: Sequence[str | None]) -> list[bytes | None]:
        opened: list[bytes | None] = []
        for text in texts:
            if self._last_read:
                break
            opened.append(None if text is None else self._open_one(text))
        if self._last_read:  # open the rest in one tight loop, and what that leaves out one by one
            layout, spelling = self._last_read
            opened += layout.open_all(texts[len(opened) :], spelling)
            if None in opened:
                opened = [
                    self._open_one(text) if plain is None and text is not None else plain
                    for text, plain in zip(texts, opened, strict=True)
                ]
        return opened

    def _open_one(self, text: str) -> bytes | None:
        marked = [reader for reader in self._readers if reader.marked and reader.fits(text)]
        for layout in marked or self._unmarked:
            read = layout.read(text)
            if read is not None:
                self._learn(layout, read)
                return read.plain
        return None

    def _learn(self, layout: Layout, read: OpenedText) -> None:
        """Record layout and spelling of a text that was opened, for the texts after it and for writing."""
        if not read.plain:  # nothing is learned, because an empty text has the same bytes in several layouts
            return
        with self._mutex:
            if self._is_auto and not layout.marked:
                self._first_unmarked = self._first_unmarked or layout
            if isinstance(layout, Authenticated) and (self._to_write is None or self._to_write.name == OWN):
                self._to_write = layout
            self._last_read = layout, read.spelling
            self._spellings[layout.name] = read.spelling

    def _as_plain(self, text: str) -> bytes | None:
        if self._plain_rule == "never":
            return None
        if self._plain_rule == "unless sealed" and looks_sealed(
            text, among_sealed=self._last_read is not None
        ):
            return None
        return utf8_of(text)

    @cached_property
    def _known(self) -> list[Layout]:
        return [] if fault_of_key(self._key.reveal()) else [self._bind(name) for name in every_layout()]

    def _bind(self, name: str) -> Layout:
        return bind(name, self._key, self._user_id, self._key_version)

    def _writable(self, name: str) -> Authenticated:
        layout = None if name == PLAIN else self._bind(name)
        if not isinstance(layout, Authenticated):
            raise ConfigError(
                f"content format {name!r} can only be read, because it is not authenticated",
                hint=Hint(
                    f"write {OWN!r}, or plain text with encrypt=False", "send plain text with --plaintext"
                )
                + " where the service seals by itself",
            )
        return layout

    @cached_property
    def _own(self) -> Authenticated:
        check_key(self._key)
        return self._writable(OWN)

    def _write_layout(self) -> Authenticated:
        return self._writer or self._to_write or self._first_named or self._own
