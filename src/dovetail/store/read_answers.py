"""A query's committed answers as an Arrow table, read from their files: no Spark job runs for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dovetail.kernels.arrow_types import arrow_type
from dovetail.query.join_query import OutputColumn
from dovetail.query.output_names import unique_names
from dovetail.store.manifest import ResultFile


def answer_schema(output: Sequence[OutputColumn], timezone: str) -> pa.Schema:
    """Columns under the names that they have in the files: a repeated name gets a number."""
    names = unique_names([column.name for column in output])
    return pa.schema([(name, arrow_type(column.type, timezone)) for name, column in zip(names, output, strict=True)])


def read_answers(root: Path, schema: pa.Schema, files: Iterable[ResultFile]) -> pa.Table:
    tables = (pq.read_table(root / file.path) for file in files)
    return pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in tables)])
