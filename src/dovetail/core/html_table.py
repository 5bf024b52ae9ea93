"""The one HTML printer: handles use it for notebooks. Every text is escaped: names and errors are users' own."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def html_table(title: str, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table under a title; without headers, the first column is their place.

    >>> html_table("Q <1>", (), [("state", "running")])
    '<div><b>Q &lt;1&gt;</b><table><tr><th>state</th><td>running</td></tr></table></div>'
    """
    lines = []
    if headers:
        lines.append(_row("th", headers))
    for row in rows:
        first, *others = row
        lines.append(_row("td", row) if headers else f"<tr><th>{_cell(first)}</th>{_cells('td', others)}</tr>")
    return f"<div><b>{escape(title)}</b><table>{''.join(lines)}</table></div>"


def html_text(title: str, text: str) -> str:
    """A text under a title, its lines as they are."""
    return f"<div><b>{escape(title)}</b><pre>{escape(text)}</pre></div>"


def _row(tag: str, values: Sequence[object]) -> str:
    return f"<tr>{_cells(tag, values)}</tr>"


def _cells(tag: str, values: Sequence[object]) -> str:
    return "".join(f"<{tag}>{_cell(value)}</{tag}>" for value in values)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return escape(f"{value:,}" if type(value) is int else str(value))
