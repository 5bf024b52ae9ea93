"""Run a scenario in one process, session after session over one checkpoint, and hold what it answers to oracles."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dovetail.query.stream_spec import StreamSpec
from dovetail.testing.faults import Faults, SimulatedCrash
from dovetail.testing.local_session import LocalSession
from tests.support.asserts import (
    CaseRun,
    assert_same_answers,
    change_queries,
    check_run,
    open_session,
    scratch_dir,
)
from tests.support.cases import COPIES, EngineCase, StreamCase
from tests.support.faults.batch_faults import BatchFaults
from tests.support.faults.runs import deliver_again, read_run
from tests.support.oracles.answers import answers_of_table
from tests.support.oracles.case_oracle import CaseOracle
from tests.support.restless import any_placement_is_better, bundles_of_few, colliding_codes, random_loads
from tests.support.scenario import IDLE_TIMEOUT_S, Scenario

EPOCH_S = 1_767_225_600.0
"""When scenarios begin, 2026-01-01: after the times of their rows, which else would be too far ahead to be used."""

AfterBatch = Callable[[LocalSession], None]


def check_scenario(scenario: Scenario, after_batch: AfterBatch | None = None) -> CaseRun:
    """Raise CaseFailed unless all answers, and the late rows where nothing fails, are the oracles'."""
    with tempfile.TemporaryDirectory(prefix="dovetail-case-", dir=scratch_dir()) as folder:
        run = ScenarioRun(scenario, Path(folder), after_batch).run()
    check_run(scenario.case, run, scenario.kept_rows())
    return run


def run_with_faults(case: EngineCase, checkpoint_dir: Path, faults: Sequence[BatchFaults], **options: Any) -> CaseRun:
    """Every batch of the case, each with its faults; what the last session then knows. `options` are the sessions'."""
    return ScenarioRun(Scenario(case, options, tuple(faults)), checkpoint_dir).run()


class ScenarioRun:
    """A scenario under way: the session that is open, and what it was opened with."""

    def __init__(self, scenario: Scenario, checkpoint_dir: Path, after_batch: AfterBatch | None = None) -> None:
        self._scenario = scenario
        self._folder = checkpoint_dir
        self._case = scenario.case
        self._late: dict[str, list[int]] = {stream.name: [] for stream in self._case.streams}
        self._oracle = CaseOracle(scenario.case, scenario.kept_rows())
        self._session: LocalSession | None = None
        self._after_batch = after_batch

    def run(self) -> CaseRun:
        with _surroundings(self._scenario):
            self._open()
            try:
                for batch in range(len(self._case.batches)):
                    self._run_batch(batch)
                run = read_run(self._open_session)
            finally:
                self._open_session.close()
        return CaseRun(run.runs, {name: tuple(counts) for name, counts in self._late.items()})

    @property
    def _open_session(self) -> LocalSession:
        assert self._session is not None
        return self._session

    def _open(self, faults: Faults | None = None) -> None:
        scenario, case = self._scenario, self._case
        if scenario.first_batches:
            case = replace(case, streams=())
        options = dict(scenario.options)
        if scenario.begins:
            options |= {"clock": self._clock, "idle_timeout": f"{IDLE_TIMEOUT_S} seconds"}
        self._session = open_session(case, self._folder, faults=faults, **options)

    def _clock(self) -> float:
        begins = self._scenario.begins
        committed = -1 if self._session is None else self._session.engine.head.batch
        return EPOCH_S + begins[min(committed + 1, len(begins) - 1)]

    def _run_batch(self, batch: int) -> None:
        scenario = self._scenario
        fault = scenario.faults[batch] if scenario.faults else BatchFaults()
        if fault.needs_restart:
            self._restart(fault)
        for stream in self._case.streams:
            if scenario.first_batches.get(stream.name) == batch:
                self._open_session.engine.streams.declare(_spec_of(stream))
        change_queries(self._open_session, self._case, batch, {})
        self._push(batch)
        if self._after_batch is not None:
            self._after_batch(self._open_session)
        if fault.is_redelivered:
            deliver_again(self._open_session, batch)
        if fault.is_vacuumed:
            self._open_session.vacuum()
        if scenario.is_watched:
            self._check_answers(batch)

    def _restart(self, fault: BatchFaults) -> None:
        self._open_session.close()
        self._case = replace(self._case, partitions=fault.partitions or self._case.partitions)
        if fault.changes_exchange:
            following = COPIES[(COPIES.index(self._case.copies) + 1) % len(COPIES)]
            self._case = replace(self._case, copies=following)
        self._open(Faults(crash_at=fault.crash_at, retry_tasks=fault.retry_tasks))

    def _push(self, batch: int) -> None:
        """Push the batch; after a crash a new session gets it again under its number."""
        tables = self._case.tables(batch)
        try:
            self._open_session.push(tables, splits=self._case.splits)
        except SimulatedCrash:
            self._open_session.close()
            self._open()
            if self._open_session.engine.head.batch == batch:
                deliver_again(self._open_session, batch)
                # Nobody was told how many rows of this batch were late.
                self._late = {}
            else:
                self._open_session.push(tables, splits=self._case.splits)
        late = {entry["name"]: entry["lateRows"] for entry in (self._open_session.progress or {}).get("streams", ())}
        for name, counts in self._late.items():
            counts.append(late.get(name, 0))

    def _check_answers(self, batch: int) -> None:
        """Answers so far: running groups as they stand, and windows from the very batch that closes them."""
        records = {record.name: record for record in self._open_session.engine.queries.records()}
        for query in self._case.queries:
            if not query.created_at <= batch < (query.dropped_at or len(self._case.batches)):
                continue
            record = records[query.name]
            expected = self._oracle.expected(replace(query, dropped_at=batch + 1), record.complete_from or 0)
            actual = answers_of_table(self._open_session.results(query.name))
            assert_same_answers(actual, expected, f"{query.name} after batch {batch}: {query.sql}")


@contextmanager
def _surroundings(scenario: Scenario) -> Iterator[None]:
    with ExitStack() as stack:
        if scenario.loads_seed is not None:
            stack.enter_context(random_loads(scenario.loads_seed, moves_rows=scenario.case.plan_seed is not None))
        if scenario.is_restless:
            stack.enter_context(any_placement_is_better())
        if scenario.do_codes_collide:
            stack.enter_context(colliding_codes())
        if scenario.bundle_fanout is not None:
            stack.enter_context(bundles_of_few(scenario.bundle_fanout))
        yield


def _spec_of(stream: StreamCase) -> StreamSpec:
    options = {"path": f"/data/{stream.name}"}
    return StreamSpec(stream.name, stream.stream.columns, "parquet", options, stream.event_time, stream.lateness)
