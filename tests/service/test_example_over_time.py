"""The service that the README starts goes on answering: its streams count at different rates, yet never drift apart."""

from __future__ import annotations

import datetime
import shlex
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from dovetail.testing.local_session import LocalSession
from tools.first_hour.blocks import ROOT, blocks_of, commands_of

EPOCH = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
STRETCH_S = 15
CONFIG = yaml.safe_load((ROOT / "examples" / "serve.yaml").read_text(encoding="utf-8"))


def readme_query() -> str:
    (block,) = (block for block in blocks_of("README.md") if "dovetail serve" in block.text)
    (create,) = (command for command in commands_of(block.text) if "query create" in command.text)
    return shlex.split(create.text)[-1]


def rate_rows(rows_per_second: int, begin_s: int) -> pa.Table:
    """What Spark's generator gives in the seconds from `begin_s` on, when it began at 0."""
    values = range(rows_per_second * begin_s, rows_per_second * (begin_s + STRETCH_S))
    times = [EPOCH + datetime.timedelta(seconds=value / rows_per_second) for value in values]
    return pa.table({"timestamp": pa.array(times, pa.timestamp("us", tz="UTC")), "value": pa.array(values, pa.int64())})


@pytest.mark.parametrize("sql", [readme_query(), *(query["sql"] for query in CONFIG["queries"].values())])
def test_a_query_of_the_example_has_answers_after_seconds_hours_and_weeks(sql: str, tmp_path: Path) -> None:
    rates = {name: stream["options"]["rowsPerSecond"] for name, stream in CONFIG["streams"].items()}
    assert len(set(rates.values())) == len(rates)
    with LocalSession(tmp_path) as session:
        for name, stream in CONFIG["streams"].items():
            session.create_stream(name, rate_rows(1, 0).schema, stream["event_time"], stream["lateness"])
        query = session.create_query(sql, "q")
        before = 0
        for begin_s in (0, 60, 3_600, 86_400, 14 * 86_400):
            session.push({name: rate_rows(rate, begin_s) for name, rate in rates.items()})
            found = query.status.total_rows - before
            assert found > STRETCH_S, f"{found} answers in the seconds after {begin_s} s"
            before = query.status.total_rows
