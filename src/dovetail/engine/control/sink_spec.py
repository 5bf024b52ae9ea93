"""Where a query's answers go besides the result files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.core.errors import QueryError
from dovetail.query.hide_secrets import hide_secrets

_FORMAT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,199}\Z")


@dataclass(frozen=True, repr=False)
class SinkSpec:
    """A Spark sink by the name of its format, with the options that Spark's writer takes."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _FORMAT.match(str(self.format)):
            raise QueryError(
                f"{self.format!r} cannot name a sink", hint="use a Spark format, e.g. 'kafka' or 'parquet'"
            )
        if not all(isinstance(part, str) for item in self.options.items() for part in item):
            raise QueryError("the sink's options are not all texts", hint="write values as texts: 'sink.topic' = 'x'")

    @property
    def shown_options(self) -> dict[str, str]:
        """The options without secrets, for people and logs."""
        return hide_secrets(self.format, self.options)

    def __repr__(self) -> str:
        return f"SinkSpec(format={self.format!r}, options={self.shown_options!r})"
