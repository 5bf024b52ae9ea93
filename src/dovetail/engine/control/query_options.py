"""What a query's creator may choose, checked when it is given and kept with the query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

from dovetail.core.errors import QueryError
from dovetail.engine.control.sink_spec import SinkSpec

SINK = "sink"


@dataclass(frozen=True)
class QueryOptions:
    """`keep_intermediates` off: the query probes base stores only, whatever the session keeps for others.

    `max_results_per_batch`, `max_pairs_per_batch`: a batch in which the query finds more puts it into quarantine; None
    takes the session's. Pairs are rows that meet at any step of the join.
    `backfill`: answers also what was there before the query, from the sources' history.
    `sink`: where its answers go besides the result files; None is nowhere else.
    """

    keep_intermediates: bool = True
    max_results_per_batch: int | None = None
    max_pairs_per_batch: int | None = None
    backfill: bool = False
    sink: SinkSpec | None = None

    def __post_init__(self) -> None:
        for name in ("keep_intermediates", "backfill"):
            if not isinstance(getattr(self, name), bool):
                raise QueryError(f"option {name} is {getattr(self, name)!r}", hint="use true or false")
        for name in ("max_results_per_batch", "max_pairs_per_batch"):
            limit = getattr(self, name)
            if limit is not None and (type(limit) is not int or limit < 1):
                raise QueryError(f"option {name} is {limit!r}", hint="use a whole number from 1 on")
        if self.sink is not None and not isinstance(self.sink, SinkSpec):
            raise QueryError(
                f"option {SINK} is a {type(self.sink).__name__}",
                hint="use the name of a Spark format or a SinkSpec; a Python function goes to query.foreach_batch",
            )

    def chosen(self) -> tuple[str, ...]:
        """Names of the options that are not as usual."""
        usual = QueryOptions()
        return tuple(e.name for e in fields(self) if getattr(self, e.name) != getattr(usual, e.name))

    def to_json(self) -> dict[str, Any]:
        return dict(self._as_dict)

    @cached_property
    def _as_dict(self) -> dict[str, Any]:
        """Once: it is written with every batch, and never changes."""
        return asdict(self)

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> QueryOptions:
        sink = record.get(SINK)
        return QueryOptions(**{**record, SINK: None if sink is None else SinkSpec(**sink)})


def replacing_options(given: Mapping[str, Any], replaced: QueryOptions) -> QueryOptions:
    """Of a query that takes another's place: what is not given stays, its sink too.

    A backfill belongs to the query that asked for it: the new one asks again if it wants one.
    """
    return query_options(given, base=replace(replaced, backfill=False))


def query_options(given: Mapping[str, Any], *, base: QueryOptions | None = None) -> QueryOptions:
    """Options by dotted key, as statements and files write them: `sink` names a format, `sink.*` go to it.

    What is not given stays as in `base`; a new `sink` replaces all of the old one.

    >>> query_options({"sink": "kafka", "sink.topic": "alerts"}).sink
    SinkSpec(format='kafka', options={'topic': 'alerts'})
    """
    base = base or QueryOptions()
    known = {entry.name for entry in fields(QueryOptions)}
    plain = {key: value for key, value in given.items() if not key.startswith(f"{SINK}.")}
    unknown = sorted(set(plain) - known)
    if unknown:
        raise QueryError(
            f"unknown option: {', '.join(unknown)}", hint=f"options are: {', '.join(sorted(known))}, {SINK}.*"
        )
    values = {name: getattr(base, name) for name in known} | plain
    to_sink = {key.removeprefix(f"{SINK}."): str(value) for key, value in given.items() if key not in plain}
    if isinstance(plain.get(SINK), str):
        values[SINK] = SinkSpec(plain[SINK], to_sink)
    elif to_sink:
        raise QueryError(f"options {SINK}.{', '.join(to_sink)} without a {SINK}", hint=f"add {SINK} = 'FORMAT'")
    return QueryOptions(**values)
