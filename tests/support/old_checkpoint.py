"""The checkpoint that a version of Dovetail left in the middle of a small program.

The checkpoints in tests/scenarios/checkpoints were made by running this file with the version that they are named
after:

    PYTHONPATH=OLD/src:. python tests/support/old_checkpoint.py tests/scenarios/checkpoints/VERSION.tar.gz
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.faults.small_program import LATER, QUERIES, open_session, push
from dovetail.testing.local_session import LocalSession

BATCHES_BEFORE, BATCHES_AFTER = 6, 5


def run_first_part(session: LocalSession) -> None:
    """Up to where the checkpoint is left: one query is dropped by then, one failed, one is accepted and waits."""
    for name, sql in QUERIES.items():
        session.create_query(sql, name, backfill=name == "pairs")
    for batch in range(BATCHES_BEFORE):
        if batch == BATCHES_BEFORE - 2:
            session.drop_query("dropped")
            session.create_query(LATER["later"], "later")
        push(session, batch)
    session.create_query(LATER["pending"], "pending")


def run_second_part(session: LocalSession) -> None:
    for batch in range(BATCHES_BEFORE, BATCHES_BEFORE + BATCHES_AFTER):
        push(session, batch)


def write_checkpoint(target: Path, **options: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        session = open_session(Path(folder) / "checkpoint", **options)
        run_first_part(session)
        session.close()
        with tarfile.open(target, "w:gz") as archive:
            archive.add(Path(folder) / "checkpoint", "checkpoint")


if __name__ == "__main__":
    # Kept joins are part of what a checkpoint may hold.
    write_checkpoint(Path(sys.argv[1]), keep_intermediates="always")
