"""Streams r, s, t and u for every test here, and queries over them from SQL text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from dovetail.frontend.compile_sql import compile_sql
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream
from dovetail.query.types import INT, TIMESTAMP

COLUMNS = (("x", INT), ("y", INT), ("v", INT), ("ts", TIMESTAMP))


@pytest.fixture
def streams() -> dict[str, Stream]:
    timed = {name: Stream(name, COLUMNS, "ts") for name in ("r", "s", "t", "u")}
    return {**timed, "timeless": Stream("timeless", COLUMNS[:3])}


@pytest.fixture
def live(streams: Mapping[str, Stream]) -> Callable[[str, str], LiveQuery]:
    def make(name: str, sql: str) -> LiveQuery:
        return LiveQuery(f"{name}#1", name, compile_sql(sql, streams))

    return make
