"""Rows that travel to the partitions that keep them: how many, where they are at home, and what fails on the way."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dovetail.core.errors import SessionError
from dovetail.engine.backfill.history_run import _modest
from dovetail.engine.options import make_options
from dovetail.kernels.match.hash_keys import group_of_codes, hash_keys
from dovetail.optimizer.policies import GivenPolicies
from dovetail.plan.placement import Placement, Placements
from dovetail.runtime.source import ship_rows
from dovetail.store.bucket_file import FAILED, Bucket
from dovetail.testing.local_session import LocalSession

GROUPS = 4
BY_PACK = Placement((0, 0, 1, 1), 2)
BY_USER = Placement((0, 1, 0, 1), 2)
PURCHASES = pa.schema([("user", pa.int64()), ("pack", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))])
USERS = pa.schema([("user", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))])
PACKS = pa.schema([("pack", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))])
WITHIN = "BETWEEN p.ts - INTERVAL 1 HOUR AND p.ts + INTERVAL 1 HOUR"
BOUGHT = f"SELECT p.user, p.pack FROM purchases p JOIN packs g ON p.pack = g.pack AND g.ts {WITHIN}"
BUYERS = f"SELECT p.user, p.pack FROM purchases p JOIN users u ON p.user = u.user AND u.ts {WITHIN}"

Copies = pytest.mark.parametrize("copies", ["partition", "key"])


def groups_of(values: list[int | None]) -> list[int]:
    return group_of_codes(hash_keys([pa.array(values, pa.int64())]).codes, GROUPS).tolist()


def value_in(group: int, number: int = 0) -> int:
    """The n-th value whose key group is `group`."""
    found = (value for value in count() if groups_of([value]) == [group])
    return next(value for place, value in enumerate(found) if place == number)


BY_PACK_OR_USER = Placements.of(BY_PACK, {("purchases", "[user]"): BY_USER, ("users", "[user]"): BY_USER})


def open_session(folder: Path, placements: Placements = BY_PACK_OR_USER, **options: Any) -> LocalSession:
    session = LocalSession(folder, **{"key_groups": GROUPS, "exchange": "rows", "placement": "even", **options})
    session.engine.plans.follow(lambda _batch: GivenPolicies(placement=lambda *_: placements))
    session.create_stream("purchases", PURCHASES, "ts", "1 hour")
    session.create_stream("users", USERS, "ts", "1 hour")
    session.create_stream("packs", PACKS, "ts", "1 hour")
    return session


def purchases(pairs: list[tuple[int | None, int | None]]) -> pa.Table:
    columns = [[user for user, _ in pairs], [pack for _, pack in pairs], [0] * len(pairs)]
    return pa.table(columns, schema=PURCHASES)


def shipped(session: LocalSession) -> tuple[int, int]:
    entry = (session.progress or {})["shipped"]
    return entry["rows"], entry["inputRows"]


# SASPAR's Figure 1: two queries place the same eight tuples by different keys. Here by the key groups of (user, pack);
# users of groups 0 and 2 lie on partition 0, packs of groups 0 and 1.
TOGETHER = [(0, 0), (2, 1), (0, 1), (1, 2), (3, 3), (1, 3)]
APART = [(0, 2), (3, 0)]


@pytest.mark.parametrize(("copies", "expected"), [("partition", 10), ("key", 16)])
@pytest.mark.parametrize(("splits", "message_bytes"), [(1, 16 << 20), (3, 16 << 20), (2, 50)])
def test_eight_tuples_of_two_queries_are_shipped_once_where_both_keys_lie_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copies: str, expected: int, splits: int, message_bytes: int
) -> None:
    monkeypatch.setattr(ship_rows, "MESSAGE_BYTES", message_bytes)
    session = open_session(tmp_path, copies=copies)
    session.create_query(BOUGHT, "bought")
    session.create_query(BUYERS, "buyers")
    tuples = [(value_in(user), value_in(pack)) for user, pack in (*TOGETHER, *APART)]
    session.push({"purchases": purchases(tuples)}, splits=splits)
    assert shipped(session) == (expected, 8)
    by_partition = {"partition": [5, 5], "key": [8, 8]}[copies]
    assert (session.progress or {})["shipped"]["rowsByPartition"] == by_partition
    session.push({"users": pa.table({"user": [user for user, _ in tuples], "ts": [0] * 8}, schema=USERS)})
    answers = sorted((row["user"], row["pack"]) for row in session.results("buyers").to_pylist())
    assert answers == sorted(one for one in tuples for other in tuples if one[0] == other[0])
    session.close()


def test_queries_of_one_key_ship_once_even_a_copy_for_each_key(tmp_path: Path) -> None:
    session = open_session(tmp_path, copies="key")
    for number in range(3):
        session.create_query(f"{BOUGHT} WHERE p.user > {number}", f"q{number}")
    session.push({"purchases": purchases([(user, user) for user in range(8)])})
    assert shipped(session) == (7, 7)
    session.close()


def test_a_stream_that_is_only_aggregated_is_not_shipped(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    session.create_query("SELECT user, count(*) AS n FROM purchases GROUP BY user", "counts")
    session.push({"purchases": purchases([(1, 1), (1, 2)])})
    assert shipped(session) == (0, 0)
    assert session.results("counts").to_pylist() == [{"user": 1, "n": 2}]
    session.create_query(BOUGHT, "bought")
    session.push({"purchases": purchases([(1, 1), (1, 2)])})
    assert shipped(session)[1] == 2, "the aggregate rides on what the join ships"
    assert session.results("counts").to_pylist() == [{"user": 1, "n": 4}]
    session.close()


@pytest.mark.parametrize("seed", range(4))
@Copies
def test_a_row_goes_once_to_each_partition_of_its_keys(tmp_path: Path, copies: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    placement_by_key = {key: Placement(tuple(rng.integers(0, 3, GROUPS).tolist()), 3) for key in ("user", "pack")}
    uses = [("purchases", "user"), ("users", "user"), ("purchases", "pack"), ("packs", "pack")]
    special = {(store, f"[{key}]"): placement_by_key[key] for store, key in uses}
    session = open_session(tmp_path, copies=copies, placements=Placements.of(Placement((0, 1, 2, 0), 3), special))
    session.create_query(BOUGHT, "bought")
    session.create_query(BUYERS, "buyers")
    values = [None, *range(12)]
    pairs = [(values[a], values[b]) for a, b in rng.integers(0, len(values), (60, 2)).tolist()]
    expected = 0
    for pair in pairs:
        targets = [
            placement_by_key[key].partition_by_group[groups_of([value])[0]]
            for key, value in zip(("user", "pack"), pair, strict=True)
            if value is not None
        ]
        expected += max(len(set(targets)) if copies == "partition" else len(targets), 1)
    session.push({"purchases": purchases(pairs)}, splits=2)
    assert shipped(session) == (expected, len(pairs))
    session.close()


@Copies
def test_kept_files_hold_each_row_at_home_once_and_in_each_index_once(tmp_path: Path, copies: str) -> None:
    session = open_session(tmp_path, copies=copies, merge_fanout=2)
    session.create_query(BOUGHT, "bought")
    session.create_query(BUYERS, "buyers")
    for batch in range(5):
        session.push({"purchases": purchases([(user, 3 * user % 7) for user in range(batch, batch + 9)])}, splits=2)
    buckets = [Bucket(tmp_path, meta) for meta in session.engine.head.state.buckets if meta.store == "purchases"]
    assert any(bucket.meta.level for bucket in buckets)
    expected = sorted((user, 3 * user % 7) for batch in range(5) for user in range(batch, batch + 9))

    def rows_at(places: Callable[[Bucket], np.ndarray]) -> list[tuple[int, int]]:
        columns = [
            [bucket.column(name).take(pa.array(places(bucket))) for bucket in buckets] for name in ("user", "pack")
        ]
        return sorted(zip(*(pa.concat_arrays(parts).to_pylist() for parts in columns), strict=True))

    assert rows_at(lambda bucket: np.arange(bucket.meta.home_rows)) == expected
    for index in ("[user]", "[pack]"):
        assert rows_at(lambda bucket, index=index: bucket.index(index).rows) == expected  # type: ignore[misc]
    session.close()


@Copies
@pytest.mark.parametrize("failing", ["100 / (p.user - 5) = g.pack", "p.pack = g.pack AND 100 / (p.user - 5) > 3"])
def test_what_fails_in_one_source_task_counts_in_no_bucket(tmp_path: Path, copies: str, failing: str) -> None:
    session = open_session(tmp_path, copies=copies, piece_bytes=1)
    session.create_query(BOUGHT, "bought")
    bad = session.create_query(f"SELECT p.user FROM purchases p JOIN packs g ON {failing} AND g.ts {WITHIN}", "bad")
    pairs = [(user, user) for user in range(12)]
    packs = pa.table({"pack": list(range(12)), "ts": [0] * 12}, schema=PACKS)
    session.push({"purchases": purchases(pairs), "packs": packs}, splits=4)
    assert bad.status.error is not None
    metas = [meta for meta in session.engine.head.state.buckets if meta.store == "purchases"]
    assert len({meta.layout for meta in metas}) == 1
    assert FAILED in {*metas[0].selections, *(name for name, _ in metas[0].indexes)}
    session.push({"packs": packs})
    assert session.results("bought").num_rows == 24
    session.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exchange": "tuples"}, "exchange is 'tuples'"),
        ({"exchange": "rows", "copies": "row"}, "copies is 'row'"),
        ({"copies": "key"}, "exchange='rows'"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SessionError, match=message):
        make_options(**options)


def test_backfills_run_by_references() -> None:
    modest = _modest(make_options(exchange="rows", copies="key"))
    assert modest.shipping is None
