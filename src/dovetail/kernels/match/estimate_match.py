"""How many rows of two indexes match, though nobody joins them: from the same slice of keys on both sides.

    a codes  |====......................|        codes are mixed keys, so codes below a limit are a random sample
    b codes  |====......................|        of the keys, and the same sample on both sides

What matches inside the slice, divided by the slice's share of all codes, estimates all matches. Few keys with many
rows each make a wide slice, of which every n-th entry is taken. A very frequent key would ruin the estimate whether the
slice has it or not: those are left out of the slice and counted one by one. With time bounds (`lower_us <= b's time -
a's time <= upper_us`) only pairs within them count, as matches and as possible pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from dovetail.kernels.match.special_values import NO_LOWER, NO_UPPER, NULL_TIME
from dovetail.kernels.match.summarize_codes import count_codes, heavy_codes, smallest_codes

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

SLICE_ENTRIES = 1 << 13
_ENTRIES_A_KEY = 4
"""Fewer keys with more entries each would say less: keys differ more than entries of one key do."""

_SKETCH_KEYS = 1 << 6
_HEAVY_SHARE = 0.0025
"""Keys with fewer rows may be missed by a slice without bending the estimate by much."""

_LEAST_ERROR = 0.005
"""A slice cannot show the variance of keys it does not have; so it never claims to be better than this."""

_TIMED_KEYS = 64
_TIME_SAMPLES = 1 << 11
_TIME_SAMPLES_A_KEY = 1 << 7
_ALL_CODES = 1 << 64


@dataclass(frozen=True)
class IndexEntries:
    """One bucket's index: `rows[i]` has `codes[i]`, ascending; `times` are by row, None if nobody asks for them.

    The bucket has `row_count` rows, those without a key included.
    """

    codes: U64
    rows: npt.NDArray[np.uint32]
    times: I64 | None
    row_count: int


@dataclass(frozen=True)
class SliceRule:
    """Which entries of an index are looked at; two slices are comparable if they were made by one rule.

    `heavy_codes` begin with those that have the most pairs.
    """

    upper_code: int
    heavy_codes: U64
    max_entries: int = SLICE_ENTRIES

    @property
    def fraction(self) -> float:
        return self.upper_code / _ALL_CODES

    def end_in(self, codes: U64) -> int:
        return len(codes) if self.upper_code == _ALL_CODES else int(np.searchsorted(codes, np.uint64(self.upper_code)))


@dataclass(frozen=True)
class IndexSlice:
    """Every n-th entry below the rule's code, by code, then time; counts of heavy keys, and some of their times."""

    rule: SliceRule
    row_count: int
    stride: int
    codes: U64
    times: I64
    heavy_counts: I64
    heavy_times: tuple[I64, ...]
    some_times: I64


@dataclass(frozen=True)
class MatchEstimate:
    """`matches` of `pairs` that time bounds allow; the error is about two standard deviations, 0 if all was counted."""

    matches: float
    pairs: float
    relative_error: float


def slice_rule(
    a_buckets: Sequence[IndexEntries], b_buckets: Sequence[IndexEntries], max_entries: int = SLICE_ENTRIES
) -> SliceRule:
    """A slice of about `max_entries`, wider if that would be few keys; small indexes are taken whole."""
    sides = [side for side in (a_buckets, b_buckets) if side]
    largest = max((sum(len(bucket.codes) for bucket in side) for side in sides), default=0)
    if largest <= max_entries:
        return SliceRule(_ALL_CODES, np.zeros(0, np.uint64), max_entries)
    key_count = max_entries // _ENTRIES_A_KEY
    enough = [min(_upper_of_keys(bucket.codes, key_count) for bucket in side) for side in sides]
    upper = min(max(_ALL_CODES * max_entries // largest, *enough), _ALL_CODES)
    found = [heavy_codes(bucket.codes, _HEAVY_SHARE).codes for side in sides for bucket in side]
    candidates = np.unique(np.concatenate(found))
    pair_counts = _counts(a_buckets, candidates) * _counts(b_buckets, candidates)
    return SliceRule(upper, candidates[np.argsort(-pair_counts, kind="stable")], max_entries)


def slice_index(buckets: Sequence[IndexEntries], rule: SliceRule) -> IndexSlice:
    ends = [rule.end_in(bucket.codes) for bucket in buckets]
    stride = max(round(sum(ends) / rule.max_entries), 1)
    codes, times = _light_entries(buckets, ends, stride, rule.heavy_codes)
    order = np.lexsort((times, codes))
    return IndexSlice(
        rule,
        sum(bucket.row_count for bucket in buckets),
        stride,
        codes[order],
        times[order],
        _counts(buckets, rule.heavy_codes),
        tuple(_times_of_code(buckets, code) for code in rule.heavy_codes[:_TIMED_KEYS]),
        _some_times(buckets, _TIME_SAMPLES),
    )


def estimate_match(
    a_index_slice: IndexSlice, b_index_slice: IndexSlice, lower_us: int | None = None, upper_us: int | None = None
) -> MatchEstimate:
    """See the module's head. Where the slice shows no match, half a match is reported with an error of 100%."""
    a, b = a_index_slice, b_index_slice
    if a.rule is not b.rule:
        raise ValueError("slices that are compared are made by one rule")
    lower = int(NO_LOWER) if lower_us is None else lower_us
    upper = int(NO_UPPER) if upper_us is None else upper_us
    is_timed = lower_us is not None or upper_us is not None
    scale = a.stride * b.stride / a.rule.fraction
    pairs = _near(a.some_times, b.some_times, lower, upper) if is_timed else _ALL_NEAR
    light = _light_matches(a, b, lower, upper, is_timed=is_timed)
    matches, variance = light.sum, light.variance
    for place, (a_count, b_count) in enumerate(zip(a.heavy_counts.tolist(), b.heavy_counts.tolist(), strict=True)):
        near = pairs
        if is_timed and place < len(a.heavy_times):
            near = _near(a.heavy_times[place], b.heavy_times[place], lower, upper)
        matches += a_count * b_count * near.share
        variance += (a_count * b_count) ** 2 * near.variance
    pair_count = a.row_count * b.row_count * pairs.share
    if matches == 0:
        return MatchEstimate(scale / 2, pair_count, 1.0) if scale > 1 else MatchEstimate(0.0, pair_count, 0.0)
    pair_error = math.sqrt(pairs.variance) / pairs.share if pairs.share else 1.0
    least_error = _LEAST_ERROR if scale > 1 else 0.0
    return MatchEstimate(matches, pair_count, 2 * math.hypot(math.sqrt(variance) / matches, pair_error, least_error))


@dataclass(frozen=True)
class _Sum:
    sum: float
    variance: float


def _light_matches(a: IndexSlice, b: IndexSlice, lower: int, upper: int, *, is_timed: bool) -> _Sum:
    """Keys of the slice stand for all keys, and taken entries for their neighbours: two sources of chance."""
    found, a_counts, b_counts = _pairs_by_key(a.codes, a.times, b.codes, b.times, lower, upper, is_timed)
    fraction = a.rule.fraction
    scale = a.stride * b.stride / fraction
    by_keys = (1 - fraction) * float((found**2).sum())
    by_entries = 0.0
    for own_slice, counts in ((a, a_counts), (b, b_counts)):
        if own_slice.stride > 1:
            by_entries += float((found**2 / counts).sum())
    return _Sum(scale * float(found.sum()), scale**2 * (by_keys + by_entries))


def _upper_of_keys(codes: U64, count: int) -> int:
    """Codes below this are of about `count` keys of the bucket; it is beyond all codes if there are fewer."""
    smallest = smallest_codes(codes, _SKETCH_KEYS)
    if len(smallest) < _SKETCH_KEYS:
        return _ALL_CODES
    return (int(smallest[-1]) + 1) * count // _SKETCH_KEYS


def _light_entries(buckets: Sequence[IndexEntries], ends: list[int], stride: int, heavy: U64) -> tuple[U64, I64]:
    """Every n-th entry below the ends, heavy keys and rows without a time left out."""
    codes, times = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    skip = 0
    for bucket, end in zip(buckets, ends, strict=True):
        own_codes, rows = bucket.codes[skip:end:stride], bucket.rows[skip:end:stride]
        skip = (skip - end) % stride
        if len(heavy):
            is_light = ~np.isin(own_codes, heavy)
            own_codes, rows = own_codes[is_light], rows[is_light]
        if bucket.times is None:
            own_times = np.zeros(len(rows), np.int64)
        else:
            own_times = bucket.times[rows]
            has_time = own_times != NULL_TIME
            own_codes, own_times = own_codes[has_time], own_times[has_time]
        codes.append(own_codes)
        times.append(own_times)
    return np.concatenate(codes), np.concatenate(times)


def _counts(buckets: Sequence[IndexEntries], codes: U64) -> I64:
    counts = np.zeros(len(codes), np.int64)
    for bucket in buckets:
        counts += count_codes(bucket.codes, codes)
    return counts


def _times_of_code(buckets: Sequence[IndexEntries], code: Any) -> I64:
    own = []
    for bucket in buckets:
        begin, end = np.searchsorted(bucket.codes, code), np.searchsorted(bucket.codes, code, side="right")
        own.append(IndexEntries(bucket.codes[begin:end], bucket.rows[begin:end], bucket.times, bucket.row_count))
    return _some_times(own, _TIME_SAMPLES_A_KEY)


def _some_times(buckets: Sequence[IndexEntries], count: int) -> I64:
    """The times of about `count` entries, every n-th one of all buckets; sorted."""
    total = sum(len(bucket.codes) for bucket in buckets)
    stride, skip = max(total // count, 1), 0
    found = [np.zeros(0, np.int64)]
    for bucket in buckets:
        if bucket.times is not None:
            found.append(bucket.times[bucket.rows[skip::stride]])
            skip = (skip - len(bucket.rows)) % stride
    return np.sort(np.concatenate(found))


@dataclass(frozen=True)
class _Near:
    share: float
    variance: float


_ALL_NEAR = _Near(1.0, 0.0)


def _near(a_times: I64, b_times: I64, lower: int, upper: int) -> _Near:
    """The share of pairs whose times are within the bounds; the variance is that of drawing these times."""
    if len(a_times) == 0 or len(b_times) == 0:
        return _Near(0.0, 0.0)
    a_known, b_known = a_times[a_times != NULL_TIME], b_times[b_times != NULL_TIME]
    ends = np.full(len(a_known), len(b_known))
    if upper != NO_UPPER:
        ends = np.searchsorted(b_known, a_known + upper, side="right")
    begins = np.searchsorted(b_known, a_known + lower) if lower != NO_LOWER else np.zeros(len(a_known), np.int64)
    share = float(np.maximum(ends - begins, 0).sum()) / (len(a_times) * len(b_times))
    return _Near(share, share * (1 - share) / min(len(a_times), len(b_times)))


@njit(cache=True)
def _pairs_by_key(a_codes: Any, a_times: Any, b_codes: Any, b_times: Any, lower: Any, upper: Any, is_timed: Any) -> Any:
    """For each key on both sides its pairs within the bounds and its entries; times ascend, so ends only move on."""
    most = min(len(a_codes), len(b_codes))
    found, a_counts, b_counts = np.empty(most, np.float64), np.empty(most, np.int64), np.empty(most, np.int64)
    count = 0
    i, j = 0, 0
    while i < len(a_codes) and j < len(b_codes):
        if a_codes[i] < b_codes[j]:
            i += 1
            continue
        if a_codes[i] > b_codes[j]:
            j += 1
            continue
        code = a_codes[i]
        end = j
        while end < len(b_codes) and b_codes[end] == code:
            end += 1
        first, last = j, j if is_timed else end
        begin = i
        pairs = 0.0
        while i < len(a_codes) and a_codes[i] == code:
            if is_timed:
                while first < end and lower != NO_LOWER and b_times[first] - a_times[i] < lower:
                    first += 1
                while last < end and (upper == NO_UPPER or b_times[last] - a_times[i] <= upper):
                    last += 1
            pairs += max(last - first, 0)
            i += 1
        found[count] = pairs
        a_counts[count], b_counts[count] = i - begin, end - j
        count += 1
        j = end
    return found[:count], a_counts[:count], b_counts[:count]
