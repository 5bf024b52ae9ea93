"""Which token created which query: for limits and for people, so it stays with the service and out of the engine.

One line per creation, on the disk before the query is accepted: a crash in between leaves a line without a query, never
a query that counts for nobody. The last line of a name counts. A line that cannot be written is none, here and in the
file: before the next query is accepted the file is written anew.
"""

from __future__ import annotations

import logging
import threading
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
    """The query becomes the owner's if `is_kept` still holds in the end."""

    name: str
    owner: str
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
        # Of queries that are being created, the earliest first: they count before the engine knows them.
        self._claims: dict[str, list[Claim]] = {}
        read = read_owners(path)
        self._owner_by_name = dict(read.owner_by_name)
        """As it was decided; the file may say already what a claim asks for."""
        self._said_by_name = dict(read.owner_by_name)
        # None while the file is not known to say the same.
        self._seal = read.seal

    @property
    def names(self) -> set[str]:
        """The queries that have an owner."""
        with self._lock:
            return {name for name, owner in self._owner_by_name.items() if owner is not None}

    def of(self, name: str) -> str | None:
        """Who may change it. A claim gives nobody a right to what has an owner, before it is decided."""
        with self._lock:
            decided = self._owner_by_name.get(name)
            claims = self._claims.get(name)
            return claims[0].owner if decided is None and claims else decided

    def count(self, owner: str, names: Iterable[str]) -> int:
        """How many of these queries are the owner's, those that are being created included."""
        with self._lock:
            claimed = {name for name, claims in self._claims.items() if any(each.owner == owner for each in claims)}
            return len(claimed | {name for name in names if self._owner_by_name.get(name) == owner})

    @contextmanager
    def claiming(self, name: str, owner: str) -> Iterator[Claim]:
        """While a query is created; a creation that fails, or finds the query there, leaves the owner as it was."""
        claim = Claim(name, owner)
        with self._writing:
            self._say(name, owner)
            with self._lock:
                self._claims.setdefault(name, []).append(claim)
        try:
            yield claim
        except BaseException:
            claim.is_kept = False
            raise
        finally:
            with self._writing:
                self._decide(claim)

    def _decide(self, claim: Claim) -> None:
        """The file says the same again, if others claimed the name as well, or it comes to nothing."""
        name = claim.name
        with self._lock:
            self._claims[name].remove(claim)
            if not self._claims[name]:
                del self._claims[name]
            if claim.is_kept:
                self._owner_by_name[name] = claim.owner
        try:
            self._say(name, self.of(name))
        except OSError as error:
            # What came of the creation is decided, and no matter of this file: the next claim writes it anew.
            said, self._said_by_name[name] = self._said_by_name.get(name), self.of(name)
            _log.warning(
                "%s still says that query %s is of %s, which it is not, until the file can be written (%s)",
                self._path,
                name,
                said,
                error.strerror,
            )

    def forget_others(self, names: Iterable[str]) -> None:
        """Keep the lines of these queries only: at the start, so that the file does not grow for ever."""
        with self._writing:
            kept = {name: owner for name in names if (owner := self.of(name)) is not None}
            self._write_all(kept)
            self._said_by_name = dict(kept)
            with self._lock:
                self._owner_by_name = dict(kept)

    def _say(self, name: str, owner: str | None) -> None:
        """Raises OSError where it cannot be written; then all is as before."""
        if self._seal is None:
            self._write_all({**self._said_by_name, name: owner})
        elif self._said_by_name.get(name) != owner:
            self._append(name, owner, self._seal)
        self._said_by_name[name] = owner

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
