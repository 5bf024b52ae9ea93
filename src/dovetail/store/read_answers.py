"""A query's committed answers as an Arrow table, read from their files: no Spark job runs for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from dovetail.core.errors import StoreError
from dovetail.kernels.arrow_types import arrow_type
from dovetail.query.answer_columns import answer_columns
from dovetail.query.join_query import JoinQuery, OutputColumn
from dovetail.query.output_names import unique_names
from dovetail.store.manifest import ResultPart
from dovetail.store.readable_texts import with_readable_texts
from dovetail.store.result_parts import read_result


def answer_schema(output: Sequence[OutputColumn], timezone: str) -> pa.Schema:
    """Columns under the names that they have in the files: a repeated name gets a number."""
    names = unique_names([column.name for column in output])
    return pa.schema([(name, arrow_type(column.type, timezone)) for name, column in zip(names, output, strict=True)])


def read_answers(root: Path, schema: pa.Schema, parts: Iterable[ResultPart]) -> pa.Table:
    tables = (read_result(root, part) for part in parts)
    return pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in tables)])


def current_answers(root: Path, query: JoinQuery, parts: Iterable[ResultPart], timezone: str) -> pa.Table:
    """What the query answers as of these parts: all rows, or of an updating query those that were not taken back."""
    table = read_answers(root, answer_schema(answer_columns(query), timezone), parts)
    return with_readable_texts(fold_changes(table) if query.is_updating else table)


def fold_changes(changes: pa.Table) -> pa.Table:
    """The rows that are true after all changes, in the order in which they first came; the last column counts.

    >>> fold_changes(pa.table({"n": [1, 1, 3], "_change": [1, -1, 1]})).to_pylist()
    [{'n': 3}]
    """
    *names, change = changes.column_names
    # Names may be anything: positions cannot clash with those that grouping makes.
    numbered = changes.rename_columns([str(position) for position in range(changes.num_columns)])
    folded = numbered.group_by([str(position) for position in range(len(names))], use_threads=False).aggregate(
        [(str(len(names)), "sum")]
    )
    counts = folded.column(f"{len(names)}_sum").to_numpy()
    if (counts < 0).any():
        raise StoreError(f"answers were taken back that never came: column {change}", hint="was a file removed?")
    rows = pa.array(np.repeat(np.arange(len(counts)), counts))
    return folded.select([str(position) for position in range(len(names))]).take(rows).rename_columns(names)
