"""Texts that are no UTF-8 come from files that other systems wrote: Spark takes and joins their bytes as they are.

Python has no such texts. Where answers become Python's, bytes that are no character are shown as U+FFFD, which is what
Spark's `collect` does.
"""

from __future__ import annotations

import pyarrow as pa


def with_readable_texts(table: pa.Table) -> pa.Table:
    """The same table where all texts are UTF-8, as nearly always."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) and not _is_readable(table.column(place)):
            table = table.set_column(place, field, _readable(table.column(place)))
    return table


def _is_readable(column: pa.ChunkedArray) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _readable(column: pa.ChunkedArray) -> pa.Array:
    texts = column.combine_chunks().view(pa.binary()).to_pylist()
    return pa.array([None if text is None else text.decode("utf-8", "replace") for text in texts], pa.string())
