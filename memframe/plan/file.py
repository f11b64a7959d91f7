"""Saved plans: a mark, then the plan sealed with the data key of this user on this machine.

What is saved is the plan in the open form of its records, which no display shows; therefore it is sealed.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TypeVar

import msgspec

from memframe.errors import PlanError
from memframe.private_file import writing_privately
from memframe.vault import Vault

T = TypeVar("T")

MARK = b"memframe plan 1\n"
BOUND_TO = "the saved plan"


def save_sealed(path: str | PathLike[str], plan: msgspec.Struct, vault: Vault) -> None:
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
        with writing_privately(target) as file:
            file.write(MARK + sealed)
    except OSError as fault:
        raise PlanError(f"the plan cannot be written to {target}: {fault.strerror}") from None


def load_sealed(path: str | PathLike[str], kind: type[T], vault: Vault) -> T:
    """Read back what was saved.

    Raises
    ------
    PlanError
        There is no plan.
    JournalError
        It was changed, or sealed by another user or on another machine.
    """
    source = Path(path).expanduser()
    try:
        stored = source.read_bytes()
    except OSError as fault:
        raise PlanError(f"the plan {source} cannot be read: {fault.strerror}") from None
    if not stored.startswith(MARK):
        raise PlanError(f"{source} is no saved plan, or of another version of memframe")
    data = vault.open(stored.removeprefix(MARK), bound_to=BOUND_TO)
    return msgspec.json.decode(data, type=kind)


def _is_plan(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MARK)) == MARK
