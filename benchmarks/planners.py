"""The engine options that suites compare with each other, all in this one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PLANNERS: Mapping[str, Mapping[str, Any]] = {
    # `tpch-multi`: each query planned for itself, steps that happen to be equal taken once; then all planned together.
    "shared": {"optimizer": "greedy", "keep_intermediates": "never"},
    "joint": {"optimizer": "joint", "keep_intermediates": "by cost"},
    # `adaptive`: the first plan for ever, and plans that follow the data.
    "static": {"optimizer": "greedy", "keep_intermediates": "never", "replan": False},
    "adaptive": {"optimizer": "joint", "keep_intermediates": "by cost", "replan": True},
    # `materialize`: nothing kept, a tree that is given, and what the optimizer chooses to keep.
    "flat": {"optimizer": "greedy", "keep_intermediates": "never"},
    "left_deep": {"optimizer": "greedy", "keep_intermediates": "never"},
    "optimized": {"optimizer": "joint", "keep_intermediates": "by cost", "plan_in_background": False},
}
