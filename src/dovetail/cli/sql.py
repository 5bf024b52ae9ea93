"""`dovetail sql`: one statement to a running service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli.errors import show_errors
from dovetail.cli.query import print_queries
from dovetail.cli.service_client import AsJson, Url, connect, print_json, print_text, read_sql
from dovetail.cli.stream import print_streams

if TYPE_CHECKING:
    from dovetail.client import StatementResult


@show_errors
def sql(
    statement: Annotated[str | None, typer.Argument(help="The statement; - reads it from standard input.")] = None,
    *,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the statement from this file.")] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Run a statement: CREATE, ALTER or DROP CONTINUOUS QUERY, SHOW QUERIES or STREAMS, EXPLAIN, CREATE STREAM."""
    text = read_sql(statement, file)
    with connect(url) as client:
        result = client.execute(text)
    if as_json:
        print_json(result.answer)
    else:
        _print_answer(result)


def _print_answer(result: StatementResult) -> None:
    # Imported here, so that `dovetail --help` does not wait for the HTTP library.
    from dovetail.client.records import QueryStatus, stream_from_json  # noqa: PLC0415

    if result.text:
        print_text(result.text)
    elif result.kind == "show queries":
        print_queries([QueryStatus.from_json(row) for row in result.rows])
    elif result.kind == "show streams":
        print_streams([stream_from_json(row) for row in result.rows])
    else:
        print_text(result.message)
