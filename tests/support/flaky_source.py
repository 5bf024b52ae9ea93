"""A source of Spark's that fails on demand: rows are lines of a file, and it cannot be read while another is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition


class Lines(InputPartition):
    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last


class FlakyReader(DataSourceStreamReader):
    """Each line is a value; its key is 0, its time so many seconds after the epoch."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return {"line": 0}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802, ARG002
        if (self._folder / "broken").exists():
            raise ConnectionError("the broker is away")
        return {"line": len((self._folder / "lines").read_text().split())}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [Lines(start["line"], end["line"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, Lines)
        for text in (self._folder / "lines").read_text().split()[partition.first : partition.last]:
            yield 0, int(text), "x", datetime.fromtimestamp(int(text), UTC)


class FlakySource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "flaky"

    def schema(self) -> str:
        return "k BIGINT, v BIGINT, s STRING, ts TIMESTAMP"

    def streamReader(self, schema: Any) -> FlakyReader:  # noqa: N802, ARG002
        return FlakyReader(Path(self.options["folder"]))
