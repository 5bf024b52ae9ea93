"""Hostile rows and files beside the good ones of a wave. Whatever their fate, the good rows are answered as without them.

Rows that a stream may or may not take have keys below zero, which no good answer has.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from benchmarks.hostile.world import BEGIN, SCHEMA, WAVE_S, parquet_bytes, rows


@dataclass(frozen=True)
class HostileFile:
    """`content` of the wave's number; None is a folder of that name."""

    mechanism: str
    what: str
    content: Callable[[int], bytes | None]
    suffix: str = "parquet"


def _odd_rows(wave: int, count: int = 3) -> pa.Table:
    """Rows like those of the wave, with keys below zero."""
    table = rows("odd", wave, count)
    return table.set_column(0, SCHEMA.field("k"), pa.array([-wave * 100 - i - 5 for i in range(count)], pa.int64()))


def _with(wave: int, name: str, values: pa.Array) -> bytes:
    table = _odd_rows(wave, len(values))
    return parquet_bytes(table.set_column(table.column_names.index(name), name, values))


def _at(micros: list[int | None]) -> Callable[[int], bytes]:
    return lambda wave: _with(wave, "ts", pa.array(micros, pa.int64()).view(pa.timestamp("us", tz="UTC")))


def _of_type(name: str, values: pa.Array) -> Callable[[int], bytes]:
    return lambda wave: _with(wave, name, values)


def _written(**options: object) -> Callable[[int], bytes]:
    def content(wave: int) -> bytes:
        sink = io.BytesIO()
        pq.write_table(_odd_rows(wave), sink, **options)
        return sink.getvalue()

    return content


def _broken(change: Callable[[bytes], bytes]) -> Callable[[int], bytes]:
    return lambda wave: change(parquet_bytes(_odd_rows(wave)))


def _invalid_utf8(wave: int) -> bytes:
    raw = pa.array([b"\xff\xfe", b"\xed\xa0\x80", b"x\xc3"], pa.binary())
    text = pa.StringArray.from_buffers(len(raw), raw.buffers()[1], raw.buffers()[2])
    return _with(wave, "s", text)


def _orc_bytes(wave: int) -> bytes:
    sink = io.BytesIO()
    orc.write_table(_odd_rows(wave).select(["k", "v", "s"]), sink)
    return sink.getvalue()


def _without(*names: str) -> Callable[[int], bytes]:
    return lambda wave: parquet_bytes(_odd_rows(wave).drop_columns(list(names)))


def _ahead(wave: int) -> bytes:
    moment = datetime.now(UTC) + timedelta(days=400)
    return _with(wave, "ts", pa.array([moment] * 3, pa.timestamp("us", tz="UTC")))


def _late(wave: int) -> bytes:
    moment = BEGIN + timedelta(seconds=(wave - 3) * WAVE_S)
    return _with(wave, "ts", pa.array([moment] * 3, pa.timestamp("us", tz="UTC")))


_YEAR_US = 31_556_952_000_000
FILES = (
    HostileFile("impossible times", "beyond year 9999", _at([9_000 * _YEAR_US, 200_000 * _YEAR_US])),
    HostileFile("impossible times", "before year 1", _at([-2_000 * _YEAR_US, -200_000 * _YEAR_US])),
    HostileFile("impossible times", "the last and first number", _at([2**63 - 1, -(2**63)])),
    HostileFile("impossible times", "year 9999", _at([253_402_300_799_999_999])),
    HostileFile("impossible times", "no time at all", _at([None, None])),
    HostileFile("impossible times", "the epoch", _at([0])),
    HostileFile("rows far ahead or behind", "400 days ahead", _ahead),
    HostileFile("rows far ahead or behind", "three waves late", _late),
    *(
        HostileFile("files that are broken", what, _broken(change))
        for what, change in {
            "no byte": lambda _: b"",
            "cut in half": lambda data: data[: len(data) // 2],
            "without its end": lambda data: data[:-9],
            "without its beginning": lambda data: data[40:],
            "only the magic": lambda _: b"PAR1PAR1",
            "zeros in the middle": lambda data: data[:100] + bytes(200) + data[300:],
            "a flipped footer": lambda data: data[:-40] + bytes(byte ^ 255 for byte in data[-40:-8]) + data[-8:],
            "a footer of two gigabytes": lambda data: data[:-8] + b"\xff\xff\xff\x7fPAR1",
            "a text": lambda _: b"no Parquet at all\n" * 50,
            "twice the same": lambda data: data + data,
            "a Parquet file in a gzip": lambda data: b"\x1f\x8b\x08\x00" + data,
        }.items()
    ),
    HostileFile("files of another kind", "ORC", _orc_bytes),
    HostileFile("files of another kind", "JSON", lambda _: b'{"k": -5, "v": 1}\n'),
    HostileFile("files of another kind", "a folder", lambda _: None),
    HostileFile("files of another kind", "no ending of its own", _broken(lambda data: data), "tmp"),
    HostileFile("columns of another type", "texts for numbers", _of_type("k", pa.array(["x", "y"]))),
    HostileFile("columns of another type", "numbers for texts", _of_type("s", pa.array([1, 2]))),
    HostileFile("columns of another type", "texts for times", _of_type("ts", pa.array(["now", "then"]))),
    HostileFile("columns of another type", "numbers for times", _of_type("ts", pa.array([1, 2]))),
    HostileFile("columns of another type", "doubles for integers", _of_type("v", pa.array([1.5, 2.5]))),
    HostileFile("columns of another type", "long for int", _of_type("v", pa.array([2**40, 1], pa.int64()))),
    HostileFile("columns of another type", "int for long", _of_type("big", pa.array([1, 2], pa.int32()))),
    HostileFile("columns of another type", "lists", _of_type("v", pa.array([[1], [2, 3]]))),
    HostileFile("columns of another type", "structs", _of_type("s", pa.array([{"x": 1}, {"x": 2}]))),
    HostileFile("columns of another type", "bytes", _of_type("s", pa.array([b"\xff", b"x"]))),
    HostileFile("columns of another type", "decimals of another scale", _of_type("m", pa.array([1, 2]).cast(pa.decimal128(30, 5)))),
    HostileFile("columns of another type", "nanoseconds", _of_type("ts", pa.array([10**18, 10**18], pa.timestamp("ns", tz="UTC")))),
    HostileFile("columns of another type", "milliseconds", _of_type("ts", pa.array([1_767_225_600_000] * 2, pa.timestamp("ms", tz="UTC")))),
    HostileFile("columns of another type", "times without a zone", _of_type("ts", pa.array([BEGIN.replace(tzinfo=None)] * 2, pa.timestamp("us")))),
    HostileFile("columns of another type", "all NULL of no type", _of_type("v", pa.nulls(2))),
    HostileFile("columns of another type", "a dictionary", _of_type("s", pa.array(["x", "y"]).dictionary_encode())),
    HostileFile("other columns", "no event time", _without("ts")),
    HostileFile("other columns", "no key", _without("k")),
    HostileFile("other columns", "only one", _without("v", "s", "odd", "d", "m", "big", "day", "t", "u", "ts")),
    HostileFile("other columns", "in another order", lambda wave: parquet_bytes(_odd_rows(wave).select(SCHEMA.names[::-1]))),
    HostileFile("other columns", "names in capitals", lambda wave: parquet_bytes(_odd_rows(wave).rename_columns([n.upper() for n in SCHEMA.names]))),
    HostileFile("other columns", "500 more", lambda wave: parquet_bytes(pa.table({**dict(zip(SCHEMA.names, _odd_rows(wave).columns, strict=True)), **{f"x{i}": [1, 2, 3] for i in range(500)}}))),
    HostileFile("other columns", "no row", lambda wave: parquet_bytes(_odd_rows(wave).slice(0, 0))),
    HostileFile("odd values of texts", "no UTF-8", _invalid_utf8),
    HostileFile("odd values of texts", "18 MB in one", _of_type("s", pa.array(["x" * (18 << 20)]))),
    HostileFile("odd values of texts", "a megabyte in each", _of_type("odd", pa.array(["y" * (1 << 20)] * 6))),
    HostileFile("odd values of texts", "NULs and controls", _of_type("s", pa.array(["\x00", "\x1b[2J", "\u202e", "\ufffe"]))),
    HostileFile("odd values of numbers", "the ends", _of_type("v", pa.array([2**31 - 1, -(2**31), 0], pa.int32()))),
    HostileFile("odd values of numbers", "NaN with another payload", _of_type("d", pa.array([0x7FF8000000000001, 0x7FF0000000000001 + (1 << 51)], pa.int64()).view(pa.float64()))),
    HostileFile("odd ways to write", "version 1, no dictionary", _written(version="1.0", use_dictionary=False)),
    HostileFile("odd ways to write", "INT96 times", _written(use_deprecated_int96_timestamps=True)),
    HostileFile("odd ways to write", "a row a page and group", _written(row_group_size=1, data_page_size=1)),
    HostileFile("odd ways to write", "brotli", _written(compression="brotli")),
    HostileFile("odd ways to write", "zstd and byte streams", _written(compression="zstd", use_byte_stream_split=["d"], use_dictionary=False)),
)  # fmt: skip
