"""The committed answers of one query in one batch: what a sink is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dovetail.kernels.arrow_types import arrow_type
from dovetail.query.join_query import OutputColumn
from dovetail.query.output_names import unique_names
from dovetail.store.manifest import ResultFile

TakeBatch = Callable[[pa.Table, int], object]
"""A user's function: the answers of a batch, and its number."""


@dataclass(frozen=True)
class ResultBatch:
    """`query` is the query's id. The files never change, nor does their order or that of their rows.

    So a row's place among them is the same however often the batch is delivered.
    """

    root: Path
    query: str
    batch: int
    output: tuple[OutputColumn, ...]
    files: tuple[ResultFile, ...]


def answers_table(
    root: Path, output: tuple[OutputColumn, ...], files: tuple[ResultFile, ...], timezone: str
) -> pa.Table:
    """Answers as one table, in the order of files and rows."""
    names = unique_names([column.name for column in output])
    schema = pa.schema(
        [(unique, arrow_type(column.type, timezone)) for unique, column in zip(names, output, strict=True)]
    )
    tables = [pq.read_table(root / file.path) for file in files]
    return pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in tables)])
