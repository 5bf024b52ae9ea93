"""What outer, semi and anti joins must answer in every single batch: brute force that knows the watermarks.

a pair           in the batch of its newer member
a lone row       in the first batch, from its arrival on, whose watermark of the other stream is past all partners;
                 one that can have none (no event time, a NULL in the key) in the batch it arrives in
a matched row    (semi) in the batch in which its first partner and itself are there
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from dovetail.query.expression import TRUE
from dovetail.query.join_kind import JoinKind
from dovetail.query.join_query import PRESENT, JoinQuery
from tests.support.cases import EngineCase, KeptRows, watermarks_after
from tests.support.oracles.answers import Answers, answers_of_rows, answers_of_table
from tests.support.oracles.closing import closed_until
from tests.support.oracles.groups import group_rows
from tests.support.oracles.nested_loops import (
    EVENT_TIME,
    Columns,
    conditions_on,
    cross,
    evaluated,
    filtered,
    is_true,
    is_within,
    relation_rows,
)

ARRIVED = "arrived"
NUMBER = "number"
"""Extra columns: the batch of a row, and what tells it from all others of its relation."""

AnswersByBatch = Mapping[int, Answers]


class OuterOracle:
    """Answers of one case, batch by batch."""

    def __init__(self, case: EngineCase, kept: KeptRows) -> None:
        self._case = case
        self._kept = kept

    def expected(self, query: JoinQuery, since: int) -> AnswersByBatch:
        """Over the rows that arrived in `since` or later."""
        answers: dict[int, Answers] = defaultdict(Counter)
        for columns, batches in self._joined(query, since):
            outputs = [evaluated(column.expression, columns, len(batches)).to_pylist() for column in query.output]
            for place, batch in enumerate(batches.tolist()):
                if batch < len(self._case.batches):
                    answers[batch] += answers_of_rows([[values[place] for values in outputs]])
        return answers

    def groups(self, query: JoinQuery, since: int, created_at: int, until: int) -> Answers:
        """Groups of the joined rows that are found in batches [created_at, until)."""
        if created_at >= until:
            return Counter()
        parts = [
            filtered(columns, (created_at <= batches) & (batches < until))
            for columns, batches in self._joined(query, since)
        ]
        names = parts[0][0] if parts else ()
        columns = {name: pa.concat_arrays([part[name] for part, _ in parts]) for name in names}
        bound_us = closed_until(query, watermarks_after(self._case, until))
        return answers_of_table(group_rows(query, columns, sum(count for _, count in parts), bound_us))

    def _joined(self, query: JoinQuery, since: int) -> list[tuple[Columns, np.ndarray]]:
        """Joined and lone rows, each with the batch in which it is found; one after the last if none finds it."""
        left, right = (self._rows(query, place, since) for place in (0, 1))
        columns, count = cross(left[0], left[1], right[0], right[1])
        aliases = {relation.alias for relation in query.relations}
        mask = np.ones(count, dtype=bool)
        for condition in {c for alias in aliases for c in conditions_on(query, alias, aliases)}:
            mask &= is_true(condition, columns, count)
        for bound in query.time_bounds:
            mask &= is_within(columns, bound.earlier, bound.later, bound.upper_us)
        pairs = filtered(columns, mask)[0]
        found = []
        first, second = (relation.alias for relation in query.relations)
        batches = np.maximum(_integers(pairs[first, ARRIVED]), _integers(pairs[second, ARRIVED]))
        if query.kind is JoinKind.SEMI:
            order = np.argsort(batches, kind="stable")
            _, places = np.unique(_integers(pairs[first, NUMBER])[order], return_index=True)
            chosen = {key: array.take(pa.array(order[places])) for key, array in pairs.items()}
            found.append((chosen, batches[order[places]]))
        elif query.kind is not JoinKind.ANTI:
            found.append((pairs, batches))
        for place in query.kind.lone_places:
            own, other = ((left, right), (right, left))[place]
            alias = query.relations[place].alias
            lone = ~np.isin(_integers(own[0][alias, NUMBER]), _integers(pairs[alias, NUMBER]))
            rows, row_count = filtered(own[0], lone)
            padded = rows | {key: pa.nulls(row_count, array.type) for key, array in other[0].items()}
            found.append((padded, self._decided(query, alias, rows, row_count)))
        return [_where(query, columns, batches) for columns, batches in found]

    def _rows(self, query: JoinQuery, place: int, since: int) -> tuple[Columns, int]:
        relation = query.relations[place]
        stream = next(each for each in self._case.streams if each.name == relation.stream)
        batches = self._kept.rows[stream.name]
        table = stream.table(tuple(row for batch in batches[since:] for row in batch))
        arrived = [batch for batch in range(since, len(batches)) for _ in batches[batch]]
        table = table.append_column(ARRIVED, pa.array(arrived, pa.int64()))
        columns, count = relation_rows(relation, table, stream.event_time)
        columns[relation.alias, NUMBER] = pa.array(np.arange(count))
        columns[relation.alias, PRESENT] = pa.array([True] * count, pa.bool_())
        return columns, count

    def _decided(self, query: JoinQuery, alias: str, rows: Columns, count: int) -> np.ndarray:
        other = query.partner_of(alias)
        upper_us = query.upper_us(alias, other)
        assert upper_us is not None
        keys = [evaluated(equality.side_of(alias), rows, count).to_pylist() for equality in query.equalities]
        watermarks = self._watermarks(query.relation(other).stream)
        decided = []
        for place, (arrived, time) in enumerate(
            zip(rows[alias, ARRIVED].to_pylist(), rows[alias, EVENT_TIME].to_pylist(), strict=True)
        ):
            has_no_partner = time is None or any(values[place] is None for values in keys)
            until = (
                b for b in range(arrived, len(watermarks)) if (w := watermarks[b]) is not None and time + upper_us < w
            )
            decided.append(arrived if has_no_partner else next(until, len(watermarks)))
        return np.array(decided, np.int64)

    def _watermarks(self, name: str) -> list[int | None]:
        """After each batch."""
        stream = next(each for each in self._case.streams if each.name == name)
        newest: int | None = None
        watermarks: list[int | None] = []
        for batch in self._case.batches:
            times = [time for time in (newest, *stream.times_us(batch.get(name, ()))) if time is not None]
            newest = max(times, default=None)
            watermarks.append(None if newest is None else newest - stream.lateness_us)
        return watermarks


def _integers(array: pa.Array) -> np.ndarray:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.int64)


def _where(query: JoinQuery, columns: Columns, batches: np.ndarray) -> tuple[Columns, np.ndarray]:
    if query.where == TRUE:
        return columns, batches
    mask = is_true(query.where, columns, len(batches))
    return filtered(columns, mask)[0], batches[mask]
