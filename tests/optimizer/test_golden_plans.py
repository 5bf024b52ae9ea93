"""Plans as text: each file in `plans` holds queries and, below a line, the plan that they must give.

REWRITE=1 writes what the planner gives now; the difference is then reviewed like code.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dovetail.optimizer.pipeline import plan_queries
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import even_placement
from dovetail.query.stream import Stream

RULE = "\n----\n"
PLANS = sorted((Path(__file__).parent / "plans").glob("*.txt"))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_the_plan_is_the_recorded_one(
    path: Path, live: Callable[[str, str], LiveQuery], streams: Mapping[str, Stream]
) -> None:
    text, _, expected = path.read_text(encoding="utf-8").partition(RULE)
    named = [line.split(": ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    queries = tuple(live(name, sql) for name, sql in named)
    plan = plan_queries(queries, streams, even_placement(8, 2), epoch=1)
    found = str(plan.text_tree({query.id: query.name for query in queries})) + "\n"
    if os.environ.get("REWRITE"):
        path.write_text(f"{text}{RULE}{found}", encoding="utf-8")
        return
    assert found == expected


def test_there_are_recorded_plans() -> None:
    assert len(PLANS) >= 5
