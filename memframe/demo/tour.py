"""A tour on a terminal: step titles, sentences, code and tables, fitted to its width.

The end of the tour: what is wrong with the memories, a plan to clean them up, and the way back.

The folder in which a tour leaves its files: checked before the tour, and gone again if nothing came of it.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import click
import pandas as pd

import memframe as mf
from memframe.archive import load_archive
from memframe.change import FIELDS, Change, masked
from memframe.errors import ConfigError, FrameError
from memframe.keystore import open_local_cipher
from memframe.plan.wording import counted, undo_note
from memframe.progress import ProgressOption
from memframe.runtime import Runtime

INDENT = "   "
NARROWEST, WIDEST = 40, 110
"""Columns between which text is fitted: on less nothing can be read, and longer lines tire."""

_GAP = 2


class Telling:
    """Where a tour is told.

    Parameters
    ----------
    write : callable
        Gets every line.
    width : int
        Columns of the terminal.
    colour : bool
        Whether titles are bold and code is coloured.

    Examples
    --------
    >>> telling = Telling(print, width=40)
    >>> telling.say("Words are wrapped at the end of the line, as here.")
       Words are wrapped at the end of the
       line, as here.
    """

    def __init__(
        self, write: Callable[[str], object] = print, *, width: int = 80, colour: bool = False
    ) -> None:
        self._write = write
        self._width = min(max(width, NARROWEST), WIDEST) - 1
        self._colour = colour
        self._n_steps = 0

    def step(self, title: str) -> None:
        """The title of the next step, with its number."""
        self._n_steps += 1
        self.title(f"{self._n_steps}. {title}")

    def title(self, text: str) -> None:
        """A title, below an empty line."""
        self._write("")
        for line in textwrap.wrap(text, self._width, subsequent_indent=INDENT):
            self._write(self._styled(line, bold=True))

    def say(self, text: str) -> None:
        """A sentence or two."""
        for line in textwrap.wrap(text, self._width, initial_indent=INDENT, subsequent_indent=INDENT):
            self._write(line)

    def code(self, line: str) -> None:
        """A line of Python that is being run."""
        self._write(self._styled(f"{INDENT}{line}", fg="cyan"))

    def pairs(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Names, and beside each what belongs to it; addresses, paths and commands stay whole."""
        pairs = list(pairs)
        room = max(display_width(name) for name, _ in pairs) + _GAP
        for name, text in pairs:
            lines = textwrap.wrap(
                text, self._width - len(INDENT) - room, break_long_words=False, break_on_hyphens=False
            )
            for number, line in enumerate(lines):
                label = padded("" if number else name, room)
                self._write(f"{INDENT}{self._styled(label, dim=True)}{line}")

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Rows of cells, one line each, then an empty line; the last column is cut to what is left of the width."""
        *rooms, _ = [max(map(display_width, column)) + _GAP for column in zip(*rows, strict=True)]
        left = self._width - len(INDENT) - sum(rooms)
        for *cells, last in rows:
            start = "".join(map(padded, cells, rooms))
            self._write(f"{INDENT}{self._styled(start, dim=True)}{cut(last, left)}")
        self._write("")

    def _styled(self, text: str, **style: bool | str) -> str:
        return click.style(text, **style) if self._colour else text  # type: ignore[arg-type]  # names of its own


def display_width(text: str) -> int:
    """Columns that a terminal takes for a text.

    >>> display_width("日本"), display_width("Zoë"), display_width("Zoe\\u0308")
    (4, 3, 3)
    """
    return sum(map(_columns_of, text))


def padded(text: str, width: int) -> str:
    """Text with blanks up to a width."""
    return text + " " * (width - display_width(text))


def cut(text: str, width: int) -> str:
    """Text on one line, and what does not fit replaced by an ellipsis.

    >>> cut("a long\\n way", 9), cut("日本語です", 7)
    ('a long w…', '日本語…')
    """
    line = " ".join(text.split())
    if display_width(line) <= width:
        return line
    while line and display_width(line) >= width:
        line = line[:-1]
    return f"{line}…"


def _columns_of(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


ARCHIVE = "memories.parquet"
PICTURES = ("timeline.png", "tags.png")
REPORT = "audit.html"
FINDINGS = "audit.json"


@contextmanager
def keeping_in(folder: Path) -> Iterator[None]:
    """A folder for a tour's files while the block runs; a new one that stays empty is removed.

    Raises
    ------
    ConfigError
        The folder cannot be written to, or holds files of the same names which are not a tour's.
    """
    is_new = not folder.exists()
    try:
        with writing_to(folder):
            folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=folder).close()
        _refuse_strangers(folder)
        yield
    finally:
        if is_new:
            with suppress(OSError):  # it is not empty, or was never made
                folder.rmdir()


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turns what a file system refuses into a message."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"the folder {folder} cannot be written to ({error.strerror}): choose another with --folder"
        ) from None


def _refuse_strangers(folder: Path) -> None:
    """Files of an earlier tour may be replaced, those of somebody else may not."""
    there = [folder / name for name in (ARCHIVE, *PICTURES, REPORT, FINDINGS) if (folder / name).exists()]
    if there and not _is_of_a_tour(folder):
        raise ConfigError(f"{there[0]} is not this tour's to replace: choose another folder with --folder")


def _is_of_a_tour(folder: Path) -> bool:
    """A tour writes its archive first: beside it, the pictures are its own."""
    try:
        load_archive(folder / ARCHIVE, columns=["id"])
    except (FrameError, OSError):
        return False
    return True


MAX_SENTENCES = 3


def audit(memories: pd.DataFrame, tags: pd.DataFrame, folder: Path, telling: Telling) -> mf.Audit:
    """Look for what is wrong, tell the worst, and keep the report."""
    telling.step("What is wrong with them? An audit, which changes nothing")
    telling.code("audit = mf.audit_memories(memories, tags=mf.load_tags(access))")
    audit = mf.audit_memories(memories, tags=tags)
    for sentence in audit.verdict[:MAX_SENTENCES]:
        telling.say(sentence)
    with writing_to(folder):
        audit.to_html(folder / REPORT)
        audit.to_json(folder / FINDINGS)
    telling.pairs(
        [
            ("proposed", f"{', '.join(audit.proposals)} (memories, each counted once)"),
            (REPORT, "the report as one page, secrets masked; it is in the folder"),
            (FINDINGS, "every finding, for scripts and for the next audit to be compared with"),
        ]
    )
    return audit


def clean_up(access: mf.Access, audit: mf.Audit, telling: Telling, progress: ProgressOption) -> None:
    """Plan what the audit proposes, carry it out, and take it back."""
    plan = _plan(access, audit, telling)
    before = mf.load_memories(access, progress=False)
    with TemporaryDirectory(prefix="memframe-") as scratch:
        here = Path(scratch)
        access.client.runtime = Runtime(
            folder=here / "runs", open_local_cipher=partial(open_local_cipher, here, open_keyring=None)
        )
        carry_out = partial(mf.apply_plan, access, progress=progress)
        telling.step("It is carried out, and what it did is on record before it does it")
        telling.code(f"run = mf.apply_plan(access, plan, confirm={plan.counts.get('delete', 0)})")
        run = carry_out(plan, confirm=plan.counts.get("delete"))
        run.raise_for_failures()
        _tell_what_is_left(access, telling)
        telling.step("And it is taken back")
        telling.code("mf.apply_plan(access, mf.plan_undo(access, run))")
        back = mf.plan_undo(access, run)
        carry_out(back, confirm=back.counts.get("delete")).raise_for_failures()
    telling.say(compared(before, mf.load_memories(access, progress=False)))


def compared(before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Say how memories differ after an undo from what they were, their ids and dates included."""
    was, now = (frame.set_index("id") for frame in (before, after))
    both = was.index.intersection(now.index)
    n_new = len(now) - len(both)
    n_redated, n_updated = (
        int((was[name][both] != now[name][both]).sum()) for name in ("created_at", "updated_at")
    )
    is_same = _held(before) == _held(after)
    parts = [
        f"{len(after)} memories, {'every text, tag and score as it was' if is_same else 'and NOT all as they were'}",
        *([f"{n_new} with a new id and the date of today"] if n_new else []),
        *([f"{n_redated} with another date of creation"] if n_redated else []),
        *([] if n_new or n_redated else ["all with the ids and dates of creation that they had"]),
    ]
    if n_updated:
        parts.append(
            f"{n_updated} that were changed and changed back have a new updated_at, which no undo takes back"
        )
    return "; ".join(parts) + "."


def _plan(access: mf.Access, audit: mf.Audit, telling: Telling) -> mf.Plan:
    telling.step("A cleanup is a plan first: to look at, to change, to keep")
    telling.code("plan = mf.plan_cleanup(access, audit)")
    plan = mf.plan_cleanup(access, audit)
    for note in plan.notes:
        telling.say(note)
    telling.say(f"{counted(plan.counts)}. Three of them:")
    telling.pairs(_examples(plan))
    telling.say(undo_note(plan) or "")
    telling.say(
        "Merging loses nothing: where a name, a number or a source would be lost, both memories stay."
    )
    junk = audit.findings[(audit.findings["check"] == "junk") & (audit.findings["action"] == "review")]
    n_junk = len({*junk["id"]} - {change.id for change in plan.records if change.action == "delete"})
    telling.say(
        f"Deleted are only copies, heartbeats and empty rows. {n_junk} more memories read like junk and stay for "
        "review: wording alone does not tell noise from a fact."
    )
    return plan


def _examples(plan: mf.Plan) -> list[tuple[str, str]]:
    """A secret that goes, memories that become one, and a heartbeat."""
    changes = [masked(change) for change in plan.records]
    redacted = next(change for change in changes if "[redacted" in str(change.after.get("content")))
    merged = next(change for change in changes if change.reason and "near_duplicate" in change.reason)
    beat = next(
        change for change in changes if change.reason and change.reason.startswith("junk (heartbeat)")
    )
    return [
        ("redact", f"“{redacted.after['content']}”"),
        ("merge", _text_of(merged)),
        ("delete", _text_of(beat)),
    ]


def _text_of(change: Change) -> str:
    return f"“{cut(str(change.before['content']), 90)}”: {change.reason}"


def _tell_what_is_left(access: mf.Access, telling: Telling) -> None:
    left = mf.load_memories(access, progress=False)
    again = mf.audit_memories(left, tags=mf.load_tags(access))
    n_more = len(mf.plan_cleanup(access, again))
    n_secrets = int((again.findings["check"] == "secret").sum())
    telling.say(
        f"{len(left)} memories are left. A second audit finds {n_secrets or 'no'} secrets, and "
        f"{n_more or 'nothing'} more to clean up by itself."
    )


def _held(memories: pd.DataFrame) -> list[str]:
    """What memories hold, in whatever order, apart from ids and times."""
    fields = memories[list(FIELDS)].assign(tags=memories.tags.map(sorted))
    return sorted(map(repr, fields.itertuples(index=False, name=None)))
