"""Which token created which query: for limits and for people, so it stays with the service and out of the engine.

One line per creation, written before the query is accepted: a crash in between leaves a line without a query, never a
query that counts for nobody. The last line of a name counts.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dovetail.service.private_files import open_private, private_folder, replace_private


class Owners:
    def __init__(self, path: Path) -> None:
        private_folder(path.parent)
        self._path = path
        self._lock = threading.Lock()
        # Apart from the other: a creation may wait for a batch to end, and nobody else should.
        self._creation = threading.Lock()
        self._owner_by_name: dict[str, str | None] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    record = json.loads(line)
                except ValueError:
                    continue  # the line that a crash cut off: its query was not accepted yet
                self._owner_by_name[record["query"]] = record["owner"]

    def of(self, name: str) -> str | None:
        with self._lock:
            return self._owner_by_name.get(name)

    def count(self, names: Iterable[str]) -> Counter[str | None]:
        with self._lock:
            return Counter(self._owner_by_name.get(name) for name in names)

    @contextmanager
    def creating(self, name: str, owner: str) -> Iterator[None]:
        """While a query is created; creations come one at a time, and one that fails leaves the owner as it was."""
        with self._creation:
            before = self.of(name)
            if before != owner:
                self._note(name, owner)
            try:
                yield
            except BaseException:
                if before != owner:
                    self._note(name, before)
                raise

    def forget_others(self, names: Iterable[str]) -> None:
        """Keep the lines of these queries only: at the start, so that the file does not grow for ever."""
        with self._lock:
            kept = {name: self._owner_by_name[name] for name in names if self._owner_by_name.get(name) is not None}
            self._owner_by_name = dict(kept)
            replace_private(self._path, "".join(_line(name, owner) for name, owner in kept.items()))

    def _note(self, name: str, owner: str | None) -> None:
        with self._lock:
            with open_private(self._path, "a") as file:
                file.write(_line(name, owner))
            self._owner_by_name[name] = owner


def _line(name: str, owner: str | None) -> str:
    return json.dumps({"query": name, "owner": owner}) + "\n"
