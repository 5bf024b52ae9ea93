"""What clients, data and machines do to a control plane, as plain data: a program can be drawn, kept and run again.

Clients speak in statements. A retry is the same `Ask` once more, under the same request id or under none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any

from dovetail.testing.faults import CRASH_STEPS
from tests.support.cases import EngineCase, case_from_json, case_to_json
from tests.support.generators.cases import CaseLimits, random_case
from tests.support.generators.queries import QueryLimits

NAMES = ("q", "r", "s")
CREATE, DROP, ALTER = "create", "drop", "alter"
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"keep_intermediates": False},
    {"max_results_per_batch": 1_000_000},
    {"max_results_per_batch": 2_000_000, "keep_intermediates": True},
)
"""None of them changes an answer."""
ASK_STEPS = ("before_run", "after_run", "after_manifest")
"""When a client may come in while a batch runs."""

CONTROL_LIMITS = CaseLimits(
    max_streams=3, max_batches=12, max_rows=4, max_queries=6, sibling_chance=0.7, late_queries=False,
    queries=QueryLimits(3),
)  # fmt: skip


@dataclass(frozen=True)
class Ask:
    """One statement: about the query `name`, with the text and the options of these numbers."""

    verb: str
    name: str
    query: int = 0
    options: int = 0
    is_lenient: bool = False
    """OR REPLACE or IF EXISTS."""
    request: str = ""

    def statement(self, case: EngineCase) -> str:
        pairs = ", ".join(f"{key} = {str(value).upper()}" for key, value in OPTIONS[self.options].items())
        if self.verb == DROP:
            return f"DROP CONTINUOUS QUERY {'IF EXISTS ' if self.is_lenient else ''}{self.name}"
        if self.verb == ALTER:
            return f"ALTER CONTINUOUS QUERY {self.name} SET ({pairs})"
        replace = "OR REPLACE " if self.is_lenient else ""
        options = f"WITH ({pairs}) " if pairs else ""
        return f"CREATE {replace}CONTINUOUS QUERY {self.name} {options}AS {self.sql(case)}"

    def sql(self, case: EngineCase) -> str:
        return case.queries[self.query % len(case.queries)].sql


@dataclass(frozen=True)
class Push:
    """The next batch; `asks` come in at `asks_at`, then the process dies at `crash_at`."""

    crash_at: str | None = None
    asks_at: str = "before_run"
    asks: tuple[Ask, ...] = ()


@dataclass(frozen=True)
class Restart:
    """`plan_seed` of None: the session plans by itself."""

    plan_seed: int | None = None


@dataclass(frozen=True)
class Redeliver:
    """The last batch comes again under its number."""


Step = Ask | Push | Restart | Redeliver


@dataclass(frozen=True)
class ControlProgram:
    case: EngineCase
    steps: tuple[Step, ...]


def random_program(seed: int, length: int = 30, limits: CaseLimits = CONTROL_LIMITS) -> ControlProgram:
    rng = Random(seed)
    case = random_case(rng.randrange(1 << 30), limits)
    asked: list[Ask] = []
    steps: list[Step] = [_random_ask(rng, asked, verb=CREATE) for _ in range(2)]
    for _ in range(length):
        draw = rng.random()
        if draw < 0.45:
            steps.append(_random_ask(rng, asked))
        elif draw < 0.8:
            steps.append(_random_push(rng, asked))
        elif draw < 0.95:
            steps.append(Restart(rng.choice([None, rng.randrange(1 << 30)])))
        else:
            steps.append(Redeliver())
    return ControlProgram(case, (*steps, Push()))


def calm(program: ControlProgram) -> ControlProgram:
    """Without crashes, random plans and second deliveries; clients only come between batches."""
    steps: list[Step] = []
    for step in program.steps:
        if isinstance(step, Push | Restart):
            steps.append(type(step)())
        elif isinstance(step, Ask):
            steps.append(step)
    return replace(program, steps=tuple(steps))


def _random_push(rng: Random, asked: list[Ask]) -> Push:
    crash_at = rng.choice(CRASH_STEPS) if rng.random() < 0.3 else None
    count = rng.choice([1, 2]) if rng.random() < 0.3 else 0
    return Push(crash_at, rng.choice(ASK_STEPS), tuple(_random_ask(rng, asked) for _ in range(count)))


def _random_ask(rng: Random, asked: list[Ask], verb: str | None = None) -> Ask:
    if asked and verb is None and rng.random() < 0.25:
        return rng.choice(asked)
    verb = verb or rng.choice([CREATE, CREATE, DROP, ALTER])
    ask = Ask(
        verb,
        rng.choice(NAMES),
        query=rng.randrange(6),
        options=rng.randrange(1 if verb == ALTER else 0, len(OPTIONS)),
        is_lenient=rng.random() < 0.4,
        request=request_of(rng.choice("ab"), len(asked)) if rng.random() < 0.6 else "",
    )
    asked.append(ask)
    return ask


def request_of(client: str, number: int) -> str:
    return f"client-{client}-{number}"


def program_to_json(case: EngineCase, steps: Sequence[Step]) -> str:
    """The case on many lines, then a step on each."""
    lines = ",\n".join(json.dumps({"step": type(step).__name__, **asdict(step)}) for step in steps)
    return f'{{"case": {case_to_json(case)},"steps": [\n{lines}\n]}}\n'


def program_from_json(text: str) -> ControlProgram:
    document = json.loads(text)
    case = case_from_json(json.dumps(document["case"]))
    return ControlProgram(case, tuple(map(_step_from_json, document["steps"])))


def _step_from_json(record: dict[str, Any]) -> Step:
    values = dict(record)
    kind = {each.__name__: each for each in (Ask, Push, Restart, Redeliver)}[values.pop("step")]
    if kind is Push:
        values["asks"] = tuple(Ask(**ask) for ask in values["asks"])
    return kind(**values)
