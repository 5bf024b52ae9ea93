from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from typing import Any

import pytest

from dovetail.core.errors import StoreError
from dovetail.stats.unit_costs import DEFAULT_UNIT_COSTS, UnitCosts

NAMES = [entry.name for entry in fields(UnitCosts)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [-1e-9, math.nan, math.inf, "1e-8", None, True])
def test_what_is_no_cost_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(StoreError, match=f"unit cost {name} is"):
        replace(DEFAULT_UNIT_COSTS, **{name: value})


def test_zero_is_a_cost() -> None:
    assert UnitCosts(**dict.fromkeys(NAMES, 0.0)).shipped == 0.0


def test_json_gives_the_same_costs_back() -> None:
    costs = replace(DEFAULT_UNIT_COSTS, byte=1e-15)
    assert UnitCosts.from_json(json.loads(json.dumps(costs.to_json()))) == costs


@pytest.mark.parametrize("change", [{"probed": None}, {"weighed": 1.0}])
def test_a_record_with_other_names_is_refused(change: dict[str, float | None]) -> None:
    record = {name: value for name, value in {**DEFAULT_UNIT_COSTS.to_json(), **change}.items() if value is not None}
    with pytest.raises(StoreError, match="unit costs have the names"):
        UnitCosts.from_json(record)


def test_default_units_all_cost_something_but_the_byte() -> None:
    assert [name for name, value in DEFAULT_UNIT_COSTS.to_json().items() if value == 0] == ["byte"]
