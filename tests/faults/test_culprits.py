"""On Spark: a query with which workers die, or fail without a word, is found and stopped; the others stay exact."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dovetail import Session
from dovetail.engine.batch import make_task
from dovetail.engine.options import EngineTuning
from tests.support.asserts import assert_same_answers
from tests.support.cases import EngineCase, QueryCase, StreamCase, moment_of
from tests.support.faults.striking_limits import StrikingLimits
from tests.support.oracles.answers import DuckDbOracle, answers_of_table
from tests.support.spark_runs import FileStreams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS, SECOND = 40, 1_000_000
ALL = "SELECT a.v AS x, b.v AS y FROM a JOIN b ON a.k = b.k"
GOOD = {"few": f"{ALL} WHERE a.v < 20", "other": f"{ALL} WHERE b.v > 7"}


def _case() -> EngineCase:
    streams = tuple(StreamCase(name, (("k", "int"), ("v", "int"), ("ts", "timestamp")), "ts", 0) for name in "ab")
    batches = []
    for batch in range(2):
        rows = tuple((row % 9, row, moment_of(batch * SECOND)) for row in range(ROWS))
        batches.append({"a": rows, "b": rows})
    return EngineCase(streams, tuple(batches), tuple(QueryCase(name, sql, sql, sql) for name, sql in GOOD.items()))


@pytest.mark.parametrize("small_batch_rows", [0, 10_000], ids=["stages", "one task"])
@pytest.mark.parametrize("kills", [True, False], ids=["killed", "raised"])
def test_the_culprit_of_a_batch_is_found(
    kills: bool, small_batch_rows: int, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = make_task.batch_limits

    def striking(*args: Any) -> StrikingLimits:
        limits = usual(*args)
        return StrikingLimits(limits.usual, limits.own_by_query, "culprit", kills)

    monkeypatch.setattr(make_task, "batch_limits", striking)
    case = _case()
    files = FileStreams(spark, case, tmp_path / "streams")
    for batch in range(len(case.batches)):
        files.add_batch(batch)
    tuning = EngineTuning(small_batch_rows=small_batch_rows)
    session = Session(spark, tmp_path / "checkpoint", partitions=2, key_groups=16, tuning=tuning)
    for stream in case.streams:
        session.create_stream(stream.name, files.frame(stream), event_time="ts")
    for query in case.queries:
        session.create_query(query.sql, name=query.name)
    culprit = session.create_query(ALL, name="culprit")
    tried_s: list[float] = []
    session.engine.answers.listen(lambda news: tried_s.append(news.figures.durations.failed_s))
    session.start(trigger="available_now")
    session.await_termination(timeout=240)
    assert culprit.status.state == "quarantined"
    # The batch in which it was found counts the tries that failed, and no other has any.
    assert [taken_s > 0 for taken_s in tried_s].count(True) == 1
    oracle = DuckDbOracle(case)
    for query in case.queries:
        answers = answers_of_table(session.query(query.name).results().toArrow())
        assert_same_answers(answers, oracle.expected(query, 0), query.sql)
    session.stop()
