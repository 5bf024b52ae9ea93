"""The number of units follows lasting loads and nothing else (B9): the policy alone, on made-up loads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dovetail.core.errors import SessionError
from dovetail.engine.planning.scale_units import (
    Scaling,
    ScalingSettings,
    UnitLoad,
    Wish,
    begin_scaling,
    next_scaling,
    units_for,
    wish_for,
)

PAPER = ScalingSettings(min_units=1, max_units=64, low=0.3, target=0.6, high=0.8, patience=3)


@st.composite
def any_settings(draw: st.DrawFn) -> ScalingSettings:
    low, target, high = sorted(draw(st.sets(st.integers(1, 30), min_size=3, max_size=3)))
    min_units = draw(st.integers(1, 8))
    return ScalingSettings(
        min_units=min_units,
        max_units=min_units + draw(st.integers(0, 60)),
        low=low / 20,
        target=target / 20,
        high=high / 20,
        patience=draw(st.integers(1, 6)),
        cores=draw(st.none() | st.integers(1, 8)),
    )


TOTALS = st.floats(0, 100, allow_nan=False)
"""Units' worth of bytes or of time, over all units."""


def run(
    settings: ScalingSettings, scaling: Scaling, totals: Iterable[float], time_of: Callable[[float, int], float] | None
) -> list[Scaling]:
    """Each batch is measured with the units that it ran by; `time_of` turns a total into a time load."""
    steps = []
    for total in totals:
        if time_of is None:
            load = UnitLoad(scaling.units, memory=total / scaling.units)
        else:
            load = UnitLoad(scaling.units, time=time_of(total, scaling.units))
        scaling = next_scaling(settings, scaling, load)
        steps.append(scaling)
    return steps


def changes(steps: list[Scaling]) -> list[Scaling]:
    return [step for step in steps if step.because]


def test_the_papers_example_adds_a_third_of_the_units() -> None:
    """(0.8 / 0.6 - 1) * 12 = 4 units."""
    assert units_for(PAPER, UnitLoad(12, memory=0.8)) == 16
    assert units_for(PAPER, UnitLoad(12, memory=0.3)) == 6


def test_the_change_says_why() -> None:
    steps = run(PAPER, begin_scaling(PAPER, 2), [1.86] * 3, None)
    assert [step.units for step in steps] == [2, 2, 4]
    assert steps[-1].because == "memory load 0.93 over 0.8 for 3 batches"


@given(any_settings(), TOTALS, st.data())
def test_a_flicker_shorter_than_the_patience_never_scales(
    settings: ScalingSettings, calm: float, data: st.DataObject
) -> None:
    units = settings.within(units_for(settings, UnitLoad(1, memory=calm)))
    assume(wish_for(settings, UnitLoad(units, memory=calm / units)) is Wish.STAY)
    flicker = st.lists(TOTALS, max_size=settings.patience - 1)
    totals = [total for part in data.draw(st.lists(flicker, max_size=8)) for total in (*part, calm)]
    assert not changes(run(settings, begin_scaling(settings, units), totals, None))


@given(any_settings(), st.integers(1, 64), TOTALS)
def test_a_lasting_load_scales_once_and_then_stays(settings: ScalingSettings, units: int, total: float) -> None:
    first = begin_scaling(settings, units)
    load = UnitLoad(first.units, memory=total / first.units)
    wanted = units_for(settings, load)
    steps = run(settings, first, [total] * 40, None)
    found = changes(steps)
    if wish_for(settings, load) is Wish.STAY:
        assert not found
    else:
        assert [step.units for step in found] == [wanted]
        assert steps.index(found[0]) == settings.patience - 1
        assert wanted in (settings.min_units, settings.max_units) or total / wanted <= settings.target + 1e-6


@given(any_settings(), st.integers(1, 64), st.lists(TOTALS, max_size=60), TOTALS)
def test_whatever_came_before_a_lasting_load_is_followed(
    settings: ScalingSettings, units: int, before: list[float], total: float
) -> None:
    scaling = (begin_scaling(settings, units), *run(settings, begin_scaling(settings, units), before, None))[-1]
    steps = run(settings, scaling, [total] * (2 * scaling.patience + 2 * settings.patience), None)
    assert wish_for(settings, UnitLoad(steps[-1].units, memory=total / steps[-1].units)) is Wish.STAY
    assert len(changes(steps)) <= 2


@given(any_settings(), st.integers(1, 64), st.lists(TOTALS, max_size=30), TOTALS, TOTALS)
def test_more_load_never_gives_fewer_units(
    settings: ScalingSettings, units: int, before: list[float], one: float, other: float
) -> None:
    scaling = (begin_scaling(settings, units), *run(settings, begin_scaling(settings, units), before, None))[-1]
    less, more = sorted((one, other))
    for field in ("memory", "time"):
        after = [
            next_scaling(settings, scaling, UnitLoad(scaling.units, **{field: total / scaling.units}))
            for total in (less, more)
        ]
        assert after[0].units <= after[1].units
    assert settings.min_units <= scaling.units <= settings.max_units


@given(any_settings(), st.integers(1, 64))
def test_a_load_that_answers_oddly_changes_ever_more_rarely(settings: ScalingSettings, units: int) -> None:
    """Too high with few units, too low with one more: no number is right."""
    few = begin_scaling(settings, units).units
    odd = ScalingSettings(few, few + 1, settings.low, settings.target, settings.high, settings.patience)
    loads = {few: 2 * odd.high * (few + 1), few + 1: 0.0}
    steps = run(odd, begin_scaling(odd, few), [1.0] * 400, lambda _total, now: loads[now])
    at = [place for place, step in enumerate(steps) if step.because]
    assert all(later - earlier >= 2**turn * odd.patience for turn, (earlier, later) in enumerate(pairwise(at)))
    assert len(at) <= 2 + (400 // odd.patience).bit_length()


def test_after_a_quiet_time_a_change_back_needs_no_more_patience_than_any() -> None:
    steps = run(PAPER, begin_scaling(PAPER, 2), [1.0, *[4.0] * 20, *[0.5] * 20, *[4.0] * 20], None)
    assert [step.units for step in changes(steps)] == [7, 1, 7]
    assert [place for place, step in enumerate(steps) if step.because] == [3, 23, 43]


def test_loads_from_before_a_change_count_for_nothing() -> None:
    changed = run(PAPER, begin_scaling(PAPER, 2), [4.0] * 3, None)[-1]
    assert next_scaling(PAPER, changed, UnitLoad(2, memory=9.0)) == Scaling(changed.units, 3, last=Wish.MORE)


def test_without_a_measure_nothing_changes() -> None:
    assert wish_for(PAPER, UnitLoad(4)) is Wish.STAY


def test_time_asks_for_no_more_units_than_run_at_once() -> None:
    settings = ScalingSettings(max_units=64, cores=4)
    assert units_for(settings, UnitLoad(2, time=3.0)) == 4
    assert wish_for(settings, UnitLoad(4, time=3.0)) is Wish.STAY
    assert wish_for(settings, UnitLoad(4, time=3.0, memory=0.7)) is Wish.STAY
    assert wish_for(settings, UnitLoad(4, time=3.0, memory=0.9)) is Wish.MORE
    steps = [begin_scaling(settings, 4)]
    for _ in range(3):
        steps.append(next_scaling(settings, steps[-1], UnitLoad(4, time=3.0, memory=0.9)))
    assert steps[-1].because == "memory load 0.90 over 0.8 for 3 batches"
    assert steps[-1].units == 6


def test_time_keeps_no_more_units_than_run_at_once() -> None:
    settings = ScalingSettings(max_units=64, cores=2)
    busy = UnitLoad(5, memory=0.1, time=0.9)
    assert (wish_for(settings, busy), units_for(settings, busy)) == (Wish.FEWER, 2)
    assert wish_for(settings, UnitLoad(2, memory=0.1, time=0.9)) is Wish.STAY
    steps = [begin_scaling(settings, 5)]
    for _ in range(3):
        steps.append(next_scaling(settings, steps[-1], busy))
    assert steps[-1].because == "memory load 0.10 under 0.3 for 3 batches"
    assert wish_for(ScalingSettings(max_units=64), busy) is Wish.MORE


def test_one_hot_unit_is_no_reason_for_more() -> None:
    load = UnitLoad(4, memory=0.5, hottest_memory=1.7)
    assert load.hottest == 1.7
    assert wish_for(PAPER, load) is Wish.STAY


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({"min_units": 3, "max_units": 2}, "min_partitions is 3, max_partitions 2"),
        ({"low": 0.7}, "low_load is 0.7, target_load 0.6, high_load 0.8"),
        ({"patience": 0}, "scale_after is 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given_settings: dict[str, float], message: str) -> None:
    with pytest.raises(SessionError, match=message):
        ScalingSettings(**given_settings)  # type: ignore[arg-type]
