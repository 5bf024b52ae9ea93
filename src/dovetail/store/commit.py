"""A batch becomes real in three typed steps.

Draft  --write state-->  Prepared  --put manifest-->  Committed  --remove what is dead-->  done
   crash: the batch never was      crash: it was; files nobody names are vacuum's
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from dovetail.core.clock import Clock
from dovetail.store.layout import state_file
from dovetail.store.manifest import Arrival, Manifest, ResultFile, State, put_manifest, write_state

OnStep = Callable[[str], None]
"""Called with the name of each step as it begins or ends; tests crash there."""


def no_step(_step: str) -> None:
    """Outside tests nothing happens between steps."""


@dataclass(frozen=True)
class Draft:
    state: State
    results: tuple[ResultFile, ...]
    dead_paths: tuple[str, ...]
    arrival: Arrival = field(default_factory=Arrival)

    def prepare(self, root: Path, on_step: OnStep) -> Prepared:
        on_step("before_state")
        path, checksum = write_state(root, self.state)
        return Prepared(self, path, checksum)


@dataclass(frozen=True)
class Prepared:
    draft: Draft
    state_path: str
    state_checksum: int

    def commit(self, root: Path, clock: Clock, on_step: OnStep) -> Committed:
        on_step("before_manifest")
        draft = self.draft
        manifest = Manifest(
            draft.state.batch, self.state_path, self.state_checksum, draft.results, clock(), draft.arrival
        )
        put_manifest(root, manifest)
        on_step("after_manifest")
        return Committed(self.draft)


@dataclass(frozen=True)
class Committed:
    draft: Draft

    def clean_up(self, root: Path, on_step: OnStep) -> None:
        """Remove what only older batches needed. A crash here leaves orphans, never a loss."""
        for path in self.draft.dead_paths:
            (root / path).unlink(missing_ok=True)
        on_step("during_cleanup")
        previous = self.draft.state.batch - 1
        (root / state_file(previous)).unlink(missing_ok=True)
