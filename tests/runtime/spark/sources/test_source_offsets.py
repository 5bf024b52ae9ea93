from __future__ import annotations

import json
from pathlib import Path

import pytest

from dovetail.core.errors import HistoryError
from dovetail.query.stream_spec import stream_spec
from dovetail.query.types import BIGINT, STRING
from dovetail.runtime.spark.sources.source_history import SourceHistory, kafka_range
from dovetail.runtime.spark.sources.source_offsets import FileLog, read_offsets, restore_offsets, source_dir

SETTINGS = '{"batchWatermarkMs":0,"conf":{}}'
FILES = {"format": "parquet", "path": "/in"}
KAFKA = {"format": "kafka", "kafka.bootstrap.servers": "host:9092", "subscribe": "t", "startingOffsets": "latest"}


def write_offsets(root: Path, version: str, *lines: str, batch: int = 7) -> None:
    folder = root / "spark" / "offsets"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(batch)).write_text("\n".join([version, SETTINGS, *lines]))


@pytest.mark.parametrize(
    ("version", "lines", "expected"),
    [
        ("v2", ['b:{"logOffset":3}', 'a:{"logOffset":1}'], {"a": '{"logOffset":1}', "b": '{"logOffset":3}'}),
        ("v2", ['b:{"t":{"0":5}}', "a:-"], {"b": '{"t":{"0":5}}'}),
        ("v1", ['{"logOffset":1}', "-"], {"a": '{"logOffset":1}'}),
        ("v1", ['{"logOffset":1}', '{"logOffset":2}', '{"logOffset":3}'], {}),  # one stream has two sources
        ("v3", ['a:{"logOffset":1}', 'b:{"logOffset":1}'], {}),
    ],
)
def test_offsets_are_told_by_name_or_by_place(
    tmp_path: Path, version: str, lines: list[str], expected: dict[str, str]
) -> None:
    write_offsets(tmp_path, version, *lines)
    assert read_offsets(tmp_path, 7, ["a", "b"]) == expected


def test_a_batch_without_offsets_tells_nothing(tmp_path: Path) -> None:
    assert read_offsets(tmp_path, 7, ["a"]) == {}


def test_a_source_without_a_name_is_found_by_its_place(tmp_path: Path) -> None:
    assert source_dir(tmp_path, "b", ["a", "b"]).name == "1"
    (tmp_path / "spark" / "sources" / "b").mkdir(parents=True)
    assert source_dir(tmp_path, "b", ["a", "b"]).name == "b"


def write_log(folder: Path, name: str, *numbers: int) -> None:
    lines = [json.dumps({"path": f"file:///in/{number}", "timestamp": 0, "batchId": number}) for number in numbers]
    (folder / name).write_text("\n".join(["v1", *lines]))


def test_the_log_of_files_is_read_across_its_compact_files(tmp_path: Path) -> None:
    log = FileLog(tmp_path)
    write_log(tmp_path, "0", 0)
    write_log(tmp_path, "1", 1, 1)
    assert log.paths(0, 1) == ["file:///in/0", "file:///in/1", "file:///in/1"]
    (tmp_path / "0").unlink()
    write_log(tmp_path, "2.compact", 0, 1, 1, 2)
    write_log(tmp_path, "3", 3)
    assert log.paths(1, 3) == ["file:///in/1", "file:///in/1", "file:///in/2", "file:///in/3"]
    assert FileLog(tmp_path).paths(0, 3) == ["file:///in/0", *log.paths(1, 3)]
    assert log.paths(4, 3) == []


def test_a_log_that_ends_too_early_is_an_error(tmp_path: Path) -> None:
    write_log(tmp_path, "0", 0)
    with pytest.raises(HistoryError, match="ends before number 5"):
        FileLog(tmp_path).paths(0, 5)


def test_a_log_of_another_version_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "0").write_text("v9\n{}")
    with pytest.raises(HistoryError, match="version 'v9'"):
        FileLog(tmp_path).paths(0, 0)


def test_records_of_kafka_are_those_between_two_offsets() -> None:
    spec = stream_spec("s", (("v", STRING),), KAFKA)
    options = kafka_range(spec, {"t": {"0": 5, "1": 7}}, {"t": {"0": 9, "1": 7, "2": 4}})
    assert options == {
        "kafka.bootstrap.servers": "host:9092",
        "assign": '{"t": [0, 2]}',
        "startingOffsets": '{"t": {"0": 5, "2": -2}}',  # a new partition from its beginning
        "endingOffsets": '{"t": {"0": 9, "2": 4}}',
        "failOnDataLoss": "true",
    }
    assert kafka_range(spec, {"t": {"0": 9}}, {"t": {"0": 9}}) is None


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (FILES, None),
        (KAFKA, None),
        (FILES | {"cleanSource": "archive"}, "removes its files"),
        ({"format": "rate"}, "format rate, whose rows come only once"),
        (None, "is a DataFrame, whose rows come only once"),
    ],
)
def test_files_and_kafka_can_be_read_again(given: dict[str, str] | None, error: str | None) -> None:
    columns = () if given and given["format"] == "rate" else (("v", BIGINT),)
    specs = {} if given is None else {"s": stream_spec("s", columns, given)}
    history = SourceHistory(None, Path("/"), lambda: specs, lambda: ["s"])  # type: ignore[arg-type]
    if error is None:
        history.check(["s"])
    else:
        with pytest.raises(HistoryError, match=error):
            history.check(["s"])


def test_a_source_that_was_left_out_goes_on_where_it_was(tmp_path: Path) -> None:
    for batch in (5, 6, 7):
        write_offsets(tmp_path, "v2", f"a:{batch}", batch=batch)
    (tmp_path / "spark" / "offsets" / ".7.crc").write_bytes(b"of what Spark wrote")
    restore_offsets(tmp_path, 7, {"a": "7", "b": "3"}, {"a", "b"})
    assert [read_offsets(tmp_path, batch, ["a", "b"]) for batch in (6, 7)] == [
        {"a": "6", "b": "3"},
        {"a": "7", "b": "3"},
    ]
    assert not (tmp_path / "spark" / "offsets" / ".7.crc").exists()


def test_a_batch_that_was_begun_with_a_source_that_is_left_out_runs_without_it(tmp_path: Path) -> None:
    write_offsets(tmp_path, "v2", "a:6", "b:3", batch=6)
    write_offsets(tmp_path, "v2", "a:7", "b:4", batch=7)
    restore_offsets(tmp_path, 6, {"a": "6", "b": "3"}, {"a"})
    assert read_offsets(tmp_path, 7, ["a", "b"]) == {"a": "7", "b": "3"}


def test_a_batch_that_was_begun_with_sources_that_are_there_stays_as_it_is(tmp_path: Path) -> None:
    write_offsets(tmp_path, "v2", "a:6", "b:3", batch=6)
    write_offsets(tmp_path, "v2", "a:7", "b:4", batch=7)
    before = (tmp_path / "spark" / "offsets" / "7").read_text()
    restore_offsets(tmp_path, 6, {"a": "6", "b": "3"}, {"a", "b"})
    assert (tmp_path / "spark" / "offsets" / "7").read_text() == before
