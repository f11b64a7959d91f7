"""Asking for secrets: hidden at a terminal, a line of standard input elsewhere."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from memframe.errors import ConfigError
from memframe.secret import Secret


def ask_secret(name: str) -> Secret:
    """The secret that a person types or pastes, never shown; or the next line that a script pipes in.

    Not left to `getpass`, which talks to the terminal of a script even where its input is piped.
    """
    if sys.stdin.isatty():
        return Secret(click.prompt(name, hide_input=True, err=True))
    line = sys.stdin.readline()
    if not line.strip():
        raise ConfigError(f"{name}: standard input has no line with it; give one, or run this in a terminal")
    return Secret(line.strip())


def ask_secrets(name: str) -> list[Secret]:
    """As many as a person types, up to an empty one; or all lines that a script pipes in, blank ones apart."""
    if sys.stdin.isatty():
        return [*iter(partial(_next_secret, f"{name} (empty: no more)"), Secret(""))]
    return [Secret(line.strip()) for line in sys.stdin if line.strip()]


def keys_in(file: Path, option: str) -> list[Secret]:
    """Return the lines of a file, which is not named where it cannot be read: somebody may have given a key instead."""
    try:
        return [Secret(line.strip()) for line in file.read_text("utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError:
        fault = "it is not text in UTF-8"
    except OSError as error:
        fault = error.strerror or "it cannot be opened"
    raise ConfigError(
        f"the file of {option} cannot be read: {fault}; give the path of a text file, never a key itself"
    )


def _next_secret(name: str) -> Secret:
    return Secret(click.prompt(name, default="", show_default=False, hide_input=True, err=True))
