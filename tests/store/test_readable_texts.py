"""Texts that are no UTF-8 are joined as they are, and shown with U+FFFD where Python reads them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from dovetail.service.answers.json_rows import json_rows
from dovetail.store.read_answers import current_answers
from dovetail.store.readable_texts import with_readable_texts
from dovetail.testing.local_session import LocalSession

BROKEN = [b"\xff\xfe", b"caf\xc3", b"fine", None]


def texts(values: list[bytes | None]) -> pa.Array:
    return pa.array(values, pa.binary()).view(pa.string())


def test_what_is_no_character_is_shown_as_such() -> None:
    table = pa.table({"k": [1, 2, 3, 4], "s": texts(BROKEN)})
    assert with_readable_texts(table).column("s").to_pylist() == ["\ufffd\ufffd", "caf\ufffd", "fine", None]
    assert json_rows(table)[0] == {"k": 1, "s": "\ufffd\ufffd"}


def test_texts_that_are_fine_are_not_touched() -> None:
    table = pa.table({"s": ["caf\u00e9", None]})
    assert with_readable_texts(table) is table


def test_they_are_joined_by_their_bytes(tmp_path: Path) -> None:
    table = pa.table({"k": [1, 2, 3, 4], "s": texts(BROKEN)})
    with LocalSession(tmp_path) as session:
        for name in ("a", "b"):
            session.create_stream(name, table.schema)
        pairs = session.create_query("SELECT a.k, b.s FROM a JOIN b ON a.s = b.s", "pairs")
        session.push({"a": table, "b": table})
        engine = session.engine
        found = current_answers(engine.root, engine.queries.compiled(pairs.id), engine.answers.results(pairs.id), "UTC")
        rows = {(row["k"], row["s"]) for row in found.to_pylist()}
    assert rows == {(1, "\ufffd\ufffd"), (2, "caf\ufffd"), (3, "fine")}
