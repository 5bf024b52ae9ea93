"""A stop that finishes the batch waits for its commit and lets no other begin."""

from __future__ import annotations

import threading
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from dovetail.core.errors import SessionError
from dovetail.runtime.spark.pipeline import SparkPipeline


def test_the_batch_under_way_commits_and_the_next_is_left_to_the_next_start(tmp_path: Path) -> None:
    began, may_end = threading.Event(), threading.Event()
    committed: list[int] = []

    def run_batch(batch: int, _run: object, _offsets: object) -> bool:
        began.set()
        assert may_end.wait(30)
        committed.append(batch)
        return True

    pipeline = SparkPipeline(MagicMock(), tmp_path, run_batch)
    batch = threading.Thread(target=pipeline._run_batch, args=(MagicMock(), 7))
    batch.start()
    assert began.wait(30)
    finishing = threading.Thread(target=pipeline.finish_batch)
    finishing.start()
    finishing.join(0.2)
    assert (finishing.is_alive(), committed) == (True, [])
    may_end.set()
    finishing.join(30)
    assert (finishing.is_alive(), committed) == (False, [7])
    batch.join()
    # An error, because Spark would take a batch that returns for done.
    with pytest.raises(SessionError, match="batch 8 runs after the next start"):
        pipeline._run_batch(MagicMock(), 8)
    assert committed == [7]
