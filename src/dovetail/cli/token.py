"""`dovetail token ...`: who may use a service. A running one knows at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from dovetail.cli.errors import show_errors
from dovetail.service.access.tokens import Role, TokenFile

token = typer.Typer(name="token", help="Create, list and revoke the tokens of a service.", no_args_is_help=True)
Config = Annotated[Path, typer.Option("--config", help="The service's configuration.")]
Name = Annotated[str, typer.Option("--name", help="Whose token it is; the audit log says this name.")]
_CONFIG = Path("dovetail.yaml")


@token.command()
@show_errors
def create(
    name: Name, role: Annotated[Role, typer.Option(help="What it may do.")] = Role.READ, config: Config = _CONFIG
) -> None:
    """Make a token and print it: it is kept only as a hash, so this is the only time."""
    # Nothing but the token, so that scripts can take it.
    typer.echo(_tokens(config).create(name, role))


@token.command("list")
@show_errors
def list_tokens(config: Config = _CONFIG) -> None:
    """Show names and roles; tokens themselves are nowhere."""
    table = Table("name", "role", "created", box=None, pad_edge=False)
    for stored in _tokens(config).all():
        table.add_row(stored.name, stored.role.value, stored.created_at)
    Console().print(table)


@token.command()
@show_errors
def revoke(name: Name, config: Config = _CONFIG) -> None:
    """Take a token's rights away, from the next request on."""
    _tokens(config).revoke(name)
    typer.echo(f"revoked {name}")


def _tokens(config: Path) -> TokenFile:
    # Imported here, so that `dovetail --help` does not wait for the SQL parser.
    from dovetail.service.config.config import load_config  # noqa: PLC0415

    return TokenFile(load_config(config).service_options.tokens_file)
