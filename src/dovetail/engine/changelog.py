"""Creates and drops, durable before they are acknowledged and applied in order at a batch edge (A3).

One file per entry. A batch applies every entry that is there when it begins and its state records how far it
came; if the batch does not commit, nothing of it was visible, and its replay may apply more.
"""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Change:
    """`action` is «create» (with `sql` and options) or «drop»; `query` is the query's id."""

    sequence: int
    action: str
    query: str
    name: str
    sql: str = ""
    keep_intermediates: bool = True


class Changelog:
    """Appends under a lock; readers see whole entries only."""

    def __init__(self, root: Path) -> None:
        self._folder = root / "changelog"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._entries = [Change(**json.loads(path.read_text())) for path in sorted(self._folder.glob("*.json"))]

    def append_create(self, name: str, sql: str, *, keep_intermediates: bool = True) -> Change:
        with self._lock:
            sequence = self._next_sequence()
            return self._append(Change(sequence, "create", f"{name}#{sequence}", name, sql, keep_intermediates))

    def append_drop(self, query: str, name: str) -> Change:
        with self._lock:
            return self._append(Change(self._next_sequence(), "drop", query, name))

    def after(self, sequence: int) -> tuple[Change, ...]:
        with self._lock:
            return tuple(entry for entry in self._entries if entry.sequence > sequence)

    def _next_sequence(self) -> int:
        return self._entries[-1].sequence + 1 if self._entries else 1

    def _append(self, change: Change) -> Change:
        path = self._folder / f"{change.sequence:010d}.json"
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(change)))
        draft.replace(path)
        self._entries.append(change)
        return change
