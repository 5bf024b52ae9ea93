"""Old rows once more: exactly the files or Kafka records that Spark gave to a batch, read as a batch DataFrame."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from dovetail.core.errors import HistoryError
from dovetail.core.secret_reference import resolved
from dovetail.plan.wanted_columns import wanted_columns
from dovetail.query.formats import FILE_FORMATS, KAFKA
from dovetail.query.stream_spec import StreamSpec
from dovetail.runtime.batch_task import BATCH, BatchTask
from dovetail.runtime.message import Message
from dovetail.runtime.spark.pack_columns import column_types, pack_columns, union_streams
from dovetail.runtime.spark.pipeline import crossing_settings
from dovetail.runtime.spark.run_spark import run_spark
from dovetail.runtime.spark.sources.open_stream import (
    decoded,
    files_that_are_gone,
    is_pattern,
    kafka_columns,
    one_slash,
    read_files,
    schema_of,
)
from dovetail.runtime.spark.sources.source_offsets import FileLog, file_number, source_dir
from dovetail.runtime.spark.types import quoted
from dovetail.store.manifest import PastBatch

POOL = "dovetail-history"
MAX_MAPPED_FILES = 64
"""A row finds its batch by the name of its file, one comparison a file: with more, every batch is a read of its own."""
MAX_NAMED_FILES = 3
_EARLIEST = -2
_PARTS_OF_KAFKA_TOPICS = ("subscribe", "subscribepattern", "assign", "startingoffsets", "endingoffsets")

Specs = Callable[[], Mapping[str, StreamSpec]]
"""The streams that Dovetail opens itself, as they are now."""


class SourceHistory:
    """Streams that were declared, from files or Kafka. Everything else comes only once."""

    def __init__(self, spark: SparkSession, root: Path, specs: Specs, streams: Callable[[], list[str]]) -> None:
        """`streams` names all streams in the order of Spark's sources."""
        self._user_session = spark
        self._spark: SparkSession | None = None
        self._root = root
        self._specs = specs
        self._streams = streams
        self._file_logs: dict[str, FileLog] = {}

    def check(self, streams: Collection[str]) -> None:
        specs = self._specs()
        for name in sorted(streams):
            spec = specs.get(name)
            if spec is None:
                raise HistoryError(
                    f"stream {name!r} is a DataFrame, whose rows come only once",
                    hint="declare the stream with its source (CREATE STREAM), or create the query without backfill",
                )
            if spec.kind not in (*FILE_FORMATS, KAFKA):
                raise HistoryError(
                    f"stream {name!r} has format {spec.format}, whose rows come only once",
                    hint="only files and Kafka can be read again: create the query without backfill",
                )
            if (spec.option("cleanSource") or "off").lower() != "off":
                raise HistoryError(
                    f"stream {name!r} removes its files (cleanSource)", hint="create the query without backfill"
                )

    def run(self, task: BatchTask, past: tuple[PastBatch, ...]) -> list[Message]:
        spark = self._session(task.timezone)
        wanted = {name: list({*columns, BATCH}) for name, columns in wanted_columns(task.plan, task.streams).items()}
        frames = {name: self._frame(spark, name, past).select(*map(quoted, wanted[name])) for name in sorted(wanted)}
        packing = pack_columns({name: column_types(frame.schema, wanted[name]) for name, frame in frames.items()})
        for key, value in crossing_settings(packing.value_types).items():
            spark.conf.set(key, value)
        context = spark.sparkContext
        shared = context.broadcast((task.plan, task.streams))
        context.setLocalProperty("spark.scheduler.pool", POOL)
        try:
            return run_spark(task, union_streams(frames, packing), packing, shared)
        finally:
            shared.unpersist()

    def _session(self, timezone: str) -> SparkSession:
        """One of our own with the user's settings: those of reading must not be the user's, nor theirs ours."""
        if self._spark is None:
            self._spark = self._user_session.newSession()
            for key, value in self._user_session.conf.getAll.items():
                if self._spark.conf.isModifiable(key):
                    self._spark.conf.set(key, value)
            for key, value in _SETTINGS.items():
                self._spark.conf.set(key, value)
        self._spark.conf.set("spark.sql.session.timeZone", timezone)
        return self._spark

    def _frame(self, spark: SparkSession, name: str, past: tuple[PastBatch, ...]) -> DataFrame:
        self.check([name])
        spec = self._specs()[name]
        frames = self._of_files(spark, spec, past) if spec.kind in FILE_FORMATS else self._of_kafka(spark, spec, past)
        whole = spark.createDataFrame([], schema_of(spec.columns).add(BATCH, LongType())) if not frames else frames[0]
        for frame in frames[1:]:
            whole = whole.unionAll(frame)
        return whole

    def _of_files(self, spark: SparkSession, spec: StreamSpec, past: tuple[PastBatch, ...]) -> list[DataFrame]:
        log = self._file_logs.setdefault(spec.name, FileLog(self._source_dir(spec.name)))
        batch_by_path: dict[str, int] = {}
        for each in past:
            first, last = (file_number(offset) for offset in _offsets(each, spec.name))
            # What could not be read then is no part of its batch, but of the one that took it again.
            unread = set(each.arrival.unread.get(spec.name, ()))
            paths = [path for path in log.paths(first + 1, last) if path not in unread]
            again = [file.unread for file in each.arrival.retried if file.stream == spec.name and file.unread]
            batch_by_path |= dict.fromkeys((*paths, *again), each.batch)
        return [_read_files(spark, spec, group) for group in _groups(batch_by_path)]

    def _of_kafka(self, spark: SparkSession, spec: StreamSpec, past: tuple[PastBatch, ...]) -> list[DataFrame]:
        frames = []
        for each in past:
            before, until = _offsets(each, spec.name)
            initial = before if before is not None else _initial_kafka_offsets(self._source_dir(spec.name))
            options = kafka_range(spec, json.loads(initial), json.loads(until or "{}"))
            if options is not None:
                frame = spark.read.format(spec.format).options(**options).load()
                frames.append(kafka_columns(spec, frame).withColumn(BATCH, F.lit(each.batch).cast(LongType())))
        return frames

    def _source_dir(self, stream: str) -> Path:
        return source_dir(self._root, stream, self._streams())


_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    # Rows that are gone must not go unnoticed.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
}


def kafka_range(
    spec: StreamSpec, before: Mapping[str, Mapping[str, int]], until: Mapping[str, Mapping[str, int]]
) -> dict[str, str] | None:
    """Options for Spark's batch reader of Kafka: the records between two offsets; None if there are none."""
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for topic, end_by_partition in until.items():
        for partition, end in end_by_partition.items():
            # A partition that was not there before is read from its beginning, as the stream did.
            start = before.get(topic, {}).get(partition, _EARLIEST)
            if start != end:
                starts.setdefault(topic, {})[partition] = start
                ends.setdefault(topic, {})[partition] = end
    if not ends:
        return None
    kept = {key: value for key, value in resolved(spec.options).items() if key.lower() not in _PARTS_OF_KAFKA_TOPICS}
    return {
        **kept,
        "assign": json.dumps({topic: sorted(map(int, partitions)) for topic, partitions in ends.items()}),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
        "failOnDataLoss": "true",
    }


def _offsets(past: PastBatch, stream: str) -> tuple[str | None, str | None]:
    """How far the stream's source was read before the batch and after it; None: not at all."""
    if not past.arrival.offsets:
        raise HistoryError(
            f"batch {past.batch} does not say which rows of {stream!r} it had: its sources have no names",
            hint="declare every stream of a new checkpoint",
        )
    return past.previous.offsets.get(stream), past.arrival.offsets.get(stream)


def _initial_kafka_offsets(folder: Path) -> str:
    """Where the stream began, as Spark noted it with its first batch: a zero byte, a version, the offsets."""
    text = (folder / "0").read_text().lstrip("\0")
    return text.partition("\n")[2]


def _groups(batch_by_path: dict[str, int]) -> list[dict[str, int]]:
    """Files that are read as one."""
    # Spark reads every file twice if there are several and one of them has such a sign in its name.
    alone = [{path: batch} for path, batch in batch_by_path.items() if is_pattern(unquote(path))]
    others = {path: batch for path, batch in batch_by_path.items() if not is_pattern(unquote(path))}
    if len(others) <= MAX_MAPPED_FILES:
        return [*alone, *([others] if others else [])]
    batches = sorted(set(others.values()))
    return [*alone, *({path: b for path, b in others.items() if b == batch} for batch in batches)]


def _read_files(spark: SparkSession, spec: StreamSpec, batch_by_path: dict[str, int]) -> DataFrame:
    frame = read_files(spark, spec, list(batch_by_path))
    gone = files_that_are_gone(frame, batch_by_path)
    if gone:
        raise HistoryError(
            f"files of stream {spec.name!r} are gone: {', '.join(map(unquote, gone[:MAX_NAMED_FILES]))}",
            hint="put them back and create the query anew, or create it without backfill",
        )
    # First the batch: Spark knows the file of a row only as long as its columns are those of the file.
    numbered = frame.withColumn(BATCH, _batch_of(batch_by_path).cast(LongType()))
    return decoded(spec, numbered, BATCH)


def _batch_of(batch_by_path: dict[str, int]) -> Column:
    batches = set(batch_by_path.values())
    if len(batches) == 1:
        return F.lit(batches.pop())
    both = batch_by_path | {one_slash(path): batch for path, batch in batch_by_path.items()}
    pairs = [F.lit(each) for item in both.items() for each in item]
    path = F.col("_metadata.file_path")
    unknown = F.raise_error(F.concat(F.lit("no batch read the file "), path)).cast(LongType())
    return F.coalesce(F.element_at(F.create_map(*pairs), path), unknown)
