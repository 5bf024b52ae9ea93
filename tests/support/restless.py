"""Sessions whose plans follow loads and placements at the slightest reason, keys that collide, buckets soon bundled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from random import Random

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from dovetail.engine.observe.finished_batch import FinishedBatch
from dovetail.engine.planning import planner
from dovetail.engine.planning.elastic_units import ElasticUnits, UnitsNow
from dovetail.engine.planning.key_group_placer import KeyGroupPlacer
from dovetail.engine.planning.seek_placement import PlacingRules
from dovetail.kernels.fold.group_rows import KeyColumn, codes_of_keys, key_column
from dovetail.runtime.groups import partial_groups
from dovetail.runtime.probe import bundles, hop_tables
from dovetail.stats.catalog import StatsCatalog
from tests.support.asserts import CaseFailed
from tests.support.colliding_keys import let_keys_collide

RESTLESS = PlacingRules(worth=-1.0, drift=0.0, association_drift=0.0, in_a_row=1, work=1e4, exact_nodes=0, least_rows=0)
"""Any other placement is better than the one that there is."""


@contextmanager
def any_placement_is_better() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "KeyGroupPlacer", partial(KeyGroupPlacer, rules=RESTLESS))
        yield


@contextmanager
def random_loads(seed: int, *, moves_rows: bool) -> Iterator[None]:
    """Batches take a random share of their interval; units that come or go must move no row, unless plans do."""
    rng = Random(seed)
    note_batch = ElasticUnits.note_batch
    moved: list[UnitsNow] = []

    def note(
        units: ElasticUnits, batch: FinishedBatch, stats: StatsCatalog, _batch_s: float, *, is_one_task: bool
    ) -> UnitsNow:
        units.interval_s = rng.choice([None, 1.0])
        now = note_batch(units, batch, stats, rng.uniform(0, 2), is_one_task=is_one_task)
        if now.moved_rows:
            moved.append(now)
        return now

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ElasticUnits, "note_batch", note)
        yield
    # Not at once: what happens after a commit fails nobody.
    if moved and not moves_rows:
        raise CaseFailed(f"{moved[0].moved_rows} rows moved with the number of units: {moved[0]}")


@contextmanager
def bundles_of_few(fanout: int) -> Iterator[None]:
    """So many buckets are searched as one; cases have few batches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundles, "FANOUT", fanout)
        patch.setattr(hop_tables, "WORTH_BUNDLES", 0)
        yield


@contextmanager
def colliding_codes() -> Iterator[None]:
    """Different keys, and different groups, often have one code."""
    with pytest.MonkeyPatch.context() as patch:
        let_keys_collide(patch)
        patch.setattr(partial_groups, "key_column", _hashed_key)
        patch.setattr(partial_groups, "codes_of_keys", _colliding_codes_of_keys)
        yield


def _hashed_key(column: pa.Array) -> KeyColumn:
    return replace(key_column(column), is_exact=False)


def _colliding_codes_of_keys(columns: list[KeyColumn], length: int) -> npt.NDArray[np.uint64]:
    """Keys that are hashed get one of four codes. Panes are not hashed."""
    codes = codes_of_keys(columns, length)
    return codes if len(columns) == 1 and columns[0].is_exact else codes & np.uint64(3 << 62)
