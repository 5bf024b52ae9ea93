"""Rows ready to probe one node: codes of its key, references, and who still wants them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.runtime.probe.frame import Frame

U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Partial:
    """Rows at `node`; bit i of `bits[w]` tells whether the node's leg 64 * w + i still wants the row."""

    node: str
    codes: U64
    frame: Frame
    bits: U64
