"""Which token created which query: for limits and for people, so it stays with the service and out of the engine.

One line per creation, written before the query is accepted: a crash in between leaves a line without a query, never a
query that counts for nobody. The last line of a name counts.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dovetail.core.private_files import close_folder, open_private, replace_private
from dovetail.service.access.owners_file import read_owners, sealed_line, sealed_text


@dataclass
class Claim:
    """`before` is who had the name; the owner stays if `is_kept` still holds in the end."""

    name: str
    owner: str
    before: str | None
    is_kept: bool = True


class Owners:
    def __init__(self, path: Path) -> None:
        close_folder(path.parent)
        self._path = path
        self._lock = threading.Lock()
        # Names of queries that are being created: they count before the engine knows them.
        self._claimed: Counter[str] = Counter()
        read = read_owners(path)
        self._owner_by_name = dict(read.owner_by_name)
        self._seal = read.seal

    @property
    def names(self) -> set[str]:
        """The queries that have an owner."""
        with self._lock:
            return {name for name, owner in self._owner_by_name.items() if owner is not None}

    def of(self, name: str) -> str | None:
        with self._lock:
            return self._owner_by_name.get(name)

    def count(self, owner: str, names: Iterable[str]) -> int:
        """How many of these queries are the owner's, those that are being created included."""
        with self._lock:
            return sum(self._owner_by_name.get(name) == owner for name in {*names, *self._claimed})

    @contextmanager
    def claiming(self, name: str, owner: str) -> Iterator[Claim]:
        """While a query is created; a creation that fails, or finds the query there, leaves the owner as it was."""
        with self._lock:
            claim = Claim(name, owner, self._owner_by_name.get(name))
            self._claimed[name] += 1
            self._note(name, owner)
        try:
            yield claim
        except BaseException:
            claim.is_kept = False
            raise
        finally:
            with self._lock:
                self._claimed -= Counter([name])
                # Whoever claimed the name since has noted himself.
                if not claim.is_kept and self._owner_by_name.get(name) == owner:
                    self._note(name, claim.before)

    def forget_others(self, names: Iterable[str]) -> None:
        """Keep the lines of these queries only: at the start, so that the file does not grow for ever."""
        with self._lock:
            kept = {name: self._owner_by_name[name] for name in names if self._owner_by_name.get(name) is not None}
            self._owner_by_name = dict(kept)
            self._write_all()

    def _note(self, name: str, owner: str | None) -> None:
        if self._owner_by_name.get(name) == owner:
            return
        self._owner_by_name[name] = owner
        if self._seal is None:
            self._write_all()
            return
        line, self._seal = sealed_line(name, owner, self._seal)
        with open_private(self._path, "a") as file:
            file.write(line)

    def _write_all(self) -> None:
        text, self._seal = sealed_text(self._owner_by_name)
        replace_private(self._path, text)
