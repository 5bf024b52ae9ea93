"""Which token created which query: for limits and for people, so it stays with the service and out of the engine.

One line per creation, on the disk before the query is accepted: a crash in between leaves a line without a query, never
a query that counts for nobody. The last line of a name counts. A line that cannot be written is none, here and in the
file: before the next query is accepted the file is written anew.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dovetail.core.private_files import append_private, close_folder, replace_private
from dovetail.core.sync import sync
from dovetail.service.access.owners_file import read_owners, sealed_line, sealed_text

_log = logging.getLogger("dovetail")


@dataclass
class Claim:
    """`before` is who had the name; the owner stays if `is_kept` still holds in the end."""

    name: str
    owner: str
    before: str | None
    is_kept: bool = True


class Owners:
    """`syncs`: what is noted outlives a loss of power. Whoever only asks does not wait for the disk."""

    def __init__(self, path: Path, *, syncs: bool = True) -> None:
        close_folder(path.parent)
        if syncs:
            sync(path.parent.parent)
        self._path = path
        self._syncs = syncs
        self._writing = threading.Lock()
        self._lock = threading.Lock()
        # Names of queries that are being created: they count before the engine knows them.
        self._claimed: Counter[str] = Counter()
        read = read_owners(path)
        self._owner_by_name = dict(read.owner_by_name)
        # None while the file is not known to say the same.
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
        with self._writing:
            claim = Claim(name, owner, self.of(name))
            self._note(name, owner)
            with self._lock:
                self._claimed[name] += 1
        try:
            yield claim
        except BaseException:
            claim.is_kept = False
            raise
        finally:
            with self._writing:
                with self._lock:
                    self._claimed -= Counter([name])
                # Whoever claimed the name since has noted himself.
                if not claim.is_kept and self.of(name) == owner:
                    self._take_back(claim)

    def forget_others(self, names: Iterable[str]) -> None:
        """Keep the lines of these queries only: at the start, so that the file does not grow for ever."""
        with self._writing:
            kept = {name: owner for name in names if (owner := self.of(name)) is not None}
            self._write_all(kept)
            with self._lock:
                self._owner_by_name = dict(kept)

    def _note(self, name: str, owner: str | None) -> None:
        """Raises OSError where it cannot be written; then all is as before."""
        if self._seal is None:
            self._write_all({**self._owner_by_name, name: owner})
        elif self.of(name) != owner:
            self._append(name, owner, self._seal)
        self._remember(name, owner)

    def _take_back(self, claim: Claim) -> None:
        try:
            self._note(claim.name, claim.before)
        except OSError as error:
            # What came of the creation is decided, and no matter of this file.
            self._remember(claim.name, claim.before)
            _log.warning(
                "%s still says that query %s is of %s, which it is not, until the file can be written (%s)",
                self._path,
                claim.name,
                claim.owner,
                error.strerror,
            )

    def _remember(self, name: str, owner: str | None) -> None:
        with self._lock:
            self._owner_by_name[name] = owner

    def _append(self, name: str, owner: str | None, before: int) -> None:
        line, seal = sealed_line(name, owner, before)
        self._seal = None
        append_private(self._path, line, syncs=self._syncs)
        self._seal = seal

    def _write_all(self, owner_by_name: Mapping[str, str | None]) -> None:
        text, seal = sealed_text(owner_by_name)
        self._seal = None
        replace_private(self._path, text)
        self._seal = seal
