"""The option that names an access request, and the access that commands get from it.

It is separate from `memframe.cli.connect`, whose commands start without pandas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click

from memframe.access import Access, open_access
from memframe.cli.connect import full_request_id
from memframe.cli.options import Command
from memframe.client import connect


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


@contextmanager
def open_request(request_id: str) -> Iterator[Access]:
    """Open the access with the settings, and close its connections afterwards."""
    with connect() as client:
        yield open_access(client, full_request_id(client, request_id))


def access_required(command: Command) -> Command:
    """Add the option that names the access request; the command gets the open access first."""

    @request_option(required=True)
    @wraps(command)
    def with_access(request_id: str, **others: Any) -> None:
        with open_request(request_id) as access:
            command(access, **others)

    return with_access
