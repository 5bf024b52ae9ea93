"""A few rows of a store with the key group of each use: how the rows of one use fall on those of another (S3)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.core.errors import EvaluationError
from dovetail.kernels.hash_keys import group_of_codes
from dovetail.kernels.select_rows import Mask, any_of, spread_rows
from dovetail.plan.store_plan import IndexPlan
from dovetail.plan.uses import Use
from dovetail.runtime.build_index import codes_of_keys
from dovetail.runtime.report import KeyGroups
from dovetail.stats.key_group_sample import NO_GROUP, SAMPLED_ROWS_A_BATCH, Groups


class _Sampled:
    """The rows that were chosen of all that are stored."""

    def __init__(
        self, columns: Mapping[str, pa.Array], masks: Mapping[str, Mask], rows: npt.NDArray[np.int64], timezone: str
    ) -> None:
        self._columns = columns
        self._masks = masks
        self._rows = rows
        self._timezone = timezone

    def __len__(self) -> int:
        return len(self._rows)

    def groups(self, use: Use, group_count: int) -> Groups:
        """`NO_GROUP` where the key is NULL, and where no query with this key wants the row."""
        wanted = None if use.wants_all else self._wanted(use)
        try:
            groups = self._groups_of(use, self._rows, group_count)
        except EvaluationError:
            # A selection may guard its key from failing.
            return np.full(len(self), NO_GROUP, np.int16) if wanted is None else self._guarded(use, wanted, group_count)
        if wanted is not None:
            groups[~wanted] = NO_GROUP
        return groups

    def _guarded(self, use: Use, wanted: Mask, group_count: int) -> Groups:
        groups = np.full(len(self), NO_GROUP, np.int16)
        # Whoever builds the index tells whom it fails.
        with suppress(EvaluationError):
            groups[wanted] = self._groups_of(use, self._rows[wanted], group_count)
        return groups

    def _wanted(self, use: Use) -> Mask:
        texts = [str(selection) for selection in use.selections]
        return any_of([self._masks[text][self._rows] for text in texts if text in self._masks], len(self))

    def _groups_of(self, use: Use, rows: npt.NDArray[np.int64], group_count: int) -> Groups:
        taken = pa.array(rows)
        codes, valid_mask = codes_of_keys(
            IndexPlan(use.keys), lambda column: self._columns[column.name].take(taken), len(rows), self._timezone
        )
        groups = group_of_codes(codes, group_count).astype(np.int16)
        if valid_mask is not None:
            groups[~valid_mask] = NO_GROUP
        return groups


def sample_key_groups(
    uses: tuple[Use, ...],
    columns: Mapping[str, pa.Array],
    masks: Mapping[str, Mask],
    length: int,
    group_count: int,
    timezone: str,
) -> list[KeyGroups]:
    """Of `length` rows that are stored; nothing where no key places them. `masks` are by selection."""
    if not uses or length == 0:
        return []
    sampled = _Sampled(columns, masks, spread_rows(length, SAMPLED_ROWS_A_BATCH), timezone)
    groups = np.stack([sampled.groups(use, group_count) for use in uses]).astype("<i2")
    packed = base64.b64encode(groups.tobytes()).decode()
    return [KeyGroups(uses[0].store, length, len(sampled), [use.id for use in uses], packed)]
