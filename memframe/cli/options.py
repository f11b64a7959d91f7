"""Options that commands share, prompts for secrets, and ids given by their beginning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
import pandas as pd

from memframe.access import Access, open_access
from memframe.client import Client, connect
from memframe.client.responses import is_uuid
from memframe.display import number_of, printable
from memframe.errors import ConfigError, NotFoundError
from memframe.files import expand_path
from memframe.frames import READ
from memframe.plan.change import list_some
from memframe.readers import read_memories
from memframe.secret import Secret

MAX_SENTENCE = 200


class Group(click.Group):
    """A group whose help shows the whole first sentence of each command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(MAX_SENTENCE)) for name, command in commands if command]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class LocalPath(click.Path):
    """A path in which ``~`` is the home folder: shells do not expand it in ``--out=~/a.plan``."""

    def __init__(self, **rules: Any) -> None:
        super().__init__(path_type=Path, **rules)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(expand_path(value), param, ctx)


def ask_secret(name: str) -> Secret:
    """Prompt for a secret without showing it, or read the next line of piped input.

    `getpass` would use the terminal of a script even if its input is piped.
    """
    if sys.stdin.isatty():
        return Secret(click.prompt(name, hide_input=True, err=True))
    line = sys.stdin.readline()
    if not line.strip():
        raise ConfigError(f"{name}: standard input has no line for it; add one, or run this in a terminal")
    return Secret(line.strip())


def ask_secrets(name: str) -> list[Secret]:
    """Prompt for secrets up to an empty one, or read all lines of piped input that are not blank."""
    if sys.stdin.isatty():
        return [*iter(partial(_prompt_secret, f"{name} (empty: no more)"), Secret(""))]
    return [Secret(line.strip()) for line in sys.stdin if line.strip()]


def read_keys(file: Path, option: str) -> list[Secret]:
    """Return the lines of a file; errors do not quote its path, which may be a key that was given instead."""
    try:
        return [Secret(line.strip()) for line in file.read_text("utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError:
        fault = "it is not text in UTF-8"
    except OSError as error:
        fault = error.strerror or "it cannot be opened"
    raise ConfigError(
        f"the file of {option} cannot be read: {fault}; give the path of a text file, never a key itself"
    )


USER_KEY = "the user's encryption_key as hexadecimal text"


def read_key(file: Path, option: str = "--key-file", what: str = USER_KEY) -> Secret:
    """Return the one key of a file."""
    keys = read_keys(file, option)
    if len(keys) != 1:
        raise ConfigError(
            f"the file of {option} has {number_of(len(keys), 'line', 'lines')}: it needs one, {what}"
        )
    return keys[0]


def _prompt_secret(name: str) -> Secret:
    return Secret(click.prompt(name, default="", show_default=False, hide_input=True, err=True))


Command = Callable[..., None]


def request_option(*, required: bool) -> Callable[[Command], Command]:
    """Make the option that names the access request."""
    return click.option(
        "--request",
        "request_id",
        required=required,
        envvar="MEMFRAME_REQUEST",
        show_envvar=True,
        metavar="ID",
        help="Id of the approved access request, or its beginning; `memframe request list` shows the ids.",
    )


request_required = request_option(required=True)

key_file_option = click.option(
    "--key-file",
    type=LocalPath(dir_okay=False),
    help="File with the user's encryption_key as hexadecimal text, which opens a sealed archive.",
)

as_json = click.option("--json", "as_json", is_flag=True, help="JSON on standard output, for scripts.")


def read_file(path: Path, form: str, zone: str | None) -> pd.DataFrame:
    """Read a file of another memory system, and print to standard error what was left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        memories = read_memories(path, format=form, zone=zone)
    click.echo(memories.attrs[READ]["summary"], err=True)
    return memories


@contextmanager
def open_request(request_id: str) -> Iterator[Access]:
    """Open the access with the settings, and close its connections afterwards."""
    with connect() as client:
        yield open_access(client, full_request_id(client, request_id))


def full_request_id(client: Client, given: str) -> str:
    """Complete the id of an access request.

    Raises
    ------
    NotFoundError
        No access request of this developer account begins so.
    ConfigError
        Several do; the message names them.
    """
    if is_uuid(given):
        return given
    ids = (request.id for request in client.access_requests())
    return full_id(given, ids, ("access request", "access requests"), shown_by="memframe request list")


def full_id(given: str, ids: Iterable[str], nouns: tuple[str, str], *, shown_by: str) -> str:
    """Return the one of `ids` that begins with `given`, or equals it.

    >>> full_id("7C9", ["7c9e6679", "5f0c9b1e"], ("memory", "memories"), shown_by="memframe export")
    '7c9e6679'
    """
    beginning = given.strip().lower()
    found = [one for one in ids if beginning and one.lower().startswith(beginning)]
    exact = [one for one in found if one == given]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if found:
        raise ConfigError(
            f"{printable(given)} is the beginning of {len(found):,} {nouns[1]}, {list_some(sorted(found))}: "
            "give more of the id"
        )
    raise NotFoundError(
        f"no {nouns[0]} has an id that is or begins with {printable(given)!r}: `{shown_by}` shows the ids",
        status=404,
    )
