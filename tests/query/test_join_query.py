from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from dovetail.core.errors import CrossProduct, QueryError
from dovetail.query.expression import Call, Column, Expression, Literal
from dovetail.query.join_query import Equality, HopWindow, JoinQuery, OutputColumn, Relation, TimeBound
from dovetail.query.types import BIGINT, BOOLEAN, INT


def column(relation: str, name: str = "k") -> Column:
    return Column(relation, name, INT)


def positive(expression: Expression) -> Call:
    return Call("gt", (expression, Literal(0, INT)), BOOLEAN)


def equal(a: str, b: str) -> Equality:
    return Equality(column(a), column(b))


def query_of(aliases: str, equalities: list[tuple[str, str]]) -> JoinQuery:
    return JoinQuery(
        "sql",
        tuple(Relation(alias, f"stream_{alias}") for alias in aliases),
        tuple(equal(a, b) for a, b in equalities),
        (OutputColumn("k", column(aliases[0])),),
    )


AB = query_of("ab", [("a", "b")])


def test_chains_stars_and_cycles_are_connected() -> None:
    chain = query_of("abcde", [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")])
    star = query_of("abcde", [("c", "a"), ("c", "b"), ("c", "d"), ("c", "e")])
    cycle = query_of("abc", [("a", "b"), ("b", "c"), ("c", "a")])
    assert [len(query.equalities) for query in (chain, star, cycle)] == [4, 4, 3]


@pytest.mark.parametrize(
    ("aliases", "equalities", "unreached"),
    [("ab", [], "b"), ("abc", [("a", "b")], "c"), ("abcd", [("a", "b"), ("c", "d")], "c, d")],
)
def test_relations_that_no_condition_reaches_are_a_cross_product(
    aliases: str, equalities: list[tuple[str, str]], unreached: str
) -> None:
    with pytest.raises(CrossProduct, match=f"no condition connects {unreached} with a") as caught:
        query_of(aliases, equalities)
    assert caught.value.hint
    assert "a.key = " in caught.value.hint
    assert "a.value < " in caught.value.hint


def test_a_query_joins_up_to_five_relations() -> None:
    with pytest.raises(QueryError, match="joins up to 5 relations, not 6"):
        query_of("abcdef", list(itertools.pairwise("abcdef")))


def test_two_relations_of_one_alias_are_refused() -> None:
    with pytest.raises(QueryError, match="two relations of one alias"):
        replace(AB, relations=(Relation("a", "s"), Relation("a", "t")))


def test_a_query_needs_output() -> None:
    with pytest.raises(QueryError, match="needs an output column"):
        replace(AB, output=())


@pytest.mark.parametrize(
    "change",
    [
        {"residuals": (positive(column("z")),)},
        {"output": (OutputColumn("k", column("z")),)},
        {"time_bounds": (TimeBound("a", "z", 1),)},
        {"equalities": (equal("a", "b"), equal("a", "z"))},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_speaks_of_an_unknown_relation_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(QueryError, match="unknown relations: z"):
        replace(AB, **change)  # type: ignore[arg-type]


def test_a_selection_speaks_of_its_own_relation() -> None:
    Relation("a", "s", positive(column("a")))
    with pytest.raises(QueryError, match="the selection of a speaks of b"):
        Relation("a", "s", positive(column("b")))


def test_an_equality_connects_two_relations_of_one_type() -> None:
    both = Call("add", (column("a"), column("b")), INT)
    with pytest.raises(QueryError, match="each side of a join equality speaks of one relation"):
        Equality(both, column("c"))
    with pytest.raises(QueryError, match="each side"):
        Equality(Literal(1, INT), column("c"))
    with pytest.raises(QueryError, match="connects two relations"):
        Equality(column("a"), column("a", "v"))
    with pytest.raises(QueryError, match="of int and bigint"):
        Equality(column("a"), Column("b", "k", BIGINT))


def test_each_side_of_an_equality_is_found_by_its_alias() -> None:
    equality = equal("a", "b")
    assert equality.side_of("a") == column("a")
    assert equality.side_of("b") == column("b")


@pytest.mark.parametrize(
    ("size_us", "slide_us", "offset_us", "what"),
    [(4, 0, 0, "slide"), (4, -1, 0, "slide"), (4, 5, 0, "slide"), (4, 2, 2, "offset"), (4, 2, -2, "offset")],
)
def test_windows_that_spark_refuses_are_refused(size_us: int, slide_us: int, offset_us: int, what: str) -> None:
    with pytest.raises(QueryError, match=what):
        HopWindow("ts", size_us, slide_us, offset_us)


def test_tumbling_windows_and_offsets_are_allowed() -> None:
    assert str(HopWindow("ts", 4, 4, -3)) == "window(ts, 4us, 4us, -3us)"
