"""What a checkpoint knows of streams and queries, without opening it: also while a session has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dovetail.engine.control.changelog import read_changes
from dovetail.engine.control.control_plane import declared_by
from dovetail.engine.control.registry import Registry
from dovetail.engine.state import EngineState
from dovetail.query.stream import Stream
from dovetail.query.stream_spec import StreamSpec
from dovetail.store.manifest import manifest_batches, read_manifest
from dovetail.store.state_record import read_state


@dataclass(frozen=True)
class Known:
    """Declared streams by name, and all queries; changes that no batch has yet are part of both.

    `registered` are streams that a process brought as DataFrames.
    """

    declared: Mapping[str, StreamSpec] = field(default_factory=dict)
    registry: Registry = field(default_factory=Registry)
    registered: Mapping[str, Stream] = field(default_factory=dict)


def look_at(root: Path) -> Known:
    """Nothing, if there is no checkpoint."""
    batches = manifest_batches(root)
    state = EngineState.from_stored(read_state(root, read_manifest(root, batches[-1]))) if batches else EngineState()
    changes = [change for change in read_changes(root) if change.sequence > state.change_sequence]
    return Known({**state.declared, **declared_by(changes)}, state.registry.with_pending(changes))
