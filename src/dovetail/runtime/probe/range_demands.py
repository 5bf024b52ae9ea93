"""What the legs of a step ask of stored rows beside their keys, worked out for one set of probing rows.

Every range becomes two numbers a probing row. Over one expression, what any leg accepts is searched (if the index is
ordered by it) or looked at while searching (if every leg has a range over it); legs that accept less are asked alone.
Time bounds are ranges of the event time. Legs whose searched ranges lie apart are searched for in parts of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.kernels.evaluate.evaluate import evaluate
from dovetail.kernels.match.group_ranges import Runs, group_ranges
from dovetail.kernels.match.leg_bits import no_bits
from dovetail.kernels.match.match_pairs import LegBounds, ProbeRows
from dovetail.kernels.match.match_ranges import Checked, EntryValues, OwnRange, Ranges, ranges_of_bounds
from dovetail.kernels.match.order_values import End, RowRanges, loosest, row_ranges
from dovetail.kernels.word_bits import WORD_BITS, bit_at
from dovetail.plan.probe_tree import Leg, ProbeNode, RangeEnd, StoredRange
from dovetail.plan.store_plan import EVENT_TIME
from dovetail.query.can_fail import can_fail
from dovetail.query.expression import Column, Expression, columns_of
from dovetail.runtime.probe.frame import FrameValues
from dovetail.runtime.probe.snapshot import Entries, StoreSnapshot

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
OnQueriesFailure = Callable[[set[str], Exception], None]


@dataclass(frozen=True)
class _Own:
    """A range that only some legs have."""

    stored: Expression
    legs: U64
    ranges: RowRanges


@dataclass(frozen=True)
class RangePart:
    """What some legs, given by their bits, ask together."""

    legs: U64
    searched: RowRanges | None
    checked: tuple[tuple[Expression, RowRanges], ...]
    own: tuple[_Own, ...]

    def of_entries(self, node: ProbeNode, snapshot: StoreSnapshot, ordinal: int, entries: Entries) -> Ranges:
        """The same, said of one bucket's entries."""
        index = node.step.index

        def values(expression: Expression) -> EntryValues:
            if expression == index.order and entries.orders is not None:
                return EntryValues(entries.orders, None)
            return snapshot.entry_values(ordinal, index, entries, expression)

        return Ranges(
            self.searched,
            np.zeros(0, np.int64) if entries.orders is None else entries.orders,
            [Checked(ranges, values(expression)) for expression, ranges in self.checked],
            [OwnRange(own.legs, own.ranges, values(own.stored)) for own in self.own],
        )


def needs_ranges(node: ProbeNode) -> bool:
    """Whether equal keys and time bounds are not all that rows of this step are found by."""
    index = node.step.index
    return index.order is not None or not index.keys or any(leg.ranges for leg in node.legs)


def range_demands(
    node: ProbeNode,
    values: FrameValues,
    rows: ProbeRows,
    bounds: LegBounds,
    entries: Entries | None,
    timezone: str,
    on_failure: OnQueriesFailure,
) -> tuple[RangePart, ...]:
    """In parts that each have some of the legs; `entries` are some of those that will be searched, if there are any.

    A range that fails takes its queries with it, and only these.
    """
    maker = _Maker(node, values, rows, timezone, on_failure)
    found: dict[Expression, dict[StoredRange, RowRanges]] = {}
    legs_by_range = _legs_by_range(node.legs)
    for stored, legs_of in legs_by_range.items():
        found[stored] = {each: maker.row_ranges(each, legs) for each, legs in legs_of.items()}
    order = node.step.index.order
    times = ranges_of_bounds(rows.times, bounds) if bounds.is_bounded or order == EVENT_TIME else None
    parts = []
    for legs in _searched_together(node, legs_by_range, found, rows, entries):
        searched = times if order == EVENT_TIME else None
        checked: list[tuple[Expression, RowRanges]] = []
        if times is not None and order != EVENT_TIME:
            checked.append((EVENT_TIME, times))
        own: list[_Own] = []
        for stored, legs_of in legs_by_range.items():
            asked = {each: legs & set(asking) for each, asking in legs_of.items() if legs & set(asking)}
            ranges = [found[stored][each] for each in asked]
            is_of_all = legs <= set().union(*asked.values())
            if is_of_all and stored == order:
                searched = loosest(ranges)
            elif is_of_all:
                checked.append((stored, loosest(ranges)))
            if not is_of_all or len(asked) > 1:
                own += [_Own(stored, _mask(node, asked[each]), found[stored][each]) for each in asked]
        parts.append(RangePart(_mask(node, legs), searched, tuple(checked), tuple(own)))
    return tuple(parts)


def _searched_together(
    node: ProbeNode,
    legs_by_range: Mapping[Expression, Mapping[StoredRange, list[int]]],
    found: Mapping[Expression, Mapping[StoredRange, RowRanges]],
    rows: ProbeRows,
    entries: Entries | None,
) -> list[set[int]]:
    """The legs, in sets that are searched for as one. Who has no range in the order of the index walks all of it."""
    everybody = set(range(len(node.legs)))
    order = node.step.index.order
    if order is None or order == EVENT_TIME or order not in found or entries is None or entries.orders is None:
        return [everybody]
    legs_by_columns: dict[frozenset[Column], set[int]] = {}
    ranges_by_columns: dict[frozenset[Column], list[RowRanges]] = {}
    taken: set[int] = set()
    for asked, legs in legs_by_range[order].items():
        own = set(legs) - taken
        if own:
            taken |= own
            # What differs in constants only is much the same range.
            columns = _columns_of(asked)
            legs_by_columns.setdefault(columns, set()).update(own)
            ranges_by_columns.setdefault(columns, []).append(found[order][asked])
    apart = [everybody - taken] if taken < everybody else []
    if len(ranges_by_columns) == 1:
        return [*legs_by_columns.values(), *apart]
    runs = Runs.sampled(rows.codes, entries.codes, entries.orders, has_keys=bool(node.step.index.keys))
    groups = group_ranges([loosest(each) for each in ranges_by_columns.values()], runs)
    legs_of_group = list(legs_by_columns.values())
    return [*(set().union(*(legs_of_group[place] for place in group)) for group in groups), *apart]


def _columns_of(asked: StoredRange) -> frozenset[Column]:
    ends = (end for end in (asked.lower, asked.upper) if end is not None)
    return frozenset(column for end in ends for column in columns_of(end.value))


def _legs_by_range(legs: tuple[Leg, ...]) -> Mapping[Expression, dict[StoredRange, list[int]]]:
    """By expression of the stored row, who asks which range of it."""
    found: dict[Expression, dict[StoredRange, list[int]]] = {}
    for place, leg in enumerate(legs):
        for each in leg.ranges:
            found.setdefault(each.stored, {}).setdefault(each, []).append(place)
    return found


def _mask(node: ProbeNode, legs: Iterable[int]) -> U64:
    mask = no_bits(len(node.legs), 1)[:, 0]
    for leg in legs:
        mask[leg // WORD_BITS] |= bit_at(leg)
    return mask


class _Maker:
    def __init__(
        self, node: ProbeNode, values: FrameValues, rows: ProbeRows, timezone: str, on_failure: OnQueriesFailure
    ) -> None:
        self._node = node
        self._values = values
        self._rows = rows
        self._timezone = timezone
        self._on_failure = on_failure

    def row_ranges(self, asked: StoredRange, legs: list[int]) -> RowRanges:
        """By probing row; rows that none of the legs wants may get any range."""
        ends = [end for end in (asked.lower, asked.upper) if end is not None]
        nowhere = row_ranges(None, None, len(self._values))
        nowhere = RowRanges(nowhere.upper, nowhere.lower)
        try:
            if not any(can_fail(end.value) for end in ends):
                return self._evaluated(asked, self._values)
            # A selection may guard the end from failing.
            wanted = (self._rows.bits & _mask(self._node, legs)[:, None]).any(axis=0)
            idx = np.flatnonzero(wanted)
            found = self._evaluated(asked, self._values.take(idx))
        except Exception as error:  # noqa: BLE001 - whatever the ends raise on these rows
            self._on_failure({self._node.legs[leg].query for leg in legs}, error)
            return nowhere
        nowhere.lower[idx], nowhere.upper[idx] = found.lower, found.upper
        return nowhere

    def _evaluated(self, asked: StoredRange, values: FrameValues) -> RowRanges:
        def end(asked_end: RangeEnd | None) -> End | None:
            if asked_end is None:
                return None
            column = evaluate(asked_end.value, values.column, len(values), timezone=self._timezone)
            return End(column, asked_end.offset, asked_end.is_inclusive)

        return row_ranges(end(asked.lower), end(asked.upper), len(values))
