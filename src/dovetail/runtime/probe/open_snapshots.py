"""The stores of a batch, opened once in a process: the tasks of all its hops see the same buckets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dovetail.plan.store_plan import StorePlan
from dovetail.runtime.probe.snapshot import StoreSnapshot, forget_buckets
from dovetail.store.bucket_file import BucketMeta, by_store


@dataclass(frozen=True)
class _Seen:
    """What snapshots follow from."""

    stores: tuple[StorePlan, ...]
    earlier: tuple[BucketMeta, ...]
    current: tuple[BucketMeta, ...]
    timezone: str


_last_by_root: dict[Path, tuple[_Seen, dict[str, StoreSnapshot]]] = {}


def open_snapshots(
    root: Path,
    stores: tuple[StorePlan, ...],
    earlier: tuple[BucketMeta, ...],
    current: Sequence[BucketMeta],
    timezone: str,
) -> dict[str, StoreSnapshot]:
    """By store; those of the task before if it saw the same."""
    # Every task must number the buckets alike; messages arrive in any order.
    seen = _Seen(stores, earlier, tuple(sorted(current, key=lambda meta: meta.place)), timezone)
    known = _last_by_root.get(root)
    if known is not None and known[0] == seen:
        return known[1]
    forget_buckets(root, {meta.path for meta in (*seen.earlier, *seen.current)})
    before, now = by_store(seen.earlier), by_store(seen.current)
    snapshots = {
        store.id: StoreSnapshot(root, store, before.get(store.id, []), now.get(store.id, []), timezone)
        for store in stores
    }
    _last_by_root.clear()
    _last_by_root[root] = seen, snapshots
    return snapshots
