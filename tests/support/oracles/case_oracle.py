"""What a run of one case must answer, whatever its queries are."""

from __future__ import annotations

from collections import Counter

from dovetail.frontend.compile_sql import compile_sql
from dovetail.query.join_kind import JoinKind
from dovetail.query.join_query import JoinQuery
from tests.support.cases import EngineCase, KeptRows, QueryCase, keep_rows_in_time
from tests.support.oracles.answers import Answers, DuckDbOracle, NestedLoopOracle
from tests.support.oracles.outer import OuterOracle


class CaseOracle:
    """What a run of one case must answer: joins by DuckDB, groups and joins that wait for watermarks by loops."""

    def __init__(self, case: EngineCase, kept: KeptRows | None = None) -> None:
        kept = kept or keep_rows_in_time(case)
        self._case = case
        self._rows = DuckDbOracle(case, kept)
        self._groups = NestedLoopOracle(case, kept)
        self._lone = OuterOracle(case, kept)
        self._streams = {stream.name: stream.stream for stream in case.streams}
        self._bound: dict[str, JoinQuery] = {}

    def expected(self, query: QueryCase, complete_from: int) -> Answers:
        bound = self._compiled(query.sql)
        if bound.kind is not JoinKind.INNER and bound.aggregation is None:
            return sum(self.expected_by_batch(query, complete_from).values(), Counter())
        if bound.kind is not JoinKind.INNER:
            until = len(self._case.batches) if query.dropped_at is None else query.dropped_at
            return self._lone.groups(bound, complete_from, query.created_at, until)
        if bound.aggregation is not None:
            return self._groups.expected(query, bound, complete_from)
        return self._rows.expected(query, complete_from)

    def expected_by_batch(self, query: QueryCase, complete_from: int) -> dict[int, Answers]:
        """Of a join that is not inner: in every batch of its life the rows that this batch decides."""
        until = len(self._case.batches) if query.dropped_at is None else query.dropped_at
        expected = self._lone.expected(self._compiled(query.sql), complete_from)
        return {batch: answers for batch, answers in expected.items() if query.created_at <= batch < until}

    def _compiled(self, sql: str) -> JoinQuery:
        if sql not in self._bound:
            self._bound[sql] = compile_sql(sql, self._streams)
        return self._bound[sql]
