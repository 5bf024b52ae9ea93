"""`dovetail sql`: one statement to a running service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dovetail.cli.errors import show_errors
from dovetail.cli.query import change_text, print_queries
from dovetail.cli.service_client import AsJson, Url, connect, print_json, print_text, read_sql
from dovetail.cli.stream import print_streams


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
        answer = client.execute(text)
    if as_json:
        print_json(answer)
    else:
        _print_answer(answer)


def _print_answer(answer: dict[str, Any]) -> None:
    # Imported here, so that `dovetail --help` does not wait for the HTTP library.
    from dovetail.client import QueryStatus, StreamDescription  # noqa: PLC0415

    if answer.get("text") is not None:
        print_text(answer["text"])
    elif answer.get("queries") is not None:
        print_queries([QueryStatus.from_json(each) for each in answer["queries"]])
    elif answer.get("streams") is not None:
        print_streams([StreamDescription.from_json(each) for each in answer["streams"]])
    elif answer.get("query") is not None:
        print_text(change_text(QueryStatus.from_json(answer["query"])))
    elif answer.get("stream") is not None:
        print_text(f"stream {answer['stream']['name']} is there")
    else:
        print_text("nothing to do: there is no such query")
