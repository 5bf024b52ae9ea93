"""All options of an engine, and how they are made of flat keywords."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from dovetail.core.errors import SessionError
from dovetail.engine.options.elasticity import Elasticity
from dovetail.engine.options.limits import Limits
from dovetail.engine.options.option import options_of
from dovetail.engine.options.partitioning import REFERENCES, ROWS, SHARED, Partitioning
from dovetail.engine.options.planning import Planning
from dovetail.engine.options.storage import Storage
from dovetail.engine.options.tuning import EngineTuning
from dovetail.engine.planning.scale_units import ScalingSettings
from dovetail.plan.routing import HASH, RANDOM, Routing
from dovetail.plan.shipping import Copies, Shipping

RECORDS: Mapping[str, type[Any]] = {
    "partitioning": Partitioning,
    "planning": Planning,
    "elasticity": Elasticity,
    "limits": Limits,
    "storage": Storage,
}
"""The records that users set, option by option."""


@dataclass(frozen=True)
class EngineOptions:
    """Each record checks itself; here is what one asks of another. `timezone` is that of Spark's session."""

    partitioning: Partitioning = field(default_factory=Partitioning)
    planning: Planning = field(default_factory=Planning)
    elasticity: Elasticity = field(default_factory=Elasticity)
    limits: Limits = field(default_factory=Limits)
    storage: Storage = field(default_factory=Storage)
    tuning: EngineTuning = field(default_factory=EngineTuning)
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        routing, exchange = self.partitioning.routing, self.partitioning.exchange
        if self.tuning.routing_subgroups is not None and routing != "contrand":
            raise SessionError(f"routing_subgroups is given, and routing is {routing!r}", hint="use routing='contrand'")
        if exchange == REFERENCES and self.tuning.copies == Copies.KEY.value:
            raise SessionError(
                f"copies is {self.tuning.copies!r}, and exchange is {REFERENCES!r}",
                hint=f"use exchange={ROWS!r}, or leave copies out: references are not copied",
            )
        _ = self.scaling

    @property
    def syncs(self) -> bool:
        """Whether files are written through to the disk before somebody relies on them."""
        return self.storage.syncs

    @property
    def shipping(self) -> Shipping | None:
        return Shipping(Copies(self.tuning.copies)) if self.partitioning.exchange == ROWS else None

    @property
    def places_by_samples(self) -> bool:
        """Whether it is sampled how rows fall on key groups, and placements follow that."""
        if self.partitioning.placement == "auto":
            return self.shipping == Shipping(Copies.PARTITION)
        return self.partitioning.placement == SHARED

    @property
    def may_place_by_one_key(self) -> bool:
        """Whether it spares copies that an index of several keys lies where one of them alone would have it."""
        return self.partitioning.exchange == ROWS and self.tuning.copies == Copies.PARTITION.value

    @property
    def fixed_routing(self) -> Routing | None:
        """How keyed indexes are routed; None if skew decides."""
        if self.partitioning.routing == "contrand":
            return Routing(subgroups=self.tuning.routing_subgroups or math.isqrt(self.partitioning.partitions))
        return {"auto": None, "hash": HASH, "random": RANDOM}[self.partitioning.routing]

    @property
    def scaling(self) -> ScalingSettings:
        """How the number of partitions follows the load, where it does."""
        bounds, tuning, key_groups = self.elasticity, self.tuning, self.partitioning.key_groups
        if bounds.max_partitions is not None and bounds.max_partitions > key_groups:
            raise SessionError(
                f"max_partitions is {bounds.max_partitions}", hint=f"use 1 to key_groups, which is {key_groups}"
            )
        return ScalingSettings(
            bounds.min_partitions,
            bounds.max_partitions or key_groups,
            tuning.low_load,
            tuning.target_load,
            tuning.high_load,
            tuning.scale_after,
        )


RECORD_BY_OPTION = {name: record for record, kind in RECORDS.items() for name in options_of(kind)}
USER_OPTIONS = tuple(RECORD_BY_OPTION)
MOVED: Mapping[str, str] = {
    **{
        name: f"it is inside, for tests and benchmarks: tuning=EngineTuning({name}=...), from dovetail.engine.options"
        for name in options_of(EngineTuning)
    },
    "timezone": "it is Spark's: set spark.sql.session.timeZone of the Spark session",
}
"""What is no option of a session, and where it is set instead."""


def user_options(given: Mapping[str, Any], timezone: str, tuning: EngineTuning | None = None) -> EngineOptions:
    """A session's options by keyword. One that is unknown is an error that lists those there are."""
    for name in given:
        if name in MOVED:
            raise SessionError(f"{name} is no option of a session", hint=MOVED[name])
    refuse_unknown(given, USER_OPTIONS)
    return EngineOptions(**_records(given), tuning=tuning or EngineTuning(), timezone=timezone)


def make_options(*, timezone: str = "UTC", **given: Any) -> EngineOptions:
    """As tests and benchmarks give them: a session's options and inner settings alike by keyword."""
    refuse_unknown(given, (*USER_OPTIONS, *options_of(EngineTuning)))
    return EngineOptions(**_records(given), tuning=with_tuning(given)["tuning"], timezone=timezone)


def with_tuning(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a `Session` takes by keyword, of options and inner settings alike: for tests and benchmarks."""
    inner = {name: value for name, value in given.items() if name in options_of(EngineTuning)}
    others = {name: value for name, value in given.items() if name not in inner}
    return {**others, "tuning": EngineTuning(**inner)}


def refuse_unknown(given: Collection[str], known: Collection[str]) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        near = [difflib.get_close_matches(name, (*known, "trigger"), 1) for name in unknown]
        meant = ", ".join(found[0] for found in near if found)
        listed = f"options are: {', '.join(sorted(known))}, trigger"
        raise SessionError(
            f"unknown option: {', '.join(unknown)}", hint=f"did you mean {meant}? {listed}" if meant else listed
        )


def _records(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        record: kind(**{name: value for name, value in given.items() if RECORD_BY_OPTION.get(name) == record})
        for record, kind in RECORDS.items()
    }
