"""A local session over two small streams, and rows for it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("k", pa.int32()), ("v", pa.int32()), ("ts", pa.timestamp("us", tz="UTC"))])
EPOCH = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)

Row = tuple[int | None, int | None, float]


class Bench:
    """Streams `a` and `b` with columns k, v, ts; times are seconds."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._opened: list[LocalSession] = []

    def open(self, *, lateness: str = "0 seconds", **options: Any) -> LocalSession:
        session = LocalSession(self.root, **options)
        self._opened.append(session)
        for name in ("a", "b"):
            session.create_stream(name, SCHEMA, event_time="ts", lateness=lateness)
        return session

    def push(self, session: LocalSession, *, a: Sequence[Row] = (), b: Sequence[Row] = (), splits: int = 1) -> None:
        session.push({"a": table_of(a), "b": table_of(b)}, splits=splits)

    def files(self, folder: str = "buckets") -> set[str]:
        return {path.relative_to(self.root).as_posix() for path in (self.root / folder).rglob("*") if path.is_file()}

    def close(self) -> None:
        for session in self._opened:
            session.close()


def table_of(rows: Sequence[Row]) -> pa.Table:
    moments = [EPOCH + datetime.timedelta(seconds=row[2]) for row in rows]
    columns = [[row[0] for row in rows], [row[1] for row in rows], moments]
    return pa.Table.from_arrays(
        [pa.array(own, field.type) for own, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "checkpoint")
    yield bench
    bench.close()


@pytest.fixture
def rows_of() -> Callable[[LocalSession, str], list[tuple[Any, ...]]]:
    """A query's answers as sorted tuples."""

    def answers(session: LocalSession, name: str) -> list[tuple[Any, ...]]:
        table = session.results(name)
        return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))

    return answers
