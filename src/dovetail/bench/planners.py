"""The engine options that suites compare with each other, all in this one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dovetail.engine.options import EngineOptions

PLANNERS: Mapping[str, Mapping[str, Any]] = {
    # `tpch-multi`: each query planned for itself, steps that happen to be equal taken once; then all planned together.
    "shared": {"optimizer": "greedy", "keep_intermediates": False},
    "joint": {"optimizer": "joint", "keep_intermediates": False},
    # `adaptive`: the first plan for ever, and plans that follow the data.
    "static": {"optimizer": "joint", "keep_intermediates": False, "replan": False},
    "adaptive": {"optimizer": "joint", "keep_intermediates": False, "replan": True},
    # `materialize`: nothing kept, a tree that is given, and what the optimizer chooses to keep.
    "flat": {"optimizer": "greedy", "keep_intermediates": False},
    "left_deep": {"optimizer": "greedy", "keep_intermediates": False},
    "optimized": {"optimizer": "greedy", "keep_intermediates": True},
}


def planner_options(planner: str) -> dict[str, Any]:
    known = {field.name for field in fields(EngineOptions)}
    return {name: value for name, value in PLANNERS[planner].items() if name in known}
