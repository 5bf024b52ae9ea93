from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dovetail.engine.explain.explain import explain_plan, explain_query
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
    assert "gt(row.v, 1:int): passes 0.5 (assumed)" in text
    assert "match 1e-05 (assumed)" in text
    assert "rows: unknown a batch, unknown a second of event time, unknown of them late, 100,000 (assumed) live" in text
    assert "index [k]; distinct keys: unknown" in text


def test_explain_shows_figures_with_their_origin(bench: Bench) -> None:
    session = bench.open()
    session.create_query(JOIN, "all")
    session.create_query(SELECTIVE, "q")
    bench.push(session, a=A, b=B)
    lines = explain_plan(session.engine).splitlines()
    stored_bytes = sum(meta.size_bytes for meta in session.engine.head.state.buckets if meta.store == "a")
    stores = lines[: lines.index("├─ probes")]
    rates = "4 (counted) a batch, 0.4 (counted) a second of event time, 0 (counted) of them late"
    assert [line.lstrip("│├└─ ") for line in stores[3:6]] == [
        f"rows: {rates}, 4 (counted) live, 4 (counted) stored in {stored_bytes:,} bytes",
        "index [k]; distinct keys: 3 (counted); routed by hash (no partition has much more to do than others)",
        "gt(row.v, 1:int): passes 0.5 (counted)",
    ]
    probes = lines[len(stores) :]
    assert sum("m1 = " in line for line in probes) == 2
    assert sum("match 0.5 (counted)" in line for line in probes) == 2


def test_given_figures_are_shown_as_given(bench: Bench) -> None:
    session = bench.open(statistics=StatsCatalog(key_match={"a.k=b.k": 0.125}))
    session.create_query(JOIN, "q")
    bench.push(session, a=A, b=B)
    assert "match 0.125 (given)" in explain_plan(session.engine)


def test_a_query_sees_its_own_selections(bench: Bench) -> None:
    session = bench.open()
    session.create_query(f"{JOIN} WHERE a.v > 2", "other")
    handle = session.create_query(SELECTIVE, "q")
    bench.push(session, a=A, b=B)
    text = explain_query(session.engine, handle.id)
    assert "gt(row.v, 1:int): passes 0.5 (counted)" in text
    assert "gt(row.v, 2:int)" not in text
    assert "a row finds" in text


def test_many_selections_are_not_all_listed(bench: Bench) -> None:
    session = bench.open()
    for bound in range(12):
        session.create_query(f"{JOIN} WHERE a.v > {bound}", f"q{bound}")
    text = explain_plan(session.engine)
    assert text.count("passes") == 8
    assert "4 more selections" in text


def test_progress_has_the_figures_that_planners_use(bench: Bench) -> None:
    session = bench.open()
    session.create_query(JOIN, "q")
    bench.push(session, a=A)
    assert session.progress is not None
    none_yet = {"name": "b", "batchRows": None, "rowsPerSecond": None, "lateShare": None}
    assert none_yet in session.progress["statistics"]["streams"]
    bench.push(session, b=B)
    found = session.progress["statistics"]
    rows = {entry["name"]: entry["batchRows"] for entry in found["streams"]}
    assert rows["b"] == {"value": 2.0, "origin": "counted", "relativeError": 0.0}
    probability = {"value": 0.5, "origin": "counted", "relativeError": 0.0}
    assert found["matches"] == [{"edge": "a.k=b.k", "probability": probability}]
    assert json.loads(json.dumps(found)) == found
