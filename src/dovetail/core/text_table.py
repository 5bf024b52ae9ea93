"""The one printer of tables as text, for terminals and logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WIDEST_CELL = 60


def text_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line a row under the keys of the first; numbers to the right, long texts cut.

    >>> print(text_table([{"name": "trolls", "rows": 12}, {"name": "bots", "rows": None}]))
    name    rows
    trolls    12
    bots
    """
    if not rows:
        return ""
    names = list(rows[0])
    cells = [names, *([_cell(row[name]) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    are_numbers = [any(isinstance(row[name], int) for row in rows) for name in names]
    lines = (
        "  ".join(
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(line, widths, are_numbers, strict=True)
        )
        for line in cells
    )
    return "\n".join(line.rstrip() for line in lines)


def _cell(value: Any) -> str:
    """On one line."""
    text = "" if value is None else " ".join(str(value).split())
    return text if len(text) <= WIDEST_CELL else f"{text[: WIDEST_CELL - 1]}…"
