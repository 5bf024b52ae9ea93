"""All backfills of a session: begun, run chunk by chunk, and their answers adopted by the session's commits.

    history commits chunk j  ->  the session's next commit names its files as its own and says «adopted up to j»

The two commits are apart, and only the second makes answers of the first. A crash between them leaves files that the
next commit adopts; a crash of the second adopts nothing, and its repetition adopts the same or more. To readers and
sinks the answers of a backfill are answers of the batch that adopted them.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from dovetail.core.errors import HistoryError, QueryError
from dovetail.core.known_secrets import without_secrets
from dovetail.core.private_files import private_folder
from dovetail.engine.backfill.folders import HistoryFolders
from dovetail.engine.backfill.history import Arrivals, History
from dovetail.engine.backfill.history_run import HistoryRun
from dovetail.engine.backfill.record import Backfill, BackfillState, MissingResults
from dovetail.engine.control.coverage import complete_from
from dovetail.engine.control.registry import QueryRecord, QueryState
from dovetail.engine.engine import Engine
from dovetail.engine.state import NO_BATCH, EngineState
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.needs import growing_streams
from dovetail.query.join_kind import JoinKind
from dovetail.query.join_query import JoinQuery
from dovetail.store.commit import OnStep, no_step
from dovetail.store.layout import adopted_file
from dovetail.store.manifest import Arrival, PastBatch, ResultPart

MAX_FAILURES = 3
"""A chunk that fails so often in a row ends its backfill; what can come right by itself has come right by then."""
_log = logging.getLogger("dovetail")


@dataclass(frozen=True)
class Failure:
    """A chunk did not run, `count` times in a row; `is_final` when it will not be tried again."""

    error: str
    count: int
    is_final: bool


class Backfills:
    """`settle` and `follow` are the engine's calls around its commits; `step` does the work, in any one thread."""

    def __init__(self, engine: Engine, history: History, *, on_step: OnStep = no_step) -> None:
        self._engine = engine
        self._history = history
        self._on_step = on_step
        self._arrivals = Arrivals(engine.root)
        self._lock = threading.Lock()
        self._running: tuple[str, ...] = ()
        self._runs: dict[str, HistoryRun] = {}
        self._failures: dict[str, Failure] = {}
        self._settled_upto: dict[str, int] = {}
        self._folders = HistoryFolders(engine.root, engine.head.state)
        self._turn = 0
        engine.attach(self)

    # Accepting

    def check(self, state: EngineState, name: str, query: JoinQuery) -> None:
        """Raise QueryError where a backfill of a query created now could not begin, or never end."""
        if query.kind is not JoinKind.INNER:
            raise QueryError(
                f"query {name!r} is a {query.kind.value} join and cannot be backfilled",
                hint="create it without backfill: it answers what is decided from its first batch on",
            )
        try:
            self._history.check({relation.stream for relation in query.relations})
        except HistoryError as error:
            raise QueryError(f"query {name!r} cannot be backfilled: {error.what}", hint=error.hint) from None
        live = LiveQuery(name, name, query)
        streams = self._engine.streams.by_name
        since = complete_from(
            live,
            state.batch + 1,
            streams,
            state.histories,
            state.buckets,
            state.watermark_us_by_stream(streams),
            state.first_batch_by_stream,
        )
        if not MissingResults(replace(live, complete_from=since), state.batch + 1).is_bounded:
            raise QueryError(
                f"a backfill of query {name!r} would never end: {', '.join(growing_streams(live))} is kept for ever",
                hint="bound it in time, e.g. add WITHIN 10 SECONDS at the end, or create it without backfill",
            )

    # Around the session's commits

    def settle(self, state: EngineState) -> tuple[EngineState, tuple[ResultPart, ...]]:
        """The state of the batch under way with what its backfills have come to, and the files that it adopts."""
        changed: list[QueryRecord] = []
        adopted: list[ResultPart] = []
        for record in state.registry.records:
            settled, files = self._settled(state, record)
            if settled is not record:
                changed.append(settled)
                adopted += files
        return (replace(state, registry=state.registry.updated(changed)) if changed else state), tuple(adopted)

    def follow(self, state: EngineState) -> None:
        """The state is committed: from now on run what it says is running, and nothing else."""
        running = tuple(record.id for record in state.registry.records if record.is_backfilling)
        with self._lock:
            self._running = running
            self._folders.follow(running)

    def _settled(self, state: EngineState, record: QueryRecord) -> tuple[QueryRecord, tuple[ResultPart, ...]]:
        backfill, is_wanted = record.backfill, record.state is QueryState.RUNNING and record.options.backfill
        if backfill is None:
            return (replace(record, backfill=self._begun(record)), ()) if is_wanted else (record, ())
        if not backfill.is_running:
            return record, ()
        if not is_wanted:
            return replace(record, backfill=backfill.ended(BackfillState.CANCELLED)), ()
        with self._lock:
            failure, run = self._failures.get(record.id), self._runs.get(record.id)
            upto = backfill.adopted_batch if run is None else max(run.committed_batch, backfill.adopted_batch)
            # Known before this batch commits: a run that begins anew meanwhile must end a chunk there, too.
            self._settled_upto[record.id] = upto
        files: tuple[ResultPart, ...] = ()
        if run is not None and upto > backfill.adopted_batch:
            files = self._adopted(record, run, range(backfill.adopted_batch + 1, upto + 1), state.batch)
            backfill = replace(backfill, adopted_batch=upto, rows=backfill.rows + _rows(files))
        if failure is not None and failure.is_final:
            backfill = backfill.ended(BackfillState.FAILED, failure.error)
        elif run is not None and run.is_complete(backfill.adopted_batch, self._under_way(state)):
            backfill = backfill.ended(BackfillState.DONE)
        if backfill == record.backfill:
            return record, ()
        return replace(record, backfill=backfill, total_rows=record.total_rows + _rows(files)), files

    def _adopted(self, record: QueryRecord, run: HistoryRun, past: range, batch: int) -> tuple[ResultPart, ...]:
        """What the run committed as one of `past`, as answers of `batch`: the same files under names of the session."""
        files = []
        for file in (file for each, results in run.committed if each in past for file in results):
            path = adopted_file(file.path, record.id, batch)
            _link(run.root / file.path, self._engine.root / path)
            files.append(replace(file, query=record.id, path=path))
        return tuple(files)

    def _under_way(self, state: EngineState) -> PastBatch:
        watermarks = state.watermark_us_by_stream(self._engine.streams.by_name)
        return PastBatch(state.batch, Arrival(state.max_time_us_by_stream, watermarks))

    def _begun(self, record: QueryRecord) -> Backfill:
        missing = self._missing(record)
        if missing.created_batch == 0:
            return Backfill(BackfillState.DONE)
        if not missing.is_bounded:
            return Backfill(BackfillState.FAILED, error="it would never end: the query has no time bounds")
        return Backfill()

    def _missing(self, record: QueryRecord) -> MissingResults:
        live = LiveQuery(record.id, record.name, self._engine.queries.compiled(record.id), record.complete_from or 0)
        return MissingResults(live, record.created_batch or 0)

    # Running

    @property
    def batch_seconds(self) -> float:
        """How long the session's last batch ran."""
        figures = self._engine.head.figures
        return 0.0 if figures is None else figures.durations.total_s

    def step(self, max_batches: int) -> int:
        """Run up to `max_batches` old batches of one backfill as one; how many these were. Frees what ended."""
        with self._lock:
            running, kept, newest = self._running, self._folders.kept, self._engine.head.batch
        self._close_all_but(running)
        self._folders.remove_all_but(kept)
        waiting = [query for query in running if not self._has_given_up(query)]
        for _ in waiting:
            self._turn += 1
            count = self._advance(waiting[self._turn % len(waiting)], max_batches, newest)
            if count:
                return count
        return 0

    def close(self) -> None:
        """Call it when no step is under way."""
        with self._lock:
            runs, self._runs, self._running = self._runs, {}, ()
        for run in runs.values():
            run.close()

    def _advance(self, query: str, max_batches: int, newest: int) -> int:
        try:
            count = self._run_of(query).advance(max_batches, newest)
        except HistoryError as error:
            self._note_failure(query, error, is_final=True)
            return 0
        except Exception as error:
            self._note_failure(query, error, is_final=False)
            raise
        with self._lock:
            self._failures.pop(query, None)
        return count

    def _run_of(self, query: str) -> HistoryRun:
        if query not in self._runs:
            with self._lock:
                settled_upto = self._settled_upto.get(query, NO_BATCH)
            record = self._engine.queries.record(query)
            ends = {settled_upto} if record.backfill is None else {settled_upto, record.backfill.adopted_batch}
            missing = self._missing(record)
            run = HistoryRun(self._engine, missing, self._history, self._arrivals, self._on_step, ends)
            with self._lock:
                self._runs[query] = run
        return self._runs[query]

    def _note_failure(self, query: str, error: Exception, *, is_final: bool) -> None:
        """The next try begins with what is on disk: nobody knows how far this one came.

        After the last one the run stays, because the session has still to adopt what it committed.
        """
        with self._lock:
            count = self._failures[query].count + 1 if query in self._failures else 1
            is_final = is_final or count >= MAX_FAILURES
            self._failures[query] = Failure(without_secrets(str(error)), count, is_final)
            run = None if is_final else self._runs.pop(query, None)
        if run is not None:
            run.close()
        _log.warning("backfill of %s failed (%d in a row): %s", query, count, error)

    def _has_given_up(self, query: str) -> bool:
        with self._lock:
            return query in self._failures and self._failures[query].is_final

    def _close_all_but(self, running: tuple[str, ...]) -> None:
        with self._lock:
            ended = {query: run for query, run in self._runs.items() if query not in running}
            self._runs = {query: run for query, run in self._runs.items() if query in running}
            self._failures = {query: each for query, each in self._failures.items() if query in running}
            self._settled_upto = {query: upto for query, upto in self._settled_upto.items() if query in running}
        for run in ended.values():
            run.close()


def _rows(files: Iterable[ResultPart]) -> int:
    return sum(file.rows for file in files)


def _link(source: Path, target: Path) -> None:
    """A second name for the file. A crash before the commit leaves it without meaning, and young enough for vacuum."""
    os.utime(source)
    private_folder(target.parent)
    with suppress(FileExistsError):
        os.link(source, target)
