"""A case and how it is run: options, faults, streams that come later, silence, colliding keys.

Scenarios are values, as cases are: made from a seed, cut smaller, written to JSON and read back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tests.support.cases import EngineCase, KeptRows, case_from_json, case_to_json, keep_rows_in_time, smaller_cases
from tests.support.faults.batch_faults import BatchFaults
from tests.support.oracles.silence import keep_rows_under_timeout

IDLE_TIMEOUT_S = 10


@dataclass(frozen=True)
class Scenario:
    """`options` are the session's. `faults`: one for each batch, or none at all.

    `first_batches`: streams that are declared while it runs, each with the batch that it comes with. `begins`: when
    batches begin, in seconds, where a stream that is silent for long is carried along. `loads_seed`: batches take a
    random share of their interval. `is_restless`: any other placement is taken at once. `do_codes_collide`: different
    keys, and different groups, often have one code. `is_watched`: answers are looked at after every batch.
    `bundle_fanout`: so many buckets are searched as one, instead of as many as usual.
    """

    case: EngineCase
    options: Mapping[str, Any] = field(default_factory=dict)
    faults: tuple[BatchFaults, ...] = ()
    first_batches: Mapping[str, int] = field(default_factory=dict)
    begins: tuple[float, ...] = ()
    loads_seed: int | None = None
    is_restless: bool = False
    do_codes_collide: bool = False
    is_watched: bool = False
    bundle_fanout: int | None = None

    def __post_init__(self) -> None:
        for name, given in (("faults", self.faults), ("begins", self.begins)):
            if given and len(given) != len(self.case.batches):
                raise ValueError(f"{len(given)} {name} for {len(self.case.batches)} batches")

    def kept_rows(self) -> KeptRows:
        if self.begins:
            return keep_rows_under_timeout(self.case, self.begins, IDLE_TIMEOUT_S)
        return keep_rows_in_time(self.case)


def smaller_scenarios(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios with a little less in them: first less that happens, then smaller cases."""
    for less in (
        {"faults": ()},
        {"first_batches": {}},
        {"begins": ()},
        {"loads_seed": None},
        {"is_restless": False},
        {"do_codes_collide": False},
        {"is_watched": False},
        {"bundle_fanout": None},
        *(
            {"options": {key: scenario.options[key] for key in scenario.options if key != each}}
            for each in scenario.options
        ),
        *(
            {"faults": (*scenario.faults[:place], BatchFaults(), *scenario.faults[place + 1 :])}
            for place in range(len(scenario.faults))
        ),
    ):
        fewer = replace(scenario, **less)  # type: ignore[arg-type]
        if fewer != scenario:
            yield fewer
    for case in smaller_cases(scenario.case):
        yield _of_case(scenario, case)


def _of_case(scenario: Scenario, case: EngineCase) -> Scenario:
    """What happens in the first batches of a case that has fewer of them."""
    count = len(case.batches)
    first = {name: min(batch, count - 1) for name, batch in scenario.first_batches.items()}
    known = {stream.name for stream in case.streams}
    return replace(
        scenario,
        case=case,
        faults=scenario.faults[:count],
        begins=scenario.begins[:count],
        first_batches={name: batch for name, batch in first.items() if name in known},
    )


def scenario_to_json(scenario: Scenario) -> str:
    """The case as its own JSON has it, and beside it what is not as usual."""
    happens = {name: value for name, value in asdict(scenario).items() if name != "case" and value}
    if not happens:
        return case_to_json(scenario.case)
    text = case_to_json(scenario.case)
    return f'{{"happens": {json.dumps(happens)}, "case": {text}}}\n'


def scenario_from_json(text: str) -> Scenario:
    document = json.loads(text)
    if "case" not in document:
        return Scenario(case_from_json(text))
    happens = document["happens"]
    faults = tuple(BatchFaults(**each) for each in happens.pop("faults", ()))
    begins = tuple(happens.pop("begins", ()))
    return Scenario(case_from_json(json.dumps(document["case"])), faults=faults, begins=begins, **happens)
