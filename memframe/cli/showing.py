"""How the service's commands show what they did: to people in words, to scripts as one line of JSON."""

from __future__ import annotations

import json
from typing import Any

import click

from memframe.service.deployment import NewDeveloper

as_json = click.option("--json", "as_json", is_flag=True, help="One line of JSON, for scripts.")


def show(told: Any, words: str, *, as_json: bool) -> None:
    """Print something as JSON, or the words for it."""
    click.echo(json.dumps(told) if as_json else words)


def secrets_of(developer: NewDeveloper) -> dict[str, str]:
    """What a developer is told once."""
    return {
        "api_key": developer.api_key.reveal(),
        "client_id": developer.client_id,
        "client_secret": developer.client_secret.reveal(),
    }


def show_secrets(told: dict[str, str], *, as_json: bool) -> None:
    """Print names and values; where secrets are among them, say that they come this once."""
    show(told, "\n".join(f"{name:<14} {value}" for name, value in told.items()), as_json=as_json)
    if told.keys() & {"api_key", "client_secret"} and not as_json:
        click.echo("These secrets are shown only now; keep them.", err=True)
