"""A key that several queries share fails on rows that only one of them wants: the others go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.engine.control.registry import QueryState
from dovetail.testing.local_session import LocalSession
from tests.support.neighbours import SCHEMA, rows

QUERIES = {
    "two": "SELECT a.k, b.v FROM a JOIN b ON CAST(a.s AS INT) = b.v",
    "three": "SELECT a.k, c.k AS o FROM b JOIN a ON b.k = a.k JOIN c ON CAST(a.s AS INT) = c.v",
}


@pytest.mark.parametrize("exchange", ["references", "rows"])
@pytest.mark.parametrize("shape", QUERIES)
def test_a_key_is_charged_to_the_query_on_whose_rows_it_fails(shape: str, exchange: str, tmp_path: Path) -> None:
    table = rows(*range(9))
    texts = ["no number" if v <= 0 else str(v) for v in table.column("v").to_pylist()]
    left = table.set_column(1, SCHEMA.field("s"), [texts])
    answers = {}
    for names in (("good",), ("good", "bad")):
        with LocalSession(tmp_path / str(len(names)), exchange=exchange) as session:
            for name in ("a", "b", "c"):
                session.create_stream(name, SCHEMA)
            session.create_query(f"{QUERIES[shape]} WHERE a.v > 0", "good")
            bad = session.create_query(QUERIES[shape], "bad") if "bad" in names else None
            for _ in range(2):
                session.push({"a": left, "b": table, "c": table})
            answers[names] = sorted(map(str, session.results("good").to_pylist()))
            assert session.engine.queries.record(session._query_ids["good"]).state is QueryState.RUNNING
            assert bad is None or bad.status.state is QueryState.QUARANTINED
    assert answers["good",] == answers["good", "bad"] != []
