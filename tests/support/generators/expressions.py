"""Random SQL expressions that mean the same in Dovetail, Spark and DuckDB.

Two sources of randomness: `shape` decides structure, `constants` only the literals. Queries made from
one shape and different constants are siblings, the sets of queries in which sharing pays.

What the three dialects answer differently stays out: division, overflow, casts that can fail, float
values that are no binary fractions, text forms of floats, escapes in LIKE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

NUMERIC_KINDS = ("smallint", "int", "bigint", "float", "double", "decimal")
INTEGER_KINDS = ("smallint", "int", "bigint")
TIME_KINDS = ("timestamp", "timestamp_ntz")


@dataclass(frozen=True)
class SqlText:
    """One piece of SQL in the three dialects."""

    dovetail: str
    spark: str
    duckdb: str


def sql(template: str, *parts: SqlText | str | int) -> SqlText:
    """`template` with each `{}` filled by a part, in each dialect."""

    def filled(dialect: str) -> str:
        return template.format(*(getattr(part, dialect) if isinstance(part, SqlText) else part for part in parts))

    return SqlText(filled("dovetail"), filled("spark"), filled("duckdb"))


def join_sql(separator: str, parts: Sequence[SqlText]) -> SqlText:
    return sql(separator.join("{}" for _ in parts), *parts)


def interval(micros: int) -> str:
    """An interval literal of all three dialects."""
    if micros % 60_000_000 == 0 and micros:
        return f"INTERVAL {micros // 60_000_000} MINUTES"
    if micros % 1_000_000 == 0:
        return f"INTERVAL {micros // 1_000_000} SECONDS"
    return f"INTERVAL {micros // 1000} MILLISECONDS"


@dataclass(frozen=True)
class ScopeColumn:
    """A column that an expression may use. `domain` names the pool its values come from."""

    text: SqlText
    kind: str
    domain: str = ""
    is_event_time: bool = False
    is_shifted_time: bool = False


class ExpressionMaker:
    """Makes expressions of a wanted kind over given columns."""

    def __init__(self, shape: Random, constants: Random) -> None:
        self.shape = shape
        self.constants = constants

    def literal(self, kind: str) -> str:
        constants = self.constants
        if kind in INTEGER_KINDS:
            return str(constants.randint(-2, 6))
        if kind in NUMERIC_KINDS:
            return f"{constants.randint(-4, 20) / 4:.2f}"
        if kind == "string":
            return constants.choice(["'a'", "'b'", "'B'", "''", "'ab'", "'ä'"])
        if kind == "date":
            return f"DATE '2024-01-0{constants.randint(1, 4)}'"
        if kind == "timestamp":
            return f"TIMESTAMP '2024-01-01 00:00:{constants.randint(0, 30):02d}'"
        return constants.choice(["TRUE", "FALSE"])

    def number(self, columns: Sequence[ScopeColumn], depth: int = 1) -> SqlText:
        numeric = [column for column in columns if column.kind in NUMERIC_KINDS]
        integer = [column for column in columns if column.kind in INTEGER_KINDS]
        texts = [column for column in columns if column.kind == "string"]
        dates = [column for column in columns if column.kind == "date"]
        shape = self.shape
        if not numeric and not texts and not dates:
            return sql("{}", self.literal("int"))
        forms: list[Callable[[], SqlText]] = []
        if numeric:
            column = shape.choice(numeric)
            forms += [lambda: column.text] * 4
            forms += self._computed_numbers(column, columns, depth) if depth else []
        if integer and depth:
            whole = shape.choice(integer)
            forms += [
                lambda: sql("{} % {}", whole.text, self.constants.randint(2, 4)),
                lambda: sql("CAST({} AS BIGINT)", whole.text),
                lambda: sql("CAST({} AS DOUBLE)", whole.text),
            ]
        if texts:
            forms += [lambda: sql("length({})", shape.choice(texts).text)]
        if dates:
            forms += [lambda: sql("{}({})", shape.choice(["year", "month", "day"]), shape.choice(dates).text)]
        return shape.choice(forms)()

    def _computed_numbers(
        self, column: ScopeColumn, columns: Sequence[ScopeColumn], depth: int
    ) -> list[Callable[[], SqlText]]:
        return [
            lambda: sql("{} + {}", column.text, self.literal("int")),
            lambda: sql("({} - {})", column.text, self.number(columns, depth - 1)),
            lambda: sql("{} * {}", column.text, self.constants.randint(1, 3)),
            lambda: sql("abs({})", column.text),
            lambda: sql("(- {})", column.text),
            lambda: sql("coalesce({}, {})", column.text, self.literal(column.kind)),
            lambda: sql("nullif({}, {})", column.text, self.literal(column.kind)),
            lambda: sql("greatest({}, {})", column.text, self.literal(column.kind)),
            lambda: sql("least({}, {})", column.text, self.literal(column.kind)),
            lambda: sql(
                "CASE WHEN {} THEN {} ELSE {} END",
                self.predicate(columns, 0),
                column.text,
                self.literal(column.kind),
            ),
            lambda: sql("CASE WHEN {} THEN {} END", self.predicate(columns, 0), column.text),
        ]

    def text(self, columns: Sequence[ScopeColumn], depth: int = 1) -> SqlText:
        texts = [column for column in columns if column.kind == "string"]
        if not texts:
            return sql("{}", self.literal("string"))
        column = self.shape.choice(texts)
        integer = [column for column in columns if column.kind in INTEGER_KINDS]
        forms: list[Callable[[], SqlText]] = [lambda: column.text] * 3
        if depth:
            forms += [
                lambda: sql("{}({})", self.shape.choice(["upper", "lower", "trim"]), column.text),
                lambda: sql("substring({}, 1, {})", column.text, self.constants.randint(1, 2)),
                lambda: sql("({} || {})", column.text, self.literal("string")),
                lambda: self._concat(column.text, self.text(columns, 0)),
                lambda: sql("coalesce({}, {})", column.text, self.literal("string")),
                lambda: sql("CASE WHEN {} THEN {} ELSE 'z' END", self.predicate(columns, 0), column.text),
            ]
            if integer:
                forms += [lambda: sql("CAST({} AS STRING)", self.shape.choice(integer).text)]
        return self.shape.choice(forms)()

    @staticmethod
    def _concat(first: SqlText, second: SqlText) -> SqlText:
        # DuckDB's concat skips NULLs where Spark's is NULL; its || is not.
        same = sql("concat({}, {})", first, second)
        return SqlText(same.dovetail, same.spark, sql("({} || {})", first, second).duckdb)

    def date(self, columns: Sequence[ScopeColumn]) -> SqlText:
        dates = [column for column in columns if column.kind == "date"]
        moments = [column for column in columns if column.kind in TIME_KINDS]
        forms: list[Callable[[], SqlText]] = [lambda: sql("{}", self.literal("date"))]
        if dates:
            column = self.shape.choice(dates)
            forms += [lambda: column.text] * 3
            forms += [lambda: shifted_date(column.text, self.constants.randint(-2, 2))]
        if moments:
            forms += [lambda: sql("CAST({} AS DATE)", self.shape.choice(moments).text)]
        return self.shape.choice(forms)()

    def moment(self, columns: Sequence[ScopeColumn]) -> SqlText:
        moments = [column for column in columns if column.kind in TIME_KINDS]
        if not moments:
            return sql("{}", self.literal("timestamp"))
        column = self.shape.choice(moments)
        forms: list[Callable[[], SqlText]] = [lambda: column.text] * 3
        forms += [
            lambda: sql("{} + {}", column.text, interval(self.constants.randint(1, 5) * 1_000_000)),
            lambda: sql("{} - {}", column.text, interval(self.constants.randint(1, 5) * 500_000)),
            lambda: sql("coalesce({}, {})", column.text, self.literal("timestamp")),
        ]
        return self.shape.choice(forms)()

    def value(self, columns: Sequence[ScopeColumn]) -> tuple[SqlText, str]:
        """Any expression, with its group: number, string, date, timestamp or boolean."""
        kinds = {column.kind for column in columns}
        groups = ["number"] * 3
        groups += ["string"] * 2 if "string" in kinds else []
        groups += ["timestamp"] if kinds & set(TIME_KINDS) else []
        groups += [kind for kind in ("date", "boolean") if kind in kinds]
        group = self.shape.choice(groups)
        return self.of_group(columns, group), group

    def of_group(self, columns: Sequence[ScopeColumn], group: str) -> SqlText:
        match group:
            case "number":
                return self.number(columns)
            case "string":
                return self.text(columns)
            case "date":
                return self.date(columns)
            case "timestamp":
                return self.moment(columns)
        booleans = [column for column in columns if column.kind == "boolean"]
        if booleans and self.shape.random() < 0.5:
            return self.shape.choice(booleans).text
        return sql("({})", self.predicate(columns, 0))

    def selection(self, columns: Sequence[ScopeColumn]) -> SqlText:
        """A whole WHERE. Its first conjunct may be NULL where the second would fail, which is NULL in DuckDB.

        Spark moves conjuncts about, and may ask the second first: there it is NULL as well.
        """
        integer = [column for column in columns if column.kind in INTEGER_KINDS]
        if not integer or self.shape.random() >= 0.25:
            return self.predicate(columns)
        divisor = self.shape.choice(integer).text
        guard = sql("nullif({}, 0) > {}", divisor, self.constants.randint(-4, 1))
        least, rest = self.constants.randint(-9, 4), self.predicate(columns)
        same = sql("{} AND 12 / {} > {} AND {}", guard, divisor, least, rest)
        in_spark = sql("{} AND 12 / nullif({}, 0) > {} AND {}", guard, divisor, least, rest)
        return SqlText(same.dovetail, in_spark.spark, same.duckdb)

    def predicate(self, columns: Sequence[ScopeColumn], depth: int = 1) -> SqlText:
        """A condition over any of the columns, true for a fair share of rows."""
        shape = self.shape
        if depth and shape.random() < 0.45:
            first, second = self.predicate(columns, depth - 1), self.predicate(columns, depth - 1)
            form = shape.choice(["({} AND {})", "({} OR {})", "({} OR {})", "NOT ({} AND {})", "NOT ({} OR {})"])
            return sql(form, first, second)
        kinds = {column.kind for column in columns}
        forms: list[Callable[[], SqlText]] = [lambda: self._comparison(columns)] * 4
        forms += [lambda: self._null_test(columns), lambda: self._membership(columns), lambda: self._between(columns)]
        if "string" in kinds:
            forms += [lambda: self._like(columns)]
        if "boolean" in kinds:
            flags = [column for column in columns if column.kind == "boolean"]
            forms += [lambda: sql(shape.choice(["{}", "NOT {}", "{} = FALSE"]), shape.choice(flags).text)]
        return shape.choice(forms)()

    def _comparison(self, columns: Sequence[ScopeColumn]) -> SqlText:
        first, group = self.value(columns)
        operator = self.shape.choice([*("<", "<=", ">", ">=", "<>", "<>", "!=") * 2, "=", "<=>"])
        if group == "boolean":
            operator = self.shape.choice(["=", "<>"])
        if self.shape.random() < 0.3:
            return compared(first, operator, self.of_group(columns, group))
        literal = self.literal("int" if group == "number" else group)
        if self.shape.random() < 0.2:
            return compared(sql("{}", literal), operator, first)
        return compared(first, operator, sql("{}", literal))

    def _null_test(self, columns: Sequence[ScopeColumn]) -> SqlText:
        usable = [column for column in columns if column.kind != "window"]
        return sql(self.shape.choice(["{} IS NULL", "{} IS NOT NULL"]), self.shape.choice(usable).text)

    def _membership(self, columns: Sequence[ScopeColumn]) -> SqlText:
        group = self.shape.choice(["number", "string"])
        first = self.of_group(columns, group)
        literal_kind = "int" if group == "number" else "string"
        literals = [self.literal(literal_kind) for _ in range(self.shape.randint(1, 4))]
        if self.shape.random() < 0.1:
            literals.append("NULL")
        return sql("{} {} ({})", first, self.shape.choice(["IN", "IN", "NOT IN"]), ", ".join(literals))

    def _between(self, columns: Sequence[ScopeColumn]) -> SqlText:
        first = self.number(columns)
        lower = self.constants.randint(-2, 3)
        upper = lower + self.constants.randint(0, 6)
        return sql(self.shape.choice(["{} BETWEEN {} AND {}", "{} NOT BETWEEN {} AND {}"]), first, lower, upper)

    def _like(self, columns: Sequence[ScopeColumn]) -> SqlText:
        pattern = self.constants.choice(["a%", "%b", "_", "%", "a_", "%a%", "b"])
        return sql("{} {} '{}'", self.text(columns), self.shape.choice(["LIKE", "NOT LIKE"]), pattern)


def compared(first: SqlText, operator: str, second: SqlText) -> SqlText:
    same = sql("{} {} {}", first, operator, second)
    in_duckdb = "IS NOT DISTINCT FROM" if operator == "<=>" else operator
    return SqlText(same.dovetail, same.spark, sql("{} {} {}", first, in_duckdb, second).duckdb)


def shifted_date(column: SqlText, days: int) -> SqlText:
    same = sql("date_add({}, {})", column, days)
    return SqlText(same.dovetail, same.spark, sql("({} + ({}))", column, days).duckdb)
