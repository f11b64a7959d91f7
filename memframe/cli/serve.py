"""`memframe serve`: run the Memory Access Service."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import wraps
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import click
import platformdirs

from memframe.address import is_loopback
from memframe.cli.options import FILE, Command, LocalPath, as_json, example, print_result, remark, wants_json
from memframe.errors import ConfigError, ConflictError
from memframe.service.app import AppFactory
from memframe.service.bounds import CONNECTIONS_PER_ADDRESS
from memframe.service.deployment import (
    DEFAULT_REDIRECT_URI,
    FIRST_DEVELOPER,
    Addresses,
    Deployment,
    NewDeveloper,
    ServiceConfig,
)
from memframe.service.logs import log_as_json
from memframe.service.server import listen, serve_with, url_of
from memframe.service.validation import check_public_url


@contextmanager
def open_service(place: ServiceConfig) -> Iterator[Deployment]:
    """Open the service for a command, and translate errors of the database."""
    with closing(place.open()) as deployment, deployment.store.naming_errors():
        yield deployment


def data_options(command: Command) -> Command:
    """Add the options that locate the data; the command gets them as its argument ``place``."""

    @click.option(
        "--data",
        "folder",
        type=LocalPath(file_okay=False),
        default=lambda: platformdirs.user_data_path("memframe") / "service",
        show_default=False,
        help="Folder of the database and the master key; by default in your own data folder.",
    )
    @click.option(
        "--database",
        metavar="URL",
        envvar="MEMFRAME_DATABASE",
        show_envvar=True,
        help="Another database, as a SQLAlchemy address: postgresql://memframe@db.example/memframe.",
    )
    @click.option(
        "--master-key-file", "key_file", type=FILE, help="The master key, if it is not in the data folder."
    )
    @wraps(command)
    def with_place(folder: Path, database: str | None, key_file: Path | None, **others: Any) -> None:
        command(place=ServiceConfig(folder, database, key_file), **others)

    return with_place


def secrets_of(developer: NewDeveloper) -> dict[str, str]:
    """Return the secrets that a new developer is shown once."""
    return {
        "api_key": developer.api_key.reveal(),
        "client_id": developer.client_id,
        "client_secret": developer.client_secret.reveal(),
    }


def lines_to_paste(
    settings: Mapping[str, str], *, for_powershell: bool = sys.platform == "win32"
) -> list[str]:
    """Return lines for a shell that put settings into its environment.

    >>> lines_to_paste({"redirect_uri": "https://a.example/cb?of=me"}, for_powershell=False)
    ["export MEMFRAME_REDIRECT_URI='https://a.example/cb?of=me'"]
    """
    if for_powershell:
        quoted = {name: value.replace("'", "''") for name, value in settings.items()}
        return [f"$env:MEMFRAME_{name.upper()} = '{value}'" for name, value in quoted.items()]
    return [f"export MEMFRAME_{name.upper()}={shlex.quote(value)}" for name, value in settings.items()]


@click.command("serve")
@data_options
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port", default=8765, type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one."
)
@click.option("--public-url", metavar="URL", help="Address at which others reach the service.")
@click.option("--workers", default=1, type=click.IntRange(1, 64), help="Server processes.")
@click.option(
    "--trusted-proxy",
    metavar="[ADDRESSES]",
    is_flag=False,
    flag_value="127.0.0.1,::1",
    help="Trust X-Forwarded-For from a proxy on this machine, or at these addresses or networks.",
)
@click.option(
    "--connections-per-address",
    metavar="N",
    default=CONNECTIONS_PER_ADDRESS,
    type=click.IntRange(1),
    help="Maximum number of connections from one network address to each process, except from a trusted proxy.",
)
@click.option(
    "--log-json",
    is_flag=True,
    help="Log requests, security events and faults to standard error, as lines of JSON.",
)
@as_json
@example(
    "memframe serve --data ./memories --port 8765",
    "memframe serve --public-url https://memories.example.org --trusted-proxy --workers 2",
)
def serve_command(
    place: ServiceConfig,
    host: str,
    port: int,
    public_url: str | None,
    workers: int,
    trusted_proxy: str | None,
    connections_per_address: int,
    log_json: bool,
) -> None:
    """Run the Memory Access Service until Ctrl-C.

    Prints lines that set its addresses; paste them into another shell. The first start creates the data folder, and
    also prints the secrets of a first developer, only once. /healthz answers while the service runs, /readyz while its
    database does, too.
    """
    own_url = _require_public_url(host, public_url)
    proxies = _parse_networks(trusted_proxy)
    if log_json:
        log_as_json()
    with listen(host, port) as listening, _exit_on_signals():
        addresses = Addresses(own_url or url_of(listening))
        shown = {name: getattr(addresses, name) for name in ("base_url", "auth_url", "dashboard_url")}
        with (
            closing(place.open(may_create=True)) as deployment,
            deployment.store.naming_errors(),
            suppress(ConflictError),  # an earlier start, or another one at this moment, has added it
        ):
            shown |= secrets_of(deployment.add_developer(FIRST_DEVELOPER, only_first=True))
        settings = {name: value for name, value in shown.items() if name != "dashboard_url"}
        if "client_id" in shown:
            settings["redirect_uri"] = DEFAULT_REDIRECT_URI
        print_result(shown, lines_to_paste(settings))
        if "client_id" not in shown:
            remark(
                "The secrets were shown at the first start; `memframe service add-developer` makes new ones."
            )
        if not wants_json():
            click.echo(f"Dashboard, where users approve requests: {addresses.dashboard_url}", err=True)
        serve_with(
            AppFactory(place, addresses, log_json).make,
            listening,
            public_url=addresses.public_url,
            workers=workers,
            trusted_proxies=proxies,
            connections_per_address=connections_per_address,
        )


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Exit with 0 on Ctrl-C and SIGTERM, which are the ordinary ways to stop."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: sys.exit(0)) for number in numbers]
    try:
        yield
    finally:  # for callers in the same process
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _require_public_url(host: str, url: str | None) -> str | None:
    if url is not None:
        return check_public_url(url)
    if is_loopback(host):
        return None
    raise ConfigError(
        f"--host {host} opens the service to the network, where plain http would expose every secret: put it behind "
        "an https proxy, and give the proxy's address with --public-url https://..."
    )


def _parse_networks(text: str | None) -> list[str]:
    """Split and check a list of addresses and networks."""
    named = [part.strip() for part in (text or "").split(",") if part.strip()]
    for name in named:
        try:
            ip_network(name)
        except ValueError:
            raise ConfigError(
                f"--trusted-proxy {name} is not an IP address or network, such as 10.0.0.5 or 10.0.0.0/24"
            ) from None
    return named
