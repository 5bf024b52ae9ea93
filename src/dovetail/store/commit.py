"""A batch becomes real in three typed steps.

Draft  --write state-->  Prepared  --put manifest-->  Committed  --remove what is dead-->  done
   crash: the batch never was      crash: it was; files nobody names are vacuum's
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dovetail.core.clock import Clock
from dovetail.store.chain import Chain
from dovetail.store.manifest import Arrival, Manifest, ResultPart, SourceLog
from dovetail.store.state_record import State

OnStep = Callable[[str], None]
"""Called with the name of each step as it begins or ends; tests crash there."""


def no_step(_step: str) -> None:
    """Outside tests nothing happens between steps."""


@dataclass(frozen=True)
class Draft:
    """`new_files` are files that the batch wrote, `dead_paths` those that only older batches need."""

    state: State
    results: tuple[ResultPart, ...]
    dead_paths: tuple[str, ...]
    new_files: tuple[str, ...] = ()
    arrival: Arrival = field(default_factory=Arrival)
    source_log: SourceLog = field(default_factory=SourceLog)

    def prepare(self, chain: Chain, on_step: OnStep) -> Prepared:
        on_step("before_state")
        path, checksum = chain.states.write(self.state)
        return Prepared(self, path, checksum)


@dataclass(frozen=True)
class Prepared:
    draft: Draft
    state_path: str
    state_checksum: int

    def commit(self, chain: Chain, clock: Clock, on_step: OnStep) -> Committed:
        on_step("before_manifest")
        draft = self.draft
        manifest = Manifest(
            draft.state.batch,
            self.state_path,
            self.state_checksum,
            draft.results,
            clock(),
            draft.arrival,
            dead_paths=draft.dead_paths,
            source_log=draft.source_log,
        )
        superfluous = chain.put(manifest, [*draft.new_files, *(result.path for result in draft.results)])
        on_step("after_manifest")
        return Committed(draft, superfluous)


@dataclass(frozen=True)
class Committed:
    draft: Draft
    superfluous: tuple[str, ...]

    def clean_up(self, chain: Chain, on_step: OnStep) -> None:
        """Remove what only batches before the last two needed. A crash here leaves orphans, never a loss."""
        half = len(self.superfluous) // 2
        for path in self.superfluous[:half]:
            (chain.root / path).unlink(missing_ok=True)
        on_step("during_cleanup")
        for path in self.superfluous[half:]:
            (chain.root / path).unlink(missing_ok=True)
