"""Joined rows that wait as references: fetching their values is cheap only in large pieces."""

from __future__ import annotations

from dataclasses import dataclass, field

from dovetail.plan.probe_tree import Emit
from dovetail.query.join_query import OutputColumn
from dovetail.runtime.probe.frame import Frame, concat_frames


@dataclass
class WaitingRows:
    """Rows of one answer from one start."""

    emit: Emit
    frames: list[Frame] = field(default_factory=list)
    rows: int = 0

    @property
    def frame(self) -> Frame:
        return concat_frames(self.frames)


@dataclass
class AlikeRows:
    """Rows of several answers that are `output` of rows of the same stores: those of `queries[i]` are `sizes[i]`."""

    output: tuple[OutputColumn, ...]
    queries: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    rows: int = 0

    @property
    def frame(self) -> Frame:
        return concat_frames(self.frames)

    def add(self, queries: list[str], sizes: list[int], frame: Frame) -> None:
        self.queries += queries
        self.sizes += sizes
        self.frames.append(frame)
        self.rows += len(frame)


class WaitingRoom:
    """By answer and start, what waits."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int], WaitingRows] = {}

    def add(self, emit: Emit, frame: Frame, most_rows: int) -> WaitingRows | None:
        """All that waited with these rows, once there are `most_rows`: it does not wait any longer."""
        if len(frame) == 0:
            return None
        waiting = self._waiting.setdefault((emit.query, emit.start), WaitingRows(emit))
        waiting.frames.append(frame)
        waiting.rows += len(frame)
        return self._waiting.pop((emit.query, emit.start)) if waiting.rows >= most_rows else None

    def empty(self) -> list[WaitingRows]:
        """Whatever still waits."""
        waiting, self._waiting = list(self._waiting.values()), {}
        return waiting
