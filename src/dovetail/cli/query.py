"""`dovetail query ...`: create, look at and drop queries of a running service."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli.errors import show_errors
from dovetail.cli.print_answers import print_answers, print_tail
from dovetail.cli.service_client import (
    AsJson,
    Url,
    connect,
    print_json,
    print_table,
    print_text,
    read_options,
    read_sql,
)
from dovetail.core.errors import QueryError

if TYPE_CHECKING:
    from dovetail.client import QueryStatus

WAIT_S = 60.0

query = typer.Typer(name="query", help="Create, watch and drop queries of a running service.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The query's name.")]
Wait = Annotated[bool, typer.Option("--wait", help=f"Return when a batch has the change (at most {WAIT_S:.0f} s).")]
Last = Annotated[int, typer.Option("--last", help="Begin with so many of the newest answers.", min=0)]


@query.command()
@show_errors
def create(
    name: Name,
    sql: Annotated[str | None, typer.Argument(help="SELECT ...; - reads it from standard input.")] = None,
    *,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the SQL from this file.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Take the place of a query of this name.")] = False,
    option: Annotated[list[str] | None, typer.Option("--option", "-o", help="KEY=VALUE, any number of times.")] = None,
    wait: Wait = False,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Create a continuous query; it takes effect with the next batch."""
    text, options = read_sql(sql, file), read_options(option or [])
    with connect(url) as client:
        handle = client.create_query(text, name, replace=replace, wait=WAIT_S if wait else 0.0, **options)
        _show_change(handle.status, wait=wait, as_json=as_json)


@query.command("list")
@show_errors
def list_queries(
    *,
    dropped: Annotated[bool, typer.Option("--all", help="Dropped ones, too.")] = False,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List queries in order of creation."""
    with connect(url) as client:
        found = client.statuses(include_dropped=dropped)
    if as_json:
        print_json([asdict(status) for status in found])
    else:
        print_queries(found)


@query.command()
@show_errors
def show(name: Name, *, as_json: AsJson = False, url: Url = None) -> None:
    """Show what is known of a query."""
    with connect(url) as client:
        status = client.query(name).status
    if as_json:
        print_json(asdict(status))
    else:
        print_query(status)


@query.command()
@show_errors
def explain(name: Name, *, as_json: AsJson = False, url: Url = None) -> None:
    """Show a query's paths through the shared plan, who shares them, and what it costs."""
    with connect(url) as client:
        handle = client.query(name)
        if as_json:
            print_json(handle.explain("json"))
        else:
            print_text(handle.explain())


@query.command()
@show_errors
def drop(name: Name, *, wait: Wait = False, as_json: AsJson = False, url: Url = None) -> None:
    """Stop a query at the next batch edge; its answers stay readable."""
    with connect(url) as client:
        status = client.query(name).drop(wait=WAIT_S if wait else 0.0)
    _show_change(status, wait=wait, as_json=as_json)


@query.command("set")
@show_errors
def set_options(
    name: Name,
    option: Annotated[list[str], typer.Argument(help="KEY=VALUE, any number of times.")],
    *,
    wait: Wait = False,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Change options of a query from the next batch on."""
    with connect(url) as client:
        status = client.query(name).set_options(wait=WAIT_S if wait else 0.0, **read_options(option))
    _show_change(status, wait=wait, as_json=as_json)


@query.command()
@show_errors
def results(name: Name, *, last: Last = 0, as_json: AsJson = False, url: Url = None) -> None:
    """Print the answers so far: all of them, or the newest with --last."""
    with connect(url) as client:
        print_answers(client.query(name), last=last or None, as_json=as_json)


@query.command()
@show_errors
def tail(
    name: Name,
    *,
    last: Last = 10,
    limit: Annotated[int | None, typer.Option("--limit", help="End after so many answers.", min=1)] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Print answers as they are committed, until the query is dropped or Ctrl-C is pressed."""
    with connect(url) as client:
        print_tail(client.query(name), last=last, limit=limit, as_json=as_json)


def print_queries(found: list[QueryStatus]) -> None:
    rows = [
        (each.name, each.state, each.total_rows, each.complete_from, each.owner, each.error or each.sql)
        for each in found
    ]
    print_table(("query", "state", "answers", "complete from", "owner", "SQL or error"), rows)


def print_query(status: QueryStatus) -> None:
    lines = [
        f"{status.name} is {status.state}, with {status.total_rows:,} answers",
        f"  columns: {', '.join(f'{column.name} {column.type}' for column in status.columns)}",
        f"  reads: {', '.join(status.reads)}",
    ]
    if status.error:
        batch = "" if status.failed_batch is None else f" in batch {status.failed_batch}"
        lines.append(f"  error{batch}: {status.error}")
    if status.sink_error:
        lines.append(f"  its sink fails: {status.sink_error}")
    elif status.delivered_batch is not None:
        lines.append(f"  its sink has all up to batch {status.delivered_batch}")
    if status.complete_from_text is not None:
        lines.append(f"  {status.complete_from_text}")
    if status.backfill is not None:
        done, total = status.backfill.batches_done, status.backfill.batches_total
        why = f": {status.backfill.error}" if status.backfill.error else ""
        lines.append(f"  its backfill is {status.backfill.state}, with {done:,} of {total:,} batches{why}")
    if status.growing_streams:
        lines.append(f"  keeps for ever, because no time bound lets them go: {', '.join(status.growing_streams)}")
    if status.growing_groups:
        lines.append(f"  keeps for ever, because no window lets them go: {', '.join(status.growing_groups)}")
    chosen = ", ".join(f"{key}={value}" for key, value in status.options.items() if value is not None)
    lines += [f"  options: {chosen}", f"  owner: {status.owner or '-'}", "", status.sql.strip("\n")]
    print_text("\n".join(lines))


def _show_change(status: QueryStatus, *, wait: bool, as_json: bool) -> None:
    if as_json:
        print_json(asdict(status))
    else:
        print_text(change_text(status))
    if wait and not status.in_effect:
        raise QueryError(
            f"no batch has the change of {status.name!r} after {WAIT_S:.0f} s; it is accepted and durable",
            hint="see with `dovetail top` whether batches are committed",
        )


def change_text(status: QueryStatus) -> str:
    if status.state == "dropped":
        return f"{status.name} is dropped; its {status.total_rows:,} answers stay readable"
    if not status.in_effect:
        return f"{status.name} is accepted: it takes effect with the next batch"
    return f"{status.name} is {status.state} since batch {status.changed_batch or status.created_batch}"
