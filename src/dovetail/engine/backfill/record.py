"""What a query answers of the time before it: the record of one backfill, and which results it has to bring.

A query that took effect at batch b with `complete_from` c answers, live, what has its newest member in b or later and
all members in c or later. Its backfill brings everything else: results whose newest member is older than b, and
results with a member older than c.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from functools import reduce
from typing import Any

from dovetail.plan.live_query import LiveQuery
from dovetail.plan.needs import retention_of
from dovetail.query.expression import Call, Column, Expression, Literal
from dovetail.query.join_query import JoinQuery
from dovetail.query.row_rules import DROP, RowRules
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, BOOLEAN
from dovetail.runtime.batch_task import BATCH
from dovetail.store.manifest import Arrival


class BackfillState(Enum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"  # rows of the past are gone, or the query fails on them; live answers go on
    CANCELLED = "cancelled"  # by its user, or because the query ended; what it brought stays


@dataclass(frozen=True)
class Backfill:
    """Results of the past whose newest member arrived in `adopted_batch` or before are among the query's answers.

    `rows` is how many these are.
    """

    state: BackfillState = BackfillState.RUNNING
    adopted_batch: int = -1
    rows: int = 0
    error: str | None = None

    @property
    def is_running(self) -> bool:
        return self.state is BackfillState.RUNNING

    def ended(self, state: BackfillState, error: str | None = None) -> Backfill:
        return replace(self, state=state, error=error)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"state": self.state.value}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Backfill:
        return Backfill(**{**record, "state": BackfillState(record["state"])})


@dataclass(frozen=True)
class BackfillStatus:
    """As users see it: `batches_done` of `batches_total` old batches, and the answers that these brought.

    The total grows with every batch as long as rows from before the query may still meet new ones.
    """

    state: str
    batches_done: int
    batches_total: int
    rows: int
    error: str | None


@dataclass(frozen=True)
class MissingResults:
    """Which results of `live` its backfill has to bring; its `complete_from` says which rows it uses itself."""

    live: LiveQuery
    created_batch: int

    @property
    def is_bounded(self) -> bool:
        """Whether there is an end to them: a query that keeps rows for ever would need its history for ever."""
        return self.live.complete_from == 0 or all(
            retention_of([(self.live, relation)]).is_bounded for relation in self.live.query.relations
        )

    def may_have_members_in(self, batch: int, arrival: Arrival, at_complete_from: Arrival) -> bool:
        """Whether rows of `batch` can be part of a missing result; once they cannot, no later ones can.

        From the batch of the creation on only rows that meet one older than `complete_from` matter: none, once the
        newest of these is beyond every time bound.
        """
        if batch < self.created_batch:
            return True
        if self.live.complete_from == 0:
            return False
        return not all(
            retention_of([(self.live, relation)]).is_dead(
                at_complete_from.newest_us.get(relation.stream), dict(arrival.late_before_us)
            )
            for relation in self.live.query.relations
        )

    def query(self) -> JoinQuery:
        """The query for missing results only, over streams that have the column `BATCH`."""
        query = self.live.query
        if self.live.complete_from == 0:
            return query  # only older batches are run again, and none of their results is there
        batches = [Column(relation.alias, BATCH, BIGINT) for relation in query.relations]
        all_older = reduce(_and, [_before(batch, self.created_batch) for batch in batches])
        some_unused = reduce(_or, [_before(batch, self.live.complete_from) for batch in batches])
        return replace(query, residuals=(*query.residuals, _or(all_older, some_unused)))


def with_batch_column(stream: Stream, lateness_us: int) -> Stream:
    # What was bad then was counted and kept aside then.
    rules = RowRules(DROP, None)
    return replace(stream, columns=(*stream.columns, (BATCH, BIGINT)), lateness_us=lateness_us, rules=rules)


def _before(batch: Expression, bound: int) -> Expression:
    return Call("lt", (batch, Literal(bound, BIGINT)), BOOLEAN)


def _and(one: Expression, other: Expression) -> Expression:
    return Call("and", (one, other), BOOLEAN)


def _or(one: Expression, other: Expression) -> Expression:
    return Call("or", (one, other), BOOLEAN)
