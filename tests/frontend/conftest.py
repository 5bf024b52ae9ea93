"""Streams that the front end's tests compile against."""

from __future__ import annotations

import pytest

from dovetail.query.stream import Stream
from dovetail.query.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    SqlType,
)

COLUMNS = (
    ("k", INT),
    ("big", BIGINT),
    ("x", INT),
    ("d", DOUBLE),
    ("f", FLOAT),
    ("s", STRING),
    ("price", SqlType("decimal", 10, 2)),
    ("ok", BOOLEAN),
    ("dt", DATE),
    ("ts", TIMESTAMP),
    ("other_ts", TIMESTAMP),
)


@pytest.fixture
def streams() -> dict[str, Stream]:
    timed = {name: Stream(name, COLUMNS, "ts") for name in ("a", "b", "c", "e", "g", "h")}
    return {
        **timed,
        "untimed": Stream("untimed", (("k", INT), ("v", STRING))),
        "wall": Stream("wall", (("k", INT), ("ts", TIMESTAMP_NTZ)), "ts"),
    }
