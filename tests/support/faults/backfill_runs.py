"""Run a case whose queries also answer what was before them, while everything that can go wrong does."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from dovetail.core.errors import QueryError
from dovetail.engine.backfill.record import BackfillState
from dovetail.engine.control.registry import QueryRecord
from dovetail.testing.faults import CRASH_STEPS, Faults, SimulatedCrash
from dovetail.testing.local_history import LocalHistory
from dovetail.testing.local_session import LocalSession
from tests.support.asserts import assert_same_answers, open_session
from tests.support.cases import EngineCase, QueryCase, Row, StreamCase, moment_of
from tests.support.generators.cases import CaseLimits, random_case
from tests.support.oracles.answers import Answers, DuckDbOracle, answers_of_table

HOUR_US = 3_600_000_000
CLOSING_BATCHES = 3
# Nothing runs between the source and the hops of a history in these tests.
HISTORY_STEPS = tuple(step for step in CRASH_STEPS if step != "after_source")


@dataclass(frozen=True)
class BackfillFaults:
    """How likely each is around a batch or a chunk of history."""

    crash: float = 0.0
    history_crash: float = 0.0
    restart: float = 0.0
    cancel: float = 0.0
    vacuum: float = 0.0


CALM = BackfillFaults()
ROUGH = BackfillFaults(crash=0.2, history_crash=0.2, restart=0.15, cancel=0.03, vacuum=0.2)


@dataclass(frozen=True)
class BackfillRun:
    """What a query's record said in the end, and all that it answered."""

    record: QueryRecord
    answers: Answers


def backfill_case(seed: int, limits: CaseLimits) -> EngineCase:
    """Queries come at any time; the last batches move all watermarks on, so that every history can end."""
    case, rng = random_case(seed, limits), Random(seed)
    count = len(case.batches)
    queries = []
    for query in case.queries:
        created_at = rng.randrange(count)
        dropped_at = None if rng.random() < 0.8 else rng.randint(created_at + 1, count)
        queries.append(replace(query, created_at=created_at, dropped_at=dropped_at))
    closing: dict[str, tuple[Row, ...]] = {stream.name: _an_hour_later(case, stream) for stream in case.streams}
    return replace(case, queries=tuple(queries), batches=(*case.batches, closing, *({},) * CLOSING_BATCHES))


def _an_hour_later(case: EngineCase, stream: StreamCase) -> tuple[Row, ...]:
    """A row so much newer than all others that these are beyond every bound."""
    rows = tuple(row for batch in case.batches for row in batch.get(stream.name, ()))
    times = [time for time in stream.times_us(rows) if time is not None]
    if not times:
        return ()
    newest = moment_of(max(times) + HOUR_US)
    values = zip(stream.columns, rows[-1], strict=True)
    naive = newest.replace(tzinfo=None)
    return (
        tuple(
            value if name != stream.event_time else newest if kind == "timestamp" else naive
            for (name, kind), value in values
        ),
    )


class BackfillDriver:
    """Pushes the batches of a case and runs a few chunks of history between them."""

    def __init__(self, case: EngineCase, checkpoint_dir: Path, rng: Random, faults: BackfillFaults) -> None:
        self._case = case
        self._dir = checkpoint_dir
        self._rng = rng
        self._faults = faults
        self._history = LocalHistory()
        self.refused: set[str] = set()
        self._session = self._open()

    def run(self) -> dict[str, BackfillRun]:
        """Every query's end, once all batches are through and no history has anything left to do."""
        calm_from = len(self._case.batches) - CLOSING_BATCHES
        try:
            for batch in range(len(self._case.batches)):
                self._change_queries(batch)
                self._push(batch)
                self._run_history(self._rng.randint(0, 3) if batch < calm_from else 1000)
                self._disturb()
            return {
                record.name: BackfillRun(record, answers_of_table(self._session.results(record.name)))
                for record in self._session.engine.queries.records()
            }
        finally:
            self._session.close()

    def _open(self, **faults: Any) -> LocalSession:
        return open_session(self._case, self._dir, history=self._history, **faults)

    def _reopen(self, **faults: Any) -> None:
        self._session.close()
        self._session = self._open(**faults)

    def _change_queries(self, batch: int) -> None:
        for query in self._case.queries:
            if query.dropped_at == batch:
                self._session.drop_query(query.name)
            if query.created_at == batch:
                self._create(query)

    def _create(self, query: QueryCase) -> None:
        try:
            self._session.create_query(query.sql, query.name, backfill=True)
        except QueryError:
            self.refused.add(query.name)
            self._session.create_query(query.sql, query.name)

    def _push(self, batch: int) -> None:
        tables = self._case.tables(batch)
        if self._rng.random() < self._faults.crash:
            self._reopen(faults=Faults(crash_at=self._rng.choice(CRASH_STEPS)))
        try:
            self._session.push(tables, splits=self._case.splits)
        except SimulatedCrash:
            self._reopen()
            if self._session.engine.head.batch < batch:
                self._session.push(tables, splits=self._case.splits)

    def _run_history(self, chunks: int) -> None:
        for _ in range(chunks):
            if self._rng.random() < self._faults.history_crash:
                self._reopen(history_faults=Faults(crash_at=self._rng.choice(HISTORY_STEPS)))
            try:
                if not self._session.backfills.step(self._rng.choice([1, 2, 5])):
                    return
            except SimulatedCrash:
                self._reopen()

    def _disturb(self) -> None:
        for query in self._case.queries:
            if self._rng.random() < self._faults.cancel and self._session.engine.queries.named(query.name) is not None:
                self._session.cancel_backfill(query.name)
        if self._rng.random() < self._faults.vacuum:
            self._session.vacuum()
        if self._rng.random() < self._faults.restart:
            self._reopen()


def check_backfills(case: EngineCase, runs: dict[str, BackfillRun]) -> Counter[str]:
    """Raise CaseFailed unless every query answered exactly what it says; how many backfills ended how."""
    oracle = DuckDbOracle(case)
    ends: Counter[str] = Counter()
    for query in case.queries:
        run = runs[query.name]
        backfill = run.record.backfill
        about = f"{query.name} of batch {query.created_at}: {query.sql}\n  {run.record}"
        assert_same_answers(run.answers, _expected(oracle, case, query, run.record), about)
        ends["none" if backfill is None else backfill.state.value] += 1
        if backfill is not None and backfill.state is BackfillState.DONE:
            whole = oracle.answers(query.duckdb_sql, 0, _end(case, query))
            assert_same_answers(run.answers, whole, f"all of {about}")
    return ends


def _expected(oracle: DuckDbOracle, case: EngineCase, query: QueryCase, record: QueryRecord) -> Answers:
    """What is answered live, and of all other results those whose newest member is in an adopted batch."""
    sql, since, created = query.duckdb_sql, record.complete_from or 0, query.created_at
    live = oracle.answers(sql, since, _end(case, query)) - oracle.answers(sql, since, created)
    if record.backfill is None:
        return live
    adopted = record.backfill.adopted_batch + 1
    twice = (
        oracle.answers(sql, since, adopted) - oracle.answers(sql, since, created) if adopted > created else Counter()
    )
    return live + (oracle.answers(sql, 0, adopted) - twice)


def _end(case: EngineCase, query: QueryCase) -> int:
    return len(case.batches) if query.dropped_at is None else query.dropped_at
