"""Saved plans: a mark, then the plan sealed with the data key of this user on this machine.

What is saved is the plan in the open form of its records, which no display shows; therefore it is sealed.
"""

from __future__ import annotations

from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TypeVar

import msgspec

from memframe.errors import PlanError
from memframe.files import atomic_file
from memframe.keystore import LocalCipher

T = TypeVar("T")

BEGINNING = b"memframe plan "
MARK = BEGINNING + b"1\n"
BOUND_TO = "the saved plan"


def save_sealed(path: str | PathLike[str], plan: msgspec.Struct, vault: LocalCipher) -> None:
    """Write a plan to a file of mode 0600; it replaces another plan, and nothing else.

    Raises
    ------
    PlanError
        The file cannot be written, or is something else.
    """
    target = Path(path).expanduser()
    try:
        if target.exists() and not _is_plan(target):
            raise PlanError(f"{target} is not replaced, as it is no plan: choose another path")
        sealed = vault.seal(msgspec.json.encode(plan), bound_to=BOUND_TO)
        with atomic_file(target) as file:
            file.write(MARK + sealed)
    except OSError as fault:
        raise PlanError(f"the plan cannot be written to {target}: {fault.strerror}") from None


def load_sealed(path: str | PathLike[str], kind: type[T], vault: LocalCipher) -> T:
    """Read back what was saved.

    Raises
    ------
    PlanError
        There is no plan, or it is of another version.
    JournalError
        It was changed, or sealed by another user or on another machine.
    """
    source = Path(path).expanduser()
    try:
        stored = source.read_bytes()
    except OSError as fault:
        raise PlanError(f"the plan {source} cannot be read: {fault.strerror}") from None
    if not stored.startswith(BEGINNING):
        raise PlanError(f"{source} is no saved plan: check the path")
    refusal = PlanError(
        f"{source} was saved by another version of memframe ({version('memframe')} cannot read it): use that version, "
        "or plan anew and save again"
    )
    if not stored.startswith(MARK):
        raise refusal
    data = vault.open(stored.removeprefix(MARK), bound_to=BOUND_TO)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, ValueError):
        pass
    raise refusal  # out here, as what it came from may quote the plan


def _is_plan(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(BEGINNING)) == BEGINNING
