"""What a statement answers, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from dovetail.core.html_table import html_table, html_text
from dovetail.core.text_table import text_table


class StatementKind(Enum):
    CREATE_QUERY = "create query"
    DROP_QUERY = "drop query"
    ALTER_QUERY = "alter query"
    CREATE_STREAM = "create stream"
    SHOW_QUERIES = "show queries"
    SHOW_STREAMS = "show streams"
    EXPLAIN = "explain"


@dataclass(frozen=True, repr=False)
class StatementResult:
    """What a statement answers; in a notebook it shows itself as a table.

    `message` is one sentence. `name` and `id` are of the query or stream that it is about: another query may have
    the name later, none the id. `rows` are those that SHOW lists, `text` is what EXPLAIN tells.
    """

    kind: StatementKind
    message: str
    name: str = ""
    id: str = ""
    rows: tuple[Mapping[str, Any], ...] = ()
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        """As what `json.dumps` takes."""
        values = {"kind": self.kind.value, "message": self.message, "name": self.name, "id": self.id}
        return values | {"rows": [dict(row) for row in self.rows], "text": self.text}

    def __repr__(self) -> str:
        if self.text:
            return self.text
        return f"{text_table(self.rows)}\n({self.message})" if self.rows else self.message

    def _repr_html_(self) -> str:
        if self.rows:
            return html_table(self.message, tuple(self.rows[0]), [tuple(row.values()) for row in self.rows])
        return html_text(self.message, self.text) if self.text else html_table(self.message, (), ())
