"""A handle to one continuous query of a running service."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal, overload
from urllib.parse import quote

from dovetail.client.records import QueryStatus
from dovetail.client.results import Answers, read_answers, read_table
from dovetail.client.tail import Tail
from dovetail.client.transport import Transport, json_of
from dovetail.core.errors import QueryError
from dovetail.core.html_table import html_table
from dovetail.core.shown_text import ShownText

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

LOOK_EVERY_S = 0.2


class QueryHandle:
    """Speaks of the query that has the name now, or had it last. `request` is an id of your own for a change."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self._path = query_path(name)
        self.name = name

    @property
    def status(self) -> QueryStatus:
        return QueryStatus.from_json(json_of(self._transport.get(self._path)))

    def wait(self, timeout: float | None = None) -> QueryStatus:
        """Until the newest change of the query is part of a committed batch."""
        ends_at = None if timeout is None else time.monotonic() + timeout
        while not (status := self.status).in_effect:
            if ends_at is not None and time.monotonic() >= ends_at:
                raise QueryError(
                    f"query {self.name!r} is not in effect after {timeout:g} s",
                    hint="changes take effect with the next batch: are rows coming in? See `dovetail top`",
                )
            time.sleep(LOOK_EVERY_S)
        return status

    def drop(self, *, wait: float = 0.0, request: str = "") -> QueryStatus:
        """Stop the query at the next batch edge; its answers so far stay readable."""
        return self._change("DELETE", None, wait, request)

    def replace(self, sql: str, *, wait: float = 0.0, request: str = "", **options: Any) -> QueryStatus:
        """Another query under the same name, at one batch edge."""
        return self._change("PUT", {"sql": sql, "options": options}, wait, request)

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

    def results(self, *, last: int | None = None) -> pa.Table:
        """All answers that are committed now, or the newest `last`, as an Arrow table.

        Of a query whose answers are taken back (groups without a window) those that are true now.
        """
        return read_table(self._transport, self._path, last=last)

    def rows(self, *, last: int | None = None) -> Answers:
        """The same as rows of JSON values: without Arrow, and in the form that `tail` has."""
        return read_answers(self._transport, self._path, last=last)

    def to_pandas(self, *, last: int | None = None) -> pd.DataFrame:
        return self.results(last=last).to_pandas()

    def tail(self, *, from_batch: int | None = None, patience_s: float = 60.0) -> Tail:
        """Answers as they come, from the next batch on or from `from_batch`, over lost connections.

        Where answers are taken back each row has a `status.change_column`: 1 when it came, -1 when it went.
        """
        return Tail(self._transport, self._path, self.status, from_batch=from_batch, patience_s=patience_s)

    def _change(self, method: str, body: dict[str, Any] | None, wait_s: float, request: str) -> QueryStatus:
        answer = self._transport.change(method, self._path, body, wait_s=wait_s, request=request)
        return QueryStatus.from_json(answer)

    def __repr__(self) -> str:
        # Never asks the service: a representation in a debugger or log must neither wait nor fail.
        return f"QueryHandle({self.name!r}, {self._transport.connection.url})"

    def _repr_html_(self) -> str:
        status = self.status
        rows = [
            ("state", status.state),
            ("error", status.error),
            ("error of the sink", status.sink_error),
            ("answers", status.total_rows),
            ("created in batch", status.created_batch),
            ("complete from batch", status.complete_from),
            ("dropped in batch", status.dropped_batch),
            ("kept for ever", ", ".join((*status.growing_streams, *status.growing_groups)) or None),
            ("owner", status.owner),
            ("columns", ", ".join(f"{column.name} {column.type}" for column in status.columns)),
            ("SQL", status.sql),
        ]
        return html_table(f"Query {self.name}", (), [row for row in rows if row[1] is not None])


def query_path(name: str) -> str:
    return f"/v1/queries/{quote(name, safe='')}"


def explanation(transport: Transport, path: str, form: Literal["text", "json"]) -> Any:
    accept = "text/plain" if form == "text" else "application/json"
    answer = transport.get(path, params={"format": form}, accept=accept)
    return ShownText(answer.text) if form == "text" else json_of(answer)
