"""How a session's commits take in answers that were found beside its batches."""

from __future__ import annotations

from typing import Protocol

from dovetail.core.errors import QueryError
from dovetail.engine.state import EngineState
from dovetail.query.join_query import JoinQuery
from dovetail.store.manifest import ResultPart


class Adoption(Protocol):
    """Called under the head's lock."""

    def check(self, state: EngineState, name: str, query: JoinQuery, /) -> None:
        """Raise QueryError where a query created now could not be backfilled."""

    def settle(self, state: EngineState) -> tuple[EngineState, tuple[ResultPart, ...]]:
        """The state of the batch under way with what was found for its queries, and the files to name."""

    def follow(self, state: EngineState) -> None:
        """The state is committed."""


class NoHistory:
    """Of a session that keeps no history: no query can be backfilled, and nothing is found beside its batches."""

    def check(self, _state: EngineState, name: str, _query: JoinQuery) -> None:
        raise QueryError(f"query {name!r} cannot be backfilled: this session keeps no history")

    def settle(self, state: EngineState) -> tuple[EngineState, tuple[ResultPart, ...]]:
        return state, ()

    def follow(self, state: EngineState) -> None:
        """Nobody needs to know."""
