"""Partial results on their way to the nodes of the next hop: codes of their next keys, references, who wants them.

Nodes are known by their numbers in the flat plan, which every task makes of the same plan; a message says of which.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.core.errors import SessionError
from dovetail.lowering.flat_plan import FlatHop, FlatPlan
from dovetail.plan.placement import Placement
from dovetail.plan.routing import Routing
from dovetail.plan.shared_plan import SharedPlan
from dovetail.runtime.message import Kind, Message
from dovetail.runtime.probe.route_entries import targets

ROWS_A_MESSAGE = 1 << 18
WORD_BYTES = 8
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowsInFlight:
    """Row i is at node `nodes[i]`, whose key has the code `codes[i]`; its legs in `words[i]` want it."""

    nodes: I64
    codes: U64
    words: U64
    refs: U64

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, idx: I64) -> RowsInFlight:
        return RowsInFlight(self.nodes[idx], self.codes[idx], self.words[idx], self.refs[:, idx])


def concat_rows(pieces: Sequence[RowsInFlight]) -> RowsInFlight:
    if len(pieces) == 1:
        return pieces[0]
    return RowsInFlight(
        np.concatenate([piece.nodes for piece in pieces]),
        np.concatenate([piece.codes for piece in pieces]),
        np.concatenate([piece.words for piece in pieces]),
        np.concatenate([piece.refs for piece in pieces], axis=1),
    )


class OutgoingRows:
    """Collects what a task sends to the next hop: one message a partition, whatever the number of nodes."""

    def __init__(self, plan: SharedPlan, flat: FlatPlan, hop: int) -> None:
        self._plan = plan
        self._flat = flat
        self._next: FlatHop | None = flat.hops[hop] if hop < len(flat.hops) else None
        self._waiting: list[RowsInFlight] = []
        self._waiting_rows = 0
        self._messages: list[Message] = []

    def add(self, rows: RowsInFlight) -> None:
        if len(rows):
            self._waiting.append(rows)
            self._waiting_rows += len(rows)
            if self._waiting_rows >= ROWS_A_MESSAGE:
                self._send()

    def close(self) -> list[Message]:
        self._send()
        return self._messages

    def _send(self) -> None:
        if self._waiting and self._next is not None:
            rows = concat_rows(self._waiting)
            for partition, own in spread_rows(rows, self._plan, self._flat, self._next):
                self._messages.append(Message(partition, Kind.PARTIAL, pack_rows(own, self._plan.epoch)))
        self._waiting, self._waiting_rows = [], 0


def spread_rows(
    rows: RowsInFlight, plan: SharedPlan, flat: FlatPlan, hop: FlatHop
) -> Iterator[tuple[int, RowsInFlight]]:
    """The partitions that must see some of the rows, and those rows."""
    if plan.placement.partition_count == 1:
        yield 0, rows
        return
    index_of_node = np.array([node.index for node in hop.nodes], np.int64)
    routed = [(plan.routing(store, index), plan.placement_of(store, index)) for store, index in flat.indexes]
    yield from spread_by_index(rows, index_of_node[rows.nodes], routed)


def spread_by_index(
    rows: RowsInFlight, index_of_row: I64, routed: Sequence[tuple[Routing, Placement]]
) -> Iterator[tuple[int, RowsInFlight]]:
    """Index by index, whatever the number of nodes: all that probe one are spread alike."""
    parts: dict[int, list[I64]] = {}
    for number in np.unique(index_of_row).tolist():
        idx = np.flatnonzero(index_of_row == number)
        routing, placement = routed[number]
        for partition, own in targets(routing, placement, rows.codes[idx], tuple(rows.refs[:, idx])):
            parts.setdefault(partition, []).append(idx[own])
    for partition, found in sorted(parts.items()):
        yield partition, rows.take(np.concatenate(found))


def pack_rows(rows: RowsInFlight, epoch: int) -> bytes:
    """The length of the head, the head, and then all arrays as they are."""
    head = json.dumps([epoch, len(rows), len(rows.refs)]).encode()
    head += b" " * (-len(head) % WORD_BYTES)
    arrays = (rows.nodes.view(np.uint64), rows.codes, rows.words, *rows.refs)
    return b"".join((len(head).to_bytes(WORD_BYTES, "little"), head, *(array.tobytes() for array in arrays)))


def unpack_rows(payload: bytes, epoch: int) -> RowsInFlight:
    begin = WORD_BYTES + int.from_bytes(payload[:WORD_BYTES], "little")
    sent_epoch, count, members = json.loads(payload[WORD_BYTES:begin])
    if sent_epoch != epoch:
        raise SessionError(
            f"rows of plan epoch {sent_epoch} came to a task of epoch {epoch}",
            hint="a batch has one plan: this is a defect of Dovetail",
        )
    arrays = np.frombuffer(payload, np.uint64, offset=begin).reshape(3 + members, count)
    return RowsInFlight(arrays[0].view(np.int64), arrays[1], arrays[2], arrays[3:])
