"""What commands that work on one user's memories have in common: `--request`, `--json`, and the way in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from memframe.access import Access, open_access
from memframe.connecting import connect

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
        help="The approved access request to the user's memories; `memframe request list` shows them.",
    )


on_request = request_option(required=True)

as_json = click.option("--json", "as_json", is_flag=True, help="JSON on standard output, for scripts.")


@contextmanager
def opened(request_id: str) -> Iterator[Access]:
    """An open access, with the key and addresses of the settings; connections are closed afterwards."""
    with connect() as client:
        yield open_access(client, request_id)
