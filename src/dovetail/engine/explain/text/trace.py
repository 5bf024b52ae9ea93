"""How a plan was made, pass by pass: what each said when it ran last, what it said before, how long it took."""

from __future__ import annotations

from typing import Any

from dovetail.core.text_tree import TextTree
from dovetail.optimizer.pipeline import PassTrace


def trace_text(traces: tuple[PassTrace, ...]) -> TextTree:
    ran = [each for each in traces if not each.is_kept]
    spent = f"{len(ran)} of {len(traces)} passes ran, in {sum(each.seconds for each in ran) * 1e3:.1f} ms"
    return TextTree(f"how the plan was made: {spent}", tuple(TextTree(_line(each)) for each in traces))


def trace_json(traces: tuple[PassTrace, ...]) -> list[dict[str, Any]]:
    return [
        {
            "pass": each.name,
            "batch": each.batch,
            "ms": each.seconds * 1e3,
            "tells": each.tells,
            "before": each.before,
            "is_kept": each.is_kept,
        }
        for each in traces
    ]


def _line(trace: PassTrace) -> str:
    was = "" if trace.before in (None, trace.tells) else f", where it was: {trace.before}"
    took = f"{trace.seconds * 1e3:.1f} ms"
    when = f"as for batch {trace.batch}, {took} then" if trace.is_kept else took
    return f"{trace.name.replace('_', ' ')}: {trace.tells}{was} ({when})"
