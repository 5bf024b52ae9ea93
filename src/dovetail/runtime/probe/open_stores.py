"""The stores of a batch, opened once in a process: the tasks of all its hops see the same buckets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dovetail.lowering.flat_plan import FlatPlan
from dovetail.plan.store_plan import StorePlan
from dovetail.runtime.probe.bundles import Bundles, bundles_of
from dovetail.runtime.probe.hop_tables import HopTables
from dovetail.runtime.probe.mapped_bucket import forget_buckets
from dovetail.runtime.probe.snapshot import StoreSnapshot
from dovetail.store.bucket_file import BucketMeta, by_store


@dataclass(frozen=True)
class _Seen:
    """What snapshots follow from."""

    stores: tuple[StorePlan, ...]
    earlier: tuple[BucketMeta, ...]
    current: tuple[BucketMeta, ...]
    timezone: str


@dataclass
class OpenStores:
    """By store what a batch sees of it, and for compiled code the same by address."""

    snapshots: dict[str, StoreSnapshot]
    bundles: Bundles
    _tables: HopTables | None = None

    def tables(self, flat: FlatPlan) -> HopTables:
        if self._tables is None or self._tables.flat is not flat:
            self._tables = HopTables(flat, self.snapshots, self.bundles)
        return self._tables


_last_by_root: dict[Path, tuple[_Seen, OpenStores]] = {}


def open_stores(
    root: Path,
    stores: tuple[StorePlan, ...],
    earlier: tuple[BucketMeta, ...],
    current: Sequence[BucketMeta],
    timezone: str,
) -> OpenStores:
    """Those of the task before if it saw the same."""
    # Every task must number the buckets alike; messages arrive in any order.
    seen = _Seen(stores, earlier, tuple(sorted(current, key=lambda meta: meta.place)), timezone)
    known = _last_by_root.get(root)
    if known is not None and known[0] == seen:
        return known[1]
    forget_buckets(root, {meta.key for meta in (*seen.earlier, *seen.current)})
    before, now = by_store(seen.earlier), by_store(seen.current)
    snapshots = {
        store.id: StoreSnapshot(root, store, before.get(store.id, []), now.get(store.id, []), timezone)
        for store in stores
    }
    _last_by_root.clear()
    bundles = bundles_of(root)
    bundles.next_batch()
    opened = OpenStores(snapshots, bundles)
    _last_by_root[root] = seen, opened
    return opened
