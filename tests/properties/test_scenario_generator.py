"""The generator of scenarios: whatever may happen does, and in ways that matter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from dovetail.frontend.compile_sql import compile_sql
from dovetail.optimizer.pipeline import plan_queries
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import even_placement
from dovetail.plan.probe_tree import Emit
from dovetail.plan.shared_plan import SharedPlan
from dovetail.testing.local_session import LocalSession
from tests.support.cases import EngineCase
from tests.support.generators.cases import GROUPS, random_case
from tests.support.generators.scenarios import random_scenario
from tests.support.keep_failures import shrink
from tests.support.run_scenario import check_scenario
from tests.support.scenario import Scenario, scenario_from_json, scenario_to_json

SCENARIOS = [random_scenario(seed) for seed in range(300)]


def drawn(scenario: Scenario) -> Iterator[str]:
    """What a scenario has that others have not."""
    case = scenario.case
    marks: dict[str, Any] = {
        "faults": scenario.faults,
        "later streams": any(scenario.first_batches.values()),
        "silence": scenario.begins,
        "loads": scenario.loads_seed is not None,
        "restless": scenario.is_restless,
        "collisions": scenario.do_codes_collide,
        "watched": scenario.is_watched,
        "limited results": any(query.max_results_per_batch for query in case.queries),
        "limited pairs": case.max_pairs_per_batch,
        "random plans": case.plan_seed is not None,
        "built rows": scenario.options.get("factorize") is False,
        "late queries": any(query.created_at for query in case.queries),
        "many partitions": case.partitions > 3,
        "faults and limits": scenario.faults and any(query.max_results_per_batch for query in case.queries),
        "faults and later streams": scenario.faults and any(scenario.first_batches.values()),
        "faults and loads": scenario.faults and scenario.loads_seed is not None,
    }
    yield from (mark for mark, is_there in marks.items() if is_there)
    yield f"copies: {case.copies}"
    yield f"routing: {scenario.options.get('routing')}"


def test_one_seed_makes_one_scenario() -> None:
    assert random_scenario(7) == random_scenario(7)


def test_everything_is_drawn_and_much_of_it_together() -> None:
    counts = Counter(mark for scenario in SCENARIOS for mark in drawn(scenario))
    copies = {f"copies: {each}" for each in (None, "partition", "key")}
    routings = {f"routing: {each}" for each in ("hash", "random", "contrand", "auto")}
    rare = {mark: counts[mark] for mark in {*counts, *copies, *routings} if counts[mark] < 3}
    assert not rare, counts
    assert len(counts) >= 22


def test_a_scenario_survives_json() -> None:
    for scenario in SCENARIOS[:60]:
        text = scenario_to_json(scenario)
        assert scenario_to_json(scenario_from_json(text)) == text


def test_what_a_failure_does_not_need_is_left_out() -> None:
    scenario = next(each for each in SCENARIOS if each.faults and len(each.case.queries) > 2 and each.options)
    name = scenario.case.queries[-1].name
    smallest = shrink(scenario, lambda each: any(query.name == name for query in each.case.queries))
    assert [query.name for query in smallest.case.queries] == [name]
    assert smallest == Scenario(smallest.case)
    assert smallest.case.batches == ()


class Watch:
    """Counts what plans, units and fills do, batch by batch."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.begin()

    def begin(self) -> None:
        self._under_way: set[str] = set()
        self._filled: set[str] = set()
        self._plan: SharedPlan | None = None

    def after_batch(self, session: LocalSession) -> None:
        state, plan = session.engine.head.state, session.engine.plans.planned().plan
        self._filled |= self._under_way - set(state.fills)
        self._filled &= set(state.kept_from)
        self._under_way = set(state.fills)
        targets = [node.step.target for tree in plan.trees for node in tree.walk()]
        self.seen["fills"] += len(self._under_way)
        self.seen["probes of what was filled"] += sum(target in self._filled for target in targets)
        if self._plan is not None:
            before, now = self._plan.placements, plan.placements
            self.seen["other placements"] += before.special != now.special
            self.seen["other numbers of units"] += before.usual.partition_count != now.usual.partition_count
        self._plan = plan


def test_scenarios_do_what_they_are_for() -> None:
    """Else that their answers are right would show little."""
    watch = Watch()
    seen = watch.seen
    for scenario in SCENARIOS[:20]:
        watch.begin()
        runs = check_scenario(scenario, watch.after_batch).runs
        for query in scenario.case.queries:
            if query.name in runs:
                seen["answers"] += bool(runs[query.name].answers)
                seen["stopped by a limit"] += runs[query.name].failed_batch is not None
                seen["complete from before"] += runs[query.name].complete_from < query.created_at
    assert min(seen.values()) >= 1, seen
    assert len(seen) == 7
    assert seen["answers"] > 15, seen


def emits_of(case: EngineCase) -> list[Emit]:
    """Those of all its queries for groups of joins, each planned alone."""
    streams = {stream.name: stream.stream for stream in case.streams}
    found = []
    for query in case.queries:
        live = LiveQuery(query.name, query.name, compile_sql(query.sql, streams))
        plan = plan_queries((live,), streams, even_placement(8, 2), epoch=1, factorize=True)
        nodes = [node for tree in plan.trees for node in tree.walk()]
        found += [emit for node in nodes for emit in node.emits if plan.groups]
    return found


def test_groups_have_steps_of_every_kind() -> None:
    emits = [emit for seed in range(60) for emit in emits_of(random_case(seed, GROUPS))]
    sides = [emit.factorization.side.name for emit in emits if emit.factorization]
    assert sides.count("STORED") >= 20
    assert sides.count("PROBING") >= 5
    assert len([emit for emit in emits if emit.why_built]) >= 20
