"""What a hop task joined for groups: folded in pieces, sent at the end to the partitions of the groups (two-phase).

Memory is bounded by the groups that a task sees, never by the rows: pieces of partial groups are folded together
whenever they have doubled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dovetail.core.errors import ColumnTooLarge
from dovetail.kernels.evaluate.evaluate import evaluate, is_wide
from dovetail.kernels.evaluate.sizes import WORK_BYTES
from dovetail.kernels.match.hash_keys import group_of_codes
from dovetail.plan.group_plan import GroupPlan, GroupTable
from dovetail.plan.probe_tree import Emit
from dovetail.plan.query_limits import Found
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.groups.failed_groups import unwanted_parts, users_of_argument, users_of_most_bytes, users_of_part
from dovetail.runtime.groups.fold_rows import JoinedRows, fold_rows
from dovetail.runtime.groups.partial_groups import (
    PartialGroups,
    codes_of_groups_and_panes,
    codes_of_rows,
    columns_of_rows,
    concat_groups,
    fold_groups,
    rows_of_columns,
)
from dovetail.runtime.message import Kind, Message
from dovetail.runtime.probe.frame import Frame, FrameValues, smaller_frames
from dovetail.runtime.probe.snapshot import StoreSnapshot
from dovetail.runtime.report import GroupCount, TaskReport
from dovetail.runtime.stopwatch import Stopwatch
from dovetail.runtime.waiting_rows import WaitingRoom, WaitingRows

ROWS_A_FOLD, BYTES_A_FOLD = 1 << 18, 32 << 20
LARGE_PIECE_BYTES = 1 << 20
SHORT_S = 0.01
"""Work for one aggregate below this is shared by all users of the groups."""
_TABLE = b"table"


@dataclass
class _Pieces:
    """Partial groups of one table, and how many there were when they were folded last."""

    pieces: list[PartialGroups] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0
    folded_rows: int = 0
    folded_bytes: int = 0

    def add(self, table: GroupTable, piece: PartialGroups) -> None:
        self.pieces.append(piece)
        self.rows += piece.rows
        self.size_bytes += piece.size_bytes
        if self.rows > 2 * self.folded_rows + ROWS_A_FOLD or self.size_bytes > 2 * self.folded_bytes + BYTES_A_FOLD:
            self.fold(table)

    def fold(self, table: GroupTable) -> list[PartialGroups]:
        """No group twice. One piece, unless it has long texts that would be copied for nothing."""
        is_large = self.size_bytes > BYTES_A_FOLD
        if len(self.pieces) > 1 and not (is_large and _are_all_different(self.pieces)):
            self.pieces = [fold_groups(table, concat_groups(self.pieces))]
        self.rows = self.folded_rows = sum(piece.rows for piece in self.pieces)
        self.size_bytes = self.folded_bytes = sum(piece.size_bytes for piece in self.pieces)
        return self.pieces


class GroupFolder:
    """Takes the joined rows of all aggregations in one task."""

    def __init__(self, task: BatchTask, snapshots: Mapping[str, StoreSnapshot], report: TaskReport) -> None:
        self._task = task
        self._snapshots = snapshots
        self._report = report
        self._group_by_id = {group.id: group for group in task.plan.groups}
        self._waiting = WaitingRoom()
        self._pieces: dict[str, _Pieces] = {}

    def add(self, emit: Emit, frame: Frame) -> None:
        """Joined rows as references."""
        enough = self._waiting.add(emit, frame, ROWS_A_FOLD)
        if enough is not None:
            self._fold(enough)

    def add_rows(self, group: GroupPlan, rows: JoinedRows) -> float:
        """Joined rows as values, weighted or partly folded; the seconds that are charged to single users."""
        if not self._is_wanted(group) or rows.rows == 0:
            return 0.0
        void = self._report.void_queries
        unwanted = unwanted_parts(group, void) if not void.isdisjoint(user.query for user in group.users) else set()
        try:
            folded = fold_rows(group, rows, unwanted)
        except Exception as error:  # noqa: BLE001 - whatever the keys raise on these rows
            self._report.fail({group.id}, error)
            return 0.0
        for part, failure in folded.failed.items():
            self._report.fail(users_of_part(group, part), failure)
        charged_s, watch = self._charge_users(group, folded.seconds), Stopwatch()
        with self._report.charging({group.id}):
            for table in group.tables:
                piece = folded.rows_by_table.get(table.id)
                if piece is not None and piece.rows:
                    pieces = self._pieces.setdefault(table.id, _Pieces())
                    known_bytes = pieces.size_bytes
                    pieces.add(table, piece)
                    self._count_bytes(group, table, piece, pieces.size_bytes - known_bytes)
                    if (taken_s := watch.lap()) > SHORT_S:
                        charged_s += self._charge(users_of_most_bytes(group, table, piece), taken_s)
        self._report.groups.append(GroupCount(group.id, folded_rows=rows.rows))
        return charged_s

    def _count_bytes(self, group: GroupPlan, table: GroupTable, piece: PartialGroups, more_bytes: int) -> None:
        """Long texts are stopped before all of them are made, not when groups are answered."""
        if more_bytes >= LARGE_PIECE_BYTES:
            for user in users_of_most_bytes(group, table, piece):
                self._report.count(user, Found(result_bytes=more_bytes), self._task.limits)

    def _is_wanted(self, group: GroupPlan) -> bool:
        void = self._report.void_queries
        return group.id not in void and any(user.query not in void for user in group.users)

    def _charge_users(self, group: GroupPlan, seconds: Mapping[str, float]) -> float:
        """Who asks for a long text's maximum pays for it, not all whose groups have the same keys."""
        return sum(self._charge(users_of_part(group, part), taken_s) for part, taken_s in seconds.items())

    def _charge(self, users: set[str], taken_s: float) -> float:
        """What they pay: nothing if it was short, and so is left to all together."""
        if taken_s <= SHORT_S or not users:
            return 0.0
        self._report.spend(users, taken_s, self._task.limits)
        return taken_s

    def close(self) -> Iterator[Message]:
        """Everything that goes to the groups' partitions."""
        for waiting in self._waiting.empty():
            self._fold(waiting)
        for group in self._task.plan.groups:
            sent: list[Message] = []
            if self._is_wanted(group):
                with self._report.charging({group.id}):
                    sent = list(self._of_group(group))
            yield from sent

    def _of_group(self, group: GroupPlan) -> Iterator[Message]:
        for table in group.tables:
            if table.id in self._pieces:
                watch = Stopwatch()
                for rows in self._pieces.pop(table.id).fold(table):
                    yield from self._sent(table, rows)
                    self._report.spend(users_of_most_bytes(group, table, rows), watch.lap(), self._task.limits)

    def _fold(self, waiting: WaitingRows) -> None:
        with self._report.charging({waiting.emit.query}):
            self._fold_frame(waiting.emit, waiting.frame)

    def _fold_frame(self, emit: Emit, frame: Frame) -> None:
        """So few rows at a time that a query which takes too long is stopped between them."""
        if not self._is_wanted(self._group_by_id[emit.query]):
            return
        watch, of_users_s = Stopwatch(), 0.0
        try:
            of_users_s = self._fold_values(emit, FrameValues(frame, self._snapshots))
        except ColumnTooLarge as error:
            for part in smaller_frames(frame, error):
                self._fold_frame(emit, part)
        else:
            self._report.spend((emit.query,), max(0.0, watch.lap() - of_users_s), self._task.limits)

    def _fold_values(self, emit: Emit, values: FrameValues) -> float:
        """The seconds that are charged to single users; raises if texts are too large together."""
        expressions = {column.name: column.expression for column in emit.output}
        known: dict[str, pa.Array] = {}

        def values_of(name: str) -> pa.Array:
            if name not in known:
                known[name] = evaluate(
                    expressions[name],
                    values.column,
                    len(values),
                    timezone=self._task.timezone,
                    most_bytes=WORK_BYTES,
                )
            return known[name]

        group, watch, charged_s = self._group_by_id[emit.query], Stopwatch(), 0.0
        for name, expression in expressions.items():
            if is_wide(expression):
                _try_size(values_of, name)
                charged_s += self._charge(users_of_argument(group, name), watch.lap())
        return charged_s + self.add_rows(group, JoinedRows(len(values), values_of))

    def _sent(self, table: GroupTable, rows: PartialGroups) -> Iterator[Message]:
        placement = self._task.plan.placement
        codes = codes_of_rows(table, rows)
        owners = np.array(placement.partition_by_group)[group_of_codes(codes, placement.group_count)]
        for partition in range(placement.partition_count):
            idx = np.flatnonzero(owners == partition)
            if len(idx):
                yield Message(partition, Kind.GROUPS, _to_bytes(table, rows.take(idx)))


def _are_all_different(pieces: list[PartialGroups]) -> bool:
    """Whether no two rows have the same keys and pane; where codes collide it is not known, and they are folded."""
    codes = np.sort(np.concatenate([codes_of_groups_and_panes(rows) for rows in pieces]))
    return bool((codes[1:] != codes[:-1]).all())


def _try_size(values_of: Callable[[str], pa.Array], name: str) -> None:
    """Whatever else goes wrong comes again where it is charged to those who ask for the column."""
    try:
        values_of(name)
    except ColumnTooLarge:
        raise
    except Exception:  # noqa: BLE001, S110 - see above
        pass


def receive_groups(plans: tuple[GroupPlan, ...], payloads: list[bytes]) -> dict[str, list[PartialGroups]]:
    """By table, what all tasks sent."""
    table_by_id = {table.id: table for group in plans for table in group.tables}
    found: dict[str, list[PartialGroups]] = {}
    for payload in payloads:
        received = pa.ipc.open_stream(payload).read_all().combine_chunks()
        table = table_by_id[received.schema.metadata[_TABLE].decode()]
        columns = {name: received.column(name).chunk(0) for name in received.column_names if name}
        found.setdefault(table.id, []).append(rows_of_columns(table, columns, received.num_rows))
    return found


def _to_bytes(table: GroupTable, rows: PartialGroups) -> bytes:
    columns = columns_of_rows(table, rows)
    batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    batch = batch.replace_schema_metadata({_TABLE: table.id.encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
