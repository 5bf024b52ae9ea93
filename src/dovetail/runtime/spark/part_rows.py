"""Rows of committed answers as a DataFrame, read by Spark's Python workers: ranges of files are nothing Spark knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from dovetail.query.join_query import OutputColumn
from dovetail.query.output_names import unique_names
from dovetail.runtime.spark.types import spark_type
from dovetail.store.manifest import ResultPart
from dovetail.store.read_answers import answer_schema
from dovetail.store.result_parts import read_result_batches

SEQUENCE = "#sequence"
"""The column with a row's place in the order of parts and rows; no SQL text can name it."""

_ROWS_AT_ONCE = 1 << 16
_PARTS_A_TASK = 64
_ANY_ZONE = "UTC"
"""A timestamp is an instant to Spark, whatever zone Arrow shows it in."""
MapArrow = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def part_rows(
    spark: SparkSession, root: Path, output: tuple[OutputColumn, ...], parts: Sequence[ResultPart]
) -> DataFrame:
    """The columns of the answer, and `SEQUENCE`. The parts have been compared with their checksums before."""
    columns = results_schema(output)
    schema = T.StructType([*columns.fields, T.StructField(SEQUENCE, T.LongType(), False)])
    tasks = min(-(-len(parts) // _PARTS_A_TASK), spark.sparkContext.defaultParallelism)
    numbers = spark.range(0, len(parts), 1, max(tasks, 1))
    return numbers.mapInArrow(_reader(root, answer_schema(output, _ANY_ZONE), tuple(parts)), schema)


def results_schema(output: tuple[OutputColumn, ...]) -> T.StructType:
    """As in the files, where each column has a name of its own."""
    names = unique_names([column.name for column in output])
    return T.StructType(
        [T.StructField(name, spark_type(column.type), True) for name, column in zip(names, output, strict=True)]
    )


def _reader(root: Path, schema: pa.Schema, parts: tuple[ResultPart, ...]) -> MapArrow:
    rows_before = np.cumsum([0, *(part.rows for part in parts)]).tolist()

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            place = rows_before[number]
            for rows in read_result_batches(root, parts[number], _ROWS_AT_ONCE):
                sequence = pa.array(np.arange(place, place + rows.num_rows))
                place += rows.num_rows
                yield pa.RecordBatch.from_arrays([*rows.cast(schema).columns, sequence], [*schema.names, SEQUENCE])

    return read
