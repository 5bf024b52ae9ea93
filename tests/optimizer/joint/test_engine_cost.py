"""Rows by hand, costs by hand; then what the solver makes of them."""

from __future__ import annotations

from dataclasses import fields, replace
from random import Random

import pytest

from dovetail.core.errors import QueryError
from dovetail.optimizer.joint.engine_cost import EngineCost, EngineStatistics
from dovetail.optimizer.joint.plan import Step
from dovetail.optimizer.joint.problem import Predicate, Problem, SubJoin, equality, query_graph
from dovetail.optimizer.joint.solvers.solve import solve
from dovetail.stats.unit_costs import DEFAULT_UNIT_COSTS, UnitCosts

RS, ST, TU = equality("R.a", "S.a"), equality("S.b", "T.b"), equality("T.c", "U.c")
R, S, T, U = (SubJoin((name,)) for name in "RSTU")
R_S = SubJoin(("R", "S"), (RS,))
S_T = SubJoin(("S", "T"), (ST,))
R_S_T = SubJoin(("R", "S", "T"), (RS, ST))
NO_COSTS = UnitCosts(**{entry.name: 0.0 for entry in fields(UnitCosts)})
BUDGET_S = 5.0


def statistics(**changes: object) -> EngineStatistics:
    """10 new rows of each relation meet 1,000 stored ones; S and T match ten times as often as the others."""
    plain = EngineStatistics(
        batch_rows_by_relation=dict.fromkeys("RSTU", 10.0),
        live_rows_by_relation=dict.fromkeys("RSTU", 1000.0),
        share_by_predicate_side={},
        match_by_predicate={RS: 0.001, ST: 0.01, TU: 0.001},
        bytes_by_relation={"R": 8.0, "S": 16.0, "T": 32.0, "U": 64.0},
        buckets=3.0,
        partitions=2,
    )
    return replace(plain, **changes)


def cost_of(unit: str, given: EngineStatistics | None = None) -> EngineCost:
    """Counts one kind of work alone."""
    return EngineCost(given or statistics(), replace(NO_COSTS, **{unit: 1.0}))


FIRST = Step("S", S, T, None, S_T)
SECOND = Step("S", S_T, R, None, R_S_T)
INTO_INTERMEDIATE = Step("R", R, S_T, None, R_S_T)


@pytest.mark.parametrize(
    ("unit", "first", "second", "into_intermediate"),
    [
        ("probed", 10, 10 * 1000 * 0.01, 10),
        ("searched", 10 * 3, 100 * 3, 10 * 3),
        # 10 rows of S find 10 of T each, these 100 find one of R each; 10 of R find one S with ten T each.
        ("found", 100, 100, 100),
        ("tested", 0, 0, 100),
        ("shipped", 0, 100, 0),
        ("node", 6, 6, 6),
        # From both tasks to both, what each of three buckets gave.
        ("message", 0, 4, 0),
        ("file", 0, 0, 0),
        ("built", 0, 0, 0),
        ("stored", 0, 0, 0),
        ("byte", 0, 0, 0),
    ],
)
def test_a_step_does_what_can_be_counted_by_hand(
    unit: str, first: float, second: float, into_intermediate: float
) -> None:
    model = cost_of(unit)
    counted = [model.step_cost(step) for step in (FIRST, SECOND, INTO_INTERMEDIATE)]
    assert counted == pytest.approx([first, second, into_intermediate])


def test_units_add_up() -> None:
    units = replace(NO_COSTS, probed=1.0, searched=2.0, found=3.0, shipped=4.0, node=5.0, message=6.0, built=99.0)
    expected = 100 * 1 + 300 * 2 + 100 * 3 + 100 * 4 + 6 * 5 + 4 * 6
    assert EngineCost(statistics(), units).step_cost(SECOND) == pytest.approx(expected)


def test_upkeep_writes_and_indexes_each_row_that_enters() -> None:
    # 10 new S find 100 T, 10 new T find 100 S.
    assert cost_of("stored").upkeep_cost(S_T) == pytest.approx(200)
    assert cost_of("indexed").upkeep_cost(S_T) == pytest.approx(200)
    assert cost_of("file").upkeep_cost(S_T) == 2
    assert cost_of("found").upkeep_cost(S_T) == 0
    # 10,000 rows of 48 bytes.
    assert cost_of("byte").upkeep_cost(S_T) == pytest.approx(480_000)


def test_stored_is_bytes_whatever_the_units() -> None:
    model = EngineCost(statistics(), NO_COSTS)
    assert model.stored(S) == 16_000
    assert model.stored(S_T) == pytest.approx(1000 * 1000 * 0.01 * 48)


def test_answers_cost_the_same_in_any_plan() -> None:
    # Each start finds 100 results.
    assert cost_of("built").answer_cost(R_S_T) == pytest.approx(300)
    assert cost_of("file").answer_cost(R_S_T) == 2


def test_the_smallest_share_of_the_joined_predicates_counts_once_per_relation() -> None:
    shares = {(RS, "S"): 0.5, (ST, "S"): 0.2, (ST, "T"): 0.1}
    model = cost_of("found", statistics(share_by_predicate_side=shares))
    assert model.new_rows("S", R_S) == pytest.approx(10 * 0.5 * 1000 * 0.001)
    assert model.new_rows("S", S_T) == pytest.approx(10 * 0.2 * 1000 * 0.1 * 0.01)
    assert model.new_rows("S", R_S_T) == pytest.approx(10 * 0.2 * 1000 * 1000 * 0.1 * 0.001 * 0.01)
    assert model.stored_rows(S_T) == pytest.approx(1000 * 0.2 * 1000 * 0.1 * 0.01)


def test_new_rows_probe_by_the_share_of_the_result() -> None:
    model = cost_of("probed", statistics(share_by_predicate_side={(RS, "S"): 0.5, (ST, "S"): 0.2}))
    assert model.step_cost(Step("S", S, R, None, R_S)) == pytest.approx(5)
    assert model.step_cost(FIRST) == pytest.approx(2)


@pytest.mark.parametrize("rows", ["batch_rows_by_relation", "live_rows_by_relation"])
def test_without_rows_only_what_is_fixed_costs(rows: str) -> None:
    model = EngineCost(statistics(**{rows: dict.fromkeys("RSTU", 0.0)}), DEFAULT_UNIT_COSTS)
    assert model.step_cost(SECOND) == pytest.approx(6 * DEFAULT_UNIT_COSTS.node + 4 * DEFAULT_UNIT_COSTS.message)
    assert model.upkeep_cost(S_T) == 2 * DEFAULT_UNIT_COSTS.file


def test_more_rows_never_cost_less() -> None:
    random = Random(3)
    for _ in range(300):
        few = statistics(
            batch_rows_by_relation={name: random.choice([0.0, 1.0, 100.0]) for name in "RSTU"},
            live_rows_by_relation={name: random.choice([0.0, 10.0, 1e6]) for name in "RSTU"},
            match_by_predicate={each: random.choice([0.0, 1e-6, 0.5, 1.0]) for each in (RS, ST, TU)},
        )
        grown = random.choice(["batch_rows_by_relation", "live_rows_by_relation"])
        relation = random.choice("RSTU")
        many = replace(few, **{grown: {**getattr(few, grown), relation: getattr(few, grown)[relation] * 3 + 1}})
        less, more = (EngineCost(each, DEFAULT_UNIT_COSTS) for each in (few, many))
        for step in (FIRST, SECOND, INTO_INTERMEDIATE):
            assert less.step_cost(step) <= more.step_cost(step)
        assert less.upkeep_cost(S_T) <= more.upkeep_cost(S_T)
        assert less.stored(R_S_T) <= more.stored(R_S_T)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"batch_rows_by_relation": {}}, "no rows per batch of relation"),
        ({"live_rows_by_relation": {}}, "no live rows of relation"),
        ({"match_by_predicate": {}}, "no match probability of "),
        ({"bytes_by_relation": {}}, "no size of a row of relation"),
    ],
)
def test_what_is_not_known_is_named(changes: dict[str, object], text: str) -> None:
    model = EngineCost(statistics(**changes), DEFAULT_UNIT_COSTS)
    with pytest.raises(QueryError, match=text) as caught:
        _ = (model.step_cost(FIRST), model.stored(S_T))
    assert caught.value.hint


@pytest.mark.parametrize(
    "changes",
    [
        {"batch_rows_by_relation": {"R": -1.0}},
        {"live_rows_by_relation": {"R": float("nan")}},
        {"bytes_by_relation": {"R": float("inf")}},
        {"match_by_predicate": {RS: 1.5}},
        {"share_by_predicate_side": {(RS, "R"): -0.1}},
        {"buckets": -1.0},
        {"partitions": 0},
    ],
)
def test_impossible_statistics_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(QueryError):
        statistics(**changes)


def problem(model: EngineCost, *predicates: Predicate, storage_budget: float | None = None) -> Problem:
    graph = query_graph("q", predicates or (RS, ST))
    return Problem((graph,), model, may_partition=False, storage_budget=storage_budget)


def test_the_selective_join_comes_first() -> None:
    plan = solve(Problem((query_graph("q", (RS, ST)),), EngineCost(statistics(), DEFAULT_UNIT_COSTS), False), BUDGET_S)
    path = next(path for path in plan.plan.queries[0].paths if path.start == "S")
    assert str(path).startswith("S -> R")


def busy_start() -> EngineStatistics:
    """R brings nearly all rows, and each would go through many partial results; S and T hardly change."""
    return statistics(
        batch_rows_by_relation={"R": 100_000.0, "S": 1.0, "T": 1.0},
        live_rows_by_relation={"R": 1e6, "S": 1000.0, "T": 1000.0},
        match_by_predicate={RS: 0.01, ST: 0.001},
    )


def test_a_cheap_intermediate_is_kept() -> None:
    model = EngineCost(busy_start(), DEFAULT_UNIT_COSTS)
    solution = solve(problem(model), BUDGET_S)
    solution.plan.check(problem(model))
    assert [kept.join for kept in solution.plan.intermediates] == [S_T]
    without = solve(Problem(problem(model).queries, model, may_materialize=False, may_partition=False), BUDGET_S)
    assert solution.plan.cost < 0.7 * without.plan.cost


def test_a_storage_budget_in_bytes_forbids_it() -> None:
    model = EngineCost(busy_start(), DEFAULT_UNIT_COSTS)
    base = sum(model.stored(SubJoin((name,))) for name in "RST")
    tight = solve(problem(model, storage_budget=base + model.stored(S_T) / 2), BUDGET_S).plan
    roomy = solve(problem(model, storage_budget=base + model.stored(S_T) * 2), BUDGET_S).plan
    assert [len(plan.intermediates) for plan in (tight, roomy)] == [0, 1]


@pytest.mark.parametrize("seed", range(20))
def test_an_intermediate_that_is_never_cheaper_is_never_kept(seed: int) -> None:
    """Writing the rows of any one costs more than all of a plan that keeps none."""
    random = Random(seed)
    given = statistics(
        batch_rows_by_relation={name: random.choice([10.0, 1000.0]) for name in "RSTU"},
        match_by_predicate={each: random.uniform(0.001, 0.02) for each in (RS, ST, TU)},
    )
    queries = (query_graph("q", (RS, ST, TU)),)
    cheap = EngineCost(given, replace(DEFAULT_UNIT_COSTS, stored=0.0, indexed=0.0, file=0.0))
    least = solve(Problem(queries, cheap, may_materialize=False, may_partition=False), BUDGET_S).plan
    pairs = [queries[0].join.within(pair) for pair in ("RS", "ST", "TU")]
    triples = [queries[0].join.within(triple) for triple in ("RST", "STU")]
    fewest = min(cost_of("stored", given).upkeep_cost(join) for join in (*pairs, *triples))
    dear = EngineCost(given, replace(cheap.units, stored=1.01 * least.cost / fewest))
    plan = solve(Problem(queries, dear, may_partition=False), BUDGET_S).plan
    assert plan.intermediates == ()
    assert plan.cost == pytest.approx(least.cost)


def test_a_cycle_of_equal_keys_is_as_selective_as_its_two_rarest_equalities() -> None:
    rs, st, rt = equality("R.k", "S.k"), equality("S.k", "T.k"), equality("R.k", "T.k")
    triangle = SubJoin(("R", "S", "T"), tuple(sorted((rs, st, rt))))
    matches = {rs: 0.04, st: 0.02, rt: 0.05}
    assert EngineCost(statistics(match_by_predicate=matches), NO_COSTS).stored_rows(triangle) == pytest.approx(
        1000**3 * 0.04 * 0.02
    )
    # The same names of attributes, but another key of T: nothing follows from anything.
    keys = {(rt, "T"): "other"}
    apart = statistics(match_by_predicate=matches, key_by_predicate_side=keys)
    assert EngineCost(apart, NO_COSTS).stored_rows(triangle) == pytest.approx(1000**3 * 0.04 * 0.02 * 0.05)


def test_marks_of_groups_do_not_hide_that_keys_are_the_same() -> None:
    rs, st, rt = equality("R.k@1", "S.k@1"), equality("S.k", "T.k"), equality("R.k@2", "T.k@2")
    triangle = SubJoin(("R", "S", "T"), tuple(sorted((rs, st, rt))))
    sides = {
        (predicate, side.relation): "k" for predicate in (rs, st, rt) for side in (predicate.first, predicate.second)
    }
    given = statistics(match_by_predicate=dict.fromkeys((rs, st, rt), 0.1), key_by_predicate_side=sides)
    assert EngineCost(given, NO_COSTS).stored_rows(triangle) == pytest.approx(1000**3 * 0.1 * 0.1)
