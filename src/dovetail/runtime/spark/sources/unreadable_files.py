"""A batch with files that cannot be read runs without them: they are bad rows of their stream alone.

Spark says in its error which file it was. Then all streams of files are read anew, from the other files of their batch;
what comes from elsewhere stays as it is. Files that were put aside and are asked for again come in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dovetail.core.sync import syncing_files
from dovetail.query.formats import FILE_FORMATS
from dovetail.query.row_rules import QUARANTINE
from dovetail.query.stream_spec import StreamSpec
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.message import Kind, Message
from dovetail.runtime.report import BadCount, RetriedFile, TaskReport, UnreadFile
from dovetail.runtime.spark.pack_columns import TAG, Packing, union_streams
from dovetail.runtime.spark.sources.open_stream import files_that_are_gone, read_files, with_places
from dovetail.runtime.spark.sources.source_offsets import FileLog, file_number, read_offsets, source_dir
from dovetail.store.bad_rows import SOURCE, BadFile, write_bad_rows

UNREADABLE = "unreadable file"
_FAILED_READ = "FAILED_READ_FILE"
_PLACE = re.compile(r"^file:/*")
_MAX_REASON = 500
_MOST_CAUSES = 10
MOST_READ_ALONE, READ_AT_ONCE = 64, 4
_OPEN_COST_KEY, _MOST_BYTES_KEY = "spark.sql.files.openCostInBytes", "spark.sql.files.maxPartitionBytes"
_FILE_BYTES = 1 << 40
"""To open a file costs as much as a partition may have, so a second one never comes to it."""
_HARDLY_ANY = 1e-12

Paths = dict[str, str]
"""By path of a file, as Spark's log writes it: why it cannot be read."""


@dataclass
class BatchOfFiles:
    """What a batch takes from files, and which of these it has to do without. `specs` are the streams by name."""

    root: Path
    batch: int
    rows: DataFrame
    packing: Packing
    specs: Mapping[str, StreamSpec]
    unread: dict[str, Paths] = field(default_factory=dict)

    def run(self, task: BatchTask, run: Callable[[DataFrame], list[Message]]) -> list[Message]:
        """The batch, again and again while it finds one more file that cannot be read."""
        again = tuple(file for file, _ in task.retried if file.unread is not None and file.stream in self._readable)
        while True:
            rows = self._rows(again) if again or self.unread else self.rows
            try:
                messages = run(rows)
            except Exception as error:
                if not self._put_aside(error, again):
                    raise
                self._put_others_aside(again)
                continue
            with syncing_files(task.syncing):
                report = self._report(task, again)
            return messages if report is None else [*messages, Message(0, Kind.REPORT, report.to_bytes())]

    @property
    def _readable(self) -> set[str]:
        """Streams that this batch can read from files."""
        return {n for n, spec in self.specs.items() if spec.kind in FILE_FORMATS and n in self.packing.streams}

    def _put_aside(self, error: Exception, again: tuple[BadFile, ...]) -> bool:
        """Whether the error is of a file that the batch can do without."""
        text = _said(error)
        if _FAILED_READ not in text:
            return False
        for name, spec in self.specs.items():
            for path in (*self._paths(spec), *(file.unread for file in again if file.stream == name)):
                is_known = path is None or path in self.unread.get(name, {})
                if path is not None and not is_known and _bare(path) in unquote(text):
                    self.unread.setdefault(name, {})[path] = _reason(text)
                    return True
        return False

    def _put_others_aside(self, again: tuple[BadFile, ...]) -> None:
        """Broken files seldom come alone: where there are few, each is read by itself, not a batch for each."""
        left = [(name, path) for name in sorted(self._readable) for path in self._left(self.specs[name], again)]
        if not 0 < len(left) <= MOST_READ_ALONE:
            return
        for text in self._failures(again):
            for name, path in left:
                if _bare(path) in unquote(text):
                    self.unread.setdefault(name, {})[path] = _reason(text)

    def _failures(self, again: tuple[BadFile, ...]) -> list[str]:
        """What Spark says of files that it cannot read: planned together, each a partition, which is a job of its own.

        What else is wrong comes again in the batch, which says it.
        """
        spark = self.rows.sparkSession
        try:
            with _a_file_a_partition(spark):
                rows: Any = self._of_files(again)._jdf.queryExecution().toRdd().toJavaRDD()
                partitions = range(rows.getNumPartitions())
        except Exception:  # noqa: BLE001 - as above
            return []

        def failure(partition: int) -> str:
            gateway: Any = spark.sparkContext._gateway
            only = gateway.new_array(gateway.jvm.int, 1)
            only[0] = partition
            try:
                # All is read, and next to nothing of it kept. A job that fails ends all others over the same RDD.
                rows.sample(False, _HARDLY_ANY, 0).collectPartitions(only)
            except Exception as error:  # noqa: BLE001 - as above
                return _said(error)
            return ""

        with ThreadPoolExecutor(READ_AT_ONCE) as pool:
            return [text for text in pool.map(failure, partitions) if _FAILED_READ in text]

    def _paths(self, spec: StreamSpec) -> list[str]:
        if spec.kind not in FILE_FORMATS:
            return []
        names = list(self.packing.streams)
        before, until = (read_offsets(self.root, batch, names).get(spec.name) for batch in (self.batch - 1, self.batch))
        if until is None:
            return []
        log = FileLog(source_dir(self.root, spec.name, names))
        return log.paths(file_number(before) + 1, file_number(until))

    def _rows(self, again: tuple[BadFile, ...]) -> DataFrame:
        """The batch with every stream of files read file by file; only what comes from elsewhere is taken as it is."""
        of_files, others = self._of_files(again), set(self.packing.streams) - self._readable
        if not others:
            return of_files
        tags = [self.packing.tag_of(name) for name in sorted(others)]
        return self.rows.filter(F.col(TAG).isin(tags)).unionAll(of_files)

    def _of_files(self, again: tuple[BadFile, ...]) -> DataFrame:
        frames = {name: self._frame(self.specs[name], again) for name in sorted(self._readable)}
        found = {name: frame for name, frame in frames.items() if frame is not None}
        return union_streams(found, self.packing) if found else self.rows.limit(0)

    def _left(self, spec: StreamSpec, again: tuple[BadFile, ...]) -> list[str]:
        """What the batch takes of the stream, as far as nothing is known to be wrong with it."""
        taken = [file.unread for file in again if file.stream == spec.name and file.unread is not None]
        aside = self.unread.get(spec.name, {})
        return [path for path in dict.fromkeys((*self._paths(spec), *taken)) if path not in aside]

    def _frame(self, spec: StreamSpec, again: tuple[BadFile, ...]) -> DataFrame | None:
        paths = self._left(spec, again)
        if not paths:
            return None
        frame = read_files(self.rows.sparkSession, spec, paths)
        gone = files_that_are_gone(frame, paths)
        if gone:
            self.unread.setdefault(spec.name, {}).update(dict.fromkeys(gone, "the file is gone"))
            return self._frame(spec, again)
        return with_places(spec, frame)

    def _report(self, task: BatchTask, again: tuple[BadFile, ...]) -> TaskReport | None:
        if not again and not self.unread:
            return None
        report = TaskReport(retried=[RetriedFile(file.path, []) for file in again])
        for name, paths in sorted(self.unread.items()):
            for path, reason in paths.items():
                report.unread.append(UnreadFile(name, path))
                report.bad_rows.append(BadCount(name, UNREADABLE, 1, f"{unquote(path)}: {reason}"))
                if self.specs[name].on_bad_row == QUARANTINE:
                    report.bad_files.append(_kept(task, name, path, reason))
        return report


@contextmanager
def _a_file_a_partition(spark: SparkSession) -> Iterator[None]:
    """While Spark plans to read files it puts as few of them together as it can."""
    before = {key: spark.conf.get(key, None) for key in (_OPEN_COST_KEY, _MOST_BYTES_KEY)}
    for key in before:
        spark.conf.set(key, str(_FILE_BYTES))
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def _kept(task: BatchTask, stream: str, path: str, reason: str) -> BadFile:
    columns = {SOURCE: pa.array([unquote(path)])}
    positions = np.zeros(1, np.int64)
    file = write_bad_rows(Path(task.root), stream, task.batch, uuid4().hex[:12], columns, [reason], positions)
    return replace(file, unread=path)


def _bare(path: str) -> str:
    """Spark writes a local file now with one slash, now with three, now as a URL."""
    return _PLACE.sub("/", unquote(path))


def _said(error: Exception) -> str:
    """The message and its causes. Asked one by one: for the whole with its traces Java and Python wait 40 ms."""
    raised = getattr(error, "java_exception", None)
    if raised is None:
        return str(error)
    said = [str(raised.getMessage())]
    while (cause := raised.getCause()) is not None and len(said) < _MOST_CAUSES:
        said.append(f"Caused by: {cause.toString()}")
        raised = cause
    return "\n".join(said)


def _reason(text: str) -> str:
    """What Spark says below it, which is nearer to the cause."""
    said = [line.strip() for line in text.splitlines() if line.strip().startswith("Caused by:")]
    first = next((line for line in text.splitlines() if _FAILED_READ in line), "")
    return (said[-1].removeprefix("Caused by:").strip() if said else first.strip())[:_MAX_REASON]
