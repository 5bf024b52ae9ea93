"""Partial results on their way to a probe: codes of the next key, references, and who still wants them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.plan.placement import Placement
from dovetail.plan.routing import Routing
from dovetail.plan.shared_plan import SharedPlan
from dovetail.runtime.message import Kind, Message
from dovetail.runtime.probe.frame import Frame, concat_frames
from dovetail.runtime.probe.route_entries import targets

_NODE = b"node"
ROWS_A_MESSAGE = 1 << 16
U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Partial:
    """Rows ready to probe `node`; bit i of `bits[w]` tells whether the node's leg 64 * w + i still wants the row."""

    node: str
    codes: U64
    frame: Frame
    bits: U64

    def take(self, idx: npt.NDArray[np.int64]) -> Partial:
        return Partial(self.node, self.codes[idx], self.frame.take(idx), self.bits[:, idx])


def send_partial(partial: Partial, routing: Routing, placement: Placement) -> Iterator[Message]:
    """One message per partition that must see some of the rows."""
    for partition, idx in targets(routing, placement, partial.codes, partial.frame.refs):
        yield Message(partition, Kind.PARTIAL, _to_bytes(partial.take(idx)))


class OutgoingPartials:
    """Collects what a task sends by node: a message costs as much for a few rows as for many."""

    def __init__(self, plan: SharedPlan) -> None:
        self._spread_by_node = {
            node.id: (
                plan.routing(node.step.target, node.step.index),
                plan.placement_of(node.step.target, node.step.index),
            )
            for tree in plan.probing_trees
            for node in tree.walk()
        }
        self._waiting: dict[str, list[Partial]] = {}
        self._messages: list[Message] = []

    def add(self, partial: Partial) -> None:
        waiting = self._waiting.setdefault(partial.node, [])
        waiting.append(partial)
        if sum(len(each.codes) for each in waiting) >= ROWS_A_MESSAGE:
            self._send(partial.node)

    def close(self) -> list[Message]:
        for node in list(self._waiting):
            self._send(node)
        return self._messages

    def _send(self, node: str) -> None:
        partial = _concat(self._waiting.pop(node))
        self._messages += send_partial(partial, *self._spread_by_node[node])


def _concat(partials: Sequence[Partial]) -> Partial:
    if len(partials) == 1:
        return partials[0]
    return Partial(
        partials[0].node,
        np.concatenate([each.codes for each in partials]),
        concat_frames([each.frame for each in partials]),
        np.concatenate([each.bits for each in partials], axis=1),
    )


def receive_partials(payloads: Sequence[bytes], stores_by_node: dict[str, tuple[str, ...]]) -> list[Partial]:
    """One partial per node, whatever the number of senders, sorted by code."""
    tables: dict[str, list[pa.Table]] = {}
    for payload in payloads:
        table = pa.ipc.open_stream(payload).read_all()
        tables.setdefault(table.schema.metadata[_NODE].decode(), []).append(table)
    return [_from_table(node, pa.concat_tables(parts), stores_by_node[node]) for node, parts in sorted(tables.items())]


def _to_bytes(partial: Partial) -> bytes:
    arrays = [pa.array(array) for array in (partial.codes, *partial.frame.refs, *partial.bits)]
    names = ["code", *(f"m{member}" for member in range(len(partial.frame.refs)))]
    names += [f"bits{word}" for word in range(len(partial.bits))]
    batch = pa.RecordBatch.from_arrays(arrays, names).replace_schema_metadata({_NODE: partial.node.encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _from_table(node: str, table: pa.Table, stores: tuple[str, ...]) -> Partial:
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    refs = tuple(columns[f"m{member}"] for member in range(len(stores)))
    bits = np.stack([columns[name] for name in table.column_names if name.startswith("bits")])
    return Partial(node, columns["code"], Frame(stores, refs), bits).take(np.argsort(columns["code"]))
