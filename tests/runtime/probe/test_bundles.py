from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.match.entry_tables import TableEntries, make_directory
from dovetail.runtime.probe import bundles
from dovetail.runtime.probe.bundles import Bundles, Covering, bundles_of
from dovetail.runtime.probe.hop_tables import WORTH_BUNDLES
from dovetail.runtime.probe.snapshot import BucketFacts
from dovetail.testing.local_session import LocalSession

NOBODY = 9999
ROWS = 20


@dataclass(frozen=True)
class Store:
    id: str = "a"
    event_time: str | None = "ts"


@dataclass
class Buckets:
    """A store's buckets by their names, as a snapshot shows them; each has entries of its own, drawn from its name."""

    names: list[int]
    store: Store = field(default_factory=Store)
    versions: dict[int, int] = field(default_factory=dict)
    looked_at: list[int] = field(default_factory=list)

    @cached_property
    def facts(self) -> BucketFacts:
        identities = [(f"bucket {name}", self.versions.get(name, 0)) for name in self.names]
        earlier = {identity: ordinal for ordinal, identity in enumerate(identities)}
        return BucketFacts(identities, earlier, [(1000 * name, 1000 * name + 999) for name in self.names])

    def bucket_times(self, ordinal: int) -> npt.NDArray[np.int64]:
        return 1000 * self.names[ordinal] + np.arange(ROWS)

    def entries(self, ordinal: int) -> TableEntries:
        self.looked_at.append(self.names[ordinal])
        name = self.names[ordinal]
        rng = np.random.default_rng((name, self.versions.get(name, 0)))
        codes = np.sort(rng.integers(0, 12, ROWS).astype(np.uint64) << np.uint64(59))
        return TableEntries(codes, rng.permutation(ROWS).astype(np.uint32), 2, ROWS - 1, make_directory(codes))

    def all_entries(self) -> set[tuple[int, int, int, int]]:
        """Code, bucket by ordinal, row, time."""
        found = set()
        for ordinal in range(len(self.names)):
            entries, times = self.entries(ordinal), self.bucket_times(ordinal)
            for at in range(entries.begin, entries.end):
                row = int(entries.rows[at])
                found.add((int(entries.codes[at]), ordinal, row, int(times[row])))
        return found


def cover(kept: Bundles, buckets: Buckets, table: object = "by k") -> Covering:
    kept.next_batch()
    chosen = range(len(buckets.names))
    return kept.cover(buckets, table, chosen, buckets.entries, NOBODY)  # type: ignore[arg-type]


def entries_of(covering: Covering, buckets: Buckets) -> set[tuple[int, int, int, int]]:
    """All that is found; entries of buckets that are no more are those of nobody."""
    found = {each for each in buckets.all_entries() if each[1] in covering.alone}
    for entries, ordinals, (first_us, last_us) in covering.bundled:
        assert (entries.codes[1:] >= entries.codes[:-1]).all()
        assert entries.times is not None
        for code, ref, time in zip(entries.codes.tolist(), entries.refs.tolist(), entries.times.tolist(), strict=True):
            ordinal = ordinals[ref >> 32]
            if ordinal != NOBODY:
                assert first_us <= time <= last_us
                assert (code, ordinal, ref & 0xFFFFFFFF, time) not in found, "an entry is found twice"
                found.add((code, ordinal, ref & 0xFFFFFFFF, time))
    return found


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=25), st.integers(2, 4))
def test_each_living_bucket_is_found_once_whatever_comes_and_goes(steps: list[tuple[int, int]], fanout: int) -> None:
    """Of every step: how many buckets come, and how many of the oldest go."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundles, "FANOUT", fanout)
        kept, names, following = Bundles(), list[int](), 0
        for come, go in steps:
            names = [*names[go:], *range(following, following + come)]
            following += come
            buckets = Buckets(names)
            assert entries_of(cover(kept, buckets), buckets) == buckets.all_entries()


def test_hundreds_of_buckets_are_few_bundles_and_each_is_read_once() -> None:
    kept, names = Bundles(), list[int]()
    looked_at: list[int] = []
    for name in range(600):
        names = [*names, name][-300:]
        buckets = Buckets(names)
        covering = cover(kept, buckets)
        looked_at += buckets.looked_at
        assert len(covering.alone) + len(covering.bundled) <= 20
        dead = sum(ordinal == NOBODY for _, ordinals, _ in covering.bundled for ordinal in ordinals)
        assert dead <= 150
    # The newest few are looked at where they lie, batch after batch, until they are put together.
    assert len(looked_at) < 600 * 4


def test_a_process_that_has_nothing_yet_puts_all_together_at_once() -> None:
    buckets = Buckets(list(range(300)))
    covering = cover(Bundles(), buckets)
    assert len(covering.alone) + len(covering.bundled) <= 20
    assert entries_of(covering, buckets) == buckets.all_entries()


def test_what_finds_no_room_is_searched_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    buckets = Buckets(list(range(40)))
    monkeypatch.setattr(bundles, "MOST_BYTES", 0)
    kept = Bundles()
    covering = cover(kept, buckets)
    assert (sorted(covering.alone), covering.bundled, kept.bytes) == (list(range(40)), (), 0)
    monkeypatch.setattr(bundles, "MOST_BYTES", 8_000)
    covering = cover(kept, buckets)
    assert 0 < kept.bytes <= 8_000
    assert covering.alone
    assert entries_of(covering, buckets) == buckets.all_entries()


def test_large_buckets_stay_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "LARGE_ENTRIES", ROWS - 3)
    assert len(cover(Bundles(), Buckets(list(range(40)))).alone) == 40


def test_a_bucket_that_was_written_again_is_another_one() -> None:
    kept = Bundles()
    cover(kept, Buckets(list(range(8))))
    buckets = Buckets(list(range(8)), versions={3: 1})
    assert entries_of(cover(kept, buckets), buckets) == buckets.all_entries()


def test_tables_do_not_share_bundles_and_are_forgotten_when_nobody_asks() -> None:
    kept, buckets = Bundles(), Buckets(list(range(8)))
    cover(kept, buckets, "by k")
    of_one = kept.bytes
    cover(kept, buckets, "by j")
    assert kept.bytes == 2 * of_one > 0
    for _ in range(bundles.FORGOTTEN_AFTER + 1):
        cover(kept, buckets, "by j")
    assert kept.bytes == of_one
    cover(kept, Buckets([]), "by j")
    assert kept.bytes == 0


def test_rows_without_times_have_none() -> None:
    buckets = Buckets(list(range(8)), store=Store(event_time=None))
    assert all(entries.times is None for entries, _, _ in cover(Bundles(), buckets).bundled)


def test_a_session_bundles_buckets_once_they_are_looked_into_often_enough(tmp_path: Path) -> None:
    """One query looks once into each of few buckets; with as many as make it worth while they are few again."""
    schema = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
    with LocalSession(tmp_path, partitions=1, merge_fanout=1 << 20) as session:
        for name in "ab":
            session.create_stream(name, schema, "ts", "1 hour")
        session.create_query("SELECT a.k FROM a JOIN b ON a.k = b.k AND b.ts = a.ts", "q")
        sizes = []
        for batch in range(WORTH_BUNDLES + 3):
            rows = pa.table([[1, 2, 3], pa.array([batch] * 3, schema.field("ts").type)], schema=schema)
            session.push({"a": rows, "b": rows})
            sizes.append(bundles_of(tmp_path).bytes)
        assert session.results("q").num_rows == 3 * len(sizes)
    assert not any(sizes[:WORTH_BUNDLES])
    assert sizes[-1] > 0
