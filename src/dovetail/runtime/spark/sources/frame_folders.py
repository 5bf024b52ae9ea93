"""Which folders a streaming DataFrame reads, as far as Spark tells."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame


def frame_folders(df: DataFrame) -> tuple[str, ...]:
    """Paths of its file sources as they were given; other sources have none."""
    leaves = df._jdf.queryExecution().analyzed().collectLeaves()
    found = [_path(leaves.apply(place)) for place in range(leaves.size())]
    return tuple(path for path in found if path is not None)


def _path(leaf: object) -> str | None:
    try:
        path = leaf.dataSource().options().get("path")  # type: ignore[attr-defined]
        return str(path.get()) if path.isDefined() else None
    except Py4JError:
        return None  # no file source, but one that Spark knows otherwise
