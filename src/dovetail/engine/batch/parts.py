"""What batches work with: the parts of the session, as the engine wires them."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.core.clock import Clock
from dovetail.engine.admission.admission import Admission
from dovetail.engine.control.control_plane import ControlPlane
from dovetail.engine.delivery.answers import Answers
from dovetail.engine.head import Head
from dovetail.engine.options import EngineOptions
from dovetail.engine.planning.fill_intermediates import FillPolicy
from dovetail.engine.planning.plans import Plans
from dovetail.store.chain import Chain
from dovetail.store.commit import OnStep


@dataclass(frozen=True)
class Parts:
    """`on_step` hears of every step of a batch: tests crash there."""

    chain: Chain
    options: EngineOptions
    head: Head
    plane: ControlPlane
    plans: Plans
    answers: Answers
    admission: Admission
    fill_policy: FillPolicy
    clock: Clock
    on_step: OnStep
