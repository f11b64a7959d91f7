"""What commands that work on one user's memories have in common: `--request`, `--json`, and the way in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import click

from memframe.access import Access, open_access
from memframe.answers import is_uuid
from memframe.client import Client
from memframe.connecting import connect
from memframe.errors import ConfigError, NotFoundError
from memframe.plan.change import list_some
from memframe.showing import printable

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
            f"{printable(given)} is the beginning of {len(found):,} {nouns[1]}, {list_some(sorted(found))}: "
            "give more of the id"
        )
    raise NotFoundError(
        f"there is no {nouns[0]} whose id is or begins with {printable(given)!r}: `{shown_by}` shows the ids",
        status=404,
    )
