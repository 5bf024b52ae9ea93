"""The pairs of all nodes of a hop, in one pass of compiled code: whom rows in flight meet, and which legs want each.

A segment is a stretch of rows in flight at one node. It is taken in blocks of rows, and a block to bundle after bundle
of the entries that it looks at, which are of one bucket or of many:

    runs          the rows of the block whose code the bundle has, and the first entry of it
    candidates    every pair of such a row and an entry of its code, a few thousand at a time
    near          those whose times are within the loosest bounds of the node
    kept          those that some leg wants, by its own bounds and by what it selected of the stored row on arrival

Each is a loop of its own that writes every row and advances by 0 or 1 instead of branching: whether a row passes is as
unpredictable as a coin, and a mispredicted branch costs more than all else. What the loops hand each other is so small
that it stays in the cache. Starting them costs nothing here, so a node with three rows is as welcome as one with a
million, and cost follows rows and pairs, not nodes or buckets.

Matching stops when there is no room for pairs or much was looked at, and goes on where it stopped: limits are looked at
in between. Codes only: whoever called confirms real keys where codes are hashes. Positions are unsigned; for signed
ones the compiler would add code for negative ones to every access.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from dovetail.kernels.match.find_runs import find_runs
from dovetail.kernels.match.special_values import ALL_PASS, NO_LOWER, NO_UPPER, NULL_TIME
from dovetail.kernels.pointers import load32, load64, prefetch, trailing_zeros

BLOCK_ROWS = 1024
CANDIDATES = 4096
LOOKS_AT_ONCE = 1 << 22
"""So many entries are looked at before somebody looks at the clock."""

SEGMENT, BEGIN, BUNDLE, ROW, ENTRY = range(5)
"""Where matching goes on: a segment, the first row of a block, a bundle, a row of the block, an entry of its code."""
NEAR, KEPT, LOOKS = range(3)
"""What is counted of a node: near pairs, pairs that some leg wants, and what it took to find them."""

_ONE = np.uint64(1)
_REF_BITS = np.uint64(32)
_ROW_MASK = np.uint64(0xFFFFFFFF)


class RowArrays(NamedTuple):
    """Rows in flight: their codes at their nodes, a word of legs that want each, `refs[member, row]`."""

    codes: Any
    words: Any
    refs: Any


class NodeArrays(NamedTuple):
    """The nodes of a hop for compiled code: what is of one node lies at its number, lists of it from `..._begin` on.

    Bounds that several legs have in common are a class: `class_mask` are its legs, its terms say how far the stored
    row's time may be from a member's. `loose_...` is by member what some leg accepts; nothing where one is free.
    """

    target: Any
    up_to_now: Any
    before_batch: Any
    first_batch: Any
    path: Any
    leg_begin: Any
    leg_bit: Any
    leg_ask: Any
    leg_start_ask: Any
    leg_of_bit: Any
    class_begin: Any
    class_mask: Any
    term_begin: Any
    term_member: Any
    term_lower: Any
    term_upper: Any
    loose_begin: Any
    loose_member: Any
    loose_lower: Any
    loose_upper: Any
    emit_mask: Any
    child_begin: Any
    child_mask: Any
    child: Any
    key_member: Any
    key_codes: Any


class Segments(NamedTuple):
    """Rows [begin, end) are at a node and look at a table of entries."""

    node: Any
    table: Any
    begin: Any
    end: Any


class BucketArrays(NamedTuple):
    """`[store, bucket]`; the addresses of times are 0 without times.

    `words[store, bucket, word]`: where a word of selection bits of the first row lies, and how far it is to the next
    row's. Of each store how many buckets it has, and which is the first of this batch.
    """

    count: Any
    current_from: Any
    times: Any
    lower_batch: Any
    upper_batch: Any
    words: Any


class Stored(NamedTuple):
    """All that rows in flight look at: nodes, tables of entries, buckets; `places[ask, bucket]` of selections' bits."""

    nodes: Any
    tables: Any
    buckets: Any
    places: Any


class Here(NamedTuple):
    """Rows [begin, end) at a node look at one bundle of a table, which is of its target."""

    node: Any
    table: Any
    target: Any
    bundle: Any
    begin: Any
    end: Any


class FoundPairs(NamedTuple):
    """Row in flight `row` meets the stored row `ref`, and the legs in `word` want that."""

    row: Any
    ref: Any
    word: Any


class Scratch(NamedTuple):
    """Of a block's rows: words, accepted stored times, times of members; then runs and candidates.

    By bucket of the target: the legs that take all of its rows, those that take the rows whose bit is set, and where
    that lies, by leg. The last bucket is none: nobody wants its rows.
    """

    words: Any
    lower: Any
    upper: Any
    times: Any
    run_row: Any
    run_first: Any
    run_last: Any
    candidate_row: Any
    candidate_stored: Any
    candidate_time: Any
    passing: Any
    tested: Any
    place: Any


def room_for_pairs(pairs: int) -> FoundPairs:
    return FoundPairs(np.empty(pairs, np.uint32), np.empty(pairs, np.uint64), np.empty(pairs, np.uint64))


def make_scratch(members: int, buckets: int, candidates: int = CANDIDATES) -> Scratch:
    """No more candidates at once than there is room for pairs."""
    return Scratch(
        np.empty(BLOCK_ROWS, np.uint64),
        np.empty(BLOCK_ROWS, np.int64),
        np.empty(BLOCK_ROWS, np.int64),
        np.empty((max(members, 1), BLOCK_ROWS), np.int64),
        np.empty(BLOCK_ROWS + 1, np.uint64),
        np.empty(BLOCK_ROWS + 1, np.uint64),
        np.empty(BLOCK_ROWS + 1, np.uint64),
        np.empty(candidates, np.uint64),
        np.empty(candidates, np.uint64),
        np.empty(candidates, np.int64),
        np.zeros(buckets + 1, np.uint64),
        np.zeros(buckets + 1, np.uint64),
        np.empty((buckets + 1, 64), np.int32),
    )


def from_the_first() -> Any:
    """Where matching begins."""
    return np.array([0, -1, 0, 0, -1], np.int64)


@njit(cache=True)
def match_hop(rows: Any, segments: Any, stored: Any, void: Any, at: Any, scratch: Any, counts: Any, found: Any) -> Any:
    """Pairs from where `at` says; how many. `void[node]` are legs that want nothing any more."""
    nodes, tables = stored.nodes, stored.tables
    room, most = np.uint64(len(found.row)), np.uint64(len(scratch.candidate_row))
    count, looks = np.uint64(0), np.int64(0)
    segment, begin, bundle, row, entry = at[SEGMENT], at[BEGIN], at[BUNDLE], at[ROW], at[ENTRY]
    while segment < len(segments.node):
        node, table, target = segments.node[segment], segments.table[segment], nodes.target[segments.node[segment]]
        last_bundle = tables.count[table] if nodes.up_to_now[node] else tables.current_from[table]
        _select(stored, node, target, scratch)
        begin = max(begin, segments.begin[segment])
        while begin < segments.end[segment]:
            end = min(begin + BLOCK_ROWS, segments.end[segment])
            _load_block(rows, stored, node, void[node], begin, end, scratch)
            while bundle < last_bundle:
                here = Here(node, table, target, bundle, begin, end)
                run, runs = np.uint64(0), np.uint64(0)
                if tables.begin[table, bundle] < tables.end[table, bundle] and _is_wanted(tables, here, scratch):
                    runs = find_runs(rows.codes, stored, here, max(row, begin), scratch)
                    looks += end - begin
                    counts[node, LOOKS] += end - begin
                # A row that nobody wants any more is not among them; then its entry means nothing.
                if runs == np.uint64(0) or np.int64(scratch.run_row[0]) != row:
                    entry = -1
                while run < runs:
                    if room - count < most or looks > LOOKS_AT_ONCE:
                        row = np.int64(scratch.run_row[run])
                        at[SEGMENT], at[BEGIN], at[BUNDLE], at[ROW], at[ENTRY] = segment, begin, bundle, row, entry
                        return count
                    candidates, run, entry = _expand(rows.codes, stored, here, runs, run, entry, scratch)
                    near = _near(stored, here, candidates, scratch)
                    kept = _keep(stored, here, near, count, scratch, found)
                    looks += np.int64(candidates)
                    counts[node, LOOKS] += np.int64(candidates)
                    counts[node, NEAR] += np.int64(near)
                    counts[node, KEPT] += np.int64(kept - count)
                    count = kept
                bundle += 1
                row, entry = 0, -1
                if looks > LOOKS_AT_ONCE:
                    at[SEGMENT], at[BEGIN], at[BUNDLE], at[ROW], at[ENTRY] = segment, begin, bundle, row, entry
                    return count
            bundle = 0
            begin = end
        segment += 1
        begin = -1
    at[SEGMENT], at[BEGIN], at[BUNDLE], at[ROW], at[ENTRY] = segment, -1, 0, 0, -1
    return count


@njit(cache=True, forceinline=True)
def _select(stored: Any, node: Any, target: Any, scratch: Any) -> None:
    """What the legs of a node want of every bucket of its target; nothing of rows that the node may not see."""
    nodes, buckets = stored.nodes, stored.buckets
    count = np.uint64(buckets.count[target])
    for bucket in range(count):
        scratch.passing[bucket] = np.uint64(0)
        scratch.tested[bucket] = np.uint64(0)
    for leg in range(nodes.leg_begin[node], nodes.leg_begin[node + 1]):
        bit, ask = nodes.leg_bit[leg], nodes.leg_ask[leg]
        for bucket in range(count):
            place = stored.places[ask, bucket]
            scratch.place[bucket, bit] = place
            scratch.passing[bucket] |= np.uint64(place == ALL_PASS) << bit
            scratch.tested[bucket] |= np.uint64(place >= 0) << bit
    for bucket in range(count):
        lower, upper = buckets.lower_batch[target, bucket], buckets.upper_batch[target, bucket]
        if lower < nodes.first_batch[node] or upper >= nodes.before_batch[node]:
            scratch.passing[bucket] = np.uint64(0)
            scratch.tested[bucket] = np.uint64(0)


@njit(cache=True, forceinline=True)
def _is_wanted(tables: Any, here: Any, scratch: Any) -> Any:
    """Whether some leg may want something of a bundle."""
    wanted = np.uint64(0)
    for member in range(tables.member_begin[here.table, here.bundle], tables.member_end[here.table, here.bundle]):
        bucket = tables.members[member]
        wanted |= scratch.passing[bucket] | scratch.tested[bucket]
    return wanted != np.uint64(0)


@njit(cache=True, forceinline=True)
def _load_block(rows: Any, stored: Any, node: Any, void: Any, begin: Any, end: Any, scratch: Any) -> None:
    """Of each row the legs that want it, what times of a stored row some leg accepts, and its members' times."""
    nodes = stored.nodes
    for i in range(begin, end):
        k = np.uint64(i - begin)
        scratch.words[k] = rows.words[np.uint64(i)] & ~void
        scratch.lower[k] = NO_LOWER
        scratch.upper[k] = NO_UPPER
    if not _is_timed(nodes, node):
        return
    for member in range(rows.refs.shape[0]):
        times = stored.buckets.times[nodes.path[node, member]]
        if times[0] != np.uint64(0):
            for i in range(begin, end):
                ref = rows.refs[member, np.uint64(i)]
                time = load64(times[ref >> np.uint64(32)] + (ref & np.uint64(0xFFFFFFFF)) * np.uint64(8))
                scratch.times[member, np.uint64(i - begin)] = np.int64(time)
    for term in range(nodes.loose_begin[node], nodes.loose_begin[node + 1]):
        member, lower, upper = nodes.loose_member[term], nodes.loose_lower[term], nodes.loose_upper[term]
        # As far as times go; an end that is no end stays none.
        least_of_lower, most_of_lower = max(NO_LOWER, NO_LOWER - min(lower, 0)), min(NO_UPPER, NO_UPPER - max(lower, 0))
        least_of_upper, most_of_upper = max(NO_LOWER, NO_LOWER - min(upper, 0)), min(NO_UPPER, NO_UPPER - max(upper, 0))
        for j in range(np.uint64(end - begin)):
            time = scratch.times[member, j]
            low = NO_LOWER if lower == NO_LOWER else min(max(time, least_of_lower), most_of_lower) + lower
            high = NO_UPPER if upper == NO_UPPER else min(max(time, least_of_upper), most_of_upper) + upper
            is_null = time == NULL_TIME
            scratch.lower[j] = max(scratch.lower[j], NO_UPPER if is_null else low)
            scratch.upper[j] = min(scratch.upper[j], NO_LOWER if is_null else high)


@njit(cache=True, forceinline=True)
def _is_timed(nodes: Any, node: Any) -> Any:
    """Whether somebody asks about times."""
    is_per_leg = nodes.class_begin[node + 1] - nodes.class_begin[node] > 1
    return is_per_leg or nodes.loose_begin[node] < nodes.loose_begin[node + 1]


@njit(cache=True, forceinline=True)
def _expand(codes: Any, stored: Any, here: Any, runs: Any, run: Any, entry: Any, scratch: Any) -> Any:
    """Candidates from an entry of a run on (-1: its first); where the next begin."""
    tables, count, most = stored.tables, np.uint64(0), np.uint64(len(scratch.candidate_row))
    entries, rows = tables.codes[here.table, here.bundle], tables.rows[here.table, here.bundle]
    refs, times = tables.refs[here.table, here.bundle], tables.times[here.table, here.bundle]
    high, stride = tables.end[here.table, here.bundle], tables.stride[here.table, here.bundle]
    is_timed = _is_timed(stored.nodes, here.node)
    while run < runs:
        row = scratch.run_row[run]
        code = codes[row]
        at = scratch.run_first[run] if entry < 0 else np.uint64(entry)
        while count < most and at < high and load64(entries + at * stride) == code:
            if refs == np.uint64(0):
                stored_row = np.uint64(load32(rows + at * np.uint64(4)))
                time = times + stored_row * np.uint64(8)
            else:
                stored_row = load64(refs + at * stride)
                time = times + at * stride
            scratch.candidate_row[count] = row
            scratch.candidate_stored[count] = stored_row
            if is_timed:
                prefetch(time)
                scratch.candidate_time[count] = np.int64(time)
            count += _ONE
            at += _ONE
        if count == most:
            return count, run, np.int64(at)
        run += _ONE
        entry = -1
    return count, run, np.int64(-1)


@njit(cache=True, forceinline=True)
def _near(stored: Any, here: Any, candidates: Any, scratch: Any) -> Any:
    """Candidates of buckets that somebody wants, whose stored time is one that some leg accepts.

    A NULL is none unless any time is.
    """
    tables, is_timed = stored.tables, _is_timed(stored.nodes, here.node)
    first_member = np.uint64(tables.member_begin[here.table, here.bundle])
    if not is_timed and tables.refs[here.table, here.bundle] == np.uint64(0):
        return candidates
    count = np.uint64(0)
    for c in range(candidates):
        row, ref = scratch.candidate_row[c], scratch.candidate_stored[c]
        scratch.candidate_row[count] = row
        scratch.candidate_stored[count] = ref
        bucket = tables.members[first_member + (ref >> _REF_BITS)]
        is_near = (scratch.passing[bucket] | scratch.tested[bucket]) != np.uint64(0)
        if is_timed:
            k, time = row - np.uint64(here.begin), np.int64(load64(np.uint64(scratch.candidate_time[c])))
            scratch.candidate_time[count] = time
            is_free = (scratch.lower[k] == NO_LOWER) & (scratch.upper[k] == NO_UPPER)
            is_near &= is_free | ((time >= scratch.lower[k]) & (time <= scratch.upper[k]))
        count += np.uint64(is_near)
    return count


@njit(cache=True, forceinline=True)
def _keep(stored: Any, here: Any, near: Any, count: Any, scratch: Any, found: Any) -> Any:
    """Pairs that some leg wants, from `count` on; how many there are then."""
    nodes, node, tables, words = stored.nodes, here.node, stored.tables, stored.buckets.words
    first_member = np.uint64(tables.member_begin[here.table, here.bundle])
    is_per_leg = nodes.class_begin[node + 1] - nodes.class_begin[node] > 1
    for c in range(near):
        row, ref = scratch.candidate_row[c], scratch.candidate_stored[c]
        bucket, stored_row = tables.members[first_member + (ref >> _REF_BITS)], ref & _ROW_MASK
        k = row - np.uint64(here.begin)
        word = scratch.words[k]
        if is_per_leg:
            word = _within_own_bounds(nodes, node, word, k, scratch.candidate_time[c], scratch)
        kept = word & scratch.passing[bucket]
        left = word & scratch.tested[bucket]
        loaded, selected = np.int64(-1), np.uint64(0)
        while left:
            bit = trailing_zeros(left)
            left &= left - _ONE
            place = np.int64(scratch.place[bucket, bit])
            if place >> 6 != loaded:
                loaded = place >> 6
                begin, stride = words[here.target, bucket, loaded, 0], words[here.target, bucket, loaded, 1]
                selected = load64(begin + stored_row * stride)
            kept |= ((selected >> np.uint64(place & 63)) & _ONE) << bit
        found.row[count] = np.uint32(row)
        found.ref[count] = (np.uint64(bucket) << _REF_BITS) | stored_row
        found.word[count] = kept
        count += np.uint64(kept != np.uint64(0))
    return count


@njit(cache=True, forceinline=True)
def _within_own_bounds(nodes: Any, node: Any, word: Any, k: Any, time: Any, scratch: Any) -> Any:
    """Of these legs those whose own bounds hold."""
    kept = np.uint64(0)
    for each in range(nodes.class_begin[node], nodes.class_begin[node + 1]):
        if word & nodes.class_mask[each]:
            holds = True
            for term in range(nodes.term_begin[each], nodes.term_begin[each + 1]):
                other = scratch.times[nodes.term_member[term], k]
                apart = time - other
                lower, upper = nodes.term_lower[term], nodes.term_upper[term]
                holds &= (time != NULL_TIME) & (other != NULL_TIME) & (apart >= lower) & (apart <= upper)
            if holds:
                kept |= word & nodes.class_mask[each]
    return kept
