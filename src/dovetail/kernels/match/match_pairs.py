"""Which stored rows the probe rows of one node meet, and which legs want each pair (A4): one node by `match_hop`.

    probe codes   3   3   7   9          stored codes   1   3   3   8   9
                  |   |       |                             |   |       |
                  +---+-------------- meet -----------------+---+       |
                              +-------------------- meet ---------------+

A probe row brings a bit for every leg that still wants it. A pair keeps those bits whose selection the stored
row passed on arrival and whose time bounds hold; pairs without bits do not come out, but are counted. Pairs come in
pieces of at most `max_pairs`, so that skew cannot exhaust memory; those of more than 64 legs come 64 legs at a time.
Codes only: the caller confirms real keys if codes are hashes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dovetail.kernels.addresses import address_of
from dovetail.kernels.match.entry_tables import TableEntries, bundle_of_bucket, make_directory, table_arrays
from dovetail.kernels.match.match_hop import NEAR, BucketArrays, NodeArrays, RowArrays, Segments, Stored
from dovetail.kernels.match.match_pieces import match_pieces
from dovetail.kernels.match.special_values import NO_LOWER, NO_UPPER
from dovetail.kernels.word_bits import WORD_BITS, bit_at

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass
class ProbeRows:
    """Sorted by code. `bits[word, i]` are the legs that want row i, `times[member, i]` its members' event times.

    Legs may be stopped while pairs are being found: `stops` counts how often that happened.
    """

    codes: U64
    bits: U64
    times: I64
    stops: int = 0
    _parts: list[ProbeRows] = field(default_factory=list)

    def __post_init__(self) -> None:
        # One layout, so that kernels are compiled once: codes may lie in a read-only map, bits by row.
        self.codes = np.require(self.codes, requirements=["C", "W"])
        self.bits = np.require(self.bits, requirements=["C", "W"])
        self.times = np.require(self.times, requirements=["C", "W"])

    def stop(self, legs: Sequence[int]) -> None:
        """These legs want no row any more."""
        for leg in legs:
            self.bits[leg // WORD_BITS] &= ~bit_at(leg)
        self.stops += 1
        self.__dict__.pop("wanted_mask", None)
        for part in self._parts:
            part.stop(legs)

    def wanted_by(self, legs: U64) -> ProbeRows:
        """The same rows for some of the legs, given by their bits; whoever is stopped here is stopped there."""
        part = ProbeRows(self.codes, self.bits & legs[:, None], self.times)
        self._parts.append(part)
        return part

    @cached_property
    def wanted_mask(self) -> npt.NDArray[np.bool_] | None:
        """Rows that some leg wants; None if that is every row."""
        wanted: npt.NDArray[np.bool_] = np.bitwise_or.reduce(self.bits) != 0
        return None if wanted.all() else wanted


@dataclass(frozen=True)
class StoredRows:
    """Entries of one bucket's index, sorted by code; `times` and the words of selection bits are by row.

    `places[leg]` is where the leg's selection bit lies in those words, or `ALL_PASS` or `NONE_PASS`; each word lies at
    `word_addresses[word]`, by address and bytes from row to row. `ordinal` is the bucket's, with which references to
    its rows begin.
    """

    codes: U64
    rows: npt.NDArray[np.uint32]
    times: I64
    time_range: tuple[int, int]
    places: npt.NDArray[np.int32]
    word_addresses: U64
    ordinal: int = 0


@dataclass(frozen=True)
class StoredBuckets:
    """Buckets by their ordinals: entries, None where it is not looked at; addresses of times, earliest and latest.

    For each leg and bucket the place of the selection's bit: `places[leg, ordinal]`; `word_addresses[ordinal, word]`.
    """

    entries: Sequence[TableEntries | None]
    time_addresses: U64
    time_ranges: Sequence[tuple[int, int]]
    places: npt.NDArray[np.int32]
    word_addresses: U64


def one_bucket(stored: StoredRows) -> StoredBuckets:
    """A bucket alone, as ordinal 0."""
    codes, rows = np.ascontiguousarray(stored.codes), np.ascontiguousarray(stored.rows)
    return StoredBuckets(
        [TableEntries(codes, rows, 0, len(codes), make_directory(codes))],
        np.array([address_of(stored.times)], np.uint64),
        [stored.time_range],
        stored.places.reshape(-1, 1),
        stored.word_addresses.reshape(1, -1, 2),
    )


@dataclass(frozen=True)
class LegBounds:
    """For each leg and member the accepted range of stored time minus that member's time, both ends included."""

    lower: I64
    upper: I64

    @property
    def member_count(self) -> int:
        return int(self.lower.shape[1])

    @cached_property
    def loosest(self) -> tuple[I64, I64]:
        """By member, the range that some leg accepts."""
        return self.lower.min(axis=0), self.upper.max(axis=0)

    @cached_property
    def is_bounded(self) -> bool:
        lower, upper = self.loosest
        return bool((lower != NO_LOWER).any() or (upper != NO_UPPER).any())

    @cached_property
    def is_per_leg(self) -> bool:
        """Whether some leg accepts less than the loosest."""
        lower, upper = self.loosest
        return bool((self.lower != lower).any() or (self.upper != upper).any())


@dataclass(frozen=True)
class Pairs:
    """Equally long: `probe_idx[i]` meets row `stored_refs[i]`, and the legs in `bits[:, i]` want it.

    They are left of `near_count` pairs whose codes are equal and whose times are near enough for some leg.
    """

    probe_idx: I64
    stored_refs: U64
    bits: U64
    near_count: int


def match_pairs(probe: ProbeRows, stored: StoredBuckets, bounds: LegBounds, *, max_pairs: int) -> Iterator[Pairs]:
    """See the module's head. Legs may be stopped between two pieces."""
    if len(probe.codes) == 0 or not any(stored.entries):
        return
    addresses = stored.time_addresses.tolist()
    bundles = [
        bundle_of_bucket(entries, bucket, addresses[bucket], stored.time_ranges[bucket])
        for bucket, entries in enumerate(stored.entries)
        if entries is not None
    ]
    tables = table_arrays([(bundles, ())])
    buckets = _buckets(probe, stored)
    places = np.ascontiguousarray(stored.places)
    # Members' times are given: each member is a store of one bucket, in which a probe row is the row of its number.
    refs = np.tile(np.arange(len(probe.codes), dtype=np.uint64), (len(probe.times), 1))
    whole = (np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, len(probe.codes)))
    for word in range(len(probe.bits)):
        rows = RowArrays(probe.codes, probe.bits[word], refs)
        looked_at = Stored(_one_node(bounds, word), tables, buckets, places)
        counts, near = np.zeros((1, 3), np.int64), 0
        for found in match_pieces(rows, Segments(*whole), looked_at, np.zeros(1, np.uint64), counts, max_pairs):
            bits = np.zeros((len(probe.bits), len(found.row)), np.uint64)
            bits[word] = found.word
            # Even if it is empty: whoever asks looks at the time now and then.
            yield Pairs(found.row.astype(np.int64), found.ref, bits, int(counts[0, NEAR]) - near)
            near = int(counts[0, NEAR])


def _buckets(probe: ProbeRows, stored: StoredBuckets) -> BucketArrays:
    """Store 0 is the one that is probed, and 1, 2 ... have the probe rows' members."""
    shape = (1 + len(probe.times), len(stored.entries))
    times = np.zeros(shape, np.uint64)
    times[0] = stored.time_addresses
    times[1:, 0] = [address_of(each) for each in probe.times]
    words = np.zeros((*shape, stored.word_addresses.shape[1], 2), np.uint64)
    words[0] = stored.word_addresses
    count, batches = np.full(shape[0], shape[1]), np.zeros(shape, np.int64)
    return BucketArrays(count, count, times, batches, batches, words)


def _one_node(bounds: LegBounds, word: int) -> NodeArrays:
    """At most 64 legs as a node that sees all buckets: each leg has bounds of its own."""
    first = word * WORD_BITS
    lower, upper = bounds.lower[first : first + WORD_BITS], bounds.upper[first : first + WORD_BITS]
    legs, members = lower.shape
    class_of_leg = np.unique(np.concatenate([lower, upper], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    masks, terms, begins = [], [], [0]
    for each in range(int(class_of_leg.max()) + 1 if legs else 0):
        own = np.flatnonzero(class_of_leg == each)
        masks.append(sum(1 << leg for leg in own.tolist()))
        terms += [(m, lower[own[0], m], upper[own[0], m]) for m in range(members) if _is_bound(lower, upper, own[0], m)]
        begins.append(len(terms))
    loose = [(m, lower[:, m].min(), upper[:, m].max()) for m in range(members)]
    loose = [term for term in loose if term[1] != NO_LOWER or term[2] != NO_UPPER]
    nothing, none = np.zeros(1, np.int64), np.zeros((1, WORD_BITS), np.int64)
    return NodeArrays(
        target=nothing,
        up_to_now=np.ones(1, np.bool_),
        before_batch=np.full(1, NO_UPPER),
        first_batch=nothing,
        path=np.arange(1, 1 + members).reshape(1, -1),
        leg_begin=np.array([0, legs]),
        leg_bit=np.arange(legs, dtype=np.uint64),
        leg_ask=np.arange(first, first + legs),
        leg_start_ask=np.zeros(legs, np.int64),
        leg_of_bit=none,
        class_begin=np.array([0, len(masks)]),
        class_mask=np.array(masks, np.uint64),
        term_begin=np.array(begins),
        **_term_columns("term", terms),
        loose_begin=np.array([0, len(loose)]),
        **_term_columns("loose", loose),
        emit_mask=np.zeros(1, np.uint64),
        child_begin=np.zeros(2, np.int64),
        child_mask=np.zeros(0, np.uint64),
        child=np.zeros(0, np.int64),
        key_member=nothing,
        key_codes=nothing,
    )


def _is_bound(lower: I64, upper: I64, leg: int, member: int) -> bool:
    return bool(lower[leg, member] != NO_LOWER or upper[leg, member] != NO_UPPER)


def _term_columns(name: str, terms: Sequence[tuple[int, int, int]]) -> dict[str, I64]:
    member, lower, upper = (np.ascontiguousarray(column) for column in np.array(terms, np.int64).reshape(-1, 3).T)
    return {f"{name}_member": member, f"{name}_lower": lower, f"{name}_upper": upper}
