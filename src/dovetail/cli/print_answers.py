"""Answers on a terminal: rows below their heads, as they come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from dovetail.cli.service_client import cell_text, print_json_lines

if TYPE_CHECKING:
    from dovetail.client import Query

WIDEST_CELL = 40
END_TEXT = {"dropped": "the query was dropped", "replaced": "another query took its place"}


class RowPrinter:
    """Columns as wide as the first rows need; later values that are wider push theirs aside, nothing is cut."""

    def __init__(self, columns: Sequence[str], *, as_json: bool) -> None:
        self._columns = columns
        self._as_json = as_json
        self._widths: list[int] | None = None

    def print(self, rows: Iterable[Mapping[str, Any]]) -> None:
        if self._as_json:
            print_json_lines(rows)
            return
        cells = [[_cell(row[column]) for column in self._columns] for row in rows]
        if cells and self._widths is None:
            lines = [self._columns, *cells]
            self._widths = [min(max(len(line[place]) for line in lines), WIDEST_CELL) for place in self._places()]
            self._line([cell_text(column) for column in self._columns])
        for line in cells:
            self._line(line)

    def _places(self) -> range:
        return range(len(self._columns))

    def _line(self, cells: Sequence[str]) -> None:
        widths = self._widths or [0] * len(cells)
        typer.echo("  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip())


def print_answers(handle: Query, *, last: int | None, as_json: bool) -> None:
    answers = handle.rows(last=last)
    RowPrinter(answers.columns, as_json=as_json).print(answers.rows)


def print_tail(handle: Query, *, last: int, limit: int | None, as_json: bool) -> None:
    """First the newest answers there are, then each batch's: the two meet without a gap.

    Where answers are taken back, those at the beginning are shown as rows that came.
    """
    from dovetail.client import AnswerBatch  # noqa: PLC0415 - `dovetail --help` does not wait for the HTTP library

    before = handle.rows(last=max(last, 1))
    tail = handle.tail(from_batch=before.through + 1)
    change = tail.status.change_column
    rows = tuple({**row, change: 1} if change else row for row in before.rows) if last else ()
    columns = before.columns if change is None else (*before.columns, change)
    printer, left = RowPrinter(columns, as_json=as_json), limit
    try:
        printer.print(rows[:left])
        left = None if left is None else left - len(rows)
        if left is not None and left <= 0:
            return
        for event in tail.events():
            if isinstance(event, AnswerBatch):
                printer.print(event.rows[:left])
                left = None if left is None else left - len(event.rows)
            if left is not None and left <= 0:
                return
    except KeyboardInterrupt:
        return
    if tail.end_reason is not None:
        typer.echo(END_TEXT.get(tail.end_reason, tail.end_reason), err=True)


def _cell(value: Any) -> str:
    """Figures as they are: a key with separators could not be searched for."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else cell_text(value)
