"""Options that are one of a few words."""

from __future__ import annotations

from typing import get_args

from memframe.errors import PlanError


def check_option(name: str, value: object, kind: object) -> None:
    """Refuse a word that is none of the choices.

    Raises
    ------
    PlanError
    """
    choices = get_args(kind)
    if value not in choices:
        raise PlanError(f"{name}={value!r}: give one of {', '.join(map(repr, choices))}")
