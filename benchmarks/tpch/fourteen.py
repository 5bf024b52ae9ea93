"""Fourteen TPC-H queries as continuous joins and groups over the tables as streams, for suite `partition`.

Of each it is the join and grouping part, under the parameters of TPC-H's validation run. ORDER BY and LIMIT are left
out of all of them, for a continuous answer has no order. A query joins up to five relations, so where it has more,
`region` and `nation` give way to their keys, of which TPC-H says that they never change; `cut` says so for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.tpch.tables import Columns

COLUMNS: Columns = {
    "lineitem": [
        *("l_orderkey", "l_partkey", "l_suppkey", "l_linenumber", "l_quantity", "l_extendedprice", "l_discount"),
        *("l_tax", "l_returnflag", "l_linestatus", "l_shipdate", "l_commitdate", "l_receiptdate"),
        *("l_shipinstruct", "l_shipmode"),
    ],
    "orders": ["o_orderkey", "o_custkey", "o_totalprice", "o_orderdate", "o_orderpriority", "o_shippriority"],
    "customer": ["c_custkey", "c_name", "c_nationkey", "c_acctbal", "c_phone", "c_mktsegment"],
    "supplier": ["s_suppkey", "s_nationkey"],
    "part": ["p_partkey", "p_name", "p_brand", "p_type", "p_size", "p_container"],
    "partsupp": ["ps_partkey", "ps_suppkey", "ps_supplycost"],
    "nation": ["n_nationkey", "n_name", "n_regionkey"],
}
"""By stream what some query asks for: no system would read comments that nobody wants."""

WHOLE = "nothing but ORDER BY and LIMIT"
_PRICE = "l.l_extendedprice * (1 - l.l_discount)"


@dataclass(frozen=True)
class TpchQuery:
    """`cut` is what of TPC-H's text is not in `sql`. `averages`: columns that DuckDB has as doubles."""

    sql: str
    cut: str = WHOLE
    averages: tuple[str, ...] = ()

    @property
    def duckdb_sql(self) -> str:
        rounded = ", ".join(f"CAST(round({name}, 6) AS DECIMAL(38, 6)) AS {name}" for name in self.averages)
        return f"SELECT * REPLACE ({rounded}) FROM ({self.sql})" if rounded else self.sql


QUERIES: Mapping[str, TpchQuery] = {
    "q1": TpchQuery(
        f"""SELECT l.l_returnflag, l.l_linestatus, SUM(l.l_quantity) AS sum_qty, SUM(l.l_extendedprice) AS sum_price,
        SUM({_PRICE}) AS sum_disc_price, SUM({_PRICE} * (1 + l.l_tax)) AS sum_charge, AVG(l.l_quantity) AS avg_qty,
        AVG(l.l_extendedprice) AS avg_price, AVG(l.l_discount) AS avg_disc, COUNT(*) AS count_order
        FROM lineitem l WHERE l.l_shipdate <= DATE '1998-09-02' GROUP BY l.l_returnflag, l.l_linestatus""",
        averages=("avg_qty", "avg_price", "avg_disc"),
    ),
    "q3": TpchQuery(
        f"""SELECT l.l_orderkey, SUM({_PRICE}) AS revenue, o.o_orderdate, o.o_shippriority
        FROM customer c, orders o, lineitem l
        WHERE c.c_mktsegment = 'BUILDING' AND c.c_custkey = o.o_custkey AND l.l_orderkey = o.o_orderkey
        AND o.o_orderdate < DATE '1995-03-15' AND l.l_shipdate > DATE '1995-03-15'
        GROUP BY l.l_orderkey, o.o_orderdate, o.o_shippriority"""
    ),
    "q4": TpchQuery(
        """SELECT o.o_orderpriority, COUNT(*) AS order_count FROM orders o
        WHERE o.o_orderdate >= DATE '1993-07-01' AND o.o_orderdate < DATE '1993-10-01'
        AND EXISTS (SELECT 1 FROM lineitem l WHERE l.l_orderkey = o.o_orderkey AND l.l_commitdate < l.l_receiptdate)
        GROUP BY o.o_orderpriority"""
    ),
    "q5": TpchQuery(
        f"""SELECT n.n_name, SUM({_PRICE}) AS revenue
        FROM customer c, orders o, lineitem l, supplier s, nation n
        WHERE c.c_custkey = o.o_custkey AND l.l_orderkey = o.o_orderkey AND l.l_suppkey = s.s_suppkey
        AND c.c_nationkey = s.s_nationkey AND s.s_nationkey = n.n_nationkey AND n.n_regionkey = 2
        AND o.o_orderdate >= DATE '1994-01-01' AND o.o_orderdate < DATE '1995-01-01' GROUP BY n.n_name""",
        cut="region: Asia by its key",
    ),
    "q6": TpchQuery(
        """SELECT SUM(l.l_extendedprice * l.l_discount) AS revenue FROM lineitem l
        WHERE l.l_shipdate >= DATE '1994-01-01' AND l.l_shipdate < DATE '1995-01-01'
        AND l.l_discount BETWEEN 0.05 AND 0.07 AND l.l_quantity < 24"""
    ),
    "q7": TpchQuery(
        f"""SELECT n.n_name AS supp_nation, c.c_nationkey AS cust_nation, YEAR(l.l_shipdate) AS l_year,
        SUM({_PRICE}) AS revenue
        FROM supplier s, lineitem l, orders o, customer c, nation n
        WHERE s.s_suppkey = l.l_suppkey AND o.o_orderkey = l.l_orderkey AND c.c_custkey = o.o_custkey
        AND s.s_nationkey = n.n_nationkey AND n.n_name IN ('FRANCE', 'GERMANY') AND c.c_nationkey IN (6, 7)
        AND s.s_nationkey <> c.c_nationkey AND l.l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
        GROUP BY n.n_name, c.c_nationkey, YEAR(l.l_shipdate)""",
        cut="the customers' nation by its key",
    ),
    "q8": TpchQuery(
        f"""SELECT YEAR(o.o_orderdate) AS o_year, SUM(CASE WHEN s.s_nationkey = 2 THEN {_PRICE} ELSE 0 END) AS brazil,
        SUM({_PRICE}) AS volume
        FROM part p, supplier s, lineitem l, orders o, customer c
        WHERE p.p_partkey = l.l_partkey AND s.s_suppkey = l.l_suppkey AND l.l_orderkey = o.o_orderkey
        AND o.o_custkey = c.c_custkey AND c.c_nationkey IN (1, 2, 3, 17, 24)
        AND o.o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31' AND p.p_type = 'ECONOMY ANODIZED STEEL'
        GROUP BY YEAR(o.o_orderdate)""",
        cut="region and both nations by their keys; the quotient of the two sums",
    ),
    "q9": TpchQuery(
        f"""SELECT s.s_nationkey AS nation, YEAR(o.o_orderdate) AS o_year,
        SUM({_PRICE} - ps.ps_supplycost * l.l_quantity) AS sum_profit
        FROM part p, supplier s, lineitem l, partsupp ps, orders o
        WHERE s.s_suppkey = l.l_suppkey AND ps.ps_suppkey = l.l_suppkey AND ps.ps_partkey = l.l_partkey
        AND p.p_partkey = l.l_partkey AND o.o_orderkey = l.l_orderkey AND p.p_name LIKE '%green%'
        GROUP BY s.s_nationkey, YEAR(o.o_orderdate)""",
        cut="the suppliers' nation by its key",
    ),
    "q10": TpchQuery(
        f"""SELECT c.c_custkey, c.c_name, SUM({_PRICE}) AS revenue, c.c_acctbal, n.n_name, c.c_phone
        FROM customer c, orders o, lineitem l, nation n
        WHERE c.c_custkey = o.o_custkey AND l.l_orderkey = o.o_orderkey AND c.c_nationkey = n.n_nationkey
        AND o.o_orderdate >= DATE '1993-10-01' AND o.o_orderdate < DATE '1994-01-01' AND l.l_returnflag = 'R'
        GROUP BY c.c_custkey, c.c_name, c.c_acctbal, c.c_phone, n.n_name""",
        cut="address and comment",
    ),
    "q12": TpchQuery(
        """SELECT l.l_shipmode,
        SUM(CASE WHEN o.o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high_line_count,
        SUM(CASE WHEN o.o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 0 ELSE 1 END) AS low_line_count
        FROM orders o, lineitem l WHERE o.o_orderkey = l.l_orderkey AND l.l_shipmode IN ('MAIL', 'SHIP')
        AND l.l_commitdate < l.l_receiptdate AND l.l_shipdate < l.l_commitdate
        AND l.l_receiptdate >= DATE '1994-01-01' AND l.l_receiptdate < DATE '1995-01-01' GROUP BY l.l_shipmode"""
    ),
    "q14": TpchQuery(
        f"""SELECT SUM(CASE WHEN p.p_type LIKE 'PROMO%' THEN {_PRICE} ELSE 0 END) AS promo, SUM({_PRICE}) AS revenue
        FROM lineitem l, part p WHERE l.l_partkey = p.p_partkey
        AND l.l_shipdate >= DATE '1995-09-01' AND l.l_shipdate < DATE '1995-10-01'""",
        cut="the quotient of the two sums",
    ),
    "q17": TpchQuery(
        """SELECT l.l_partkey, AVG(l.l_quantity) AS avg_qty, SUM(l.l_extendedprice) AS sum_price
        FROM lineitem l, part p WHERE p.p_partkey = l.l_partkey AND p.p_brand = 'Brand#23'
        AND p.p_container = 'MED BOX' GROUP BY l.l_partkey""",
        cut="the comparison of each line with its part's average: the average and the sum by part are what is left",
        averages=("avg_qty",),
    ),
    "q18": TpchQuery(
        """SELECT c.c_name, c.c_custkey, o.o_orderkey, o.o_orderdate, o.o_totalprice, SUM(l.l_quantity) AS quantity
        FROM customer c, orders o, lineitem l WHERE c.c_custkey = o.o_custkey AND o.o_orderkey = l.l_orderkey
        GROUP BY c.c_name, c.c_custkey, o.o_orderkey, o.o_orderdate, o.o_totalprice HAVING SUM(l.l_quantity) > 300""",
        cut="IN over large orders, which HAVING says as well: the groups are single orders",
    ),
    "q19": TpchQuery(
        f"""SELECT SUM({_PRICE}) AS revenue FROM lineitem l, part p
        WHERE p.p_partkey = l.l_partkey AND l.l_shipmode IN ('AIR', 'AIR REG')
        AND l.l_shipinstruct = 'DELIVER IN PERSON' AND p.p_size >= 1 AND (
        (p.p_brand = 'Brand#12' AND p.p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
        AND l.l_quantity BETWEEN 1 AND 11 AND p.p_size <= 5)
        OR (p.p_brand = 'Brand#23' AND p.p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
        AND l.l_quantity BETWEEN 10 AND 20 AND p.p_size <= 10)
        OR (p.p_brand = 'Brand#34' AND p.p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
        AND l.l_quantity BETWEEN 20 AND 30 AND p.p_size <= 15))""",
    ),
}
