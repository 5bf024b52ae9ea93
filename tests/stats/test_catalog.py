from __future__ import annotations

import math

import pytest

from dovetail.query.expression import TRUE, Column
from dovetail.query.types import BOOLEAN
from dovetail.stats.catalog import StatsCatalog, edge_text
from dovetail.stats.estimate import Estimate, Origin


def test_what_was_given_is_told_from_what_is_assumed() -> None:
    stats = StatsCatalog({"views": 7.0}, {"a.x=b.y": 0.5})
    assert stats.rows("views") == Estimate(7.0, Origin.GIVEN)
    assert stats.rows("other").origin is Origin.ASSUMED
    assert stats.match(edge_text("b.y", "a.x")) == Estimate(0.5, Origin.GIVEN)
    assert stats.match("a.x=c.z").origin is Origin.ASSUMED


def test_no_selection_keeps_every_row() -> None:
    assert StatsCatalog().selection(TRUE) == Estimate(1.0, Origin.GIVEN)
    assert 0 < StatsCatalog().selection(Column("row", "ok", BOOLEAN)).value < 1


@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_an_estimate_is_a_number_that_is_not_negative(value: float) -> None:
    with pytest.raises(ValueError, match="not negative"):
        Estimate(value, Origin.GIVEN)
