from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

from dovetail.frontend.compile_sql import compile_sql
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, DOUBLE, STRING, TIMESTAMP, SqlType

README = Path(__file__).parent.parent / "README.md"


def stream(name: str, **columns: SqlType) -> Stream:
    return Stream(name, (*columns.items(), ("ts", TIMESTAMP)), "ts", 0)


def test_sql_examples_are_queries() -> None:
    streams = (
        stream("lines", shipmode=STRING, price=DOUBLE),
        stream("orders", id=BIGINT, price=DOUBLE),
        stream("payments", order_id=BIGINT),
        stream("views", lang=STRING, user=STRING),
    )
    page = (README.parent / "docs" / "sql.md").read_text(encoding="utf-8").partition("## Examples")[2]
    (text, *_) = re.findall(r"```sql\n(.*?)```", page, flags=re.DOTALL)
    queries = re.split(r";\s*(?:--.*)?\n\s*", text.strip() + "\n")
    compiled = [compile_sql(query, {each.name: each for each in streams}) for query in queries if query]
    assert len(compiled) == 3


def test_the_figures_of_the_readme_are_those_of_the_suites() -> None:
    figures = {
        suite: json.loads((README.parent / "docs" / "benchmarks" / f"{suite}.json").read_text(encoding="utf-8"))
        for suite in ("single", "queries", "smallest")
    }
    single, twenty, smallest = figures["single"], figures["queries"]["by_queries"]["20"], figures["smallest"]
    rates = [single[f"{system}_rows_per_s"] / 1e6 for system in ("dovetail", "spark", "duckdb")]
    readme = README.read_text(encoding="utf-8")
    assert (
        f"| {rates[0]:.1f}M rows/s | {rates[1]:.2f}M rows/s | 0.17 to 0.31M rows/s ¹ | {rates[2]:.1f}M rows/s |"
        in readme
    )
    assert f"| {twenty['dovetail_s']:.1f} s | {twenty['spark_s']:.0f} s |" in readme
    assert (
        f"| {smallest['batch_ms_p50'] / 1e3:.1f} s per batch | {smallest['spark_batch_ms_p50'] / 1e3:.1f} s per batch |"
        in readme
    )


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120


def test_the_picture_of_the_readme_shows_the_plan_that_the_engine_makes(tmp_path: Path) -> None:
    script = runpy.run_path(str(README.parent / "docs" / "figures" / "make_shared_plan.py"))
    script["draw"](script["boxes_of"](script["demo_plan"]()), tmp_path / "plan.svg")
    drawn, committed = (_texts(path) for path in (tmp_path / "plan.svg", script["TARGET"]))
    assert drawn == committed


def _texts(path: Path) -> list[str]:
    return re.findall(r">([^<>\n]+)</t", path.read_text(encoding="utf-8"))
