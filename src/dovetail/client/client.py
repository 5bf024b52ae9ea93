"""A client of a running service: the same words as a session in one's own process."""

from __future__ import annotations

from typing import Any, Literal, overload

import httpx

from dovetail.client.connection import find_connection
from dovetail.client.query import Query, explanation, query_path
from dovetail.client.records import QueryStatus, StatementResult, Validation, stream_from_json
from dovetail.client.transport import Transport, json_of
from dovetail.core.html_table import html_table
from dovetail.core.stream_description import StreamDescription

PAGE_QUERIES = 500


class Client:
    """Talks HTTP to the service at `url` as the bearer of `token`.

    If they are not given, they come from the environment or the user's own file (docs/client.md). A call whose
    connection breaks is tried again for some seconds, and a change is made once all the same.

        with Client("http://127.0.0.1:8642", "dvt_...") as client:
            client.create_query("SELECT ...", "paid", wait=30).await_results()
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout_s: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._transport = Transport(find_connection(url, token), timeout_s=timeout_s, transport=transport)

    @property
    def url(self) -> str:
        """The address of the service."""
        return self._transport.connection.url

    def create_query(
        self,
        sql: str,
        name: str | None = None,
        *,
        replace: bool = False,
        wait: float = 0.0,
        request: str = "",
        **options: Any,
    ) -> Query:
        """Accept a continuous query; it takes effect with the next batch, for which `wait` waits so many seconds.

        With `replace` it takes the place of a query of the same name, at one batch edge; the sink and the options that
        are not given stay, a `backfill` does not.
        A retry after a lost connection never creates a second one; give a `request` id of your own to make
        that hold for calls of yours, too.
        """
        body = {"sql": sql, "options": options, "replace": replace} | ({"name": name} if name else {})
        answer = self._transport.change("POST", "/v1/queries", body, wait_s=wait, request=request)
        return self._handle(QueryStatus.from_json(answer))

    def query(self, name: str) -> Query:
        """The handle of the query that has this name now, or had it last."""
        return self._handle(QueryStatus.from_json(json_of(self._transport.get(query_path(name)))))

    @property
    def queries(self) -> list[Query]:
        """All queries that are not dropped."""
        return [self._handle(status) for status in self.statuses()]

    def statuses(self, *, include_dropped: bool = False) -> list[QueryStatus]:
        """What all queries are doing, in order of creation, at one go."""
        found: list[QueryStatus] = []
        after: str | None = None
        while True:
            params = {"limit": PAGE_QUERIES, "after": after, "include_dropped": include_dropped or None}
            page = json_of(self._transport.get("/v1/queries", params=params))
            found += [QueryStatus.from_json(each) for each in page["queries"]]
            after = page["next"]
            if after is None:
                return found

    @property
    def streams(self) -> list[StreamDescription]:
        """All streams, by name."""
        page = json_of(self._transport.get("/v1/streams"))
        return [stream_from_json(each) for each in page["streams"]]

    def execute(self, statement: str, *, wait: float = 0.0, request: str = "") -> StatementResult:
        """Run one statement: CREATE, DROP or ALTER CONTINUOUS QUERY, CREATE STREAM, SHOW, EXPLAIN (docs/sql.md)."""
        body = {"statement": statement}
        answer = self._transport.change("POST", "/v1/statements", body, wait_s=wait, request=request)
        return StatementResult.from_json(answer)

    def validate(self, sql: str) -> Validation:
        """What the query would be; raises what `create_query` would raise."""
        return Validation.from_json(self._transport.ask("/v1/validate", {"sql": sql}))

    @overload
    def explain(self, format: Literal["text"] = "text", *, trace: bool = False) -> str: ...
    @overload
    def explain(self, format: Literal["json"], *, trace: bool = False) -> dict[str, Any]: ...

    def explain(
        self,
        format: Literal["text", "json"] = "text",  # noqa: A002 - as in a session
        *,
        trace: bool = False,
    ) -> Any:
        """The shared plan of all queries; with `trace` also how it was made."""
        return explanation(self._transport, "/v1/plan", format, {"trace": trace})

    @property
    def progress(self) -> dict[str, Any] | None:
        """Figures of the last committed batch, None before the first."""
        progress: dict[str, Any] | None = json_of(self._transport.get("/v1/progress"))["progress"]
        return progress

    def apply_file(self) -> list[dict[str, Any]]:
        """Have the service read its file again and change what differs; the answer has what it did, and what failed."""
        changes: list[dict[str, Any]] = self._transport.ask("/v1/apply", {})["changes"]
        return changes

    def close(self) -> None:
        """Give the connections back; the service and its queries go on."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _handle(self, status: QueryStatus) -> Query:
        return Query(self._transport, status.name)

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def _repr_html_(self) -> str:
        rows = [(each.name, each.state, each.total_rows, each.complete_from, each.error) for each in self.statuses()]
        return html_table(repr(self), ("query", "state", "answers", "complete from batch", "error"), rows)
