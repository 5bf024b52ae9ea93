"""Creates, replacements, drops, changes of options and new streams, durable before they are acknowledged (A3, A9).

One file per entry, applied in order at a batch edge. A batch applies every entry that is there when it begins and
its state records how far it came; if the batch does not commit, nothing of it was visible, and its replay may apply
more. A client that repeats a request under its id finds the entry that the first one made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from dovetail.core.errors import ManifestVersionTaken, QueryError, RequestReused
from dovetail.core.private_files import private_folder
from dovetail.core.sealed_file import FileKind, damaged, files_in, new_token, put, read_sealed, sealed, write_draft
from dovetail.core.sync import sync, sync_all

FOLDER = "changelog"
REQUESTS_REMEMBERED = 10_000
"""How many applied entries are kept, so that a late retry still finds what became of its request."""

_LAST = "last"
_ENTRY = FileKind(
    "changelog entry",
    "one accepted change: a query created, changed or dropped, or a stream declared",
    "restore the file from a backup, or remove it and «last» beside it and make the change again",
)
_LAST_KIND = FileKind(
    "changelog file", "the number of the last accepted change", "remove the file, and see that no change is missing"
)


class Action(Enum):
    CREATE = "create"
    DROP = "drop"
    SET = "set"
    STREAM = "stream"
    RETRY = "retry"


@dataclass(frozen=True)
class Change:
    """`query` is the query's id; `replaces` the id of the one that a new query takes the place of.

    `options` are those that the query has from then on, or all of a new stream's declaration; `request` is a client's
    own id of what it asked for. A `RETRY` is of the stream's bad rows.
    """

    sequence: int
    action: Action
    query: str
    name: str
    sql: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    replaces: str = ""
    request: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"action": self.action.value}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Change:
        return Change(**{**record, "action": Action(record["action"])})

    def asks_the_same(self, other: Change) -> bool:
        """Whether both stand for one request; a drop or an option names a query, a create makes its own."""
        mine, theirs = (
            replace(change, sequence=0, query="" if change.action is Action.CREATE else change.query, replaces="")
            for change in (self, other)
        )
        return mine == theirs


def read_changes(root: Path) -> list[Change]:
    """All entries of a checkpoint, the oldest first; also while a session appends to them."""
    return [read_sealed(path, _ENTRY, Change.from_json) for path in files_in(root / FOLDER, "*.json", _ENTRY)]


class Changelog:
    """Appends under a lock; readers see whole entries only. `on_append` hears of each entry."""

    def __init__(self, root: Path, *, applied: int = 0, syncs: bool = False) -> None:
        """`applied` is the last entry that is part of the committed state: those after it must be there."""
        self.on_append: Callable[[], None] = lambda: None
        self._folder = private_folder(root / FOLDER)
        self._syncs = syncs
        self._token = new_token()
        if syncs:
            sync(root)
        self._lock = threading.Lock()
        self._applied = applied
        self._entries = read_changes(root)
        self._check_whole(applied)
        self._by_request = {entry.request: entry for entry in self._entries if entry.request}

    def _check_whole(self, applied: int) -> None:
        """Entries that nobody applied yet are known nowhere else."""
        last = max(applied, self._last_accepted())
        known = {entry.sequence for entry in self._entries}
        for sequence in range(applied + 1, last + 1):
            if sequence not in known:
                raise damaged(self._path(sequence), _ENTRY, "is missing")
        self._accepted = max((last, *known))

    def _last_accepted(self) -> int:
        """So that a missing last entry is missed; an older version did not write it down."""
        path = self._folder / _LAST
        return read_sealed(path, _LAST_KIND, lambda record: int(record["sequence"])) if path.exists() else 0

    def append(self, change: Change) -> Change:
        """Make `change` durable under the next number; a create gets its query's id with it."""
        with self._lock:
            sequence = self._accepted + 1
            query = f"{change.name}#{sequence}" if change.action is Action.CREATE else change.query
            numbered = replace(change, sequence=sequence, query=query)
            self._put(numbered)
            self._accepted = sequence
            self._entries.append(numbered)
            if numbered.request:
                self._by_request[numbered.request] = numbered
        self.on_append()
        return numbered

    def _put(self, change: Change) -> None:
        """On the disk, file and name, before anybody hears of it."""
        path, last = self._path(change.sequence), self._folder / _LAST
        draft = write_draft(path, sealed(change.to_json()), self._token)
        draft_of_last = write_draft(last, sealed({"sequence": change.sequence}), self._token)
        if self._syncs:
            sync_all([draft, draft_of_last])
        if not put(draft, path):
            draft_of_last.unlink()
            raise ManifestVersionTaken(
                f"change {change.sequence} of this checkpoint was made by somebody else",
                where=str(path),
                hint="one session per checkpoint: stop the other one",
            )
        draft_of_last.replace(last)
        if self._syncs:
            sync(self._folder)

    def requested(self, change: Change) -> Change | None:
        """The entry that the same request made before; an id that stands for another request is an error."""
        if not isinstance(change.request, str):
            raise QueryError(f"request is {change.request!r}", hint="give an id of your own as a text, e.g. a UUID")
        known = self.of_request(change.request)
        if known is not None and not known.asks_the_same(change):
            raise RequestReused(
                f"request {change.request!r} was used before for another change ({known.action.value} {known.name})",
                hint="give every request an id of its own, e.g. a UUID",
            )
        return known

    def of_request(self, request: str) -> Change | None:
        return self._by_request.get(request) if request else None

    def after(self, sequence: int) -> tuple[Change, ...]:
        with self._lock:
            newer = []
            for entry in reversed(self._entries):
                if entry.sequence <= sequence:
                    break
                newer.append(entry)
            return tuple(reversed(newer))

    def forget(self, applied: int) -> None:
        """Entries up to number `applied` are part of a committed state: keep only as many as retries may ask for.

        And those that are not part of the state before: the newest batch may be damaged and run again from that one.
        """
        with self._lock:
            old = [entry for entry in self._entries if entry.sequence <= applied][:-REQUESTS_REMEMBERED]
            gone = [entry for entry in old if entry.sequence <= self._applied]
            self._applied = applied
            del self._entries[: len(gone)]
            for entry in gone:
                if self._by_request.get(entry.request) is entry:
                    del self._by_request[entry.request]
                self._path(entry.sequence).unlink(missing_ok=True)

    def _path(self, sequence: int) -> Path:
        return self._folder / f"{sequence:010d}.json"
