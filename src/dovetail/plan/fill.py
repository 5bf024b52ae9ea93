"""Filling an intermediate from live stores (C6, A8): what it lacks are the joins of rows older than itself.

    (a * b) begins at batch 5      its maintaining query joins every pair with a member of batch 5 or later
    fill, before batch 5           stored rows of a (batches 4, 3, ... a chunk a batch) probe b's batches 0 to 4

One member drives: its stored rows act as new ones, and every step sees only batches before the intermediate's first.
So each missing join is made once, in the chunk that holds its row of the driver.
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.plan.probe_tree import ProbeTree


def filled_by(store: str) -> str:
    """The id of the query whose rows fill the store."""
    return f"fill {store}"


@dataclass(frozen=True)
class FillSource:
    """Stored rows of `driver` from before `before_batch` produce what the intermediate lacks."""

    driver: str
    before_batch: int


@dataclass(frozen=True)
class FillPlan:
    """How `store` is filled: `tree` starts from stored rows of its start store."""

    store: str
    before_batch: int
    tree: ProbeTree

    def __post_init__(self) -> None:
        for node in self.tree.walk():
            if node.step.before_batch != self.before_batch:
                raise ValueError(f"node {node.id} fills {self.store} with rows that its maintaining query joins")

    @property
    def driver(self) -> str:
        return self.tree.start


@dataclass(frozen=True)
class ChunkPart:
    """Rows [lower_row, upper_row) of one bucket, by its key."""

    bucket: str
    lower_row: int
    upper_row: int

    @property
    def rows(self) -> int:
        return self.upper_row - self.lower_row


@dataclass(frozen=True)
class FillChunk:
    """The driver's rows that one batch joins into `store`."""

    store: str
    parts: tuple[ChunkPart, ...]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)
