"""Numbers that mean something else than themselves: to kernels of matching, and to whoever calls them."""

from __future__ import annotations

import numpy as np

NULL_TIME = np.iinfo(np.int64).min
"""Stands for a NULL event time; it satisfies no bound."""

ALL_PASS = -1
NONE_PASS = -2
"""In place of a selection bit's: the selection takes every row of the bucket, or none."""

NO_LOWER = NULL_TIME + 1
NO_UPPER = np.iinfo(np.int64).max
"""A bound that is none."""
