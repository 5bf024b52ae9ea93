"""What the service needs of a session: the public one on Spark, or an in-process one in tests."""

from __future__ import annotations

from typing import Any, Protocol

from dovetail.engine.delivery.delivery import Delivery
from dovetail.engine.engine import Engine
from dovetail.query.stream_spec import StreamSpec


class ServedSession(Protocol):
    @property
    def engine(self) -> Engine: ...

    def create_query(self, sql: str, name: str, *, replace: bool = False, request: str = "", **options: Any) -> Any: ...

    def declare_stream(self, spec: StreamSpec, *, request: str = "", may_change: bool = False) -> None: ...

    def delivery_of(self, query_id: str) -> Delivery | None:
        """How far the query's sink is; None without one."""
        ...

    def await_termination(self, timeout: float | None = None) -> bool:
        """Until the session ends; raises what stopped it."""
        ...
