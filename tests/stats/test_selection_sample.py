"""Unions of selections from samples of query-sets, against the rows they were drawn from."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.query.expression import TRUE, Call, Column, Expression, Literal
from dovetail.query.types import BOOLEAN, INT
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.estimate import Estimate, Origin
from dovetail.stats.figure import Figure, Kind, Tally
from dovetail.stats.observed import FORGET_AFTER_BATCHES, BatchSeen, ObservedStats
from dovetail.stats.selection_sample import (
    SAMPLED_BATCHES,
    SAMPLED_ROWS_A_BATCH,
    RowsSampled,
    SelectionRows,
    SelectionSample,
    UnionRows,
)


def below(limit: int) -> Expression:
    return Call("lt", (Column("row", "v", INT), Literal(limit, INT)), BOOLEAN)


def at_least(limit: int) -> Expression:
    return Call("ge", (Column("row", "v", INT), Literal(limit, INT)), BOOLEAN)


def bits(rows: list[bool]) -> int:
    return sum(1 << place for place, passes in enumerate(rows) if passes)


def exact(share: float) -> Estimate:
    return Estimate(share, Origin.EXACT)


def sampled(values: list[int], **limit_by_name: range) -> RowsSampled:
    """Selections are ranges of the value."""
    return RowsSampled(
        len(values), {name: bits([value in limit for value in values]) for name, limit in limit_by_name.items()}
    )


def test_the_papers_query_sets_give_the_papers_unions() -> None:
    """AJoin section 4: t1-t4 with query-sets 100100, 101100, 100100, 100000: Q1 and Q4 share three of four."""
    sets = ["100100", "101100", "100100", "100000"]
    sample = SelectionSample().folded(
        RowsSampled(4, {f"Q{query + 1}": bits([each[query] == "1" for each in sets]) for query in range(6)})
    )
    shares = {"Q1": exact(1.0), "Q3": exact(0.25), "Q4": exact(0.75), "Q5": exact(0.0)}
    assert sample.union_share({name: shares[name] for name in ("Q3", "Q4")}).value == 0.75
    assert sample.union_share({name: shares[name] for name in ("Q1", "Q4")}) == exact(1.0)
    assert sample.union_share({name: shares[name] for name in ("Q4", "Q5")}) == exact(0.75)


def test_disjoint_selections_add_up_exactly_however_few_rows_were_sampled() -> None:
    sample = SelectionSample().folded(sampled([1, 1, 1, 5], low=range(3), high=range(4, 9)))
    union = sample.union_share({"low": exact(0.3), "high": exact(0.4)})
    assert union.value == pytest.approx(0.7)
    assert union.origin is Origin.ESTIMATED
    assert union.relative_error > 0


def test_a_selection_within_another_adds_nothing() -> None:
    sample = SelectionSample().folded(sampled(list(range(100)), small=range(10, 20), large=range(50)))
    assert sample.union_share({"small": exact(0.1), "large": exact(0.5)}).value == 0.5


def test_without_a_common_sample_selections_count_as_independent() -> None:
    union = SelectionSample().union_share({"p": exact(0.5), "q": exact(0.5)})
    assert union == Estimate(0.75, Origin.ASSUMED)
    apart = SelectionSample().folded(sampled([1, 2], p=range(2))).folded(sampled([1, 2], q=range(2)))
    assert apart.union_share({"p": exact(0.5), "q": exact(0.5)}) == union


def test_a_row_sampled_before_a_selection_existed_is_no_evidence_for_it() -> None:
    before = sampled([1] * 100, old=range(2))
    after = sampled([1, 5], old=range(2), new=range(4, 6))
    sample = SelectionSample().folded(before).folded(after)
    assert sample.union_share({"old": exact(0.5), "new": exact(0.5)}).value == 1.0
    assert sample.rows_of("new", 0.5).tested.bit_count() == 2
    assert sample.rows_of("old", 0.5).tested.bit_count() == 2 + 75


def test_the_newest_batch_counts_most_and_old_ones_leave() -> None:
    full = SAMPLED_ROWS_A_BATCH
    sample = SelectionSample()
    for _ in range(SAMPLED_BATCHES + 3):
        sample = sample.folded(sampled([1] * full, p=range(2), q=range(2)))
    assert sample.used.bit_count() == 2.5 * full
    shares = {"p": exact(0.4), "q": exact(0.4)}
    assert sample.union_share(shares).value == 0.4
    apart = sampled([1, 5] * (full // 2), p=range(2), q=range(4, 6))
    found = []
    for _ in range(SAMPLED_BATCHES):
        sample = sample.folded(apart)
        found.append(sample.union_share(shares).value)
    assert found == sorted(found)
    assert found[-1] == pytest.approx(0.8)


def test_an_empty_batch_changes_nothing() -> None:
    sample = SelectionSample().folded(sampled([1], p=range(2)))
    assert sample.folded(RowsSampled(0, {})) is sample


def test_more_bits_than_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="more bits"):
        RowsSampled(2, {"p": 0b100})
    with pytest.raises(ValueError, match="rows"):
        RowsSampled(SAMPLED_ROWS_A_BATCH + 1, {})


@given(st.integers(0, 10_000))
def test_a_union_is_between_its_largest_part_and_their_sum(seed: int) -> None:
    chance = random.Random(seed)
    sample = SelectionSample()
    names = "pqrs"[: chance.randint(1, 4)]
    for _ in range(chance.randint(0, 5)):
        rows = chance.randint(0, 12)
        tested = [name for name in names if chance.random() < 0.9]
        sample = sample.folded(RowsSampled(rows, {name: chance.getrandbits(rows) if rows else 0 for name in tested}))
    shares = {name: exact(chance.choice([0.0, 1.0, chance.random()])) for name in names}
    union = sample.union_share(shares)
    values = [share.value for share in shares.values()]
    assert max(values) <= union.value <= max(min(1.0, sum(values)), *values)
    parts = [sample.rows_of(name, share.value) for name, share in shares.items()]
    last = UnionRows()
    for part in parts[:-1]:
        last = last.plus(part)
    assert last.share_with(parts[-1]) == pytest.approx(last.plus(parts[-1]).share)
    assert last.plus(parts[-1]).share == pytest.approx(union.value)


def test_the_error_covers_the_truth_nineteen_times_in_twenty() -> None:
    """Two standard deviations, of rows whose values are uniform; selections overlap by half."""
    misses = 0
    for seed in range(200):
        chance = random.Random(seed)
        sample = SelectionSample()
        for _ in range(SAMPLED_BATCHES):
            values = [chance.randrange(100) for _ in range(SAMPLED_ROWS_A_BATCH)]
            sample = sample.folded(sampled(values, p=range(20), q=range(10, 30)))
        union = sample.union_share({"p": exact(0.2), "q": exact(0.2)})
        misses += abs(union.value - 0.3) > union.relative_error * union.value
    assert misses <= 10


def test_planners_ask_by_store_and_expression() -> None:
    low, high = below(3), at_least(2)
    values = [0, 1, 2, 3]
    rows = RowsSampled(4, {str(low): bits([v < 3 for v in values]), str(high): bits([v >= 2 for v in values])})
    tallies = {
        Figure(Kind.SELECTION, ("a", str(low))): Tally(3, 4),
        Figure(Kind.SELECTION, ("a", str(high))): Tally(2, 4),
    }
    stats = StatsCatalog(observed=ObservedStats().folded(BatchSeen(0, tallies, rows_sampled={"a": rows})))
    assert stats.union_share("a", [low, high]).value == 1.0
    assert stats.union_share("a", [low, high]).origin is Origin.ESTIMATED
    assert stats.union_share("a", [low, low]) == stats.selection(low, "a")
    assert stats.union_share("a", [low, TRUE]) == Estimate(1.0, Origin.GIVEN)
    assert stats.union_share("a", []).value == 0.0
    assert stats.union_share("b", [low, high]).origin is Origin.ASSUMED
    assert stats.selection_rows("a", low) == SelectionRows(0.75, 0b1111, 0b0111)
    assert stats.selection_rows("a", TRUE) == SelectionRows(1.0, 0b1111, 0b1111)


def test_samples_are_not_kept_over_a_restart_and_leave_with_their_store() -> None:
    observed = ObservedStats().folded(BatchSeen(0, rows_sampled={"a": sampled([1], p=range(2))}))
    assert observed.samples.keys() == {"a"}
    assert ObservedStats.from_json(observed.to_json()).samples == {}
    assert observed.folded(BatchSeen(FORGET_AFTER_BATCHES)).samples == {}
