"""What a process does before its first kernel runs."""

from __future__ import annotations

from functools import cache

from numba.core.registry import cpu_target


@cache
def ready_kernels() -> None:
    """Have numba load its own parts, once a process: a second of work that belongs to no query.

    Numba does so by itself when the first kernel is called, which is in the time of whoever calls it.
    """
    cpu_target.target_context.refresh()
    cpu_target.typing_context.refresh()
