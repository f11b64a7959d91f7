"""The `memframe` command: the verbs of the toolkit for shells and scripts.

Exit codes: 0 done, 1 error (a message, never a traceback), 2 usage, 3 conflicts or rejected rows, 4 rows with an
unknown outcome, 5 access refused (the key, the token or the approval), 6 findings of the severity of `--fail-on`.
"""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from memframe.cli.options import CONFLICTS, MAX_SENTENCE, REFUSED, Group
from memframe.display import escape_invisible
from memframe.errors import (
    AccessError,
    AuthError,
    ConfigError,
    MemframeError,
    StalePlanError,
    describe_install,
)
from memframe.progress import hide_progress

COMMANDS = {
    "demo": "memframe.cli.demo:demo_command",
    "login": "memframe.cli.connect:login_command",
    "logout": "memframe.cli.connect:logout_command",
    "request": "memframe.cli.connect:request_group",
    "show": "memframe.cli.look:show_command",
    "list": "memframe.cli.look:list_command",
    "search": "memframe.cli.look:search_command",
    "export": "memframe.cli.read:export_command",
    "history": "memframe.cli.history:history_command",
    "restore": "memframe.cli.write:restore_command",
    "review": "memframe.cli.review:review_command",
    "plan": "memframe.cli.write:plan_command",
    "apply": "memframe.cli.write:apply_command",
    "resume": "memframe.cli.write:resume_command",
    "undo": "memframe.cli.write:undo_command",
    "reseal": "memframe.cli.write:reseal_command",
    "runs": "memframe.cli.write:runs_command",
    "fleet": "memframe.cli.fleet:fleet_group",
    "audit": "memframe.cli.read:audit_command",
    "clean": "memframe.cli.clean:clean_command",
    "serve": "memframe.cli.serve:serve_command",
    "service": "memframe.cli.service:service_group",
}
"""Each command, with the module and name that are loaded when it is run."""

FORMER = {"report": "`memframe report PATH` is now `memframe audit --html PATH`, with the same options"}
"""Former commands, and what to call instead."""

OF_THE_SERVICE = {"demo", "serve", "service"}
"""Commands that need the extra ``service``."""

NOT_INSTALLED = f"(not installed: {describe_install('service')})"


class Commands(Group):
    """A group that loads a command only when it is run, and turns our errors into messages."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name in FORMER:
            return _answer(cmd_name, FORMER[cmd_name])
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        try:
            command: click.Command = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            return _without_extra(cmd_name, str(error.name))
        return command

    def list_summaries(self, ctx: click.Context) -> list[tuple[str, str]]:  # noqa: ARG002 - click's signature
        """Return each command with its first sentence, without importing it: that takes more than a second."""
        return [(name, _summary_of(name)) for name in COMMANDS]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands and options."""
        found = [CompletionItem(name, help=words) for name, words in self.list_summaries(ctx)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(item for item in found if item.value.startswith(incomplete)), *options]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MemframeError as error:
            raise Failed(error) from None
        except KeyboardInterrupt as stopped:
            if hint := getattr(stopped, "hint", None):
                raise click.ClickException(f"stopped: {hint.shell}") from None
            raise  # click prints "Aborted!"
        except BrokenPipeError:
            raise  # click itself ends quietly if the reader of a pipe has gone
        except OSError as error:
            raise click.ClickException(str(error)) from None


EXIT_CODES: dict[type[MemframeError], int] = {
    AccessError: REFUSED,
    AuthError: REFUSED,
    StalePlanError: CONFLICTS,
}
"""Exit codes of errors that a script may want to distinguish; all other errors end with 1."""


class Failed(click.ClickException):
    """An error of memframe as a click exception, with its message and exit code."""

    def __init__(self, error: MemframeError) -> None:
        lines = error.for_shell().split("\n")
        super().__init__("\n".join(map(escape_invisible, lines)))  # names of files may hold such characters
        self.exit_code = next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1)  # type: ignore[misc]  # click sets it on instances, too


def _summary_of(name: str) -> str:
    """Read the first sentence of a command's docstring from its source."""
    module, _, function = COMMANDS[name].partition(":")
    try:
        spec = find_spec(module) if name not in OF_THE_SERVICE or find_spec("litestar") else None
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        return NOT_INSTALLED
    tree = ast.parse(Path(spec.origin).read_text("utf-8"))
    (found,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function)
    return click.Command(name, help=ast.get_docstring(found)).get_short_help_str(MAX_SENTENCE)


def _without_extra(name: str, missing: str) -> click.Command:
    """Make a placeholder for a command whose libraries are not installed."""
    words = f"`memframe {name}` needs the library {missing}: {describe_install('service')}"
    return _answer(name, words, help=NOT_INSTALLED)


def _answer(name: str, words: str, *, help: str | None = None) -> click.Command:  # noqa: A002 - as click has it
    """Make a command that accepts all arguments, and only says why it does nothing."""

    def refuse() -> None:
        raise ConfigError(words)

    return click.Command(
        name,
        callback=refuse,
        help=help or words,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("-q", "--quiet", is_flag=True, help="Print results and errors only.")
@click.version_option(package_name="memframe")
@click.pass_context
def main(context: click.Context, quiet: bool) -> None:
    """The memories of an AI as data: serve, load, audit, plan, write back, undo.

    Set the address and key in MEMFRAME_BASE_URL and MEMFRAME_API_KEY, or store them with `memframe login`.

    \b
    Exit codes: 0 done, 1 error, 2 wrong usage, 3 conflicts or rejected rows,
    4 rows with an unknown outcome, 5 access refused, 6 findings of --fail-on.

    \b
    Completion: put this into the start file of your shell, here bash
    (for others zsh_source or fish_source):
        eval "$(_MEMFRAME_COMPLETE=bash_source memframe)"

    \b
    Example:
        memframe demo
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # pipes on Windows can encode few letters
    if not sys.stdin:  # closed by the shell
        sys.stdin = TextIOWrapper(BytesIO())
    if quiet:
        context.with_resource(hide_progress())
