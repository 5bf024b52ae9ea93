"""Run a case while things go wrong at batch edges, the way Spark and its machines let them go wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, NoReturn

from dovetail.runtime.batch_task import BatchTask
from dovetail.testing.faults import CRASH_STEPS, Faults, SimulatedCrash
from dovetail.testing.local_session import LocalSession
from tests.support.asserts import CaseFailed, CaseRun, QueryRun, change_queries, open_session
from tests.support.cases import COPIES, EngineCase
from tests.support.oracles.answers import answers_of_table


@dataclass(frozen=True)
class BatchFaults:
    """What happens around one batch."""

    crash_at: str | None = None
    retry_tasks: bool = False
    is_redelivered: bool = False
    is_vacuumed: bool = False
    partitions: int | None = None
    """Restart with so many partitions before the batch."""
    changes_exchange: bool = False
    """Restart with another exchange before the batch."""

    @property
    def needs_restart(self) -> bool:
        return bool(self.crash_at or self.retry_tasks or self.partitions or self.changes_exchange)


def random_faults(rng: Random, batch_count: int) -> tuple[BatchFaults, ...]:
    return tuple(
        BatchFaults(
            crash_at=rng.choice(CRASH_STEPS) if rng.random() < 0.4 else None,
            retry_tasks=rng.random() < 0.3,
            is_redelivered=rng.random() < 0.3,
            is_vacuumed=rng.random() < 0.3,
            partitions=rng.choice([1, 2, 3]) if rng.random() < 0.3 else None,
            changes_exchange=rng.random() < 0.3,
        )
        for _ in range(batch_count)
    )


def run_with_faults(case: EngineCase, checkpoint_dir: Path, faults: Sequence[BatchFaults], **options: Any) -> CaseRun:
    """Every batch of the case, each with its faults; what the last session then knows. `options` are the sessions'."""
    session = open_session(case, checkpoint_dir, **options)
    try:
        for batch, fault in enumerate(faults):
            if fault.needs_restart:
                session.close()
                case = replace(case, partitions=fault.partitions or case.partitions)
                if fault.changes_exchange:
                    case = replace(case, copies=COPIES[(COPIES.index(case.copies) + 1) % len(COPIES)])
                again = Faults(crash_at=fault.crash_at, retry_tasks=fault.retry_tasks)
                session = open_session(case, checkpoint_dir, faults=again, **options)
            change_queries(session, case, batch, {})
            session = _push(session, case, batch, checkpoint_dir, options)
            if fault.is_redelivered:
                deliver_again(session, batch)
            if fault.is_vacuumed:
                session.vacuum()
        return read_run(session)
    finally:
        session.close()


def _push(
    session: LocalSession, case: EngineCase, batch: int, checkpoint_dir: Path, options: Mapping[str, Any]
) -> LocalSession:
    """Push the batch; after a crash a new session gets it again under its number."""
    try:
        session.push(case.tables(batch), splits=case.splits)
    except SimulatedCrash:
        session.close()
        session = open_session(case, checkpoint_dir, **options)
        if session.engine.head.batch == batch:
            deliver_again(session, batch)
        else:
            session.push(case.tables(batch), splits=case.splits)
    return session


def deliver_again(session: LocalSession, batch: int) -> None:
    """Spark calls once more with a batch that is committed: nothing may run."""

    def must_not_run(task: BatchTask) -> NoReturn:
        raise CaseFailed(f"batch {task.batch} ran again after its commit")

    if session.engine.batches.run(batch, must_not_run):
        raise CaseFailed(f"batch {batch} was committed twice")


def read_run(session: LocalSession) -> CaseRun:
    """All answers of all queries, as a session that may have been opened just now sees them."""
    runs = {}
    for record in session.engine.queries.records():
        if record.complete_from is not None:
            answers = answers_of_table(session.results(record.name))
            runs[record.name] = QueryRun(answers, record.complete_from, record.error, record.failed_batch)
    return CaseRun(runs, {})
