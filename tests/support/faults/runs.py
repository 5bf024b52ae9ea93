"""What a session is held to after things went wrong at batch edges."""

from __future__ import annotations

from collections import defaultdict
from typing import NoReturn

from dovetail.query.join_kind import JoinKind
from dovetail.query.join_query import JoinQuery
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.result_batch import answers_table
from dovetail.store.layout import result_batch
from dovetail.store.manifest import ResultPart
from dovetail.testing.local_session import LocalSession
from tests.support.asserts import CaseFailed, CaseRun, QueryRun
from tests.support.oracles.answers import Answers, answers_of_table


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
        if record.complete_from is None:
            continue
        query = session.engine.queries.compiled(record.id)
        # Groups change with batches: what they are in the end is all there is to compare.
        is_rows = query.kind is not JoinKind.INNER and query.aggregation is None
        by_batch = answers_by_batch(session, record.id, query) if is_rows else None
        answers = answers_of_table(session.results(record.name))
        runs[record.name] = QueryRun(answers, record.complete_from, record.error, record.failed_batch, by_batch)
    return CaseRun(runs, {})


def answers_by_batch(session: LocalSession, query_id: str, query: JoinQuery) -> dict[int, Answers]:
    files_by_batch: dict[int, list[ResultPart]] = defaultdict(list)
    for file in session.engine.answers.results(query_id):
        files_by_batch[result_batch(file.path)].append(file)
    timezone = session.engine.options.timezone
    return {
        batch: answers_of_table(answers_table(session.engine.root, query.output, tuple(own), timezone))
        for batch, own in files_by_batch.items()
    }
