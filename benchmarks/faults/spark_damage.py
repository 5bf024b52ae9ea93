"""Sessions on Spark whose checkpoints are damaged, stopped or running: an error, or the answers of batch SQL."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from benchmarks.faults.damage import How, damages
from benchmarks.faults.small_program import QUERIES, SCHEMA, rows_of
from dovetail import Session
from dovetail.core.errors import DovetailError
from dovetail.store.manifest import manifest_batches
from dovetail.store.result_parts import forget_checked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES_BEFORE, BATCHES_AFTER = 8, 3
NAMES = ("pairs", "above")
SINK_OF = "pairs"
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
        self._sink = folder / "sink"
        self._sink_options = {
            "sink": "parquet",
            "sink.path": f"{self._sink}/batch={{batch}}",
            "sink.mode": "overwrite",
        }
        self._run(folder / "whole")
        shutil.copytree(self._sink, folder / "sink-whole")
        for batch in range(BATCHES_BEFORE, BATCHES_BEFORE + BATCHES_AFTER):
            self._add(batch)
        for stream in ("a", "b"):
            spark.read.schema(_DDL).parquet(str(folder / "data" / stream)).createOrReplaceTempView(stream)
        self.expected = {name: self._rows(spark.sql(QUERIES[name]).toArrow()) for name in NAMES}
        self.expected["sink"] = self.expected[SINK_OF]

    def __enter__(self) -> SparkDamage:
        return self

    def __exit__(self, *exc: object) -> None:
        self._spark.conf.unset("spark.sql.streaming.fileSource.log.compactInterval")

    def tries(self, damages: Iterable[tuple[str, Inflict]], *, is_running: bool = False) -> Iterator[SparkOutcome]:
        """Damaged before a session goes on, or after its first batch, and then it is opened again."""
        for what, inflict in damages:
            self._tries += 1
            root = self._folder / f"try-{self._tries}"
            shutil.copytree(self._folder / "whole", root)
            shutil.rmtree(self._sink)
            shutil.copytree(self._folder / "sink-whole", self._sink)
            try:
                if is_running:
                    with suppress(DovetailError):
                        self._run(root, inflict)
                else:
                    inflict(root)
                forget_checked()
                found = self._run(root)
            except DovetailError as error:
                yield SparkOutcome(what, str(error), is_silent=False)
            else:
                yield SparkOutcome(what, None, is_silent=found != self.expected)
            shutil.rmtree(root)

    def tries_of_kinds(self, kinds: Iterable[str], *, is_running: bool) -> Iterator[SparkOutcome]:
        """The newest file of each kind, damaged in every way."""

        def of(kind: str, how: How) -> Inflict:
            return lambda root: next(d for d in damages(root, 1, [kind]) if d.how is how).inflict(root)

        named = ((f"{kind}: {how.value}", of(kind, how)) for kind in kinds for how in How)
        yield from self.tries(named, is_running=is_running)

    def _run(self, root: Path, inflict: Inflict | None = None) -> dict[str, Counter[Any]]:
        session = Session(self._spark, str(root), partitions=2, key_groups=8)
        pending = [inflict] if inflict is not None else []
        session.engine.answers.listen(lambda _news: pending.pop()(root) if pending else None)
        try:
            for stream in ("a", "b"):
                reader = self._spark.readStream.schema(_DDL).option("maxFilesPerTrigger", 1)
                session.create_stream(
                    stream, reader.parquet(str(self._folder / "data" / stream)), event_time="ts", lateness="1 second"
                )
            for name in NAMES:
                sink: dict[str, Any] = self._sink_options if name == SINK_OF else {}
                session.create_query(QUERIES[name], name=name, **sink)
            session.start(trigger="available_now")
            session.await_termination(timeout=PATIENCE_S)
            session.query(SINK_OF).await_delivered(PATIENCE_S)
            found = {name: self._rows(session.query(name).to_arrow()) for name in NAMES}
            # Each batch has a folder, which a repeated one replaces.
            delivered = [self._rows(pq.read_table(path)) for path in self._sink.glob("*/*.parquet")]
            return found | {"sink": sum(delivered, Counter())}
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
