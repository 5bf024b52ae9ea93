"""What of a declared stream may change while its checkpoint stays.

Lateness, more columns, rules for bad rows, options of its source.
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.query.stream_spec import StreamSpec


@dataclass(frozen=True)
class StreamChange:
    """`texts` say what differs, one by one; `refused` those of them that no checkpoint takes."""

    texts: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join(self.texts)


def stream_change(known: StreamSpec, spec: StreamSpec) -> StreamChange:
    """From the declaration that is known to another of the same name; values of options are not told."""
    refused = []
    if known.kind != spec.kind:
        refused.append(f"format {known.format} becomes {spec.format}")
    if known.event_time != spec.event_time:
        refused.append(f"event_time {known.event_time} becomes {spec.event_time}")
    before, after = dict(known.columns), dict(spec.columns)
    refused += [f"column {name} {kind} is gone" for name, kind in before.items() if name not in after]
    refused += [
        f"column {name} {kind} becomes {after[name]}" for name, kind in before.items() if after.get(name, kind) != kind
    ]
    texts = [f"column {name} {kind} is new" for name, kind in after.items() if name not in before]
    if not refused and not texts and known.columns != spec.columns:
        texts.append("columns are in another order")
    if known.lateness != spec.lateness:
        texts.append(f"lateness {known.lateness} becomes {spec.lateness}")
    for name in ("on_bad_row", "max_event_time_ahead"):
        before_it, after_it = getattr(known, name), getattr(spec, name)
        if before_it != after_it:
            texts.append(f"{name} {before_it} becomes {after_it}")
    keys = sorted({key for key, _ in set(known.options.items()) ^ set(spec.options.items())})
    if keys:
        texts.append(f"options: {', '.join(keys)}")
    return StreamChange((*refused, *texts), tuple(refused))
