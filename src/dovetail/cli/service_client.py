"""What the commands that talk to a running service have in common: where it is, and in which form they print."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dovetail.core.errors import DovetailError
from dovetail.core.plain_text import plain_text

if TYPE_CHECKING:
    from dovetail.client import Client

Url = Annotated[
    str | None, typer.Option("--url", help="Address of the service; else DOVETAIL_URL, else the connection file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
UNLIMITED_WIDTH = 10_000


def connect(url: str | None) -> Client:
    # Imported here, so that `dovetail --help` does not wait for the HTTP library.
    from dovetail.client import Client  # noqa: PLC0415

    return Client(url)


def output() -> Console:
    """As wide as the terminal; into a file or a pipe nothing is cut."""
    is_bound = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if is_bound else UNLIMITED_WIDTH, highlight=False, markup=False)


def print_text(text: str) -> None:
    output().print(Text(plain_text(text)), soft_wrap=True)


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_json_lines(values: Iterable[Any]) -> None:
    for value in values:
        typer.echo(json.dumps(value, ensure_ascii=False))


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Figures to the right; the last column is cut rather than wrapped."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    cells = [list(row) for row in rows]
    for position, header in enumerate(headers):
        is_figures = any(type(row[position]) is int for row in cells)
        table.add_column(header, justify="right" if is_figures else "left", no_wrap=True, overflow="ellipsis")
    for row in cells:
        table.add_row(*(Text(cell_text(value)) for value in row))
    output().print(table)


def cell_text(value: object) -> str:
    r"""One line, whatever the value is.

    >>> cell_text(1234), cell_text(None), cell_text("two\nlines")
    ('1,234', '-', 'two lines')
    """
    if value is None:
        return "-"
    return f"{value:,}" if type(value) is int else plain_text(" ".join(str(value).split()))


def read_sql(sql: str | None, file: Path | None) -> str:
    """The text given, or in a file, or on standard input for «-»."""
    if (sql is None) == (file is None):
        raise DovetailError("there is no SQL, or twice", hint="give the text, or -f FILE, or - to read standard input")
    if sql == "-" or file == Path("-"):
        return typer.get_text_stream("stdin").read()
    if file is None:
        return sql or ""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DovetailError(f"{file} cannot be read: {error}", hint="name a text file in UTF-8") from error


def read_options(pairs: Sequence[str]) -> dict[str, Any]:
    """`KEY=VALUE` as in `WITH (...)`: true, false and whole numbers are what they look like, all else is text.

    >>> read_options(["backfill=true", "max_results_per_batch=100", "sink=kafka"])
    {'backfill': True, 'max_results_per_batch': 100, 'sink': 'kafka'}
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise DovetailError(f"{pair!r} is no option", hint="write KEY=VALUE, such as max_results_per_batch=1000")
        found[key.strip()] = _value(value.strip())
    return found


def _value(text: str) -> bool | int | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return int(text) if text.removeprefix("-").isdecimal() else text
