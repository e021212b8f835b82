"""The commands `ragparity list` and `ragparity explain`: what metrics there are, and the card of one."""

from __future__ import annotations

import sys

import click

from ragparity.commands import shared
from ragparity.core.errors import ConfigError


@click.command("list")
@click.option("--backend", help="Only this backend.")
def list_command(backend: str | None) -> None:
    """List the metrics, what they read and what they cost."""
    from ragparity import catalogue

    try:
        catalogue.print_list(sys.stdout, backend)
    except ConfigError as error:
        shared.stop(str(error))


@click.command("explain")
@click.argument("metric")
def explain_command(metric: str) -> None:
    """Print the card of a METRIC (`Name` or `backend/Name`)."""
    from ragparity import catalogue

    try:
        click.echo(catalogue.card(metric))
    except ConfigError as error:
        shared.stop(str(error))
