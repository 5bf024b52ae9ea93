"""All streams in one DataFrame: columns of different streams share a slot when their types agree.

The union of streams has one column per slot, not per (stream, column), because every slot costs time on the way
to Python even where it is NULL. The streaming query reads the columns that some query needs; when queries were
dropped since, each batch is packed anew with just those that its plan wants.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from dovetail.runtime.spark.types import quoted
from dovetail.store.bad_rows import PLACE_COLUMNS

TAG = "stream"


@dataclass(frozen=True)
class Packing:
    """`slot_by_column[stream][column]` is the slot's name; slots are named by type and number."""

    streams: tuple[str, ...]
    slot_by_column: Mapping[str, Mapping[str, str]]
    type_by_slot: Mapping[str, DataType]

    @property
    def columns_by_stream(self) -> dict[str, set[str]]:
        return {stream: set(self.slot_by_column[stream]) for stream in self.streams}

    @property
    def value_types(self) -> list[DataType]:
        """Of all slots but those of `PLACE_COLUMNS` alone, which are NULL for nearly all rows."""
        used = {
            slot for slots in self.slot_by_column.values() for name, slot in slots.items() if name not in PLACE_COLUMNS
        }
        return [self.type_by_slot[slot] for slot in used]

    def tag_of(self, stream: str) -> int:
        return self.streams.index(stream)

    def unpacked(self, batch: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
        """A packed batch as rows of single streams under their own column names."""
        tags = batch.column(0)
        if len(tags) == 0:
            return []
        first, last = tags[0].as_py(), tags[-1].as_py()
        # A partition of a union comes from one stream; only coalesced partitions mix them, in runs.
        if (first == last and len(self.streams) == 1) or tags.slice(0, len(tags)).unique().to_pylist() == [first]:
            return [(self.streams[first], self._columns_of(batch, first))]
        parts = []
        for tag in tags.unique().to_pylist():
            rows = batch.filter(pa.compute.equal(tags, tag))
            parts.append((self.streams[tag], self._columns_of(rows, tag)))
        return parts

    def _columns_of(self, batch: pa.RecordBatch, tag: int) -> pa.RecordBatch:
        slots = self.slot_by_column[self.streams[tag]]
        return pa.RecordBatch.from_arrays([batch.column(slot) for slot in slots.values()], list(slots))


def pack_columns(types_by_column: Mapping[str, Mapping[str, DataType]]) -> Packing:
    """Slots for these columns of these streams; the i-th column of a type takes that type's i-th slot."""
    slot_by_column: dict[str, dict[str, str]] = {}
    type_by_slot: dict[str, DataType] = {}
    for stream, type_by_column in types_by_column.items():
        used: dict[str, int] = {}
        slot_by_column[stream] = {}
        for column, data_type in type_by_column.items():
            kind = data_type.simpleString()
            slot = f"{kind}:{used.get(kind, 0)}"
            used[kind] = used.get(kind, 0) + 1
            slot_by_column[stream][column] = slot
            type_by_slot[slot] = data_type
    return Packing(tuple(types_by_column), slot_by_column, type_by_slot)


def union_streams(frames: Mapping[str, DataFrame], packing: Packing) -> DataFrame:
    """The one DataFrame that the streaming query reads. As texts, since every Column object costs calls to the JVM."""
    packed = []
    for stream, frame in frames.items():
        column_by_slot = {slot: column for column, slot in packing.slot_by_column[stream].items()}
        slots = [
            f"{quoted(column_by_slot[slot])} AS {quoted(slot)}"
            if slot in column_by_slot
            else f"CAST(NULL AS {data_type.simpleString()}) AS {quoted(slot)}"
            for slot, data_type in packing.type_by_slot.items()
        ]
        packed.append(frame.selectExpr(f"{packing.tag_of(stream)} AS {TAG}", *slots))
    union = packed[0]
    for frame in packed[1:]:
        union = union.unionAll(frame)
    return union


def repacked_columns(whole: Packing, wanted: Packing) -> list[Column]:
    """What to select of a batch to have only the wanted columns, in as few slots as they need.

    Each call into Spark's expression builder crosses to the JVM, so this is made once per epoch, not per batch.
    """
    return [F.col(TAG), *(_slot(slot, whole, wanted) for slot in wanted.type_by_slot)]


def _slot(slot: str, whole: Packing, wanted: Packing) -> Column:
    sources: dict[str, list[int]] = {}
    for stream, slot_by_column in wanted.slot_by_column.items():
        for column, wanted_slot in slot_by_column.items():
            if wanted_slot == slot:
                sources.setdefault(whole.slot_by_column[stream][column], []).append(whole.tag_of(stream))
    if len(sources) == 1:
        (source,) = sources
        return F.col(f"`{source}`").alias(slot)
    cases: Column | None = None
    for source, tags in sources.items():
        condition, value = F.col(TAG).isin(tags), F.col(f"`{source}`")
        cases = F.when(condition, value) if cases is None else cases.when(condition, value)
    if cases is None:
        raise ValueError(f"no column fills slot {slot}")
    return cases.alias(slot)


def column_types(schema: StructType, columns: Collection[str]) -> dict[str, DataType]:
    return {field.name: field.dataType for field in schema if field.name in columns}
