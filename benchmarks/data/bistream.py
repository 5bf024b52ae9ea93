"""BiStream's workloads on TPC-H: Band, and Q5, Q7 and Band with aggregation (section 6.1 and appendix B).

Tables are projected to the columns that a query needs, as in the paper, and come with their full history. Rows come
in random order: as generated, partners would always come together. Q5 and Q7 are the whole queries, where the paper
joins their two largest inputs; the region and the nations of their selections are given by key, because a query joins
at most five relations. Band is

    SELECT * FROM lineitem l1, lineitem l2 WHERE ABS(l1.orderkey - l2.orderkey) <= 1
    AND (l1.shipmode = 'TRUCK' AND l2.shipinstruct = 'NONE') AND l1.quantity > 48

where the keys of both rows stand for the `*`. Its aggregation groups by the nation of l1's supplier, and asks for
count, minimum and maximum as in the paper, which does not say of what.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.data.folder_case import FolderCase
from benchmarks.replay import StreamFolder
from benchmarks.tpch.tables import Columns, TpchFiles, schema_ddl, write_tpch

FIRST = "l_shipmode = 'TRUCK' AND l_quantity > 48"
SECOND = "l_shipinstruct = 'NONE'"
ABS_BAND = "ABS(l1.l_orderkey - l2.l_orderkey) <= 1"
BETWEEN_BAND = "l2.l_orderkey BETWEEN l1.l_orderkey - 1 AND l1.l_orderkey + 1"
"""The same band as DuckDB can use it: with ABS it compares every row of one side with every row of the other."""

SELECTIONS = "l1.l_shipmode = 'TRUCK' AND l2.l_shipinstruct = 'NONE' AND l1.l_quantity > 48"
KEYS = "l1.l_orderkey AS k1, l1.l_linenumber AS n1, l2.l_orderkey AS k2, l2.l_linenumber AS n2"
BAND_COLUMNS: Columns = {"lineitem": ["l_orderkey", "l_linenumber", "l_quantity", "l_shipinstruct", "l_shipmode"]}

AGGREGATE_COLUMNS: Columns = {
    "lineitem": [
        *("l_orderkey", "l_linenumber", "l_suppkey", "l_quantity", "l_extendedprice", "l_discount"),
        *("l_shipdate", "l_shipinstruct", "l_shipmode"),
    ],
    "orders": ["o_orderkey", "o_custkey", "o_orderdate"],
    "customer": ["c_custkey", "c_nationkey"],
    "supplier": ["s_suppkey", "s_nationkey"],
    "nation": ["n_nationkey", "n_name", "n_regionkey"],
}

Q5 = """
SELECT n.n_name, SUM(l.l_extendedprice * (1 - l.l_discount)) AS revenue
FROM customer c, orders o, lineitem l, supplier s, nation n
WHERE c.c_custkey = o.o_custkey AND l.l_orderkey = o.o_orderkey AND l.l_suppkey = s.s_suppkey
AND c.c_nationkey = s.s_nationkey AND s.s_nationkey = n.n_nationkey AND n.n_regionkey = 2
AND o.o_orderdate >= DATE '1994-01-01' AND o.o_orderdate < DATE '1995-01-01'
GROUP BY n.n_name
"""
Q7 = """
SELECT s.s_nationkey AS supp_nation, c.c_nationkey AS cust_nation, YEAR(l.l_shipdate) AS l_year,
SUM(l.l_extendedprice * (1 - l.l_discount)) AS revenue
FROM supplier s, lineitem l, orders o, customer c
WHERE s.s_suppkey = l.l_suppkey AND o.o_orderkey = l.l_orderkey AND c.c_custkey = o.o_custkey
AND s.s_nationkey IN (6, 7) AND c.c_nationkey IN (6, 7) AND s.s_nationkey <> c.c_nationkey
AND l.l_shipdate >= DATE '1995-01-01' AND l.l_shipdate <= DATE '1996-12-31'
GROUP BY s.s_nationkey, c.c_nationkey, YEAR(l.l_shipdate)
"""
KEYS_BY_CASE = {"Q5": ("n_name",), "Q7": ("supp_nation", "cust_nation", "l_year"), "Band": ("n_name",)}
BAND_BY_NATION = """
SELECT n.n_name, COUNT(*) AS pairs, MIN(l2.l_extendedprice) AS cheapest, MAX(l2.l_extendedprice) AS dearest
FROM lineitem l1, lineitem l2, supplier s, nation n
WHERE {band} AND {selections} AND s.s_suppkey = l1.l_suppkey AND n.n_nationkey = s.s_nationkey
GROUP BY n.n_name
"""


def write_band(scale: float, batches: int, seed: int, folder: Path) -> TpchFiles:
    return write_tpch(scale, batches, folder, BAND_COLUMNS, seed)


def write_aggregates(scale: float, batches: int, seed: int, folder: Path) -> TpchFiles:
    return write_tpch(scale, batches, folder, AGGREGATE_COLUMNS, seed)


def band_case(files: TpchFiles, selected_rows: int) -> FolderCase:
    """Band over two streams that are selected while they are read, as BiStream filters its streams before the join."""
    return _pair_case("Band", files, selected_rows, ABS_BAND, BETWEEN_BAND)


def equi_case(files: TpchFiles, selected_rows: int) -> FolderCase:
    """What is left of Band where only equalities are joined."""
    equality = "l1.l_orderkey = l2.l_orderkey"
    return _pair_case("Band's equi-part", files, selected_rows, equality, equality)


def _pair_case(name: str, files: TpchFiles, selected_rows: int, predicate: str, duckdb_predicate: str) -> FolderCase:
    sql = f"SELECT {KEYS} FROM l1 JOIN l2 ON "
    return FolderCase(
        name,
        (_stream(files, "lineitem", "l1", FIRST), _stream(files, "lineitem", "l2", SECOND)),
        selected_rows,
        f"{sql}{predicate}",
        f"{sql}{duckdb_predicate}",
        crossing=("l_orderkey", "l_linenumber"),
    )


def band_in_query_case(files: TpchFiles) -> FolderCase:
    """The paper's text over one stream of all lines: every line goes to the engine, which selects."""
    sql = f"SELECT {KEYS} FROM lineitem l1, lineitem l2 WHERE {{band}} AND {SELECTIONS}"
    return FolderCase(
        "Band, selected by the query",
        (_stream(files, "lineitem"),),
        files.rows_by_table["lineitem"],
        sql.format(band=ABS_BAND),
        sql.format(band=BETWEEN_BAND),
        crossing=tuple(BAND_COLUMNS["lineitem"] or ()),
    )


def aggregate_cases(files: TpchFiles) -> list[FolderCase]:
    band = {"ours": ABS_BAND, "duckdb": BETWEEN_BAND}
    band_sql = {who: BAND_BY_NATION.format(band=text, selections=SELECTIONS) for who, text in band.items()}
    tables_by_case = {
        "Q5": ("customer", "lineitem", "nation", "orders", "supplier"),
        "Q7": ("customer", "lineitem", "orders", "supplier"),
        "Band": ("lineitem", "nation", "supplier"),
    }
    sql_by_case = {"Q5": (Q5, Q5), "Q7": (Q7, Q7), "Band": (band_sql["ours"], band_sql["duckdb"])}
    return [
        FolderCase(
            name,
            tuple(_stream(files, table) for table in tables),
            sum(files.rows_by_table[table] for table in tables),
            sql_by_case[name][0].strip(),
            sql_by_case[name][1].strip(),
            # In batch Spark too compares all pairs where it sees no range.
            sql_by_case[name][1].strip(),
            group_keys=KEYS_BY_CASE[name],
        )
        for name, tables in tables_by_case.items()
    ]


def _stream(files: TpchFiles, table: str, name: str = "", where: str = "true") -> StreamFolder:
    return StreamFolder(name or table, files.path(table), schema_ddl(files, table), where=where)
