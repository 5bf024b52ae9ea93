"""What the running engine saw, folded over batches; the newest count most, so that a change shows within a few."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

from dovetail.stats.estimate import Estimate
from dovetail.stats.figure import Figure, Kind, Tally
from dovetail.stats.key_group_sample import KeyGroupSample, KeyGroupsSeen
from dovetail.stats.key_stats import KeysSeen, KeyStats
from dovetail.stats.selection_sample import RowsSampled, SelectionSample

FORGET_AFTER_BATCHES = 1000
STALE_AFTER_BATCHES = 8
MAX_STORED_BYTES = 64 << 10
_ENTRY_BYTES = 90
"""At most, without the names: three numbers, a batch, the kind and the punctuation."""

_OF_SINGLE_QUERIES = (Kind.SELECTION, Kind.STEP)
_OF_MANY_QUERIES = tuple(kind for kind in Kind if kind not in _OF_SINGLE_QUERIES)
IndexName = tuple[str, str]
"""A store's id and an index's id."""


@dataclass(frozen=True)
class BatchSeen:
    """What one batch adds. `first_live_batch` is by store: the oldest batch of which it still holds rows.

    So are `rows_sampled` and `key_groups`. `tallies` of None: nobody asked for them, which says nothing of them.
    """

    batch: int
    tallies: Mapping[Figure, Tally] | None = field(default_factory=dict)
    keys: Mapping[IndexName, KeysSeen] = field(default_factory=dict)
    first_live_batch: Mapping[str, int] = field(default_factory=dict)
    rows_sampled: Mapping[str, RowsSampled] = field(default_factory=dict)
    key_groups: Mapping[str, KeyGroupsSeen] = field(default_factory=dict)


@dataclass(frozen=True)
class ObservedStats:
    """A value: the driver folds finished batches into the next one, and planners read whichever they began with.

    `tallied` counts the batches of this process that brought tallies, the last of them `tally_gap` batches after the
    one before.
    """

    tallies: Mapping[Figure, Tally] = field(default_factory=dict)
    keys: Mapping[IndexName, KeyStats] = field(default_factory=dict)
    first_live_batch: Mapping[str, int] = field(default_factory=dict)
    last_batch_by_name: Mapping[Figure | IndexName | str, int] = field(default_factory=dict)
    samples: Mapping[str, SelectionSample] = field(default_factory=dict)
    key_groups: Mapping[str, KeyGroupSample] = field(default_factory=dict)
    tallied: int = 0
    tallied_batch: int | None = None
    tally_gap: int = 1

    def folded(self, seen: BatchSeen) -> ObservedStats:
        keys, last = dict(self.keys), dict(self.last_batch_by_name)
        changed: dict[Figure, Tally] = {}
        for figure, tally in (seen.tallies or {}).items():
            if tally.whole:
                changed[figure] = self.tallies[figure].folded(tally) if figure in self.tallies else tally
                last[figure] = seen.batch
        for name, key_seen in seen.keys.items():
            keys[name] = keys.get(name, KeyStats()).folded(key_seen, seen.batch)
            last[name] = seen.batch
        samples = dict(self.samples)
        for store, rows in seen.rows_sampled.items():
            samples[store] = samples.get(store, SelectionSample()).folded(rows)
            last[store] = seen.batch
        key_groups = dict(self.key_groups)
        for store, groups in seen.key_groups.items():
            key_groups[store] = key_groups.get(store, KeyGroupSample()).folded(groups)
            last[store] = seen.batch
        known = replace(self, keys=keys, first_live_batch=dict(seen.first_live_batch), samples=samples)
        known = replace(known, key_groups=key_groups, tallies={**self.tallies, **changed}, last_batch_by_name=last)
        if seen.tallies is not None:
            return known._without_old(seen.batch)._after_tallies(seen.batch)
        if "_stored" in vars(self):
            # No figure has changed: the text of thousands need not be made again for every batch.
            vars(known)["_stored"] = self._stored
        return known

    def _without_old(self, batch: int) -> ObservedStats:
        last = self.last_batch_by_name
        recent = {name: own for name, own in last.items() if own > batch - FORGET_AFTER_BATCHES}
        if len(recent) == len(last):
            return self
        return replace(
            self,
            tallies={figure: tally for figure, tally in self.tallies.items() if figure in recent},
            keys={name: stats for name, stats in self.keys.items() if name in recent},
            last_batch_by_name=recent,
            samples={store: sample for store, sample in self.samples.items() if store in recent},
            key_groups={store: sample for store, sample in self.key_groups.items() if store in recent},
        )

    def _after_tallies(self, batch: int) -> ObservedStats:
        gap = 1 if self.tallied_batch is None else max(1, batch - self.tallied_batch)
        return replace(self, tallied=self.tallied + 1, tallied_batch=batch, tally_gap=gap)

    def to_json(self) -> list[list[Any]]:
        """The figures for a restart, up to `MAX_STORED_BYTES`; keys and samples come back with a few batches."""
        return self._stored

    @cached_property
    def _stored(self) -> list[list[Any]]:
        stored: list[list[Any]] = []
        room = MAX_STORED_BYTES
        for figure in _in_stored_order(self.tallies):
            tally = self.tallies[figure]
            room -= _ENTRY_BYTES + sum(len(name.encode()) for name in figure.subject)
            if room < 0:
                break
            numbers = [float(f"{number:.9g}") for number in (tally.part, tally.whole, tally.relative_error)]
            stored.append([figure.kind.name, *figure.subject, *numbers, self.last_batch_by_name[figure]])
        return stored

    @staticmethod
    def from_json(stored: list[list[Any]]) -> ObservedStats:
        tallies: dict[Figure, Tally] = {}
        last: dict[Figure | IndexName | str, int] = {}
        for kind, *subject, part, whole, relative_error, batch in stored:
            figure = Figure(Kind[kind], tuple(subject))
            tallies[figure] = Tally(part, whole, relative_error)
            last[figure] = batch
        return ObservedStats(tallies, last_batch_by_name=last)

    def is_fresh(self, figure: Figure) -> bool:
        """Whether one of the last few that were asked brought it: what the plan no longer counts gets old."""
        oldest = self._newest_batch - STALE_AFTER_BATCHES * self.tally_gap
        return figure in self.tallies and self.last_batch_by_name[figure] > oldest

    @cached_property
    def _newest_batch(self) -> int:
        return max(self.last_batch_by_name.values(), default=0)

    def estimate(self, figure: Figure) -> Estimate | None:
        tally = self.tallies.get(figure)
        return None if tally is None else tally.estimate


def _in_stored_order(figures: Iterable[Figure]) -> Iterator[Figure]:
    """Figures of single queries last: there can be many, and they come back soonest."""
    by_kind: dict[Kind, list[Figure]] = {kind: [] for kind in (*_OF_MANY_QUERIES, *_OF_SINGLE_QUERIES)}
    for figure in figures:
        by_kind[figure.kind].append(figure)
    for own in by_kind.values():
        yield from sorted(own, key=attrgetter("subject"))


@dataclass(frozen=True)
class Change:
    """A figure that moved; its text says from what to what."""

    figure: Figure
    before: Estimate
    now: Estimate

    def __str__(self) -> str:
        return f"{self.figure}: {self.before} became {self.now}"


def changed(old: ObservedStats, new: ObservedStats, factor: float) -> tuple[Change, ...]:
    """Figures that moved by more than `factor` either way, beyond what chance and errors explain; sorted by text.

    What is known now and was not before has not moved.
    """
    if factor <= 1:
        raise ValueError(f"a change is by a factor above 1, not {factor}")
    changes = []
    for figure, tally in new.tallies.items():
        earlier = old.tallies.get(figure)
        before, now = earlier.estimate if earlier else None, tally.estimate
        if earlier is None or before is None or now is None:
            continue
        low, high = sorted((before.value, now.value))
        if high > low * factor * (1 + earlier.noise + tally.noise) and max(earlier.part, tally.part) >= 1:
            changes.append(Change(figure, before, now))
    return tuple(sorted(changes, key=lambda change: str(change.figure)))
