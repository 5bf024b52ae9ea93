from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from dovetail.lowering.lower_plan import flat_plan
from dovetail.runtime.probe.pass_on import NextRows
from dovetail.runtime.probe.rows_in_flight import RowsInFlight
from dovetail.runtime.report import TaskReport
from tests.support.generators.small_plan import plan_of

BAD = 13


@pytest.mark.parametrize(("bad_for", "charged"), [((0,), {0}), ((1,), {1}), ((0, 1), {0, 1}), ((), set())])
def test_a_key_is_charged_to_those_on_whose_own_rows_it_fails(
    bad_for: tuple[int, ...], charged: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two queries share the step; each wants two rows, one row is of both. Keys fail on rows of the reference BAD."""
    flat, report, sent = flat_plan(plan_of(4)), TaskReport(), list[RowsInFlight]()
    (node,) = flat.hops[1].nodes
    bits, names = [1 << leg.bit for leg in node.legs], [leg.leg.query for leg in node.legs]
    words = [bits[0], bits[1], bits[0] | bits[1]]
    refs = [BAD if which in bad_for else which for which in (0, 1)] + [2]
    rows = RowsInFlight(
        np.full(3, node.number), np.zeros(3, np.uint64), np.array(words, np.uint64), np.array([refs], np.uint64)
    )

    def keyed(_self: NextRows, given: RowsInFlight) -> RowsInFlight:
        if BAD in given.refs:
            raise ValueError("no key")
        return given

    monkeypatch.setattr(NextRows, "_keyed", keyed)
    unused = cast("Any", SimpleNamespace())
    NextRows(unused, flat.hops[0], flat.hops[1], unused, {}, report, sent.append)._key(rows)
    assert report.void_queries == {names[which] for which in charged}
    left = [(int(word), int(ref)) for each in sent for word, ref in zip(each.words, each.refs[0], strict=True)]
    kept = sum(bits[which] for which in (0, 1) if which not in charged)
    assert left == [(word & kept, ref) for word, ref in zip(words, refs, strict=True) if word & kept]
