"""What listeners hear of every committed batch: sinks, result streams, metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.store.manifest import ResultFile


@dataclass(frozen=True)
class CommitNews:
    """Batch `batch` is committed: its progress, and the files of its answers."""

    batch: int
    progress: Mapping[str, Any]
    results: tuple[ResultFile, ...]


Listener = Callable[[CommitNews], None]
"""Called in the batch's own thread: it must be quick, and the next batch waits for it."""
