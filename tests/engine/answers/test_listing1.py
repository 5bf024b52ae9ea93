"""SASPAR's Listing 1 as it is written there, both queries in one session."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.testing.local_session import LocalSession
from tests.support.asserts import assert_same_answers
from tests.support.listing1 import (
    ADS_SCHEMA,
    AGGREGATE,
    JOIN,
    LATENESS,
    PURCHASES_SCHEMA,
    GameRows,
    expected_answers,
)
from tests.support.oracles.answers import answers_of_table


def session_of(folder: Path, **options: object) -> LocalSession:
    session = LocalSession(folder, partitions=3, small_batch_rows=0, **options)
    session.create_stream("PURCHASES", PURCHASES_SCHEMA, "ts", LATENESS)
    session.create_stream("ADS", ADS_SCHEMA, "ts", LATENESS)
    return session


@pytest.mark.parametrize("exchange", ["references", "rows"])
def test_both_queries_of_listing_1_run_as_written(tmp_path: Path, exchange: str) -> None:
    session = session_of(tmp_path, exchange=exchange)
    session.create_query(AGGREGATE, "aggregate")
    session.create_query(JOIN, "join")
    batches = list(GameRows().batches())
    for tables in batches:
        session.push(tables, splits=2)
    for name, expected in expected_answers(batches).items():
        assert expected.total() >= 20
        assert_same_answers(answers_of_table(session.results(name)), expected, name)
    session.close()


def test_the_aggregate_reads_the_rows_that_the_join_keeps(tmp_path: Path) -> None:
    session = session_of(tmp_path)
    session.create_query(JOIN, "join")
    alone = session.engine.plans.planned().plan
    session.create_query(AGGREGATE, "aggregate")
    together = session.engine.plans.planned().plan
    session.close()
    assert [store.id for store in together.stores] == [store.id for store in alone.stores]
    assert [store.indexes for store in together.stores] == [store.indexes for store in alone.stores]


def test_the_aggregate_ships_no_purchase(tmp_path: Path) -> None:
    shipped = {}
    for name, queries in (("join", (JOIN,)), ("both", (JOIN, AGGREGATE)), ("aggregate", (AGGREGATE,))):
        session = session_of(tmp_path / name, exchange="rows", placement="even")
        for number, sql in enumerate(queries):
            session.create_query(sql, f"q{number}")
        shipped[name] = []
        for tables in GameRows().batches():
            session.push(tables, splits=2)
            shipped[name].append((session.progress or {})["shipped"]["rows"])
        session.close()
    assert shipped["both"] == shipped["join"]
    assert all(shipped["join"])
    assert not any(shipped["aggregate"])
