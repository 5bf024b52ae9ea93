"""Which partition has which key groups of which use, while batches run (S4, D1): measured, sought, proven, taken.

measured   with every batch: what the running placement costs, on rows that this batch sampled
sought     when that drifted, or the key groups of two uses began or ceased to go together: `seek_placement.py`
proven     a placement that was found must cost less on the rows of so many batches in a row (B9): `placing_states.py`
taken      at a batch edge; no state moves
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dovetail.engine.planning.background import Background
from dovetail.engine.planning.placing_states import PlacementNow, PlacingState, Proving, Seeking, Taken, Watching
from dovetail.engine.planning.rest import Rest
from dovetail.engine.planning.seek_placement import PlacingRules, Seen, is_worth_a_look, seek_placement, what_moved
from dovetail.optimizer.placement.from_plan import PlanProblems
from dovetail.optimizer.placement.problem import PartitionByGroup
from dovetail.plan.key_classes import key_classes
from dovetail.plan.placement import Placement, Placements, UseName, even_placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.unit_costs import UnitCosts


@dataclass(frozen=True)
class Placed:
    """What is placed: where keys or the number of partitions change, what was found says nothing."""

    classes: tuple[frozenset[UseName], ...]
    partition_count: int


@dataclass
class KeyGroupPlacer:
    """A placement policy with a memory. Not thread-safe: whoever plans or commits holds the lock of plans.

    Asked for placements it answers the same until a committed batch is noted, so a plan may be shown at any time.
    `sought` and `taken` count; `overlaps` say how it is known which rows go together, where a forest was asked.
    """

    units: UnitCosts
    rules: PlacingRules = field(default_factory=PlacingRules)
    in_background: bool = True
    state: PlacingState = field(default_factory=Watching)
    last: Taken | None = None
    now: PlacementNow | None = None
    overlaps: tuple[str, ...] = ()
    sought: int = 0
    taken: int = 0
    placed: Placed | None = None
    rest: Rest = field(default_factory=Rest)

    def __call__(self, plan: SharedPlan, _stats: StatsCatalog, running: Placements | None) -> Placements:
        """`running` says how many partitions there are to be."""
        usual = (running or plan.placements).usual
        even = even_placement(usual.group_count, usual.partition_count)
        chosen = None if self.last is None else self.last.placements
        return Placements(even) if chosen is None or chosen.usual != even else _united(plan, chosen)

    @property
    def because(self) -> str:
        """Why key groups lie as they do; empty before the first change."""
        return "" if self.last is None else self.last.because

    @property
    def placed_in_batch(self) -> int | None:
        return None if self.last is None else self.last.batch

    @property
    def proving(self) -> tuple[int, float] | None:
        """Of a placement that waits to be taken: how many batches in a row spoke for it, and what the last one says
        that it would save.
        """
        return (self.state.proven, self.state.gain) if isinstance(self.state, Proving) else None

    def wait(self) -> None:
        """Until nothing is sought any more."""
        if isinstance(self.state, Seeking):
            self.state.asking.wait()

    def note_batch(self, batch: int, plan: SharedPlan, stats: StatsCatalog) -> None:
        """A batch ran by this plan, and its rows are in the statistics."""
        self.now = None
        samples = stats.observed.key_groups
        problems = PlanProblems(plan, stats, self.units)
        self._forget_others(problems)
        self._end_search()
        newest = problems.of_samples({store: sample.of_batch(batch) for store, sample in samples.items()})
        if newest is None:
            return
        running = newest.partition_by_group(plan.placements)
        unplaced = sum(stream.cells.unplaced for stream in newest.streams if stream.row_weight)
        self.now = PlacementNow(batch, newest.cost(running), newest.least_s, unplaced)
        if isinstance(self.state, Proving):
            self._go_on(self.state.held_against(batch, newest, running, self.rules), self.state.seen)
        # What was taken last must have run before anything else is sought.
        if isinstance(self.state, Watching) and self.placed_in_batch != batch + 1 and self.rest.is_over:
            self._watch(self.state, batch, problems, running)

    def _forget_others(self, problems: PlanProblems) -> None:
        placed = Placed(problems.classes, problems.plan.placement.partition_count)
        if self.placed == placed:
            return
        self.placed, self.state = placed, Watching()
        chosen = None if self.last is None else self.last.placements
        if self.last is not None and chosen is not None and chosen.usual.partition_count != placed.partition_count:
            self.last = replace(self.last, placements=None)

    def _go_on(self, after: PlacingState | Taken, seen: Seen) -> None:
        if isinstance(after, Taken):
            self.last, self.taken = after, self.taken + 1
            self.state = Watching(seen)
        else:
            self.state = after

    def _watch(self, state: Watching, batch: int, problems: PlanProblems, running: PartitionByGroup) -> None:
        """Seek if there is a reason. A placement that is new is held against how it did in its first batch."""
        whole = problems.of_samples(problems.stats.observed.key_groups)
        if whole is None or not is_worth_a_look(whole, running, self.rules):
            return
        now = Seen.of(whole, running)
        if self.placed_in_batch == batch:
            self.state = Watching(now)
            return
        reason = what_moved(state.seen, now, self.rules)
        if not reason:
            return
        self.sought += 1
        asking = Background(
            f"placing {len(whole.classes)} key classes",
            lambda: seek_placement(problems, whole, running, self.rules),
            gives_way=self.in_background,
        )
        self.state = Seeking(now, asking, reason, batch)
        if not self.in_background:
            self.wait()
            self._end_search()

    def _end_search(self) -> None:
        """Take note of what was found, if the search is over by now."""
        state = self.state
        if not isinstance(state, Seeking) or not state.asking.is_over:
            return
        if self.in_background:
            self.rest = Rest.after(state.asking.core_seconds)
        if state.asking.answer is not None:
            self.overlaps = state.asking.answer.overlaps
        self.state = state.ended(self.rules)


def _united(plan: SharedPlan, chosen: Placements) -> Placements:
    """With uses of one class on one placement: a new query may have brought together what was placed apart."""
    by_use: dict[UseName, Placement] = {}
    for uses in key_classes(plan):
        special = sorted(uses & chosen.special_uses)
        if special:
            by_use |= dict.fromkeys(uses, chosen.of_use(special[0]))
    return Placements.of(chosen.usual, by_use)
