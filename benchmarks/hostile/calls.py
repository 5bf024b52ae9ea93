"""Every scalar function with arguments that nobody chose with care, in an engine without Spark.

Refused, answered or stopped alone; a batch that is lost, or a neighbour whose answer is wrong, is the function's.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from benchmarks.hostile.world import SCHEMA, rows
from dovetail.core.errors import DovetailError
from dovetail.engine.control.registry import QueryState
from dovetail.testing.local_session import LocalSession

ARGUMENTS = [
    *("k", "s", "v", "d", "m", "ts", "k + 1", "s || s", "-v", "d / 3", "CAST(v AS STRING)", "CAST(s AS INT)"),
    *("NULL", "CAST(NULL AS INT)", "CAST(NULL AS STRING)", "TRUE", "v > 1", "DATE '0001-01-01'", "DATE '9999-12-31'"),
    *("0", "1", "-1", "2147483647", "-2147483648", "9223372036854775807", "1000000000", "1e308", "-1e-308", "0.5"),
    *("CAST('NaN' AS DOUBLE)", "99999999999999999999999999999999999999", "0.00000000000000000000000000000000000001"),
    *("''", "'x'", "'('", "'[z-a]'", "'*a'", "'a{2000}'", "'%'", "'\\\\'", "'\u00df\u0130'", "'year'", "'2024-01-01'"),
    *("repeat('x', 100000)", "rpad(s, 100000, 'ab')", "repeat(s, 1000000000)", "lpad('', 300000000, 'x')"),
    *("TIMESTAMP '9999-12-31 23:59:59'", "TIMESTAMP '0001-01-01 00:00:00'", "INTERVAL 3000000 DAYS", "unix_micros(ts)"),
    *("odd", "big", "day", "t", "big * 2", "CAST(odd AS DOUBLE)"),
]
GOOD = "SELECT k, v + 1 AS w FROM a WHERE s LIKE '%x%'"
ROWS = 40


def argument_sets(function: str, count: int) -> list[str]:
    """Texts of calls, the same in every run."""
    chosen = Random(function)
    calls = [f"{function}({argument})" for argument in ARGUMENTS[: count // 4]]
    while len(calls) < count:
        size = chosen.choice([0, 1, 2, 2, 2, 3, 3, 4])
        calls.append(f"{function}({', '.join(chosen.choices(ARGUMENTS, k=size))})")
    return calls


def lost_calls(folder: Path, calls: list[str]) -> list[str]:
    """Calls that were accepted and neither answered nor stopped alone; all of them if their batch is lost."""
    table = rows("a", 0, ROWS)
    with LocalSession(folder, durability="process") as session:
        session.create_stream("a", SCHEMA, "ts")
        session.create_query(GOOD, "good")
        accepted = {}
        for number, call in enumerate(calls):
            # In the answer, and where it decides about rows.
            sql = f"SELECT {call} AS f FROM a" if number % 2 else f"SELECT k FROM a WHERE {call} IS NOT NULL"
            try:
                accepted[call] = session.create_query(sql, f"q{number}")
            except DovetailError:
                continue
        try:
            session.push({"a": table})
        except Exception:  # noqa: BLE001 - a batch that is lost, whatever lost it
            return list(accepted)
        good = sorted((row["k"], row["w"]) for row in session.results("good").to_pylist())
        wanted = sorted((row["k"], row["v"] + 1) for row in table.to_pylist() if "x" in (row["s"] or ""))
        if good != wanted:
            return list(accepted)
        fine = (QueryState.RUNNING, QueryState.QUARANTINED)
        return [call for call, query in accepted.items() if query.status.state not in fine]
