from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dovetail.engine.explain.explain import explain_plan, explain_query
from dovetail.engine.explain.text.words import size
from dovetail.stats.catalog import StatsCatalog

if TYPE_CHECKING:
    from conftest import Bench

JOIN = "SELECT a.v, b.v FROM a JOIN b ON a.k = b.k"
SELECTIVE = f"{JOIN} WHERE a.v > 1"
A = [(1, 1, 0.0), (1, 2, 5.0), (2, 3, 10.0), (3, 0, 10.0)]
B = [(1, 1, 0.0), (1, 2, 10.0)]


def test_before_any_batch_explain_says_what_it_assumes(bench: Bench) -> None:
    session = bench.open()
    session.create_query(SELECTIVE, "q")
    text = explain_plan(session.engine)
    assert "rows with v > 1 (50% (assumed)) for ever" in text
    assert "0.001% (assumed) of pairs match" in text
    assert "no batch has brought rows yet; 100,000 (assumed) are expected to be kept" in text
    assert "indexed by k: unknown different keys" in text


def test_explain_shows_figures_with_their_origin(bench: Bench) -> None:
    session = bench.open()
    session.create_query(JOIN, "all")
    session.create_query(SELECTIVE, "q")
    bench.push(session, a=A, b=B)
    lines = [line.lstrip("│├└─ ") for line in explain_plan(session.engine).splitlines()]
    held = size(sum(meta.size_bytes for meta in session.engine.head.state.buckets if meta.store == "a"))
    first = lines.index("what is kept") + 1
    assert lines[first : first + 4] == [
        f"a: keeps k, ts, v of all rows for ever (it grows without bound); 4 rows, {held}; used by all and q",
        "arriving: 4 rows a batch (0.4 a second of event time); 0% late",
        "indexed by k: 3 different keys",
        "v > 1: 50% of the rows",
    ]
    assert sum(" looks up " in line for line in lines) == 2
    assert sum("50% of pairs match" in line for line in lines) == 2


def test_given_figures_are_shown_as_given(bench: Bench) -> None:
    session = bench.open(statistics=StatsCatalog(key_match={"a.k=b.k": 0.125}))
    session.create_query(JOIN, "q")
    bench.push(session, a=A, b=B)
    assert "12% (given) of pairs match" in explain_plan(session.engine)


def test_a_query_sees_its_own_selections(bench: Bench) -> None:
    session = bench.open()
    session.create_query(f"{JOIN} WHERE a.v > 2", "other")
    handle = session.create_query(SELECTIVE, "q")
    bench.push(session, a=A, b=B)
    text = explain_query(session.engine, handle.id)
    assert "rows with v > 1 (50%)" in text
    assert "v > 2" not in text
    assert "each new row of a looks up b by k" in text


def test_many_selections_are_not_all_listed(bench: Bench) -> None:
    session = bench.open()
    for bound in range(12):
        session.create_query(f"{JOIN} WHERE a.v > {bound}", f"q{bound}")
    text = explain_plan(session.engine)
    assert text.count("of the rows") == 8
    assert "4 more conditions" in text


def test_progress_has_the_figures_that_planners_use(bench: Bench) -> None:
    session = bench.open()
    session.create_query(JOIN, "q")
    bench.push(session, a=A)
    assert session.progress is not None
    none_yet = {"name": "b", "batchRows": None, "rowsPerEventSecond": None, "lateShare": None}
    assert none_yet in session.progress["statistics"]["streams"]
    bench.push(session, b=B)
    found = session.progress["statistics"]
    rows = {entry["name"]: entry["batchRows"] for entry in found["streams"]}
    assert rows["b"] == {"value": 2.0, "origin": "counted", "relativeError": 0.0}
    probability = {"value": 0.5, "origin": "counted", "relativeError": 0.0}
    assert found["matches"] == [{"edge": "a.k=b.k", "probability": probability}]
    assert json.loads(json.dumps(found)) == found
