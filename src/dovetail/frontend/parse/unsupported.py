"""The one list of refusals: what Dovetail does not run, and what to write instead.

Nothing is ignored silently: `refuse_leftovers` walks the arguments of a syntax node and refuses
whatever its reader did not consume, by these tables or, for the rest, by the node's own name.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from dovetail.core.errors import UnsupportedSql
from dovetail.frontend.parse.source_text import SourceText

STATEMENT_HINT = "write one SELECT over one to five streams"

HINT_BY_CLAUSE: dict[str, tuple[str, str]] = {
    "with_": ("WITH", "write the common table as a derived table: (SELECT ... FROM stream) AS name"),
    "distinct": ("DISTINCT here", "write it in the outermost SELECT"),
    "on": ("DISTINCT ON", "write SELECT DISTINCT, or GROUP BY with MIN or MAX of the other columns"),
    "group": ("GROUP BY in a derived table", "group in the outermost SELECT"),
    "having": ("HAVING in a derived table", "group in the outermost SELECT"),
    "rollup": ("ROLLUP", "create one query per set of keys"),
    "cube": ("CUBE", "create one query per set of keys"),
    "grouping_sets": ("GROUPING SETS", "create one query per set of keys"),
    "totals": ("WITH TOTALS", "create a query without GROUP BY for the totals"),
    "all": ("GROUP BY ALL", "name the columns"),
    "order": ("ORDER BY", "answers have no order; sort query.results()"),
    "sort": ("SORT BY", "answers have no order; sort query.results()"),
    "cluster": ("CLUSTER BY", "leave it out: Dovetail places rows itself"),
    "distribute": ("DISTRIBUTE BY", "leave it out: Dovetail places rows itself"),
    "limit": ("LIMIT", "a continuous query has no last row; limit query.results()"),
    "offset": ("OFFSET", "a continuous query has no first row; use query.results()"),
    "qualify": ("QUALIFY", "put the condition into WHERE"),
    "windows": ("WINDOW", "use window(ts, '4 seconds') in a derived table, or WITHIN"),
    "laterals": ("LATERAL VIEW", "explode the array in the DataFrame before create_stream"),
    "lateral": ("LATERAL", "compute the column in a derived table: (SELECT ..., expression AS name FROM stream)"),
    "pivots": ("PIVOT", "pivot query.results()"),
    "sample": ("TABLESAMPLE", "select by a condition such as key % 10 = 0"),
    "hint": ("a hint", "leave it out: Dovetail chooses the join order itself"),
    "into": ("INTO", "write query.results() where you want it"),
    "locks": ("FOR UPDATE", "leave it out"),
    "match": ("MATCH_RECOGNIZE", "join the stream with itself under a time condition"),
    "kind": ("SELECT AS", "select the columns one by one"),
    "except_": ("* EXCEPT", "list the columns"),
    "replace": ("* REPLACE", "list the columns"),
    "rename": ("* RENAME", "list the columns with AS"),
    "ordinality": ("WITH ORDINALITY", "leave it out"),
    "when": ("a time travel clause", "a stream has no versions: leave it out"),
    "version": ("a time travel clause", "a stream has no versions: leave it out"),
    "db": ("a database name", "write the stream's name alone"),
    "catalog": ("a catalog name", "write the stream's name alone"),
    "query": ("IN with a subquery in a larger expression", "make it one of the conditions that AND connects in WHERE"),
    "match_condition": ("MATCH_CONDITION", "write the condition in ON"),
    "operation": ("an operation after the query", STATEMENT_HINT),
}

HINT_BY_JOIN: dict[str, tuple[str, str]] = {
    "OUTER": ("OUTER JOIN", "write LEFT, RIGHT or FULL JOIN"),
    "NATURAL": ("NATURAL JOIN", "use JOIN ... USING (column, ...)"),
    "ASOF": ("ASOF JOIN", "use JOIN with a time condition"),
}

HINT_BY_NODE: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Union: ("UNION", "create one query per SELECT"),
    exp.Except: ("EXCEPT", "create one query per SELECT and compare query.results()"),
    exp.Intersect: ("INTERSECT", "use JOIN on the columns"),
    exp.Table: ("a join in parentheses", "write the joins one after another without parentheses"),
    exp.Window: ("a window function (OVER)", "join the stream with itself under a time condition"),
    exp.Subquery: ("a subquery in an expression", "join the subquery's stream instead"),
    exp.Select: ("a subquery in an expression", "join the subquery's stream instead"),
    exp.Exists: ("EXISTS in a larger expression", "make it one of the conditions that AND connects in WHERE"),
    exp.Any: ("ANY", "write the conditions with OR"),
    exp.All: ("ALL", "write the conditions with AND"),
    exp.Star: ("* inside an expression", "name the column"),
    exp.Lambda: ("a lambda", "compute the column in the DataFrame before create_stream"),
    exp.Bracket: ("[ ] access", "extract the element in the DataFrame before create_stream"),
    exp.Dot: ("a field of an expression", "extract the field in the DataFrame before create_stream"),
    exp.Tuple: ("a list of values in parentheses", "compare the columns one by one with AND"),
    exp.Placeholder: ("a parameter", "write the value itself"),
    exp.Parameter: ("a parameter", "write the value itself"),
    exp.TryCast: ("TRY_CAST", "use CAST on values that fit, guarded by CASE WHEN"),
    exp.Concat: ("string literals side by side", "write one literal, with \\' for a quote, or use ||"),
    exp.BitwiseAnd: ("&", "compute the bits in the DataFrame before create_stream"),
    exp.BitwiseOr: ("|", "compute the bits in the DataFrame before create_stream"),
    exp.BitwiseXor: ("^", "use power(x, y) for powers"),
    exp.BitwiseNot: ("~", "use NOT for conditions"),
    exp.BitwiseLeftShift: ("<<", "multiply by a power of two"),
    exp.BitwiseRightShift: (">>", "divide with DIV by a power of two"),
    exp.Collate: ("COLLATE", "compare lower(x) or upper(x)"),
    exp.AtTimeZone: ("AT TIME ZONE", "convert the time in the DataFrame before create_stream"),
    exp.Values: ("VALUES", "register the rows as a stream"),
    exp.Unnest: ("UNNEST", "explode the array in the DataFrame before create_stream"),
    exp.Lateral: ("LATERAL", "explode the array in the DataFrame before create_stream"),
    exp.HexString: ("a binary literal", "compare strings or numbers"),
    exp.PropertyEQ: ("a named argument", "pass arguments by position"),
    exp.Alias: ("AS inside an expression", "put AS after the whole expression"),
    exp.Distinct: ("DISTINCT inside a function", "only COUNT takes DISTINCT"),
    exp.Filter: ("FILTER", "put the condition inside: SUM(CASE WHEN condition THEN x END)"),
    exp.IgnoreNulls: ("IGNORE NULLS", "leave it out: aggregates pass over NULLs"),
    exp.RespectNulls: ("RESPECT NULLS", "leave it out: aggregates pass over NULLs"),
    exp.WithinGroup: ("WITHIN GROUP", "use count, sum, avg, min or max"),
    exp.Cube: ("CUBE", "create one query per set of keys"),
    exp.Rollup: ("ROLLUP", "create one query per set of keys"),
    exp.GroupingSets: ("GROUPING SETS", "create one query per set of keys"),
}

_AGGREGATES = "count sum avg mean min max approx_count_distinct"
_OTHER_AGGREGATES = """
    first last any_value collect_list collect_set stddev stddev_pop stddev_samp variance var_pop var_samp median mode
    percentile percentile_approx approx_percentile max_by min_by corr covar_pop covar_samp array_agg listagg string_agg
    first_value last_value skewness kurtosis
"""
_CONDITION_AGGREGATES = "count_if every some bool_and bool_or any"
_RANKINGS = "row_number rank dense_rank lag lead ntile"
_IMPURE = """
    current_timestamp current_date now localtimestamp rand random randn uuid monotonically_increasing_id
    input_file_name
"""
_GENERATORS = "explode posexplode inline stack explode_outer"
_OUTSIDE = """
    reflect java_method try_reflect transform session_window from_json get_json_object array map struct named_struct
    date_format from_unixtime to_timestamp regexp_extract regexp_replace md5 sha sha2 hash xxhash64 exp ln log log10
"""
HINT_BY_FUNCTION: dict[str, str] = {
    name: hint
    for names, hint in (
        (_AGGREGATES, "write it in SELECT or HAVING of the outermost SELECT, not inside another aggregate"),
        (_OTHER_AGGREGATES, "use count, sum, avg, min or max, or aggregate query.results()"),
        (_CONDITION_AGGREGATES, "write SUM(CASE WHEN condition THEN 1 ELSE 0 END), MIN(condition) or MAX(condition)"),
        (_RANKINGS, "join the stream with itself under a time condition"),
        (_IMPURE, "answers depend on the rows alone: add such a column in the DataFrame before create_stream"),
        (_GENERATORS, "explode the array in the DataFrame before create_stream"),
        (_OUTSIDE, "compute the column in the DataFrame before create_stream"),
    )
    for name in names.split()
}


def refuse(what: str, where: str, hint: str | None) -> UnsupportedSql:
    return UnsupportedSql(f"{what} is not supported", where=where, hint=hint)


def refuse_node(node: exp.Expr, source: SourceText) -> UnsupportedSql:
    for kind, (name, hint) in HINT_BY_NODE.items():
        if isinstance(node, kind):
            return refuse(name, source.where(node), hint)
    name = type(node).__name__.upper()
    return refuse(name, source.where(node), "compute the column in the DataFrame before create_stream")


def refuse_statement(node: exp.Expr, source: SourceText) -> UnsupportedSql:
    """A statement that is no SELECT."""
    for kind, (name, hint) in HINT_BY_NODE.items():
        if isinstance(node, kind) and kind is not exp.Command:
            return refuse(name, source.where(node), hint)
    name = (source.text.split() or ["this statement"])[0].upper()
    return refuse(name, source.where(len(source.text) - len(source.text.lstrip())), STATEMENT_HINT)


def refuse_leftovers(node: exp.Expr, consumed: Collection[str], source: SourceText) -> None:
    """Raise for the first argument of `node` that its reader did not consume."""
    for key, value in node.args.items():
        if key in consumed or value is None or value is False or value == []:
            continue
        name, hint = HINT_BY_CLAUSE.get(key, (key.rstrip("_").upper().replace("_", " "), None))
        place = value[0] if isinstance(value, list) else value
        if key == "hint":
            place = node
        where = source.where(place if isinstance(place, exp.Expr) and _has_offset(place) else node)
        raise refuse(name, where, hint)


def _has_offset(node: exp.Expr) -> bool:
    return any(isinstance(part.meta.get("start"), int) for part in node.walk())
