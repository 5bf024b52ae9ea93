"""A Python worker keeps the memory that its arrays free, for the arrays of the next batch.

By default glibc gives what is free at the end of its heap back to the system once that is 64 MB or less, and asks for
fresh pages with the next batch. The system clears those one by one as they are touched, which took a fifth of all that
workers did for one query over many rows, and in some processes a third. Without glibc nothing is changed.
"""

from __future__ import annotations

import ctypes
from functools import cache

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
"""Of `mallopt`, as malloc.h numbers them."""
LARGEST_KEPT = 32 << 20
"""Larger arrays go back at once: that many bytes are the most that glibc allows here."""
MOST_KEPT = 128 << 20
"""At the end of the heap; more than that goes back."""
GROWS_BY = 16 << 20


@cache
def keep_freed_memory() -> bool:
    """Once a process; whether it was changed."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    wanted = ((_MMAP_THRESHOLD, LARGEST_KEPT), (_TRIM_THRESHOLD, MOST_KEPT), (_TOP_PAD, GROWS_BY))
    return all(mallopt(parameter, value) == 1 for parameter, value in wanted)
