"""An in-process session that the service can serve: no Spark, batches pushed by hand."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from dovetail.engine.delivery.delivery import Delivery
from dovetail.engine.engine import Engine
from dovetail.query.stream_spec import StreamSpec
from dovetail.testing.local_session import LocalQuery, LocalSession


class ServedLocalSession:
    """Runs until `stop` or `fail`, like a streaming query; every `push` is one batch."""

    def __init__(self, checkpoint_dir: str | Path, **options: Any) -> None:
        self.local = LocalSession(checkpoint_dir, **options)
        self._ended = threading.Event()
        self._failure: Exception | None = None

    @property
    def engine(self) -> Engine:
        return self.local.engine

    def create_query(
        self, sql: str, name: str, *, replace: bool = False, request: str = "", **options: Any
    ) -> LocalQuery:
        return self.local.create_query(sql, name, replace=replace, request=request, **options)

    def declare_stream(self, spec: StreamSpec, *, request: str = "", may_change: bool = False) -> None:
        if may_change and self.engine.streams.declared().get(spec.name, spec) != spec:
            self.engine.streams.redeclare(spec)
        else:
            self.engine.streams.declare(spec, request=request)

    def delivery_of(self, query_id: str) -> Delivery | None:  # noqa: ARG002 - nothing is delivered in-process
        return None

    def push(self, tables: Mapping[str, pa.Table]) -> None:
        self.local.push(tables)

    def await_termination(self, timeout: float | None = None) -> bool:
        has_ended = self._ended.wait(timeout)
        if self._failure is not None:
            raise self._failure
        return has_ended

    def fail(self, error: Exception) -> None:
        """As if the streaming query had died of it."""
        self._failure = error
        self._ended.set()

    def stop(self) -> None:
        self._ended.set()
        self.local.close()
