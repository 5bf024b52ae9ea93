"""The engine of one checkpoint: it wires the parts and does nothing itself.

               +----------+  +----------+                     +---------+
     users --> | queries  |  | streams  |       readers --->  | answers |
               +----------+  +----------+                     +---------+
                     |  accepted changes                           ^  committed files
                     v                                             |
               +----------+  the plan of the next batch   +---------+
  explain -->  |  plans   | ----------------------------> | batches | <-- Spark, or this process
               +----------+                               +---------+
                     |                                         |  a commit moves it
                     +-----------------> head <----------------+

`head` is the newest committed batch, and has the lock that the others share (see there).
"""

from __future__ import annotations

from pathlib import Path

from dovetail.core.clock import Clock, system_clock
from dovetail.core.errors import DovetailError
from dovetail.engine.admission.admission import Admission
from dovetail.engine.backfill.adoption import Adoption
from dovetail.engine.batch.batches import Batches
from dovetail.engine.batch.parts import Parts
from dovetail.engine.calibrate.unit_cost_cache import load_unit_costs
from dovetail.engine.control.control_plane import CompileText, ControlPlane
from dovetail.engine.control.queries import Queries
from dovetail.engine.control.streams import Streams
from dovetail.engine.delivery.answers import Answers
from dovetail.engine.head import Head
from dovetail.engine.options import EngineOptions
from dovetail.engine.planning.elastic_units import ElasticUnits
from dovetail.engine.planning.fill_intermediates import FillPolicy
from dovetail.engine.planning.planner import Planner
from dovetail.engine.planning.plans import Plans
from dovetail.engine.state import EngineState
from dovetail.optimizer.decisions import Decide
from dovetail.stats.unit_costs import UnitCosts
from dovetail.store.chain import Chain
from dovetail.store.commit import OnStep, no_step
from dovetail.store.layout import open_layout
from dovetail.store.lock import CheckpointLock


class Engine:
    """Everything but the data path. All its parts may be used while a batch runs."""

    def __init__(
        self,
        root: Path,
        options: EngineOptions,
        *,
        clock: Clock = system_clock,
        on_step: OnStep = no_step,
        decide: Decide | None = None,
        units: UnitCosts | None = None,
        fill_policy: FillPolicy | None = None,
        compile_text: CompileText | None = None,
    ) -> None:
        """`decide` and `units` take the place of the planner that the options name and of this machine's costs.

        `compile_text` takes the place of the front end.
        """
        self.root = root
        self.options = options
        fill_policy = fill_policy or FillPolicy()
        planner = Planner(options, units or load_unit_costs(), decide, fill_policy)
        admission = Admission(options, planner.joint.units)
        self._checkpoint_lock = CheckpointLock(root)
        try:
            open_layout(root, syncs=options.syncs)
            self.chain = Chain(root, syncs=options.syncs)
            stored = self.chain.open()
            state = EngineState() if stored is None else EngineState.from_stored(stored)
            self.head = Head(state, options.planning.statistics)
            self._plane = ControlPlane(root, options, compile_text, state.change_sequence)
            self.streams = Streams(root, self.head, self._plane)
            self.answers = Answers(root, self.head)
            if options.elasticity.elastic:
                planner.elastic = ElasticUnits(options, self.head.state.buckets)
        except DovetailError:
            self._checkpoint_lock.release()
            raise
        self.plans = Plans(self.head, self._plane, planner)
        self.queries = Queries(self.head, self._plane, admission, self.plans)
        self.batches = Batches(
            Parts(
                self.chain,
                options,
                self.head,
                self._plane,
                self.plans,
                self.answers,
                admission,
                fill_policy,
                clock,
                on_step,
            )
        )

    def attach(self, adoption: Adoption) -> None:
        """Have every commit adopt what backfills brought; without it queries cannot be backfilled."""
        with self.head.lock:
            self._plane.adoption = adoption
            adoption.follow(self.head.state)

    def check_ready(self) -> None:
        """Raise unless every stream of the checkpoint is registered again."""
        self.streams.check_ready()

    def close(self) -> None:
        self._checkpoint_lock.release()
