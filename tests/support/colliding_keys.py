"""Hashed keys that often share a code: what 64 bits hide in every other test."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest

from dovetail.kernels.match.hash_keys import KeyCodes, hash_keys


def let_keys_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that are hashed get one of eight codes, wherever they are hashed."""
    real_hash_keys = hash_keys

    def colliding(columns: list[pa.Array], placing: int | None = None) -> KeyCodes:
        keys = real_hash_keys(columns, placing)
        if keys.is_exact:
            return keys
        return KeyCodes(keys.codes & np.uint64(7 << 61), keys.valid_mask, is_exact=False)

    for name, module in list(sys.modules.items()):
        if name.startswith("dovetail.") and getattr(module, "hash_keys", None) is real_hash_keys:
            monkeypatch.setattr(module, "hash_keys", colliding)
