"""Whether the number of partitions follows the load, and how far."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.core.errors import SessionError
from dovetail.engine.options.option import check_one_of, check_whole, option, options_of


@dataclass(frozen=True)
class Elasticity:
    """Partitions that come and go, and executors with them (docs/elastic.md)."""

    elastic: bool = option(False, "the number of partitions follows the load; `partitions` is only the first")
    min_partitions: int = option(1, "of `elastic`: never fewer")
    max_partitions: int | None = option(None, "of `elastic`: never more", "`key_groups`")
    max_bytes_per_partition: int = option(1 << 30, "of `elastic`: a partition that keeps so many bytes is full")

    def __post_init__(self) -> None:
        check_one_of("elastic", self.elastic, (True, False))
        check_whole("min_partitions", self.min_partitions, 1)
        check_whole("max_bytes_per_partition", self.max_bytes_per_partition, 1)
        if self.max_partitions is not None:
            check_whole("max_partitions", self.max_partitions, 1)
        if not self.elastic:
            given = [name for name, entry in options_of(Elasticity).items() if getattr(self, name) != entry.default]
            if given:
                raise SessionError(
                    f"{given[0]} is given, and the number of partitions is fixed",
                    hint="use elastic=True, or leave it out",
                )
