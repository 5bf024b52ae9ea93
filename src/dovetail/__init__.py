"""Dovetail: many continuous join queries over shared streams, in one Spark application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dovetail.api import Query, QueryStatus, Session

__version__ = "0.1.0"
__all__ = ["Query", "QueryStatus", "Session", "__version__"]


def __getattr__(name: str) -> Any:
    # Workers import kernels from this package; they must not load Spark's driver side and the SQL parser for it.
    if name in ("Query", "QueryStatus", "Session"):
        from dovetail import api  # noqa: PLC0415

        return getattr(api, name)
    raise AttributeError(f"module 'dovetail' has no attribute {name!r}")
