"""Suite `materialize`: what keeping intermediates costs and saves, on MultiStream's queries; needs no Spark.

Three trees for each join: flat (nothing kept), left-deep (every prefix of an order with small intermediates kept), and
what the optimizer keeps. The joins of TPC-H Q2, Q3 and Q5 run without their selections and aggregates, as in the paper
(Q5 without its table of five regions: a query joins at most five relations); the chains' letters say how many partners
a row finds at each hop, as the paper's selectivities do for 10^6 rows. All with full history, in one process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.local_runs import LocalRun, run_locally
from benchmarks.measure import Steps
from benchmarks.options import BenchOptions
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.planners import PLANNERS
from benchmarks.tpch.tables import KEY_BY_TABLE, TpchFiles, growth_is_meant, write_tpch
from dovetail.optimizer.decisions import Decide, Decisions
from dovetail.optimizer.intermediates.candidates import intermediates_of, starts_of
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog

DEFAULT_SCALE = 0.1
QUICK_SCALE = 0.002
DEFAULT_ROWS = 100_000
QUICK_ROWS = 2_000
"""Of each relation of a chain."""

BATCHES = 20
QUICK_BATCHES = 4
TREES = ("flat", "left_deep", "optimized")
CHAINS: Mapping[str, tuple[float, ...]] = {
    "LLLL": (0.01, 0.01, 0.01, 0.01),
    "MMM": (1.0, 1.0, 1.0),
    "MLM": (1.0, 10.0, 1.0),
}
"""Partners per row and hop: 10^6 rows times 10^-8, 10^-6, and (the L of MLM) 10^-5."""


@dataclass(frozen=True)
class TpchJoin:
    """`tables` in the left-deep tree's order: the one whose intermediates are smallest, by the tables' sizes."""

    tables: tuple[str, ...]
    joins: tuple[tuple[str, str], ...]


TPCH_JOINS: Mapping[str, TpchJoin] = {
    "Q2": TpchJoin(
        ("region", "nation", "supplier", "partsupp", "part"),
        (
            ("region.r_regionkey", "nation.n_regionkey"),
            ("nation.n_nationkey", "supplier.s_nationkey"),
            ("supplier.s_suppkey", "partsupp.ps_suppkey"),
            ("partsupp.ps_partkey", "part.p_partkey"),
        ),
    ),
    "Q3": TpchJoin(
        ("customer", "orders", "lineitem"),
        (("customer.c_custkey", "orders.o_custkey"), ("orders.o_orderkey", "lineitem.l_orderkey")),
    ),
    "Q5": TpchJoin(
        ("nation", "customer", "orders", "lineitem", "supplier"),
        (
            ("nation.n_nationkey", "customer.c_nationkey"),
            ("customer.c_custkey", "orders.o_custkey"),
            ("orders.o_orderkey", "lineitem.l_orderkey"),
            ("lineitem.l_suppkey", "supplier.s_suppkey"),
            ("customer.c_nationkey", "supplier.s_nationkey"),
            ("nation.n_nationkey", "supplier.s_nationkey"),
        ),
    ),
}


@dataclass(frozen=True)
class JoinCase:
    """Streams in the left-deep tree's order: an intermediate is open to streams whose names come after its members'."""

    name: str
    batches_by_stream: Mapping[str, Sequence[pa.Table]]
    sql: str

    @property
    def rows(self) -> int:
        return sum(table.num_rows for tables in self.batches_by_stream.values() for table in tables)

    def batches(self) -> Iterable[dict[str, pa.Table]]:
        for tables in zip(*self.batches_by_stream.values(), strict=True):
            yield dict(zip(self.batches_by_stream, tables, strict=True))


def run(options: BenchOptions, steps: Steps) -> dict[str, object]:
    scale = options.scale_or(DEFAULT_SCALE, QUICK_SCALE)
    rows = options.rows_or(DEFAULT_ROWS, QUICK_ROWS)
    batch_count = QUICK_BATCHES if options.quick else BATCHES
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as folder, growth_is_meant():
        with steps.step(f"TPC-H's tables at scale {scale}"):
            files = write_tpch(scale, batch_count, Path(folder) / "tpch")
        cases = [tpch_case(name, join, files) for name, join in TPCH_JOINS.items()]
        cases += [chain_case(name, partners, rows, batch_count, options.seed) for name, partners in CHAINS.items()]
        figures = {case.name: _run_case(case, options, steps, Path(folder)) for case in cases}
    return {
        "scale": scale,
        "chain_rows": rows,
        "batches": batch_count,
        "cases": figures,
        "results_equal": all(bool(figure["results_equal"]) for figure in figures.values()),
    }


def tpch_case(name: str, join: TpchJoin, files: TpchFiles) -> JoinCase:
    stream_by_table = {table: f"{chr(ord('a') + place)}_{table}" for place, table in enumerate(join.tables)}
    columns = ", ".join(f"{stream_by_table[t]}.{key}" for t in join.tables for key in KEY_BY_TABLE[t])
    sides = [[side.split(".") for side in pair] for pair in join.joins]
    tests = [" = ".join(f"{stream_by_table[table]}.{column}" for table, column in pair) for pair in sides]
    return JoinCase(
        name,
        {
            stream: [files.batch(table, number) for number in range(files.batch_count)]
            for table, stream in stream_by_table.items()
        },
        f"SELECT {columns} FROM {', '.join(stream_by_table.values())} WHERE {' AND '.join(tests)}",
    )


def chain_case(name: str, partners: Sequence[float], rows: int, batch_count: int, seed: int) -> JoinCase:
    """A chain a, b, c, ...: hop i joins column `x<i>` of both sides, uniform in a range that gives those partners."""
    streams = "abcde"[: len(partners) + 1]
    rng = np.random.default_rng((seed, len(partners), *(round(1000 * each) for each in partners)))
    batches_by_stream = {}
    for place, stream in enumerate(streams):
        columns = {"id": pa.array(np.arange(rows, dtype=np.int64))}
        for hop in (place - 1, place):
            if 0 <= hop < len(partners):
                columns[f"x{hop}"] = pa.array(rng.integers(0, round(rows / partners[hop]), rows))
        table = pa.table(columns)
        edges = [rows * number // batch_count for number in range(batch_count + 1)]
        batches_by_stream[stream] = [table.slice(lower, upper - lower) for lower, upper in pairwise(edges)]
    tests = [f"{streams[hop]}.x{hop} = {streams[hop + 1]}.x{hop}" for hop in range(len(partners))]
    output = ", ".join(f"{stream}.id AS {stream}_id" for stream in streams)
    return JoinCase(name, batches_by_stream, f"SELECT {output} FROM {', '.join(streams)} WHERE {' AND '.join(tests)}")


def left_deep(
    queries: tuple[LiveQuery, ...], streams: Mapping[str, Stream], _stats: StatsCatalog, _batch: int
) -> Decisions:
    """Every prefix of the streams' order is kept, and the stream after it probes it."""
    chosen: list[tuple[LiveQuery, tuple[str, ...], tuple[str, ...]]] = []
    for live in queries:
        aliases = tuple(
            relation.alias for relation in sorted(live.query.relations, key=lambda relation: relation.stream)
        )
        for size in range(2, len(aliases)):
            members, next_alias = aliases[:size], aliases[size]
            if next_alias in starts_of(live, members):
                chosen.append((live, members, (next_alias,)))
    return Decisions(intermediates=intermediates_of(chosen, streams))


def _run_case(case: JoinCase, options: BenchOptions, steps: Steps, folder: Path) -> dict[str, object]:
    with DuckDbViews({}, options.cores) as duckdb:
        for stream, tables in case.batches_by_stream.items():
            duckdb.add_table(stream, pa.concat_tables(tables))
        expected = duckdb.answer(case.sql)
        run_by_tree: dict[str, LocalRun] = {}
        is_equal = True
        for repeat in range(options.repeats_or(2)):
            for tree in TREES:
                with steps.step(f"{case.name}: {tree}"):
                    newest = _run_tree(case, tree, options, folder / f"{case.name}-{tree}-{repeat}")
                is_equal &= newest.answers is not None and duckdb.answer_of_table(newest.answers) == expected
                known = run_by_tree.get(tree)
                run_by_tree[tree] = newest if known is None or newest.seconds < known.seconds else known
    if not is_equal:
        steps.note(f"[red]{case.name}: an answer differs from DuckDB's[/red]")
    return {
        "rows": case.rows,
        "results": expected.row_count,
        **{tree: _figures(each) for tree, each in run_by_tree.items()},
        "results_equal": is_equal,
    }


def _run_tree(case: JoinCase, tree: str, options: BenchOptions, folder: Path) -> LocalRun:
    schema_by_stream = {stream: tables[0].schema for stream, tables in case.batches_by_stream.items()}
    decide: Decide | None = left_deep if tree == "left_deep" else None
    engine_options = {"partitions": options.cores, **PLANNERS[tree]}
    return run_locally(folder, schema_by_stream, case.batches(), case.sql, engine_options, decide)


def _figures(run: LocalRun) -> dict[str, object]:
    return {
        "rows_shipped": run.rows_shipped,
        "rows_probed": run.rows_probed,
        "rows_stored": run.rows_stored,
        "state_bytes": run.state_bytes,
        "seconds": round(run.seconds, 3),
        "planning_seconds": round(run.planning_seconds, 3),
    }
