"""Sessions on Spark whose checkpoints are damaged while they are stopped: an error, or the answers of batch SQL."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from dovetail import Session
from dovetail.core.errors import DovetailError
from dovetail.store.manifest import manifest_batches
from dovetail.store.result_files import forget_checked
from tests.support.old_checkpoint import QUERIES, SCHEMA, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES_BEFORE, BATCHES_AFTER = 8, 3
NAMES = ("pairs", "above")
PATIENCE_S = 120
_DDL = "k INT, m INT, v INT, ts TIMESTAMP"

Inflict = Callable[[Path], None]
"""Damages a checkpoint."""


@dataclass(frozen=True)
class SparkOutcome:
    what: str
    error: str | None
    is_silent: bool


def remove(*patterns: str) -> Inflict:
    """N in a pattern is the newest batch."""

    def inflict(root: Path) -> None:
        newest = str(manifest_batches(root)[-1])
        for pattern in patterns:
            for path in list(root.glob(pattern.replace("N", newest))):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    return inflict


def rewrite(pattern: str, content: Callable[[bytes], bytes]) -> Inflict:
    """The last file of the pattern gets other bytes."""

    def inflict(root: Path) -> None:
        newest = str(manifest_batches(root)[-1])
        path = max(root.glob(pattern.replace("N", newest)), key=lambda path: (len(path.name), path.name))
        path.write_bytes(content(path.read_bytes()))

    return inflict


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


class SparkDamage:
    """A checkpoint in the middle of a run over files; each try goes on from a damaged copy of it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._tries = 0
        spark.conf.set("spark.sql.streaming.fileSource.log.compactInterval", "3")
        for batch in range(BATCHES_BEFORE):
            self._add(batch)
        self._run(folder / "whole")
        for batch in range(BATCHES_BEFORE, BATCHES_BEFORE + BATCHES_AFTER):
            self._add(batch)
        for stream in ("a", "b"):
            spark.read.schema(_DDL).parquet(str(folder / "data" / stream)).createOrReplaceTempView(stream)
        self.expected = {name: self._rows(spark.sql(QUERIES[name]).toArrow()) for name in NAMES}

    def __enter__(self) -> SparkDamage:
        return self

    def __exit__(self, *exc: object) -> None:
        self._spark.conf.unset("spark.sql.streaming.fileSource.log.compactInterval")

    def tries(self, damages: Iterable[tuple[str, Inflict]]) -> Iterator[SparkOutcome]:
        for what, inflict in damages:
            self._tries += 1
            root = self._folder / f"try-{self._tries}"
            shutil.copytree(self._folder / "whole", root)
            inflict(root)
            forget_checked()
            try:
                found = self._run(root)
            except DovetailError as error:
                yield SparkOutcome(what, str(error), is_silent=False)
            else:
                yield SparkOutcome(what, None, is_silent=found != self.expected)

    def _run(self, root: Path) -> dict[str, Counter[Any]]:
        session = Session(self._spark, str(root), partitions=2, key_groups=8)
        try:
            for stream in ("a", "b"):
                reader = self._spark.readStream.schema(_DDL).option("maxFilesPerTrigger", 1)
                session.create_stream(
                    stream, reader.parquet(str(self._folder / "data" / stream)), event_time="ts", lateness="1 second"
                )
            for name in NAMES:
                session.create_query(QUERIES[name], name=name)
            session.start(trigger="available_now")
            session.await_termination(timeout=PATIENCE_S)
            return {name: self._rows(session.query(name).results().toArrow()) for name in NAMES}
        finally:
            session.stop()

    def _add(self, batch: int) -> None:
        for stream in ("a", "b"):
            path = self._folder / "data" / stream / f"{batch:03d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(rows_of(batch, stream).cast(SCHEMA), path)
            os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))

    @staticmethod
    def _rows(table: Any) -> Counter[Any]:
        return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))
