"""When another placement of key groups is worth seeking, and seeking it: bounded by a count of work, not by a clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.optimizer.placement.from_plan import PlanProblems
from dovetail.optimizer.placement.problem import PartitionByGroup
from dovetail.optimizer.placement.sampled_problem import SampledProblem
from dovetail.optimizer.placement.settings import Settings
from dovetail.optimizer.placement.solve import solve_placement
from dovetail.stats.predict_overlap import Prediction, has_too_many_pairs, predict_overlap

LONGEST_S = 300.0
"""However much there is to do: far more than the work that is allowed takes."""


@dataclass(frozen=True)
class PlacingRules:
    """`worth`: the share of its seconds that another placement must save. `drift`: the share by which what the running
    one costs beyond the least possible must move, `association_drift` how much key groups of two uses must come to go
    together or cease to, before another is sought. `in_a_row`: batches that must agree. `work` and `exact_nodes`: what
    may be done to find one, as `Settings` count it. Where a batch has fewer rows than `least_rows` nobody waits for a
    partition, and nothing is sought.
    """

    worth: float = 0.05
    drift: float = 0.1
    association_drift: float = 0.25
    in_a_row: int = 3
    work: float = 1e6
    exact_nodes: int = 100
    least_rows: int = 1024


@dataclass(frozen=True)
class Seen:
    """What was known when a placement was sought or taken."""

    excess: float
    associations: Mapping[str, float]
    sampled: float

    @staticmethod
    def of(problem: SampledProblem, running: PartitionByGroup) -> Seen:
        excess = problem.cost(running).seconds / (problem.least_s or 1.0)
        return Seen(excess, problem.associations(), sum(stream.cells.sampled for stream in problem.streams))


@dataclass(frozen=True)
class Found:
    """A placement, the share of its seconds that it saves, and how it is known which rows go together."""

    partition_by_group: PartitionByGroup
    gain: float
    overlaps: tuple[str, ...]


def is_worth_a_look(problem: SampledProblem, running: PartitionByGroup, rules: PlacingRules) -> bool:
    """Whether there is something to place, and more to save than a change is worth."""
    if problem.partition_count == 1 or problem.stored_rows < rules.least_rows:
        return False
    return problem.cost(running).seconds / (problem.least_s or 1.0) > 1 + rules.worth


def what_moved(before: Seen | None, now: Seen, rules: PlacingRules) -> str:
    """In words; empty if nothing did that would be a reason to seek another placement."""
    if before is None:
        return "rows were sampled by key group for the first time"
    if abs(now.excess / before.excess - 1) > rules.drift:
        return f"its cost over the least possible was {before.excess:.2f} and is {now.excess:.2f}"
    for store, association in now.associations.items():
        was = before.associations.get(store, 0.0)
        if abs(association - was) > rules.association_drift * (1 + was):
            return f"how the keys of {store} go together (phi squared) was {was:.2g} and is {association:.2g}"
    if now.sampled >= 2 * before.sampled:
        return f"{now.sampled:,.0f} rows tell more than {before.sampled:,.0f} did"
    return ""


def seek_placement(
    problems: PlanProblems, whole: SampledProblem, running: PartitionByGroup, rules: PlacingRules
) -> Found:
    """Where pairs of key groups are too many for the sample, by what a forest says of them, if it knows better."""
    samples = problems.stats.observed.key_groups
    cells = problems.cells(samples)
    overlaps = []
    for store in sorted(cells.keys() & problems.shared_stores):
        uses, sample = cells[store].uses, samples[store]
        if has_too_many_pairs(sample, uses, whole.group_count):
            predicted = predict_overlap(sample, uses, whole.group_count)
            overlaps.append(f"{store}: {predicted.trial if isinstance(predicted, Prediction) else predicted}")
            if isinstance(predicted, Prediction):
                cells[store] = predicted.cells()
    problem = problems.of_cells(cells) or whole
    settings = Settings(work=rules.work, exact_nodes=rules.exact_nodes, time_budget_s=LONGEST_S)
    found = solve_placement(problem.problem, settings, running).partition_by_group
    before = whole.cost(running).seconds
    gain = 1 - whole.cost(found).seconds / before if before else 0.0
    return Found(found, gain, tuple(overlaps))
