"""From the rows that tasks sampled to one sample a store and batch: each task's rows by how many came to it."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np

from dovetail.engine.observe.rows_sampled import in_proportion
from dovetail.kernels.select.select_rows import spread_rows
from dovetail.runtime.report import KeyGroups, TaskReport
from dovetail.stats.key_group_sample import SAMPLED_ROWS_A_BATCH, Groups, KeyGroupsSeen
from dovetail.store.bucket_file import by_store


def key_groups_seen(report: TaskReport, batch: int) -> dict[str, KeyGroupsSeen]:
    """By store."""
    return {store: _seen(pieces, batch) for store, pieces in by_store(report.key_groups).items()}


def _seen(pieces: Sequence[KeyGroups], batch: int) -> KeyGroupsSeen:
    came = sum(piece.rows for piece in pieces)
    wanted = min(came, SAMPLED_ROWS_A_BATCH)
    parts = in_proportion((piece.rows for piece in pieces), wanted)
    chosen = [_groups(piece, part) for piece, part in zip(pieces, parts, strict=True)]
    return KeyGroupsSeen(batch, came, tuple(pieces[0].uses), np.concatenate(chosen, axis=1))


def _groups(piece: KeyGroups, part: int) -> Groups:
    """At most `part` of its rows."""
    groups = np.frombuffer(base64.b64decode(piece.groups), "<i2").reshape(len(piece.uses), piece.sampled_rows)
    return groups[:, spread_rows(piece.sampled_rows, part)].astype(np.int16)
