"""Programs against a real control plane: every statement, record and answer is held to the model and the oracle."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from dovetail.core.errors import QueryError
from dovetail.engine.control.registry import QueryRecord
from dovetail.engine.control.statement_result import StatementResult
from dovetail.testing.faults import Faults, SimulatedCrash
from tests.support.asserts import CaseFailed, assert_same_answers, open_session, scratch_dir
from tests.support.cases import EngineCase
from tests.support.control.model import ControlModel, ModelQuery
from tests.support.control.steps import Ask, ControlProgram, Push, Redeliver, Restart, Step, program_to_json
from tests.support.faults.runs import deliver_again
from tests.support.oracles.answers import Answers, DuckDbOracle, answers_of_table


class ControlHost(Protocol):
    """A session, whatever runs its batches."""

    @property
    def committed_batch(self) -> int: ...
    def execute(self, statement: str, request: str) -> StatementResult: ...
    def push(self, case: EngineCase, batch: int, crash_at: str | None, at_step: Callable[[str], None]) -> None: ...
    def redeliver(self) -> None: ...
    def restart(self, plan_seed: int | None) -> None: ...
    def records(self) -> tuple[QueryRecord, ...]: ...
    def answers(self, query_id: str) -> Answers: ...
    def close(self) -> None: ...


class ControlRun:
    """Does one step after another and checks what can be seen after each; `check_answers` at the end."""

    def __init__(self, case: EngineCase, host: ControlHost) -> None:
        self.case = case
        self.steps: list[Step] = []
        self._host = host
        self._model = ControlModel(case)
        self._pushed = 0

    @property
    def queries(self) -> tuple[ModelQuery, ...]:
        return tuple(self._model.queries.values())

    def do(self, step: Step) -> None:
        self.steps.append(step)
        match step:
            case Ask():
                self._ask(step)
            case Push():
                self._push(step)
            case Restart(plan_seed):
                self._host.restart(plan_seed)
            case Redeliver():
                self._host.redeliver()
        self._model.check_records(self._host.records())

    def check_answers(self) -> None:
        """Every query that ever took effect answered as batch SQL says, for its lifetime."""
        case = replace(self._grown_case(self._pushed), queries=())
        oracle = DuckDbOracle(case)
        for query in self.queries:
            if query.created is None or query.complete_from is None:
                continue
            asked = self.case.queries[query.query % len(self.case.queries)]
            lived = replace(asked, created_at=query.created, dropped_at=query.dropped)
            about = (
                f"{query.id}: {query.sql}\n  in batches [{query.created}, {query.dropped}),"
                f" complete from {query.complete_from}"
            )
            assert_same_answers(self._host.answers(query.id), oracle.expected(lived, query.complete_from), about)

    def _ask(self, ask: Ask) -> None:
        must_refuse = self._model.must_refuse(ask)
        try:
            result = self._host.execute(ask.statement(self.case), ask.request)
        except QueryError as error:
            if not must_refuse:
                raise CaseFailed(f"{ask} is refused: {error}") from error
            return
        if must_refuse:
            raise CaseFailed(f"{ask} is accepted: {result}")
        self._model.note(ask, result.id)

    def _push(self, push: Push) -> None:
        batch = self._host.committed_batch + 1
        case = self._grown_case(batch + 1)

        def at_step(step: str) -> None:
            if step == push.asks_at:
                for ask in push.asks:
                    self._ask(ask)

        self._model.begin_batch()
        self._host.push(case, batch, push.crash_at, at_step)
        if self._host.committed_batch == batch:
            self._model.commit(batch)
            self._pushed = batch + 1
        elif push.crash_at is None:
            raise CaseFailed(f"batch {batch} is not committed")

    def _grown_case(self, count: int) -> EngineCase:
        """Its first batches; beyond those that it has they are empty."""
        missing = max(0, count - len(self.case.batches))
        return replace(self.case, batches=(*self.case.batches[:count], *({},) * missing))


def run_program(program: ControlProgram) -> tuple[ModelQuery, ...]:
    """Raise CaseFailed unless the program holds in one process; the queries that there were."""
    with tempfile.TemporaryDirectory(prefix="dovetail-control-", dir=scratch_dir()) as folder:
        host = LocalHost(program.case, Path(folder))
        try:
            run = ControlRun(program.case, host)
            for step in program.steps:
                run.do(step)
            run.check_answers()
            return run.queries
        finally:
            host.close()


def check_program(program: ControlProgram, keep_dir: Path, name: str) -> None:
    """A failure leaves its smallest form in `keep_dir`."""
    try:
        run_program(program)
    except Exception as error:
        smallest = shrink_program(program)
        path = keep_dir / f"{name}.json"
        path.write_text(program_to_json(smallest.case, smallest.steps), encoding="utf-8")
        raise CaseFailed(f"{name} fails; kept as {path}: {type(error).__name__}: {error}") from error


def shrink_program(program: ControlProgram) -> ControlProgram:
    """Without every step that the failure does not need."""
    failure = failure_of_program(program)
    position = 0
    while position < len(program.steps):
        fewer = replace(program, steps=program.steps[:position] + program.steps[position + 1 :])
        if failure_of_program(fewer) == failure:
            program = fewer
        else:
            position += 1
    return program


def failure_of_program(program: ControlProgram) -> str | None:
    try:
        run_program(program)
    except Exception as error:  # noqa: BLE001  # a session that breaks in any way has failed the program
        return type(error).__name__
    return None


@dataclass
class _Script(Faults):
    """Faults, and a visitor at every step."""

    at_step: Callable[[str], None] = field(default=lambda _step: None)

    def on_step(self, step: str) -> None:
        self.at_step(step)
        super().on_step(step)


class LocalHost:
    """In one process; a crash leaves what is on disk and nothing else."""

    def __init__(self, case: EngineCase, folder: Path) -> None:
        self._case = case
        self._folder = folder
        self._plan_seed = case.plan_seed
        self._open()

    @property
    def committed_batch(self) -> int:
        return self._session.engine.head.batch

    def execute(self, statement: str, request: str) -> StatementResult:
        return self._session.execute(statement, request=request)

    def push(self, case: EngineCase, batch: int, crash_at: str | None, at_step: Callable[[str], None]) -> None:
        self._script.crash_at, self._script.at_step = crash_at, at_step
        try:
            self._session.push(case.tables(batch), splits=case.splits)
        except SimulatedCrash:
            self.restart(self._plan_seed)
        self._script.crash_at, self._script.at_step = None, lambda _step: None

    def redeliver(self) -> None:
        if self.committed_batch >= 0:
            deliver_again(self._session, self.committed_batch)

    def restart(self, plan_seed: int | None) -> None:
        self.close()
        self._plan_seed = plan_seed
        self._open()

    def records(self) -> tuple[QueryRecord, ...]:
        return self._session.engine.queries.records()

    def answers(self, query_id: str) -> Answers:
        return answers_of_table(self._session.results(query_id))

    def close(self) -> None:
        self._session.close()

    def _open(self) -> None:
        self._script = _Script()
        self._session = open_session(replace(self._case, plan_seed=self._plan_seed), self._folder, faults=self._script)
