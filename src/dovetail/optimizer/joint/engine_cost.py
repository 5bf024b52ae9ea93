"""Seconds of work per batch as the engine spends them: rows counted by statistics, priced by measured unit costs.

    R -> S -> T, one batch brings 100 rows of R; S and T hold 1,000 each; two rows match with 1%:
    R -> S       100 looked up, 100 * 1,000 * 1% = 1,000 pairs found
    (R+S) -> T   1,000 shipped, 1,000 looked up, 10,000 pairs found

Every result of a query is found in a last step and then built, whatever the plan, so that part of the cost is the
same for all plans; answers are priced by `answer_cost` only, for those who want to compare with a measured batch.
Stores are indexed by whatever probes them: how they are partitioned costs nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dovetail.core.errors import QueryError
from dovetail.optimizer.joint.plan import Step
from dovetail.optimizer.joint.problem import Predicate, SubJoin
from dovetail.optimizer.pricing.match_of_all import match_of_all
from dovetail.stats.unit_costs import UnitCosts

ASSUMED_BUCKETS = 4.0
"""Of a store: merging by fours leaves one to three of each size."""


@dataclass(frozen=True)
class EngineStatistics:
    """What a batch brings of each relation and what its store holds of it, by relation; probabilities by predicate.

    `share_by_predicate_side`: the share of a relation's rows that those who join it by the predicate want; 1 if
    absent. `key_by_predicate_side`: the key that the predicate compares there; the attribute's name if absent.
    `buckets` are those of a store and `partitions` the tasks of a hop: each task looks into each bucket.
    """

    batch_rows_by_relation: Mapping[str, float]
    live_rows_by_relation: Mapping[str, float]
    share_by_predicate_side: Mapping[tuple[Predicate, str], float]
    match_by_predicate: Mapping[Predicate, float]
    bytes_by_relation: Mapping[str, float]
    key_by_predicate_side: Mapping[tuple[Predicate, str], str] = field(default_factory=dict)
    buckets: float = ASSUMED_BUCKETS
    partitions: int = 1

    def __post_init__(self) -> None:
        _check_counts("batch rows", self.batch_rows_by_relation)
        _check_counts("live rows", self.live_rows_by_relation)
        _check_counts("bytes of a row", self.bytes_by_relation)
        _check_probabilities("match", self.match_by_predicate.values())
        _check_probabilities("share", self.share_by_predicate_side.values())
        if not (math.isfinite(self.buckets) and self.buckets >= 0 and self.partitions >= 1):
            raise QueryError(
                f"{self.buckets} buckets in {self.partitions} partitions", hint="give none or more, in one or more"
            )


class EngineCost:
    """`CostModel` in seconds per batch. Answers are remembered: planners ask for the same sub-joins again and again."""

    def __init__(self, statistics: EngineStatistics, units: UnitCosts) -> None:
        self.statistics = statistics
        self.units = units
        self._stored_rows_by_join: dict[SubJoin, float] = {}
        self._new_rows_by_start: dict[tuple[str, SubJoin], float] = {}

    def new_rows(self, start: str, join: SubJoin) -> float:
        """Rows of the join per batch whose newest member is of `start`."""
        rows = self._new_rows_by_start.get((start, join))
        if rows is None:
            others = [self._live_rows(name) * self._share(name, join) for name in join.relations if name != start]
            rows = self._batch_rows(start) * self._share(start, join) * math.prod(others) * self._match(join)
            self._new_rows_by_start[start, join] = rows
        return rows

    def stored_rows(self, join: SubJoin) -> float:
        """Rows that a store of the join holds."""
        rows = self._stored_rows_by_join.get(join)
        if rows is None:
            members = [self._live_rows(name) * self._share(name, join) for name in join.relations]
            rows = math.prod(members) * self._match(join)
            self._stored_rows_by_join[join] = rows
        return rows

    def probing_rows(self, step: Step) -> float:
        """Rows, or partial results, that are looked up a batch."""
        if step.joined.is_base:
            # New rows are read where they were stored, and only those that go on into the result are looked up.
            return self._batch_rows(step.start) * self._share(step.start, step.result)
        return self.new_rows(step.start, step.joined)

    def step_cost(self, step: Step) -> float:
        units, buckets = self.units, self.statistics.buckets
        pair_cost = units.found if step.target.is_base else units.found + units.tested
        probing_cost = units.probed + units.searched * buckets + (0.0 if step.joined.is_base else units.shipped)
        found = self.new_rows(step.start, step.result)
        return pair_cost * found + probing_cost * self.probing_rows(step) + self.fixed_cost(step)

    def fixed_cost(self, step: Step) -> float:
        """Of a step however few rows it has."""
        tasks = self.statistics.partitions
        # Every task sends what it found to every task.
        messages = 0.0 if step.joined.is_base else self.units.message * tasks**2
        return self.units.node * self.statistics.buckets * tasks + messages

    def upkeep_cost(self, intermediate: SubJoin) -> float:
        """Its rows are written and indexed once; more than one index is the exception, so one is counted."""
        entering = sum(self.new_rows(start, intermediate) for start in intermediate.relations)
        writing = entering * (self.units.stored + self.units.indexed) + self.units.file * self.statistics.partitions
        return writing + self.units.byte * self.stored(intermediate)

    def stored(self, store: SubJoin) -> float:
        """Bytes."""
        bytes_of = self.statistics.bytes_by_relation
        return self.stored_rows(store) * sum(_known(bytes_of, name, "size of a row") for name in store.relations)

    def answer_cost(self, join: SubJoin) -> float:
        """What building a query's answers costs in any plan."""
        rows = sum(self.new_rows(start, join) for start in join.relations)
        return self.units.built * rows + self.units.file * self.statistics.partitions

    def _batch_rows(self, relation: str) -> float:
        return _known(self.statistics.batch_rows_by_relation, relation, "rows per batch")

    def _live_rows(self, relation: str) -> float:
        return _known(self.statistics.live_rows_by_relation, relation, "live rows")

    def _share(self, relation: str, join: SubJoin) -> float:
        """Selections are pushed down: a row must pass those of every predicate that it is joined by."""
        shares = self.statistics.share_by_predicate_side
        return min((shares.get((each, relation), 1.0) for each in join.predicates), default=1.0)

    def _match(self, join: SubJoin) -> float:
        found = self.statistics.match_by_predicate
        try:
            return match_of_all((*self._keys(predicate), found[predicate]) for predicate in join.predicates)
        except KeyError as missing:
            raise QueryError(
                f"no match probability of {missing.args[0]}", hint="give one for every predicate of every query"
            ) from None

    def _keys(self, predicate: Predicate) -> tuple[tuple[str, str], tuple[str, str]]:
        keys = self.statistics.key_by_predicate_side
        first, second = (
            (side.relation, keys.get((predicate, side.relation), side.name))
            for side in (predicate.first, predicate.second)
        )
        return first, second


def _known(value_by_relation: Mapping[str, float], relation: str, what: str) -> float:
    value = value_by_relation.get(relation)
    if value is None:
        raise QueryError(f"no {what} of relation {relation}", hint="give them for every relation of every query")
    return value


def _check_counts(what: str, value_by_relation: Mapping[str, float]) -> None:
    for relation, value in value_by_relation.items():
        if not (math.isfinite(value) and value >= 0):
            raise QueryError(f"{what} of {relation}: {value}", hint="give a finite number, zero or more")


def _check_probabilities(what: str, values: Iterable[float]) -> None:
    for value in values:
        if not 0 <= value <= 1:
            raise QueryError(f"a {what} is {value}", hint="give a probability, 0 to 1")
