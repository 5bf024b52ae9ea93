"""Small workloads whose counts of elementary work differ, run by the runtime's own operators in one task a hop.

No shape has one kind of work alone, since the operators do not; together they tell the kinds apart:

    a pair is found and refused, built, built twice, shipped, shipped and built, stored
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from dovetail.engine.batch.read_messages import read_messages
from dovetail.frontend.compile_sql import compile_sql
from dovetail.optimizer.decisions import Decisions
from dovetail.optimizer.intermediates.candidates import intermediates_of
from dovetail.optimizer.intermediates.kept import KeptIntermediate
from dovetail.optimizer.pipeline import plan_queries
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import even_placement
from dovetail.plan.probe_tree import ProbeNode
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.visibility import Visibility
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, TIMESTAMP
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.local.run_local import run_local
from dovetail.runtime.probe.mapped_bucket import forget_buckets
from dovetail.runtime.report import TaskReport
from dovetail.store.bucket_file import BucketMeta

COLUMNS = (("a", BIGINT), ("b", BIGINT), ("c", BIGINT), ("v", BIGINT), ("ts", TIMESTAMP))
STREAMS = {name: Stream(name, COLUMNS, "ts") for name in "rst"}
KEY_GROUPS = 128
_HOUR_US = 3_600_000_000

PAIRS = "SELECT r.v AS rv, s.v AS sv FROM r JOIN s ON r.a = s.a WITHIN 1 HOUR"
SAME_PAIRS = "SELECT r.v AS x, s.v AS y FROM r JOIN s ON r.a = s.a WITHIN 1 HOUR"
OTHER_PAIRS = "SELECT r.v AS rv, s.v AS sv FROM r JOIN s ON r.b = s.b WITHIN 1 HOUR"
REFUSED_PAIRS = "SELECT r.v AS rv, s.v AS sv FROM r JOIN s ON r.a = s.a AND s.v < 0 WITHIN 1 HOUR"
"""Beside a query that wants all of s: alone it would have no row of s stored, for no value is below 0."""
_CHAIN = "SELECT r.v AS rv, s.v AS sv, t.v AS tv FROM r JOIN s ON r.a = s.a JOIN t ON {} WITHIN 1 HOUR"
CHAIN = _CHAIN.format("s.b = t.b")
FORKS = (CHAIN, _CHAIN.format("s.c = t.c"), _CHAIN.format("r.b = t.b"))
STAR = (_CHAIN.format("r.b = t.b"), _CHAIN.format("r.c = t.c"), _CHAIN.format("r.v = t.v"))
"""Of both, each query would probe a store of r joined with s by a key of its own."""


@dataclass(frozen=True)
class Rows:
    """Every key is one of `distinct`, evenly."""

    count: int
    distinct: int
    buckets: int = 1


@dataclass(frozen=True)
class Shape:
    """`stored` rows are there before the batch, which brings `new` rows of `start`; those of r visit s and t in this
    order. `keeps_pairs` stores r joined with s; rows of t then probe that store.
    """

    name: str
    queries: tuple[str, ...]
    new: Rows
    stored: Mapping[str, Rows]
    order: str = "st"
    start: str = "r"
    keeps_pairs: bool = False

    def scaled(self, share: float) -> Shape:
        """The same shape with fewer rows: rows found per row stay the same."""

        def fewer(rows: Rows) -> Rows:
            return Rows(max(1, int(rows.count * share)), max(1, int(rows.distinct * share)), rows.buckets)

        stored = {name: fewer(rows) for name, rows in self.stored.items()}
        return replace(self, new=fewer(self.new), stored=stored)


@dataclass(frozen=True)
class WorkCount:
    """How often a run did each elementary work, named as in `UnitCosts`; `task`: tasks of hops."""

    probed: int
    searched: int
    found: int
    tested: int
    shipped: int
    built: int
    stored: int
    indexed: int
    node: int
    message: int
    file: int
    task: int


@dataclass(frozen=True)
class Run:
    counts: WorkCount
    seconds: float


_MANY = 10_000_000
"""So many keys that hardly two rows meet."""

SHAPES = (
    Shape("few matches", (PAIRS,), Rows(150_000, _MANY), {"s": Rows(150_000, _MANY)}),
    Shape("few matches, 8 buckets", (PAIRS,), Rows(100_000, _MANY), {"s": Rows(200_000, _MANY, 8)}),
    Shape("few rows, no match", (PAIRS,), Rows(200, _MANY), {"s": Rows(200, _MANY)}),
    Shape("few rows", (PAIRS, SAME_PAIRS), Rows(200, 200), {"s": Rows(200, 200)}),
    Shape("few rows, 48 buckets", (PAIRS,), Rows(200, 200), {"s": Rows(9_600, 200, 48)}),
    Shape("few rows, two hops", (CHAIN,), Rows(200, 200), {"s": Rows(4_800, 200, 24)}),
    Shape("few rows kept", STAR[:1], Rows(200, 200), {"s": Rows(200, 200)}, "ts", keeps_pairs=True),
    Shape(
        "kept pairs probed",
        (CHAIN,),
        Rows(60_000, 15_000),
        {"r": Rows(30_000, 15_000), "s": Rows(45_000, 15_000)},
        start="t",
        keeps_pairs=True,
    ),
    Shape("many matches", (PAIRS,), Rows(60_000, 10_000), {"s": Rows(60_000, 10_000)}),
    Shape("many matches for two", (PAIRS, SAME_PAIRS), Rows(60_000, 10_000), {"s": Rows(60_000, 10_000)}),
    Shape("many pairs refused", (OTHER_PAIRS, REFUSED_PAIRS), Rows(60_000, 10_000), {"s": Rows(60_000, 10_000)}),
    Shape("two hops", (CHAIN,), Rows(60_000, 10_000), {"s": Rows(60_000, 10_000), "t": Rows(60_000, _MANY)}),
    Shape(
        "two hops, 8 buckets", (CHAIN,), Rows(60_000, 15_000), {"s": Rows(60_000, 15_000), "t": Rows(80_000, _MANY, 8)}
    ),
    Shape(
        "two hops, pairs wanted too",
        (PAIRS, CHAIN),
        Rows(60_000, 10_000),
        {"s": Rows(60_000, 10_000), "t": Rows(60_000, _MANY)},
    ),
    Shape(
        "two hops, many results",
        (CHAIN,),
        Rows(30_000, 10_000),
        {"s": Rows(30_000, 10_000), "t": Rows(50_000, 10_000)},
    ),
    Shape("three ways on", FORKS, Rows(40_000, 10_000), {"s": Rows(40_000, 10_000)}),
    # By way of t, which is empty, so that nothing but the rows of the intermediate leaves the first hop.
    Shape("pairs kept", STAR[:1], Rows(60_000, 15_000), {"s": Rows(60_000, 15_000)}, "ts", keeps_pairs=True),
    Shape("pairs kept, 3 indexes", STAR, Rows(60_000, 15_000), {"s": Rows(60_000, 15_000)}, "ts", keeps_pairs=True),
)

CHECKS = (
    Shape("two matches a row", (PAIRS,), Rows(40_000, 20_000), {"s": Rows(40_000, 20_000, 2)}),
    Shape(
        "a longer chain of buckets",
        (CHAIN, PAIRS),
        Rows(20_000, 20_000),
        {"s": Rows(60_000, 20_000, 3), "t": Rows(60_000, 60_000, 6)},
    ),
    Shape(
        "all kinds of work",
        (*FORKS, PAIRS),
        Rows(30_000, 15_000),
        {"s": Rows(30_000, 15_000, 2), "t": Rows(30_000, 30_000, 4)},
        keeps_pairs=True,
    ),
)
"""Mixed work that the fit never sees: how far the model misses these says more than how well it repeats the rest."""


class PreparedShape:
    """A shape with its stored rows written below `root`; `run` may be called again and again."""

    def __init__(self, shape: Shape, root: Path, seed: int = 1) -> None:
        self.shape = shape
        self._root = root
        self._random = np.random.default_rng(seed)
        self.plan = _plan(shape)
        self._buckets: tuple[BucketMeta, ...] = ()
        for _ in range(max(rows.buckets for rows in shape.stored.values())):
            self._load()
        self._new = {shape.start: self._table(shape.new.count, shape.new.distinct)}

    def _load(self) -> None:
        """A batch that brings the next bucket of every store."""
        number = self._next_batch
        tables = {
            name: self._table(rows.count // rows.buckets, rows.distinct)
            for name, rows in self.shape.stored.items()
            if number < rows.buckets
        }
        _, written = read_messages(run_local(self._task(), tables))
        self._buckets = tuple(sorted((*self._buckets, *written), key=lambda meta: (meta.store, meta.lower_batch)))

    @property
    def _next_batch(self) -> int:
        return 1 + max((meta.upper_batch for meta in self._buckets), default=-1)

    def run(self) -> Run:
        """The batch; its files are removed again.

        Time is what the processor gave the hops, which other programs lengthen far less than what the clock shows.
        """
        began_s = 0.0

        def begin() -> None:
            nonlocal began_s
            began_s = time.process_time()

        messages = run_local(self._task(), self._new, after_source=begin)
        seconds = time.process_time() - began_s
        report, written = read_messages(messages)
        for path in {*(meta.path for meta in written), *(result.path for result in report.results)}:
            (self._root / path).unlink()
        return Run(self._count(report, written), seconds)

    def close(self) -> None:
        forget_buckets(self._root, set())

    def _task(self) -> BatchTask:
        streams = tuple(STREAMS[name] for name in sorted(STREAMS))
        return BatchTask(str(self._root), self._next_batch, self.plan, streams, self._buckets, (), (), "UTC")

    def _count(self, report: TaskReport, written: Sequence[BucketMeta]) -> WorkCount:
        nodes = {node.id: node for tree in self.plan.trees for node in tree.walk()}
        buckets_by_node = {node.id: self._bucket_count(node, written) for node in nodes.values()}
        of_intermediates = [meta for meta in written if meta.store not in STREAMS]
        return WorkCount(
            probed=sum(step.probe_rows for step in report.steps),
            searched=sum(step.probe_rows * buckets_by_node[step.node] for step in report.steps),
            found=sum(step.near_rows for step in report.steps),
            tested=sum(step.near_rows for step in report.steps if nodes[step.node].step.target not in STREAMS),
            shipped=sum(step.probe_rows for step in report.steps if step.hop > 1),
            built=sum(result.rows for result in report.results),
            stored=sum(meta.rows for meta in of_intermediates),
            indexed=sum(count for meta in of_intermediates for _, count in meta.indexes),
            node=sum(buckets_by_node[step.node] for step in report.steps),
            # What is found goes on as one message to each next node; in these shapes something is found everywhere.
            message=sum(len(nodes[step.node].children) for step in report.steps),
            file=len(report.results) + len(of_intermediates),
            task=self.plan.hop_count,
        )

    def _bucket_count(self, node: ProbeNode, written: Sequence[BucketMeta]) -> int:
        visible = [*self._buckets, *(written if node.step.visibility is Visibility.UP_TO_NOW else [])]
        return sum(meta.store == node.step.target for meta in visible)

    def _table(self, count: int, distinct: int) -> pa.Table:
        keys = [self._random.integers(0, distinct, count) for _ in "abc"]
        values = self._random.integers(0, 1 << 40, count)
        times = pa.array(self._random.integers(0, _HOUR_US, count)).cast(pa.timestamp("us", tz="UTC"))
        return pa.table([*map(pa.array, keys), pa.array(values), times], names=[name for name, _ in COLUMNS])


def _plan(shape: Shape) -> SharedPlan:
    live = tuple(
        LiveQuery(f"q{number}", f"q{number}", compile_sql(sql, STREAMS, timezone="UTC"))
        for number, sql in enumerate(shape.queries)
    )
    chains = [each for each in live if len(each.query.relations) == 3]
    orders = {(each.id, "r"): ("r", *shape.order) for each in chains}
    kept: tuple[KeptIntermediate, ...] = ()
    if shape.keeps_pairs:
        # The store holds all there ever was, so nobody has to wait for it.
        wanted = intermediates_of([(each, ("r", "s"), ("t",)) for each in chains], STREAMS)
        kept = tuple(
            replace(pairs, uses=tuple(replace(use, starts=use.wanted_starts) for use in pairs.uses)) for pairs in wanted
        )
    placement = even_placement(KEY_GROUPS, 1)
    return plan_queries(live, STREAMS, placement, epoch=1, decisions=Decisions(orders, kept))
