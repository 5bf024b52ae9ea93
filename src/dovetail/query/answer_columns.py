"""The columns of a query's result files: its output, and for an updating query whether a row came or went.

    SELECT k, COUNT(*) ...     k | count(1) | _change
    batch 1                    7 |        1 |      +1
    batch 2                    7 |        1 |      -1      taken back, with the values that it had
                               7 |        3 |      +1

The current answer is the sum of the changes: a row that came as often as it went is not part of it.
"""

from __future__ import annotations

from dovetail.query.aggregation import GROUP
from dovetail.query.expression import Column
from dovetail.query.join_query import JoinQuery, OutputColumn
from dovetail.query.types import TINYINT

CHANGE = "_change"
"""+1 for a row that is now true, -1 for one that is taken back; always the last column of an updating query's files."""

CHANGE_COLUMN = OutputColumn(CHANGE, Column(GROUP, CHANGE, TINYINT))


def answer_columns(query: JoinQuery) -> tuple[OutputColumn, ...]:
    """What is in the files, in order; names in files are made unique by `unique_names`."""
    return (*query.output, CHANGE_COLUMN) if query.is_updating else query.output
