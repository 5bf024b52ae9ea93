"""How many units the load asks for: BiStream's adaptive resource management as a pure function of loads (B9).

A unit is a partition. Its load is 1 when it is full: when it keeps as many bytes as it may, or when a batch takes as
long as the trigger's interval. Over `high` or under `low` is a wish for more or for fewer units; only after so many
batches with the same wish in a row is their number changed, to the least with which the load is at most `target`:
(load / target - 1) * units more, rounded up.

Why it does not flap: the new number follows from load * units alone, which a change of units leaves as it is, so the
same load asks for the same number ever after; between two opposite changes it must fall (or rise) across the whole
stretch from `low` to `high`. Where a load answers otherwise than by halves when units are doubled, a change that takes
the last one back needs twice the patience of that one, and so on, so that such changes become ever more rare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

from dovetail.core.errors import SessionError

ROUNDING = 1e-9
"""A load of 0.6 that was computed as 0.6000000000000001 asks for no further unit."""


class Wish(Enum):
    """What one batch asks for."""

    MORE = "more"
    FEWER = "fewer"
    STAY = "stay"


@dataclass(frozen=True)
class ScalingSettings:
    """`patience`: after so many equal wishes in a row the number changes.

    `cores`: so many units run at once however many there are, so time asks for no more of them, and keeps none of those
    beyond; None where executors can be had for further units.
    """

    min_units: int = 1
    max_units: int = 128
    low: float = 0.3
    target: float = 0.6
    high: float = 0.8
    patience: int = 3
    cores: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.min_units <= self.max_units:
            raise SessionError(
                f"min_partitions is {self.min_units}, max_partitions {self.max_units}",
                hint="use 1 <= min_partitions <= max_partitions <= key_groups",
            )
        if not 0 < self.low < self.target < self.high:
            raise SessionError(
                f"low_load is {self.low}, target_load {self.target}, high_load {self.high}",
                hint="use 0 < low_load < target_load < high_load, e.g. 0.3, 0.6 and 0.8",
            )
        if self.patience < 1:
            raise SessionError(f"scale_after is {self.patience}", hint="use a number of batches, e.g. 3")

    def within(self, units: int) -> int:
        return min(max(units, self.min_units), self.max_units)

    def counted_time(self, wish: Wish, load: UnitLoad) -> float | None:
        """The time load where it speaks of a wish: batches change with the units as far as these run at once."""
        units_at_once = load.units + 1 if wish is Wish.MORE else load.units
        return load.time if self.cores is None or units_at_once <= self.cores else None


@dataclass(frozen=True)
class UnitLoad:
    """The load of a batch's `units`, on average and of the fullest one; None where nothing says when one is full."""

    units: int
    memory: float | None = None
    time: float | None = None
    hottest_memory: float | None = None
    hottest_time: float | None = None

    @property
    def mean(self) -> float:
        return max(self.memory or 0.0, self.time or 0.0)

    @property
    def hottest(self) -> float:
        return max(self.mean, self.hottest_memory or 0.0, self.hottest_time or 0.0)

    @property
    def is_known(self) -> bool:
        return self.memory is not None or self.time is not None


@dataclass(frozen=True)
class Scaling:
    """Where the scaling stands after a batch: the next one runs with `units`.

    `wish` was made `times` in a row. `patience` is what a change takes now, `waited` the batches since the last one,
    which was `last`; `because` says why this step changed the number, and is empty if it did not.
    """

    units: int
    patience: int
    wish: Wish = Wish.STAY
    times: int = 0
    last: Wish = Wish.STAY
    waited: int = 0
    because: str = ""


def begin_scaling(settings: ScalingSettings, units: int) -> Scaling:
    return Scaling(settings.within(units), settings.patience)


def units_for(settings: ScalingSettings, load: UnitLoad) -> int:
    """The least number of units with which each of them has at most the target load, within the limits."""
    wanted = [1]
    if load.memory is not None:
        wanted.append(_units_at_target(settings, load.memory, load.units))
    if load.time is not None:
        by_time = _units_at_target(settings, load.time, load.units)
        wanted.append(by_time if settings.cores is None else min(by_time, settings.cores))
    return settings.within(max(wanted))


def wish_for(settings: ScalingSettings, load: UnitLoad) -> Wish:
    """More where some load is too high and more units would help, fewer where all are low."""
    wanted = units_for(settings, load)
    if wanted > load.units and _counted(settings, Wish.MORE, load)[1] > settings.high:
        return Wish.MORE
    if wanted < load.units and load.is_known and _counted(settings, Wish.FEWER, load)[1] < settings.low:
        return Wish.FEWER
    return Wish.STAY


def _counted(settings: ScalingSettings, wish: Wish, load: UnitLoad) -> tuple[str, float]:
    """Which load speaks loudest of a wish, and what it is."""
    loads = {"memory": load.memory, "time": settings.counted_time(wish, load)}
    return max(((kind, each or 0.0) for kind, each in loads.items()), key=lambda pair: pair[1])


def next_scaling(settings: ScalingSettings, before: Scaling, load: UnitLoad) -> Scaling:
    """What a batch's load makes of it."""
    if load.units != before.units:
        # Measured before the change took effect: the new units have not shown their load yet.
        return replace(before, because="")
    waited = before.waited + 1
    wish = wish_for(settings, load)
    times = before.times + 1 if wish is before.wish else 1
    patience = before.patience
    if before.last is not Wish.STAY and waited > 2 * patience:
        patience = settings.patience
    turns_back = wish is not Wish.STAY and before.last is not Wish.STAY and wish is not before.last
    if wish is Wish.STAY or times < (patience if turns_back else settings.patience):
        return Scaling(before.units, patience, wish, times, before.last, waited)
    units = units_for(settings, load)
    is_soon = turns_back and waited <= 2 * patience
    return Scaling(
        units,
        patience=2 * patience if is_soon else patience,
        last=wish,
        because=_reason(settings, wish, load, times),
    )


def _units_at_target(settings: ScalingSettings, load: float, units: int) -> int:
    more = (load / settings.target - 1) * units
    return units + math.ceil(more - ROUNDING)


def _reason(settings: ScalingSettings, wish: Wish, load: UnitLoad, times: int) -> str:
    kind, value = _counted(settings, wish, load)
    bound = f"over {settings.high:g}" if wish is Wish.MORE else f"under {settings.low:g}"
    return f"{kind} load {value:.2f} {bound} for {'1 batch' if times == 1 else f'{times} batches'}"
