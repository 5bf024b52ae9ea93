"""Partial results on their way to a probe: codes of the next key, references, and who still wants them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.plan.placement import Placement
from dovetail.plan.probe_tree import ProbeNode
from dovetail.plan.routing import Routing
from dovetail.plan.shared_plan import SharedPlan
from dovetail.runtime.message import Kind, Message
from dovetail.runtime.probe.frame import Frame, concat_frames
from dovetail.runtime.probe.route_entries import targets

ROWS_A_MESSAGE = 1 << 18
WORD_BYTES = 8
U64 = npt.NDArray[np.uint64]
StoresOf = Callable[[str], tuple[str, ...]]


@dataclass(frozen=True)
class Partial:
    """Rows ready to probe `node`; bit i of `bits[w]` tells whether the node's leg 64 * w + i still wants the row."""

    node: str
    codes: U64
    frame: Frame
    bits: U64

    def take(self, idx: npt.NDArray[np.int64]) -> Partial:
        return Partial(self.node, self.codes[idx], self.frame.take(idx), self.bits[:, idx])


def spread_partial(partial: Partial, routing: Routing, placement: Placement) -> Iterator[tuple[int, Partial]]:
    """The partitions that must see some of the rows, and those rows."""
    if placement.partition_count == 1:
        yield from [(0, partial)] if len(partial.codes) else []
        return
    for partition, idx in targets(routing, placement, partial.codes, partial.frame.refs):
        yield partition, partial.take(idx)


class OutgoingPartials:
    """Collects what a task sends: one message a partition, whatever the number of nodes."""

    def __init__(self, plan: SharedPlan) -> None:
        self._plan = plan
        self._waiting: dict[str, tuple[ProbeNode, list[Partial]]] = {}
        self._waiting_rows = 0
        self._messages: list[Message] = []

    def add(self, node: ProbeNode, partial: Partial) -> None:
        self._waiting.setdefault(node.id, (node, []))[1].append(partial)
        self._waiting_rows += len(partial.codes)
        if self._waiting_rows >= ROWS_A_MESSAGE:
            self._send()

    def close(self) -> list[Message]:
        self._send()
        return self._messages

    def _send(self) -> None:
        by_partition: dict[int, list[Partial]] = {}
        for node, waiting in self._waiting.values():
            target, index = node.step.target, node.step.index
            routing, placement = self._plan.routing(target, index), self._plan.placement_of(target, index)
            for partition, partial in spread_partial(_concat(waiting), routing, placement):
                by_partition.setdefault(partition, []).append(partial)
        self._messages += [
            Message(partition, Kind.PARTIAL, pack_partials(partials)) for partition, partials in by_partition.items()
        ]
        self._waiting, self._waiting_rows = {}, 0


def _concat(partials: Sequence[Partial]) -> Partial:
    if len(partials) == 1:
        return partials[0]
    return Partial(
        partials[0].node,
        np.concatenate([each.codes for each in partials]),
        concat_frames([each.frame for each in partials]),
        np.concatenate([each.bits for each in partials], axis=1),
    )


def pack_partials(partials: Sequence[Partial]) -> bytes:
    """The length of the head; the head, which names nodes and numbers; and then all arrays as they are."""
    head = [(partial.node, len(partial.codes), len(partial.frame.refs), len(partial.bits)) for partial in partials]
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % WORD_BYTES)
    arrays = [array for partial in partials for array in (partial.codes, *partial.frame.refs, *partial.bits)]
    return b"".join((len(text).to_bytes(WORD_BYTES, "little"), text, np.concatenate(arrays).tobytes()))


def _unpacked(payload: bytes, stores_of: StoresOf) -> Iterator[Partial]:
    begin = WORD_BYTES + int.from_bytes(payload[:WORD_BYTES], "little")
    arrays = np.frombuffer(payload, np.uint64, offset=begin)
    at = 0
    for node, rows, members, words in json.loads(payload[WORD_BYTES:begin]):
        columns = arrays[at : at + rows * (1 + members + words)].reshape(1 + members + words, rows)
        yield Partial(node, columns[0], Frame(stores_of(node), tuple(columns[1 : 1 + members])), columns[1 + members :])
        at += columns.size


def receive_partials(payloads: Sequence[bytes], stores_of: StoresOf) -> list[Partial]:
    """One partial per node, whatever the number of senders, sorted by code; `stores_of` its members by a node's id."""
    received: dict[str, list[Partial]] = {}
    for payload in payloads:
        for partial in _unpacked(payload, stores_of):
            received.setdefault(partial.node, []).append(partial)
    whole = (_concat(parts) for _, parts in sorted(received.items()))
    return [partial.take(np.argsort(partial.codes)) for partial in whole]
