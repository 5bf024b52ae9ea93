"""A source that remembers what it sent, for backfills in one process."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa

from dovetail.core.errors import HistoryError
from dovetail.runtime.batch_task import BATCH, BatchTask
from dovetail.runtime.local.run_local import run_local
from dovetail.runtime.message import Message
from dovetail.store.manifest import PastBatch


class LocalHistory:
    """Keeps every batch that a session is given; `lose` takes one away, `once` names streams that come only once."""

    def __init__(self, *, once: Collection[str] = ()) -> None:
        self._once = set(once)
        self._tables: dict[int, dict[str, pa.Table]] = {}
        self.runs: list[tuple[int, ...]] = []

    def note(self, batch: int, tables: Mapping[str, pa.Table]) -> None:
        self._tables[batch] = dict(tables)

    def lose(self, batch: int) -> None:
        del self._tables[batch]

    def check(self, streams: Collection[str]) -> None:
        for stream in sorted(self._once & set(streams)):
            raise HistoryError(f"stream {stream!r} comes only once")

    def run(self, task: BatchTask, past: tuple[PastBatch, ...]) -> list[Message]:
        self.runs.append(tuple(each.batch for each in past))
        parts: dict[str, list[pa.Table]] = {}
        wanted = {stream.name for stream in task.streams}
        for each in past:
            if each.batch not in self._tables:
                raise HistoryError(f"the rows of batch {each.batch} are gone")
            for name, table in self._tables[each.batch].items():
                if name in wanted:
                    parts.setdefault(name, []).append(_numbered(table, each.batch))
        return run_local(task, {name: pa.concat_tables(tables) for name, tables in parts.items()})


def _numbered(table: pa.Table, batch: int) -> pa.Table:
    return table.append_column(BATCH, pa.array(np.full(table.num_rows, batch, np.int64)))
