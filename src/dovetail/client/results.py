"""Committed answers, page by page. A result is what was committed when it was asked for, however long it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dovetail.client.transport import Transport, json_of

if TYPE_CHECKING:
    import pyarrow as pa

ARROW = "application/vnd.apache.arrow.stream"
JSON_ROWS = 10_000
"""Of a page; Arrow pages are as long as the service allows."""


@dataclass(frozen=True)
class Answers:
    """Rows as JSON has them: all that were committed up to batch `through` and asked for."""

    query_id: str
    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    through: int


def read_table(transport: Transport, path: str, *, last: int | None) -> pa.Table:
    """All answers so far, or the newest `last`, with their exact types."""
    import pyarrow as pa  # noqa: PLC0415 - the import is slow, and most commands never need it

    tables = []
    params: Mapping[str, Any] | None = {"last": last}
    while params is not None:
        page = transport.get(f"{path}/results", params=params, accept=ARROW)
        tables.append(pa.ipc.open_stream(page.content).read_all())
        has_more = page.headers["Dovetail-Has-More"] == "true"
        params = _next_page(params, page.headers["Dovetail-Next"], page.headers["Dovetail-Committed-Batch"], has_more)
    return pa.concat_tables(tables)


def read_answers(transport: Transport, path: str, *, last: int | None = None, batch: int | None = None) -> Answers:
    """All answers so far, or the newest `last`, or what one batch brought and took back."""
    asked = {"last": last} if batch is None else {"from_batch": batch, "to_batch": batch, "changes": "true"}
    pages = list(_pages(transport, path, asked))
    return Answers(
        query_id=pages[0]["id"],
        columns=tuple(column["name"] for column in pages[0]["columns"]),
        rows=tuple(row for page in pages for row in page["rows"]),
        through=pages[0]["committed_batch"],
    )


def _pages(transport: Transport, path: str, first: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    params: Mapping[str, Any] | None = first
    while params is not None:
        page = json_of(transport.get(f"{path}/results", params={**params, "limit": JSON_ROWS}))
        yield page
        params = _next_page(params, page["next"], page["committed_batch"], page["has_more"])


def _next_page(
    params: Mapping[str, Any], cursor: str, committed_batch: int | str, has_more: bool
) -> dict[str, Any] | None:
    """Up to what was the last batch at the first page: else the answers of a busy query would never end."""
    if not has_more:
        return None
    kept = {name: params[name] for name in ("changes",) if name in params}
    return {"cursor": cursor, "to_batch": params.get("to_batch", committed_batch), **kept}
