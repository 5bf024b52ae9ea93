"""Who pays for what is asked of pairs, and who gets them: what is made for many is right for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dovetail.engine.control.registry import QueryState
from dovetail.runtime.probe import decide_pairs
from dovetail.testing.local_session import LocalSession
from tests.support.neighbours import SCHEMA, rows

RESIDUAL = "SELECT a.k FROM a JOIN b ON a.k = b.k AND CAST(a.s AS INT) + b.v > 0"


@pytest.mark.parametrize("others", [0, 1])
def test_a_residual_that_fails_is_evaluated_again_only_if_others_ask_for_it(
    others: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []
    holds = decide_pairs.PairDecider._holds

    def counted(self: Any, predicate: Any, stores: Any, pairs: Any, idx: Any) -> Any:
        tried.append(len(idx))
        return holds(self, predicate, stores, pairs, idx)

    monkeypatch.setattr(decide_pairs.PairDecider, "_holds", counted)
    with LocalSession(tmp_path, partitions=1) as session:
        for name in ("a", "b"):
            session.create_stream(name, SCHEMA)
        bad = session.create_query(RESIDUAL, "bad")
        for number in range(others):
            session.create_query(RESIDUAL, f"other{number}")
        session.push({"b": rows(*range(9))})
        texts = rows(*range(9)).set_column(1, SCHEMA.field("s"), [["no number"] * 9])
        session.push({"a": texts})
        assert bad.status.state is QueryState.QUARANTINED
        assert (bad.status.error or "").startswith("CAST: 'no number' is no int")
    assert len(tried) == 1 + (0 if others == 0 else 1 + others)


def test_answers_of_one_that_passes_its_limit_are_left_out_of_those_made_together(tmp_path: Path) -> None:
    """All ask for the same columns; in the middle is one that may have one row only."""
    sql = "SELECT a.v, b.v AS w FROM a JOIN b ON a.k = b.k WHERE b.v >= {least}"
    table = rows(*range(40))
    values = [row["v"] for row in table.to_pylist()]
    with LocalSession(tmp_path, partitions=1) as session:
        for name in ("a", "b"):
            session.create_stream(name, SCHEMA)
        limits = {"max_results_per_batch": 1}
        made = {
            f"q{place}": session.create_query(sql.format(least=place), f"q{place}", **(limits if place == 2 else {}))
            for place in range(-3, 4)
        }
        session.push({"a": table, "b": table})
        keys = [row["k"] for row in table.to_pylist()]
        for name, query in made.items():
            if name == "q2":
                assert query.status.state is QueryState.QUARANTINED
                continue
            expected = sorted(
                (values[i], values[j])
                for i, key in enumerate(keys)
                for j, other in enumerate(keys)
                if key is not None and key == other and values[j] is not None and values[j] >= int(name[1:])
            )
            assert expected
            assert sorted(tuple(row.values()) for row in session.results(name).to_pylist()) == expected
