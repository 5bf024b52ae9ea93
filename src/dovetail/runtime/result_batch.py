"""The committed answers of one query in one batch: what a sink is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from dovetail.query.join_query import OutputColumn
from dovetail.store.manifest import ResultPart
from dovetail.store.read_answers import answer_schema, read_answers
from dovetail.store.readable_texts import with_readable_texts

TakeBatch = Callable[[pa.Table, int], object]
"""A user's function: the answers of a batch, and its number."""


@dataclass(frozen=True)
class ResultBatch:
    """`query` is the query's id. The parts never change, nor does their order or that of their rows.

    So a row's place among them is the same however often the batch is delivered.
    """

    root: Path
    query: str
    batch: int
    output: tuple[OutputColumn, ...]
    parts: tuple[ResultPart, ...]


def answers_table(
    root: Path, output: tuple[OutputColumn, ...], parts: tuple[ResultPart, ...], timezone: str
) -> pa.Table:
    """Answers as one table, in the order of parts and rows."""
    return with_readable_texts(read_answers(root, answer_schema(output, timezone), parts))
