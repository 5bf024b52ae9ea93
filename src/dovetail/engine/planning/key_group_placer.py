"""Which partition has which key groups of which use, while batches run (S4, D1): measured, sought, proven, taken.

measured   with every batch: what the running placement costs, on rows that this batch sampled
sought     when that drifted, or the key groups of two uses began or ceased to go together: in the background
proven     a placement that was found must cost less on the rows of so many batches in a row (B9), and none of these is
           one that it was made from: a solver finds much in a sample that is not in the data
taken      at a batch edge; no state moves
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.engine.planning.background import Background
from dovetail.engine.planning.rest import Rest
from dovetail.optimizer.placement.cost import PlacementCost
from dovetail.optimizer.placement.from_plan import PlanProblems
from dovetail.optimizer.placement.problem import PartitionByGroup
from dovetail.optimizer.placement.sampled_problem import SampledProblem
from dovetail.optimizer.placement.settings import Settings
from dovetail.optimizer.placement.solve import solve_placement
from dovetail.plan.key_classes import key_classes
from dovetail.plan.placement import Placement, Placements, UseName, even_placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.predict_overlap import Prediction, has_too_many_pairs, predict_overlap
from dovetail.stats.unit_costs import UnitCosts


@dataclass(frozen=True)
class PlacingRules:
    """`worth`: the share of its seconds that another placement must save. `drift`: the share by which what the running
    one costs beyond the least possible must move, `association_drift` how much key groups of two uses must come to go
    together or cease to, before another is sought. `in_a_row`: batches that must agree. `budget_s`: to seek in. Where a
    batch has fewer rows than `least_rows` nobody waits for a partition, and nothing is sought.
    """

    worth: float = 0.05
    drift: float = 0.1
    association_drift: float = 0.25
    in_a_row: int = 3
    budget_s: float = 1.0
    least_rows: int = 1024


@dataclass(frozen=True)
class PlacementNow:
    """What a batch showed of the placement that it ran by; rows and seconds are of that batch.

    `least_s` is what no placement can do without. `unplaced_rows` have no key, and go anywhere once.
    """

    batch: int
    cost: PlacementCost
    least_s: float
    unplaced_rows: float

    @property
    def expected_rows(self) -> float:
        """That are shipped, every copy."""
        return self.cost.shipped_rows + self.unplaced_rows

    def __str__(self) -> str:
        sent = f"{self.cost.shipped_rows:,.0f} rows shipped, " if self.cost.shipped_rows else ""
        return f"{self.cost.seconds * 1e3:.3g} ms a batch ({sent}slowest over mean {self.cost.imbalance:.2f})"


@dataclass(frozen=True)
class _Seen:
    """What was known when a placement was sought or taken."""

    excess: float
    associations: Mapping[str, float]
    sampled: float


@dataclass
class _Candidate:
    """A placement that was found, and how it did on batches since; `reason` is why it was sought."""

    partition_by_group: PartitionByGroup
    reason: str
    made_in_batch: int
    proven: int = 0
    failed: int = 0
    gain: float = 0.0


@dataclass(frozen=True)
class _Found:
    partition_by_group: PartitionByGroup
    gain: float
    overlaps: tuple[str, ...]


@dataclass
class KeyGroupPlacer:
    """A placement policy with a memory. Not thread-safe: whoever plans or commits holds the lock of plans.

    Asked for placements it answers the same until a committed batch is noted, so a plan may be shown at any time.
    """

    units: UnitCosts
    rules: PlacingRules = field(default_factory=PlacingRules)
    in_background: bool = True
    now: PlacementNow | None = None
    because: str = ""
    placed_in_batch: int | None = None
    overlaps: tuple[str, ...] = ()
    """How it is known which rows go together, where a forest was asked."""
    sought: int = 0
    taken: int = 0
    _chosen: Placements | None = None
    _candidate: _Candidate | None = None
    _seen: _Seen | None = None
    _placed: tuple[tuple[frozenset[UseName], ...], int] | None = None
    _asking: Background[_Found] | None = None
    _asked: tuple[str, int] | None = None
    _rest: Rest = field(default_factory=Rest)
    _answered: tuple[SharedPlan, Placements | None, Placements] | None = None

    def __call__(self, plan: SharedPlan, _stats: StatsCatalog, running: Placements | None) -> Placements:
        """`running` says how many partitions there are to be."""
        usual = (running or plan.placements).usual
        even = even_placement(usual.group_count, usual.partition_count)
        chosen = self._chosen
        if chosen is None or chosen.usual != even:
            return Placements(even)
        known = self._answered
        if known is None or known[0] is not plan or known[1] is not chosen:
            known = self._answered = plan, chosen, _united(plan, chosen)
        return known[2]

    def note_batch(self, batch: int, plan: SharedPlan, stats: StatsCatalog) -> None:
        """A batch ran by this plan, and its rows are in the statistics."""
        self.now = None
        samples = stats.observed.key_groups
        problems = PlanProblems(plan, stats, self.units)
        self._forget_others(problems)
        self._take_answer()
        newest = problems.of_samples({store: sample.of_batch(batch) for store, sample in samples.items()})
        if newest is None:
            return
        running = newest.partition_by_group(plan.placements)
        unplaced = sum(stream.cells.unplaced for stream in newest.streams if stream.row_weight)
        self.now = PlacementNow(batch, newest.cost(running), newest.least_s, unplaced)
        self._prove(batch, newest, running)
        whole = problems.of_samples(samples) if self._is_idle(batch) else None
        reason = "" if whole is None else self._reason_to_seek(batch, whole, running)
        if whole is not None and reason:
            self._seek(batch, problems, whole, running, reason)

    @property
    def proving(self) -> tuple[int, float] | None:
        """Of a placement that waits to be taken: how many batches in a row spoke for it, and what the last one says
        that it would save.
        """
        return None if self._candidate is None else (self._candidate.proven, self._candidate.gain)

    def wait(self) -> None:
        """Until nothing is sought any more."""
        if self._asking is not None:
            self._asking.wait()

    def _forget_others(self, problems: PlanProblems) -> None:
        """Where keys or the number of partitions changed, what was found says nothing."""
        placed = problems.classes, problems.plan.placement.partition_count
        if self._placed != placed:
            self._placed = placed
            self._candidate = self._seen = self._asking = None
            if self._chosen is not None and self._chosen.usual.partition_count != placed[1]:
                self._chosen = None

    def _is_idle(self, batch: int) -> bool:
        """Whether nothing is sought or proven, and what was taken last has run."""
        is_busy = self._candidate is not None or self._asking is not None or self.placed_in_batch == batch + 1
        return not is_busy and self._rest.is_over

    def _reason_to_seek(self, batch: int, problem: SampledProblem, running: PartitionByGroup) -> str:
        """Empty if there is none. A placement that is new is held against how it did in its first batch."""
        excess = problem.cost(running).seconds / (problem.least_s or 1.0)
        is_small = problem.partition_count == 1 or problem.stored_rows < self.rules.least_rows
        if is_small or excess <= 1 + self.rules.worth:
            return ""
        sampled = sum(stream.cells.sampled for stream in problem.streams)
        now = _Seen(excess, problem.associations(), sampled)
        reason = "" if self.placed_in_batch == batch else _what_moved(self._seen, now, self.rules)
        if reason or self.placed_in_batch == batch:
            self._seen = now
        return reason

    def _seek(
        self,
        batch: int,
        problems: PlanProblems,
        whole: SampledProblem,
        running: PartitionByGroup,
        reason: str,
    ) -> None:
        self.sought += 1
        self._asked = reason, batch
        self._asking = Background(
            f"placing {len(whole.classes)} key classes",
            lambda: _find(problems, whole, running, self.rules.budget_s),
        )
        if not self.in_background:
            self.wait()
            self._take_answer()

    def _take_answer(self) -> None:
        asking, asked = self._asking, self._asked
        if asking is None or asked is None or not asking.is_over:
            return
        self._asking = None
        if self.in_background:
            self._rest.begin_after(asking.core_seconds)
        found = asking.answer
        if found is None:
            return
        reason, batch = asked
        self.overlaps = found.overlaps
        if found.gain > self.rules.worth:
            self._candidate = _Candidate(found.partition_by_group, reason, batch, gain=found.gain)

    def _prove(self, batch: int, newest: SampledProblem, running: PartitionByGroup) -> None:
        candidate = self._candidate
        if candidate is None or candidate.made_in_batch >= batch:
            return
        before, after = newest.cost(running), newest.cost(candidate.partition_by_group)
        candidate.gain = 1 - after.seconds / before.seconds if before.seconds else 0.0
        if candidate.gain > self.rules.worth:
            candidate.proven += 1
        else:
            candidate.proven = 0
            candidate.failed += 1
        if candidate.proven >= self.rules.in_a_row:
            usual = even_placement(newest.group_count, newest.partition_count)
            self._chosen = newest.placements(candidate.partition_by_group, usual)
            self._candidate, self.taken, self.placed_in_batch = None, self.taken + 1, batch + 1
            then, then_now = (PlacementNow(batch, cost, newest.least_s, 0.0) for cost in (before, after))
            self.because = (
                f"{candidate.reason}; {candidate.proven} batches in a row another placement cost less, "
                f"{then} became {then_now}"
            )
        elif candidate.failed >= self.rules.in_a_row:
            self._candidate = None


def _what_moved(before: _Seen | None, now: _Seen, rules: PlacingRules) -> str:
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


def _find(problems: PlanProblems, whole: SampledProblem, running: PartitionByGroup, budget_s: float) -> _Found:
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
    found = solve_placement(problem.problem, Settings(time_budget_s=budget_s), running).partition_by_group
    before = whole.cost(running).seconds
    gain = 1 - whole.cost(found).seconds / before if before else 0.0
    return _Found(found, gain, tuple(overlaps))


def _united(plan: SharedPlan, chosen: Placements) -> Placements:
    """With uses of one class on one placement: a new query may have brought together what was placed apart."""
    by_use: dict[UseName, Placement] = {}
    for uses in key_classes(plan):
        special = sorted(uses & chosen.special_uses)
        if special:
            by_use |= dict.fromkeys(uses, chosen.of_use(special[0]))
    return Placements.of(chosen.usual, by_use)
