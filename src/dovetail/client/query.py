"""A handle to one continuous query of a running service."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload
from urllib.parse import quote

from dovetail.client.records import BackfillStatus, QueryStatus
from dovetail.client.results import Answers, read_answers, read_table
from dovetail.client.tail import Tail
from dovetail.client.transport import Transport, json_of
from dovetail.core.errors import QueryError
from dovetail.core.html_table import html_table
from dovetail.core.shown_text import ShownText
from dovetail.core.silence import OnWait

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

LOOK_EVERY_S = 0.2


class Query:
    """Speaks of the query that has the name now, or had it last. `request` is an id of your own for a change."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self._path = query_path(name)
        self.name = name

    @property
    def status(self) -> QueryStatus:
        """What the query is doing, asked anew every time."""
        return QueryStatus.from_json(json_of(self._transport.get(self._path)))

    @property
    def is_active(self) -> bool:
        """Whether the session runs and its batches answer the query: not when it is dropped or in quarantine."""
        is_live = self.status.state in ("pending", "running")
        return is_live and json_of(self._transport.get("/v1/status"))["state"] == "running"

    @property
    def exception(self) -> QueryError | None:
        """What stopped the query while others went on: a row on which it failed, or a limit; None if nothing did."""
        return self.status.exception

    @property
    def backfill(self) -> BackfillStatus | None:
        """How far the answers from before the query are (docs/backfill.md); None if they were not asked for."""
        return self.status.backfill

    def cancel_backfill(self, *, wait: float = 0.0, request: str = "") -> QueryStatus:
        """End the backfill at the next batch edge; what it brought stays among the answers."""
        return self.set_options(wait=wait, request=request, backfill=False)

    def await_effect(self, timeout: float | None = None) -> QueryStatus:
        """Wait until the newest change of the query is part of a committed batch, or the time is up.

        The status says which (`in_effect`).
        """
        return self._await(lambda status: status.in_effect, timeout)

    def await_results(self, rows: int = 1, timeout: float | None = None) -> bool:
        """Wait until the query has so many answers; False when the time is up or the query is dropped first.

        Raises what stopped the query.
        """

        def is_settled(status: QueryStatus) -> bool:
            return status.total_rows >= rows or status.dropped_batch is not None or status.exception is not None

        status = self._await(is_settled, timeout)
        if status.total_rows < rows and status.exception is not None:
            raise status.exception
        return status.total_rows >= rows

    def _await(self, is_there: Callable[[QueryStatus], bool], timeout: float | None) -> QueryStatus:
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while not is_there(status := self.status) and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)
        return status

    def drop(self, *, wait: float = 0.0, request: str = "") -> QueryStatus:
        """Stop the query at the next batch edge; its answers so far stay readable."""
        return self._change("DELETE", None, wait, request)

    def set_options(self, *, wait: float = 0.0, request: str = "", **options: Any) -> QueryStatus:
        """Change options from the next batch on; those that are not named stay as they are."""
        return self._change("PATCH", {"options": options}, wait, request)

    @overload
    def explain(self, format: Literal["text"] = "text") -> str: ...
    @overload
    def explain(self, format: Literal["json"]) -> dict[str, Any]: ...

    def explain(self, format: Literal["text", "json"] = "text") -> Any:  # noqa: A002 - as in a session
        """The query's paths through the shared plan, with whom it shares each, and what it costs."""
        return explanation(self._transport, f"{self._path}/explain", format)

    def to_arrow(self, *, last: int | None = None) -> pa.Table:
        """All answers that are committed now, or the newest `last`, as an Arrow table.

        Of a query whose answers are taken back (groups without a window) those that are true now.
        """
        return read_table(self._transport, self._path, last=last)

    def rows(self, *, last: int | None = None) -> Answers:
        """The same as rows of JSON values: without Arrow, and in the form that `tail` has."""
        return read_answers(self._transport, self._path, last=last)

    def to_pandas(self, *, last: int | None = None) -> pd.DataFrame:
        """As `to_arrow`, for pandas."""
        return self.to_arrow(last=last).to_pandas()

    def tail(self, *, from_batch: int | None = None, patience_s: float = 60.0, on_wait: OnWait | None = None) -> Tail:
        """Answers as they are committed, from the next batch on or from `from_batch`, over lost connections.

        Iterates over rows as dictionaries; `tail.batches()` iterates over batches, each with its number. A batch comes
        whole, once, in order. Where answers are taken back each row has a `status.change_column`: 1 when it came, -1
        when it went. It ends when the query is dropped or replaced (`tail.end_reason`), and raises what stopped the
        query or the session.
        While nothing comes, `on_wait` is called with a line that says why; unless you give your own, it prints to
        stderr.
        """
        return Tail(
            self._transport,
            self._path,
            self.status,
            from_batch=from_batch,
            patience_s=patience_s,
            on_wait=on_wait,
        )

    def _change(self, method: str, body: dict[str, Any] | None, wait_s: float, request: str) -> QueryStatus:
        answer = self._transport.change(method, self._path, body, wait_s=wait_s, request=request)
        return QueryStatus.from_json(answer)

    def __repr__(self) -> str:
        # Never asks the service: a representation in a debugger or log must neither wait nor fail.
        return f"Query({self.name!r}, {self._transport.connection.url})"

    def _repr_html_(self) -> str:
        status = self.status
        rows = [
            ("state", status.state),
            ("error", status.error),
            ("error of the sink", status.sink_error),
            ("answers", status.total_rows),
            ("created in batch", status.created_batch),
            ("covers", status.complete_from_text),
            ("dropped in batch", status.dropped_batch),
            ("kept for ever", ", ".join((*status.growing_streams, *status.growing_groups)) or None),
            ("owner", status.owner),
            ("columns", ", ".join(f"{column.name} {column.type}" for column in status.columns)),
            ("SQL", status.sql),
        ]
        return html_table(f"Query {self.name}", (), [row for row in rows if row[1] is not None])


def query_path(name: str) -> str:
    return f"/v1/queries/{quote(name, safe='')}"


def explanation(
    transport: Transport, path: str, form: Literal["text", "json"], more: Mapping[str, Any] | None = None
) -> Any:
    accept = "text/plain" if form == "text" else "application/json"
    answer = transport.get(path, params={"format": form, **(more or {})}, accept=accept)
    return ShownText(answer.text) if form == "text" else json_of(answer)
