"""Pairs that go on to the nodes of the next hop, with the codes of the keys that they look for there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from dovetail.kernels.match.hand_on import HAS_CODE, NOT_KNOWN, count_children, fork_pairs, load_codes
from dovetail.lowering.flat_plan import FlatHop
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.probe.frame import Frame, FrameValues
from dovetail.runtime.probe.hop_facts import HopFacts
from dovetail.runtime.probe.hop_pairs import HopPairs
from dovetail.runtime.probe.rows_in_flight import RowsInFlight
from dovetail.runtime.probe.snapshot import StoreSnapshot
from dovetail.runtime.report import TaskReport
from dovetail.runtime.source.key_codes import probing_codes

U64 = npt.NDArray[np.uint64]
SendOn = Callable[[RowsInFlight], None]


class NextRows:
    """Makes rows in flight at `following`, the nodes of the next hop; they go to `send_on`."""

    def __init__(
        self,
        task: BatchTask,
        hop: FlatHop,
        following: FlatHop,
        facts: HopFacts,
        snapshots: Mapping[str, StoreSnapshot],
        report: TaskReport,
        send_on: SendOn,
    ) -> None:
        self._task = task
        self._hop = hop
        self._following = following
        self._facts = facts
        self._snapshots = snapshots
        self._report = report
        self._send_on = send_on

    def pass_on(self, pairs: HopPairs, codes: tuple[U64, U64]) -> None:
        """`codes` are the addresses of key codes by row; rows with a NULL in their key meet nobody."""
        count = int(count_children(pairs.word, pairs.node, self._hop.arrays))
        if count == 0:
            return
        nodes, words, idx = np.empty(count, np.int64), np.empty(count, np.uint64), np.empty(count, np.int64)
        fork_pairs(pairs.word, pairs.node, self._hop.arrays, nodes, words, idx)
        refs = np.array(pairs.frame(idx, ()).refs, np.uint64)
        next_codes, is_known = np.empty(count, np.uint64), np.empty(count, np.uint8)
        arrays = self._following.arrays
        load_codes(nodes, refs, arrays.key_member, arrays.key_codes, *codes, next_codes, is_known)
        rows = RowsInFlight(nodes, next_codes, words, refs)
        if (is_known == HAS_CODE).all():
            self._send_on(rows)
            return
        self._send_on(rows.take(np.flatnonzero(is_known == HAS_CODE)))
        left = rows.take(np.flatnonzero(is_known == NOT_KNOWN))
        key_of_row = self._facts.key_of_child[left.nodes]
        for key in np.unique(key_of_row).tolist():
            self._key(left.take(np.flatnonzero(key_of_row == key)))

    def _key(self, rows: RowsInFlight) -> None:
        """Rows whose keys are the same expressions over members of the same stores."""
        try:
            keyed = self._keyed(rows)
        except Exception as error:  # noqa: BLE001 - whatever the key raises on these rows
            self._fail_apart(rows, error)
            left = self._without_void(rows)
            if len(left):
                self._key(left)
            return
        self._send_on(keyed)

    def _keyed(self, rows: RowsInFlight) -> RowsInFlight:
        node = self._following.nodes[int(rows.nodes[0])]
        values = FrameValues(Frame(node.stores, tuple(rows.refs)), self._snapshots)
        keys = probing_codes(node.node.step, values.column, len(rows), self._task.timezone)
        keyed = RowsInFlight(rows.nodes, keys.codes, rows.words, rows.refs)
        return keyed if keys.valid_mask is None else keyed.take(np.flatnonzero(keys.valid_mask))

    def _fail_apart(self, rows: RowsInFlight, error: Exception) -> None:
        """Charge the queries on whose own rows the key fails: the selection of another may guard it from failing."""
        guilty, asking = set(), set()
        for number in np.unique(rows.nodes).tolist():
            for leg in self._following.nodes[number].legs:
                wants = (rows.nodes == number) & ((rows.words & np.uint64(1 << leg.bit)) != 0)
                if not wants.any():
                    continue
                asking.add(leg.leg.query)
                try:
                    self._keyed(rows.take(np.flatnonzero(wants)))
                except Exception:  # noqa: BLE001 - as above
                    guilty.add(leg.leg.query)
        self._report.fail(guilty or asking, error)

    def _without_void(self, rows: RowsInFlight) -> RowsInFlight:
        """Those that somebody wants whose answers count."""
        void = self._report.void_queries
        masks = {
            number: sum(1 << leg.bit for leg in self._following.nodes[number].legs if leg.leg.query in void)
            for number in np.unique(rows.nodes).tolist()
        }
        words = rows.words & ~np.array([masks[number] for number in rows.nodes.tolist()], np.uint64)
        return RowsInFlight(rows.nodes, rows.codes, words, rows.refs).take(np.flatnonzero(words))
