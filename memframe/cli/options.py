"""Groups of commands, whose help lists each with a whole sentence, and paths as commands take them.

Asking for secrets: hidden at a terminal, a line of standard input elsewhere.

What commands that work on one user's memories have in common: `--request`, `--json`, and the way in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from memframe.access import Access, open_access
from memframe.client import Client, connect
from memframe.client.responses import is_uuid
from memframe.display import printable
from memframe.errors import ConfigError, NotFoundError
from memframe.files import expand_path
from memframe.plan.wording import listed
from memframe.secret import Secret

MAX_SENTENCE = 200


class Group(click.Group):
    """A group whose help has the first sentence of each command, on as many lines as it takes."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(MAX_SENTENCE)) for name, command in commands if command]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class LocalPath(click.Path):
    """A path in an option or argument, with ``~`` as the home folder: shells leave it alone in ``--out=~/a.plan``."""

    def __init__(self, **rules: Any) -> None:
        super().__init__(path_type=Path, **rules)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(expand_path(value), param, ctx)


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


Command = Callable[..., None]


def request_option(*, required: bool) -> Callable[[Command], Command]:
    """The option that says whose memories are meant."""
    return click.option(
        "--request",
        "request_id",
        required=required,
        envvar="MEMFRAME_REQUEST",
        show_envvar=True,
        metavar="ID",
        help="The approved access request to the user's memories, or the beginning of its id; `memframe request list` "
        "shows them.",
    )


on_request = request_option(required=True)

as_json = click.option("--json", "as_json", is_flag=True, help="JSON on standard output, for scripts.")


@contextmanager
def opened(request_id: str) -> Iterator[Access]:
    """An open access, with the key and addresses of the settings; connections are closed afterwards."""
    with connect() as client:
        yield open_access(client, full_request_id(client, request_id))


def full_request_id(client: Client, given: str) -> str:
    """Return the whole id of an access request, of which the beginning is enough.

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
    """Return the only one of `ids` that begins with what was given, or is just that.

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
            f"{printable(given)} is the beginning of {len(found):,} {nouns[1]}, {listed(sorted(found))}: "
            "give more of the id"
        )
    raise NotFoundError(
        f"there is no {nouns[0]} whose id is or begins with {printable(given)!r}: `{shown_by}` shows the ids",
        status=404,
    )
