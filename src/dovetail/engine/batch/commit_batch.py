"""A batch becomes real: the manifest is put, and the head moves on to its state."""

from __future__ import annotations

import time
from dataclasses import dataclass

from dovetail.engine.batch.parts import Parts
from dovetail.engine.batch.settle_batch import Settled
from dovetail.engine.progress.figures import Durations
from dovetail.store.commit import Committed as CommittedFiles


@dataclass(frozen=True)
class Committed:
    """From here on nothing can undo the batch, and nothing may fail it. `files` knows what is dead by now."""

    settled: Settled
    files: CommittedFiles
    durations: Durations


def commit_batch(settled: Settled, parts: Parts) -> Committed:
    began_s = time.perf_counter()
    ran, state, draft = settled.ran, settled.done.after, settled.draft
    files = draft.prepare(parts.chain, parts.on_step).commit(parts.chain, parts.clock, parts.on_step)
    with parts.head.lock:
        parts.head.move(state)
        parts.answers.add(draft.results)
    commit_s = settled.settle_s + time.perf_counter() - began_s
    return Committed(settled, files, Durations(ran.begun.plan_s, ran.run_s, commit_s, settled.failed_s))
