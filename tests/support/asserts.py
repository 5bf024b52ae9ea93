"""Run a case through the engine in one process and hold every answer to the oracle."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dovetail.testing.local_session import LocalSession
from tests.support.cases import EngineCase, KeptRows, QueryCase, keep_rows_in_time
from tests.support.generators.plans import random_decisions, random_fills, random_policies
from tests.support.oracles.answers import Answers, answers_of_table
from tests.support.oracles.case_oracle import CaseOracle

MEMORY_DIR = "/dev/shm"  # noqa: S108  # each case makes its own private folder in it


class CaseFailed(AssertionError):
    """The engine and the oracle disagree; the message names the query and shows the difference."""


@dataclass(frozen=True)
class QueryRun:
    """What the engine answered to one query, and since which batch it says it was complete."""

    answers: Answers
    complete_from: int
    error: str | None
    failed_batch: int | None = None
    by_batch: dict[int, Answers] | None = None
    """Of a join whose answers wait for watermarks: what each batch answered."""


@dataclass(frozen=True)
class CaseRun:
    """What one run of a case gave; late rows where every batch's progress was seen."""

    runs: dict[str, QueryRun]
    late_counts: dict[str, tuple[int, ...]]


def assert_same_answers(actual: Answers, expected: Answers, about: str) -> None:
    """Equal multisets, or an error that shows a few rows of what is missing and what is too much."""
    if actual == expected:
        return
    missing, extra = expected - actual, actual - expected
    raise CaseFailed(
        f"{about}\n"
        f"  expected {sum(expected.values())} rows, got {sum(actual.values())}\n"
        f"  missing {sum(missing.values())}: {_few(missing)}\n"
        f"  too much {sum(extra.values())}: {_few(extra)}"
    )


def _few(answers: Answers) -> str:
    return ", ".join(f"{row} x{count}" for row, count in list(answers.items())[:5]) or "none"


def open_session(case: EngineCase, checkpoint_dir: Path | str, **options: Any) -> LocalSession:
    """A session on which the case's streams are registered."""
    # No case is worth to seek a better placement for a second.
    shipped = {} if case.copies is None else {"exchange": "rows", "copies": case.copies, "placement": "even"}
    session = LocalSession(
        str(checkpoint_dir),
        partitions=case.partitions,
        key_groups=case.key_groups,
        merge_fanout=case.merge_fanout,
        max_pairs=case.max_pairs,
        piece_bytes=case.piece_bytes,
        own_file_bytes=case.own_file_bytes,
        max_pairs_per_batch=case.max_pairs_per_batch,
        decide=None if case.plan_seed is None else random_decisions(case.plan_seed),
        fill_policy=None if case.plan_seed is None else random_fills(case.plan_seed),
        rows_per_chunk=3,
        **{**shipped, **options},
    )
    if case.plan_seed is not None:
        session.engine.plans.follow(random_policies(case.plan_seed))
    for stream in case.streams:
        session.create_stream(stream.name, stream.schema, event_time=stream.event_time, lateness=stream.lateness)
    return session


def change_queries(session: LocalSession, case: EngineCase, batch: int, handles: dict[str, Any]) -> None:
    """Drop and create what the case wants to take effect with `batch`."""
    for query in case.queries:
        if query.dropped_at == batch:
            session.drop_query(query.name)
        if query.created_at == batch:
            handles[query.name] = session.create_query(
                query.sql, name=query.name, max_results_per_batch=query.max_results_per_batch
            )


def run_case(case: EngineCase, **options: Any) -> CaseRun:
    """Push all batches of the case through a new session."""
    with tempfile.TemporaryDirectory(prefix="dovetail-case-", dir=scratch_dir()) as checkpoint_dir:
        session = open_session(case, checkpoint_dir, **options)
        handles: dict[str, Any] = {}
        late: dict[str, list[int]] = {stream.name: [] for stream in case.streams}
        try:
            for batch in range(len(case.batches)):
                change_queries(session, case, batch, handles)
                session.push(case.tables(batch), splits=case.splits)
                for entry in (session.progress or {})["streams"]:
                    late[entry["name"]].append(entry["lateRows"])
            runs = {name: _query_run(session, name, handle.status) for name, handle in handles.items()}
        finally:
            session.close()
    return CaseRun(runs, {name: tuple(counts) for name, counts in late.items()})


def _query_run(session: LocalSession, name: str, status: Any) -> QueryRun:
    return QueryRun(answers_of_table(session.results(name)), status.complete_from, status.error, status.failed_batch)


def scratch_dir() -> str | None:
    """Memory if the machine offers it: thousands of small checkpoints are mostly file creation."""
    return MEMORY_DIR if os.access(MEMORY_DIR, os.W_OK) else None


def check_case(case: EngineCase, **options: Any) -> CaseRun:
    """Raise CaseFailed unless every query's answers and every stream's late rows are the oracle's."""
    run = run_case(case, **options)
    check_run(case, run)
    return run


def check_run(case: EngineCase, run: CaseRun, kept: KeptRows | None = None) -> None:
    """`kept`: the rows in time, where that is not for lateness alone to say."""
    kept = kept or keep_rows_in_time(case)
    oracle = CaseOracle(case, kept)
    for query in case.queries:
        if query.created_at < len(case.batches):
            _check_query(oracle, query, run.runs[query.name], case)
    for name, counts in run.late_counts.items():
        if counts != kept.late_counts[name]:
            raise CaseFailed(f"late rows of {name} per batch: expected {kept.late_counts[name]}, got {counts}")


def _check_query(oracle: CaseOracle, query: QueryCase, run: QueryRun, case: EngineCase) -> None:
    if run.error is not None and (case.max_pairs_per_batch is None or "pairs of rows" not in run.error):
        passed_at = batch_that_passes(oracle, query, run.complete_from, case)
        if run.failed_batch != passed_at:
            raise CaseFailed(f"{query.name} is quarantined, to be so at {passed_at}: {run.error}\n  {query.sql}")
    if run.failed_batch is not None:
        query = replace(query, dropped_at=run.failed_batch)
    elif (passed_at := batch_that_passes(oracle, query, run.complete_from, case)) is not None:
        raise CaseFailed(f"{query.name} passes its limit in batch {passed_at} and goes on\n  {query.sql}")
    if not 0 <= run.complete_from <= query.created_at:
        raise CaseFailed(f"{query.name} took effect at {query.created_at}, complete_from is {run.complete_from}")
    about = (
        f"{query.name}: {query.sql}\n  in batches [{query.created_at}, {query.dropped_at or 'end'}),"
        f" complete from {run.complete_from}"
    )
    if run.by_batch is None:
        assert_same_answers(run.answers, oracle.expected(query, run.complete_from), about)
        return
    expected = oracle.expected_by_batch(query, run.complete_from)
    for batch in range(len(case.batches)):
        batch_answers = run.by_batch.get(batch, Counter())
        assert_same_answers(batch_answers, expected.get(batch, Counter()), f"batch {batch} of {about}")


def batch_that_passes(oracle: CaseOracle, query: QueryCase, complete_from: int, case: EngineCase) -> int | None:
    """The first batch in which the query finds more results than it may."""
    # Every result is a pair, so a limit on pairs is one on results unless the query has its own.
    limit = query.max_results_per_batch or case.max_pairs_per_batch
    if limit is None:
        return None
    before = 0
    for batch in range(query.created_at, len(case.batches) if query.dropped_at is None else query.dropped_at):
        answers = oracle.expected(replace(query, dropped_at=batch + 1), complete_from)
        if answers.total() - before > limit:
            return batch
        before = answers.total()
    return None
