"""`memframe serve`: run the Memory Access Service."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from ipaddress import ip_network

import click

from memframe.address import is_loopback
from memframe.cli.place import at_a_place
from memframe.cli.showing import as_json, secrets_of, show_secrets
from memframe.errors import ConfigError, ConflictError
from memframe.service.app import AppFactory
from memframe.service.deployment import FIRST_DEVELOPER, Addresses, Deployment, ServiceConfig
from memframe.service.logs import log_as_json
from memframe.service.server import CONNECTIONS_PER_ADDRESS, listen, serve_with, url_of
from memframe.service.validation import check_public_url

DEFAULT_PORT = 8765


@click.command("serve")
@at_a_place
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65535), help="0: any."
)
@click.option("--public-url", metavar="URL", help="Address under which others reach the service.")
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Processes that serve."
)
@click.option(
    "--trusted-proxy",
    metavar="[ADDRESSES]",
    is_flag=False,
    flag_value="127.0.0.1,::1",
    help="Believe the X-Forwarded-For of a proxy: of one on this machine, or of these addresses or networks.",
)
@click.option(
    "--connections-per-address",
    metavar="N",
    default=CONNECTIONS_PER_ADDRESS,
    type=click.IntRange(1),
    help="Most connections of one network address to each process; those of a trusted proxy are not counted.",
)
@click.option(
    "--log-json",
    is_flag=True,
    help="Log requests, security events and faults to standard error, as lines of JSON.",
)
@as_json
def run_service(
    place: ServiceConfig,
    host: str,
    port: int,
    public_url: str | None,
    workers: int,
    trusted_proxy: str | None,
    connections_per_address: int,
    log_json: bool,
    as_json: bool,
) -> None:
    """Run the Memory Access Service until Ctrl-C.

    The first start makes the data folder and prints, once, the secrets of a first developer. /healthz tells
    whether the service runs, /readyz whether its database answers.

    \b
    Example:
        memframe serve --data ./memories --port 8765
        memframe serve --public-url https://memories.example.org --trusted-proxy --workers 2
    """
    own_url = _checked_public_url(host, public_url)
    proxies = _networks(trusted_proxy)
    if log_json:
        log_as_json()
    with listen(host, port) as listening, _stopped_by_signals():
        addresses = Addresses(own_url or url_of(listening))
        with closing(place.open(may_create=True)) as deployment, deployment.store.naming_errors():
            shown = _shown_at_start(deployment, addresses)
        show_secrets(shown, as_json=as_json)
        maker = AppFactory(place, addresses, log_json)
        serve_with(
            maker.make,
            listening,
            public_url=addresses.public_url,
            workers=workers,
            trusted_proxies=proxies,
            connections_per_address=connections_per_address,
        )


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Ctrl-C and a supervisor's SIGTERM are the ordinary ways to stop: close everything, exit with 0."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: sys.exit(0)) for number in numbers]
    try:
        yield
    finally:  # whoever called this as a function goes on with what was there
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _checked_public_url(host: str, url: str | None) -> str | None:
    if url is not None:
        return check_public_url(url)
    if is_loopback(host):
        return None
    raise ConfigError(
        f"--host {host} opens the service to the network, where plain http would show every secret; "
        "put it behind a proxy that speaks https and name that: --public-url https://..."
    )


def _networks(text: str | None) -> list[str]:
    """Addresses and networks between commas."""
    named = [part.strip() for part in (text or "").split(",") if part.strip()]
    for name in named:
        try:
            ip_network(name)
        except ValueError:
            raise ConfigError(
                f"--trusted-proxy {name} is not an IP address or network, such as 10.0.0.5 or 10.0.0.0/24"
            ) from None
    return named


def _shown_at_start(deployment: Deployment, addresses: Addresses) -> dict[str, str]:
    """Addresses, and at the first start the secrets of the first developer."""
    shown = {
        "base_url": addresses.base_url,
        "auth_url": addresses.auth_url,
        "dashboard_url": addresses.dashboard_url,
    }
    try:
        return shown | secrets_of(deployment.add_developer(FIRST_DEVELOPER, only_first=True))
    except ConflictError:  # it was made at an earlier start, or by one at the same moment
        return shown
