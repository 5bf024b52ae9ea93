"""The `dovetail` command: the list of its commands."""

from __future__ import annotations

import typer

from dovetail.cli.bench import bench
from dovetail.cli.calibrate import calibrate
from dovetail.cli.demo import demo
from dovetail.cli.query import query
from dovetail.cli.serve import serve
from dovetail.cli.sql import sql
from dovetail.cli.stream import stream
from dovetail.cli.token import token
from dovetail.cli.top import top
from dovetail.cli.warm_up import warm_up

app = typer.Typer(
    name="dovetail",
    help="Many continuous join queries over the same streams, in one Spark pipeline.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(bench)
app.command()(calibrate)
app.command()(warm_up)
app.command()(serve)
app.add_typer(token)
app.add_typer(query)
app.add_typer(stream)
app.command()(sql)
app.command()(top)

if __name__ == "__main__":
    app()
