"""`memframe serve`: run the Memory Access Service."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import click
import platformdirs

from memframe.address import is_loopback
from memframe.errors import ConfigError
from memframe.service import rules
from memframe.service.app import create_app
from memframe.service.deployment import FIRST_DEVELOPER, Addresses, Deployment, NewDeveloper, open_deployment
from memframe.service.server import listen, make_server, url_of

DEFAULT_PORT = 8765

Command = Callable[..., None]


def where_the_data_is(command: Command) -> Command:
    """The options that say which service is meant."""
    folder = click.option(
        "--data",
        type=click.Path(file_okay=False, path_type=Path),
        default=lambda: platformdirs.user_data_path("memframe") / "service",
        help="Folder of the database and the master key; by default in your own data folder.",
    )
    database = click.option("--database", metavar="URL", help="Another database, as a SQLAlchemy address.")
    return folder(database(command))


as_json = click.option("--json", "as_json", is_flag=True, help="One line of JSON, for scripts.")


@click.command("serve")
@where_the_data_is
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65535), help="0: any."
)
@click.option("--public-url", metavar="URL", help="Address under which others reach the service.")
@as_json
def run_service(
    data: Path, database: str | None, host: str, port: int, public_url: str | None, as_json: bool
) -> None:
    """Run the Memory Access Service until Ctrl-C.

    The first start makes the data folder and prints, once, the secrets of a first developer.

    \b
    Example:
        memframe serve --data ./memories --port 8765
    """
    own_url = _checked_public_url(host, public_url)
    with listen(host, port) as listening, closing(open_deployment(data, database_url=database)) as deployment:
        addresses = Addresses(own_url or url_of(listening))
        server = make_server(create_app(deployment, addresses))
        _stop_on_signals()
        with deployment.store.naming_errors():
            shown = _shown_at_start(deployment, addresses)
        show(shown, as_json=as_json)
        server.run([listening])


def _stop_on_signals() -> None:
    """Ctrl-C and a supervisor's SIGTERM are the ordinary ways to stop: close everything, exit with 0."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))


def _checked_public_url(host: str, url: str | None) -> str | None:
    if url is not None:
        return rules.public_url(url)
    if is_loopback(host):
        return None
    raise ConfigError(
        f"--host {host} opens the service to the network, where plain http would show every secret; "
        "put it behind a proxy that speaks https and name that: --public-url https://..."
    )


def _shown_at_start(deployment: Deployment, addresses: Addresses) -> dict[str, str]:
    """Addresses, and at the first start the secrets of the first developer."""
    shown = {
        "base_url": addresses.base_url,
        "auth_url": addresses.auth_url,
        "dashboard_url": addresses.dashboard_url,
    }
    if deployment.store.accounts.developers():
        return shown
    return shown | secrets_of(deployment.add_developer(FIRST_DEVELOPER))


def secrets_of(developer: NewDeveloper) -> dict[str, str]:
    """What a developer is told once."""
    return {
        "api_key": developer.api_key.reveal(),
        "client_id": developer.client_id,
        "client_secret": developer.client_secret.reveal(),
    }


def show(shown: dict[str, str], *, as_json: bool) -> None:
    """Print names and values, for people or for scripts."""
    if as_json:
        click.echo(json.dumps(shown))
        return
    for name, value in shown.items():
        click.echo(f"{name:<14} {value}")
    if "api_key" in shown:
        click.echo("These secrets are shown only now; keep them.", err=True)
