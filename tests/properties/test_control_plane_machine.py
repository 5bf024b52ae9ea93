"""Clients, data, crashes and restarts in any order: every change takes effect once, every answer is batch SQL's.

DOVETAIL_CASES sets how much, DOVETAIL_SEED where random programs begin. A random program that fails leaves its
smallest form in tests/seeds/control_plane; the machine prints the program of its smallest failure, to be kept there.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from dovetail.testing.faults import CRASH_STEPS
from tests.support.asserts import scratch_dir
from tests.support.control.runs import ControlRun, LocalHost, check_program, run_program
from tests.support.control.steps import (
    ALTER,
    ASK_STEPS,
    CONTROL_LIMITS,
    CREATE,
    DROP,
    NAMES,
    OPTIONS,
    Ask,
    Push,
    Redeliver,
    Restart,
    program_from_json,
    program_to_json,
    random_program,
    request_of,
)
from tests.support.generators.cases import random_case
from tests.support.keep_failures import case_count, seeds_of

CHUNKS = 2
SEEDS_DIR = Path(__file__).parent.parent / "seeds" / "control_plane"
KEPT = {path.stem: path for path in sorted(SEEDS_DIR.glob("*.json"))}

names = st.sampled_from(NAMES)
numbers = st.integers(0, 5)
options = st.integers(0, len(OPTIONS) - 1)
changes = st.integers(1, len(OPTIONS) - 1)
seeds = st.integers(0, 1 << 20)
clients = st.sampled_from("ab")


class ControlPlaneMachine(RuleBasedStateMachine):
    """Two clients, whose retries come at any time, and whatever befalls the process between and within batches."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="dovetail-machine-", dir=scratch_dir())
        self._asked: list[Ask] = []
        self._host: LocalHost | None = None

    @initialize(seed=seeds)
    def begin(self, seed: int) -> None:
        case = random_case(seed, CONTROL_LIMITS)
        self._host = LocalHost(case, Path(self._folder.name))
        self._run = ControlRun(case, self._host)

    @rule(client=clients, name=names, query=numbers, chosen=options, is_replace=st.booleans(), has_id=st.booleans())
    def create(self, client: str, name: str, query: int, chosen: int, is_replace: bool, has_id: bool) -> None:
        self._ask(Ask(CREATE, name, query, chosen, is_replace, self._request(client, has_id)))

    @rule(client=clients, name=names, if_exists=st.booleans(), has_id=st.booleans())
    def drop(self, client: str, name: str, if_exists: bool, has_id: bool) -> None:
        self._ask(Ask(DROP, name, is_lenient=if_exists, request=self._request(client, has_id)))

    @rule(client=clients, name=names, chosen=changes, has_id=st.booleans())
    def set_options(self, client: str, name: str, chosen: int, has_id: bool) -> None:
        self._ask(Ask(ALTER, name, options=chosen, request=self._request(client, has_id)))

    @precondition(lambda self: self._asked)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        self._run.do(data.draw(st.sampled_from(self._asked)))

    @precondition(lambda self: any(ask.request and ask.verb == CREATE for ask in self._asked))
    @rule(data=st.data(), name=names, query=numbers)
    def use_an_id_again(self, data: st.DataObject, name: str, query: int) -> None:
        used = [ask for ask in self._asked if ask.request and ask.verb == CREATE]
        request = data.draw(st.sampled_from(used)).request
        self._run.do(Ask(CREATE, name, query, request=request))

    @rule()
    def push(self) -> None:
        self._run.do(Push())

    @rule(crash_at=st.sampled_from(CRASH_STEPS))
    def crash(self, crash_at: str) -> None:
        self._run.do(Push(crash_at))

    @precondition(lambda self: self._asked)
    @rule(data=st.data(), asks_at=st.sampled_from(ASK_STEPS), crash_at=st.sampled_from([None, *CRASH_STEPS[3:]]))
    def push_while_clients_ask(self, data: st.DataObject, asks_at: str, crash_at: str | None) -> None:
        asks = data.draw(st.lists(st.sampled_from(self._asked), min_size=1, max_size=3))
        self._run.do(Push(crash_at, asks_at, tuple(asks)))

    @rule(plan_seed=st.one_of(st.none(), seeds))
    def restart(self, plan_seed: int | None) -> None:
        self._run.do(Restart(plan_seed))

    @rule()
    def redeliver(self) -> None:
        self._run.do(Redeliver())

    def teardown(self) -> None:
        if self._host is None:
            return
        try:
            note(program_to_json(self._run.case, self._run.steps))
            self._run.check_answers()
        finally:
            self._host.close()
            self._folder.cleanup()

    def _ask(self, ask: Ask) -> None:
        self._asked.append(ask)
        self._run.do(ask)

    def _request(self, client: str, has_id: bool) -> str:
        return request_of(client, len(self._asked)) if has_id else ""


@pytest.mark.parametrize("share", [0.05, pytest.param(0.5, marks=pytest.mark.slow)], ids=["some", "many"])
def test_any_order_of_events_holds(share: float) -> None:
    run_state_machine_as_test(
        ControlPlaneMachine,
        settings=settings(
            max_examples=case_count(share),
            stateful_step_count=25,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        ),
    )


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_programs_hold(chunk: int) -> None:
    for seed in seeds_of(chunk, CHUNKS, 0.05):
        check_program(random_program(seed), SEEDS_DIR, f"seed_{seed}")


@pytest.mark.parametrize("name", KEPT)
def test_kept_failures_stay_fixed(name: str) -> None:
    run_program(program_from_json(KEPT[name].read_text(encoding="utf-8")))


@pytest.mark.parametrize("seed", range(3))
def test_a_program_is_the_same_when_it_was_written_and_read(seed: int) -> None:
    program = random_program(seed)
    assert program_from_json(program_to_json(program.case, program.steps)) == program
