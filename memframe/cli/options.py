"""Options that commands share, exit codes, output and prompts for secrets."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from memframe.display import number_of
from memframe.errors import ConfigError, find_nearest
from memframe.files import expand_path
from memframe.secret import Secret

CONFLICTS, UNKNOWN, REFUSED, FOUND = 3, 4, 5, 6
"""Exit codes in addition to 0 (done), 1 (an error) and 2 (wrong usage): see `memframe.cli`."""

MAX_SENTENCE = 200

Command = Callable[..., None]


class Group(click.Group):
    """A group whose help shows the whole first sentence of each command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl(self.list_summaries(ctx))

    def list_summaries(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Return each command with the first sentence of its help."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        return [(name, command.get_short_help_str(MAX_SENTENCE)) for name, command in commands if command]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; refuse an unknown one with the nearest name."""
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            nearest = find_nearest(name, self.list_commands(ctx))
            ctx.fail(f"There is no command {name!r}. The nearest is {nearest!r}.")
        return super().resolve_command(ctx, args)


class LocalPath(click.Path):
    """A path in which ``~`` is the home folder: shells do not expand it in ``--out=~/a.plan``."""

    def __init__(self, **rules: Any) -> None:
        super().__init__(path_type=Path, **rules)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(expand_path(value), param, ctx)


COUNT = click.IntRange(min=0)
SECONDS = click.FloatRange(min=0)
FILE = LocalPath(dir_okay=False)

policy_option = click.option(
    "--policy",
    type=FILE,
    help="Policy file (memframe.toml): which memories to protect, and how much a plan may change.",
)

_JSON = "memframe.json"

as_json = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    callback=lambda context, _, value: context.meta.update({_JSON: value}),
    help="JSON on standard output, for scripts.",
)


def wants_json() -> bool:
    """Return True if the running command was given --json."""
    return bool(click.get_current_context().meta.get(_JSON))


def print_result(values: Any, words: str | Iterable[str] | None = None) -> None:
    """Print values as JSON if --json was given, else words or lines, by default a line for each value.

    Values that are text are already JSON. If they include a developer's secrets, a note says that these are shown only
    once.
    """
    if wants_json():
        text = values if isinstance(values, str | bytes) else json.dumps(values, default=msgspec.to_builtins)
        # JSON is UTF-8, whatever the encoding of the output
        click.echo(text.encode() if isinstance(text, str) else text)
    elif words is not None:
        for line in [words] if isinstance(words, str) else words:
            click.echo(line)
    else:
        click.echo("\n".join(f"{name:<14} {value}" for name, value in values.items()))
    if isinstance(values, dict) and values.keys() & {"api_key", "client_secret"} and not wants_json():
        remark("These secrets are shown only once: keep them.")


def combine(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Join options into one decorator, in the order of the help."""

    def add(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return add


def example(*lines: str) -> Callable[[Any], Any]:
    """Add examples to the docstring of a command, which is its help."""

    def add(command: Any) -> Any:
        shown = "".join(f"\n        {line}" for line in lines)
        command.__doc__ = f"{command.__doc__}\n\n    \b\n    Example:{shown}"
        return command

    return add


def remark(words: str) -> None:
    """Print a note or advice to standard error, unless `memframe --quiet` was given."""
    if not click.get_current_context().find_root().params.get("quiet"):
        click.echo(words, err=True)


def ask_secret(name: str) -> Secret:
    """Prompt for a secret without showing it, or read the next line of piped input.

    It does not use `getpass`, which would read from a script's terminal even if its input is piped.
    """
    if sys.stdin.isatty():
        return Secret(click.prompt(name, hide_input=True, err=True))
    line = sys.stdin.readline()
    if not line.strip():
        raise ConfigError(
            f"{name}: standard input has no more lines; add one, or run the command in a terminal"
        )
    return Secret(line.strip())


def ask_secrets(name: str) -> list[Secret]:
    """Prompt for secrets until one is empty, or read all lines of piped input that are not blank."""
    lines: Iterable[str] = sys.stdin
    if sys.stdin.isatty():
        shown = f"{name} (empty: no more)"
        ask = partial(click.prompt, shown, default="", show_default=False, hide_input=True, err=True)
        lines = iter(ask, "")
    return [Secret(line.strip()) for line in lines if line.strip()]


def read_keys(file: Path, option: str) -> list[Secret]:
    """Return the lines of a file; errors do not quote its path, which may be a key that was given instead."""
    try:
        return [Secret(line.strip()) for line in file.read_text("utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError:
        fault = "it is not text in UTF-8"
    except OSError as error:
        fault = error.strerror or "it cannot be opened"
    raise ConfigError(
        f"the file of {option} cannot be read: {fault}; give the path of a text file, not the key itself"
    )


def key_option(option: str, what: str, *, help: str) -> Callable[[Command], Command]:  # noqa: A002 - as click has it
    """Make an option that names a file; the command gets the only key in it."""

    def read(_: click.Context, __: click.Parameter, file: Path | None) -> Secret | None:
        if file is None:
            return None
        keys = read_keys(file, option)
        if len(keys) != 1:
            count = number_of(len(keys), "line", "lines")
            raise ConfigError(f"the file of {option} has {count}: give a file with one line, {what}")
        return keys[0]

    name = option.removeprefix("--").removesuffix("-file").replace("-", "_")
    return click.option(option, name, type=FILE, metavar="FILE", callback=read, help=help)


key_file_option = key_option(
    "--key-file",
    "the user's encryption_key as hexadecimal text",
    help="File with the user's encryption_key as hexadecimal text, which opens a sealed archive.",
)
