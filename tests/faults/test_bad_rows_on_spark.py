"""Bad rows of declared streams on Spark: kept aside with their file, and nobody else hears of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dovetail import Session
from dovetail.core.errors import BadRowError
from dovetail.engine.options import EngineTuning
from dovetail.query.stream_spec import StreamSpec
from dovetail.runtime.spark.sources.unreadable_files import BatchOfFiles
from tests.support.parquet_folders import COLUMNS, PAIRS, SECOND, Folders, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

AHEAD_US = 4_000_000_000 * SECOND
IMPOSSIBLE_US = 400_000_000_000 * SECOND


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "streams")


def answers(session: Session) -> Counter[tuple[int, int]]:
    return Counter((row.l, row.r) for row in session.query("pairs").results().collect())


def test_bad_rows_are_kept_with_their_file_and_enter_once_when_they_are_retried(
    spark: SparkSession, tmp_path: Path, folders: Folders
) -> None:
    with open_session(spark, tmp_path) as session:
        for name in "ab":
            session.declare_stream(folders.spec(name))
        session.create_query(PAIRS, "pairs")
        folders.add("a", [(1, 0)])
        bad = folders.add("a", [(2, IMPOSSIBLE_US), (3, AHEAD_US), (4, SECOND)])
        session.start()
        session.process_all_available()
        folders.add("b", [(5, 2 * SECOND)])
        session.process_all_available()
        assert answers(session) == Counter({(1, 5): 1, (4, 5): 1})
        kept = session.bad_rows("a")
        assert {row.values["v"] for row in kept} == {2, 3}
        assert all((row.source or "").endswith(f"/streams/a/{bad}") for row in kept)
        assert session.progress is not None
        assert session.progress["streams"][0]["badRows"]["kept"] == 2
        # The same stream with other rules for its bad rows, and these rows again.
        session.declare_stream(replace(folders.spec("a"), max_event_time_ahead="off"))
        session.declare_stream(replace(folders.spec("b"), max_event_time_ahead="off"))
        assert session.retry_bad_rows("a") == 2
        folders.add("b", [(6, AHEAD_US + SECOND)])
        session.process_all_available()
        assert answers(session) == Counter({(1, 5): 1, (4, 5): 1, (3, 6): 1})
        assert [row.values["v"] for row in session.bad_rows("a")] == [2]


@pytest.mark.parametrize("is_small", [False, True])
def test_files_that_cannot_be_read_are_put_aside_alone_and_come_when_they_are_mended(
    spark: SparkSession, tmp_path: Path, folders: Folders, is_small: bool
) -> None:
    tuning = EngineTuning(small_batch_rows=1 << 30 if is_small else 0)
    with Session(spark, tmp_path / "checkpoint", partitions=2, key_groups=8, tuning=tuning) as session:
        for name in "ab":
            session.declare_stream(folders.spec(name))
        session.create_query(PAIRS, "pairs")
        folders.add("a", [(1, 0)])
        session.start()
        session.process_all_available()
        garbage = folders.add_bytes("a", b"PAR1 this is no Parquet file PAR1")
        other_type = folders.add_table("a", pa.table({"k": ["zero"], "v": ["?"], "s": [1], "ts": ["now"]}))
        folders.add("a", [(2, SECOND)])
        folders.add("b", [(5, 2 * SECOND)])
        session.process_all_available()
        assert answers(session) == Counter({(1, 5): 1, (2, 5): 1})
        assert {Path(row.source or "").name for row in session.bad_rows("a")} == {garbage, other_type}
        assert session.bad_rows("b") == []
        # One is mended, the other is not.
        folders.add("a", [(3, SECOND)], garbage)
        assert session.retry_bad_rows("a") == 2
        folders.add("b", [(6, 3 * SECOND)])
        session.process_all_available()
        assert answers(session) == Counter({(1, 5): 1, (2, 5): 1, (1, 6): 1, (2, 6): 1, (3, 5): 1, (3, 6): 1})
        assert [Path(row.source or "").name for row in session.bad_rows("a")] == [other_type]


def test_several_broken_files_are_found_by_one_try_of_the_batch(
    spark: SparkSession, tmp_path: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[bool] = []
    put_aside = BatchOfFiles._put_aside

    def counted(*given: Any) -> bool:
        failed.append(put_aside(*given))
        return failed[-1]

    monkeypatch.setattr(BatchOfFiles, "_put_aside", counted)
    with open_session(spark, tmp_path) as session:
        for name in "ab":
            session.declare_stream(folders.spec(name))
        session.create_query(PAIRS, "pairs")
        folders.add("a", [(1, 0)])
        broken = {folders.add_bytes(stream, b"no Parquet") for stream in "aabb"}
        folders.add("b", [(5, SECOND)])
        session.start()
        session.process_all_available()
        assert answers(session) == Counter({(1, 5): 1})
        named = {Path(row.source or "").name for name in "ab" for row in session.bad_rows(name)}
        assert named == broken
    assert failed == [True]


def test_a_backfill_reads_each_file_with_the_batch_that_took_it(
    spark: SparkSession, tmp_path: Path, folders: Folders
) -> None:
    with open_session(spark, tmp_path) as session:
        for name in "ab":
            session.declare_stream(folders.spec(name))
        folders.add("a", [(1, 0)])
        bad = folders.add_bytes("a", b"no Parquet")
        session.start()
        session.process_all_available()
        folders.add("a", [(2, 0)], bad)
        session.retry_bad_rows("a")
        folders.add("b", [(5, 2 * SECOND)])
        session.process_all_available()
        session.create_query(PAIRS, "pairs", backfill=True)
        for number in range(100):
            folders.add("a", [(8, (100 + number) * SECOND)])
            folders.add("b", [(9, (200 + number) * SECOND)])
            session.process_all_available()
            backfill = session.query("pairs").backfill
            if backfill is not None and backfill.state != "running":
                break
        assert {pair: count for pair, count in answers(session).items() if pair[1] == 5} == {(1, 5): 1, (2, 5): 1}


JSON_LINES = (
    '{"k": 0, "v": 1, "s": "x", "ts": "1970-01-01T00:00:00Z", "more": 7}',
    '{"k": 0, "v": "two", "s": "x", "ts": "1970-01-01T00:00:01Z"}',
    "no JSON at all",
    '{"k": 0, "v": 3, "ts": "1970-01-01T00:00:01Z"}',
    '{"k": 0, "v": \udcff, no UTF-8}',
)
CSV_LINES = (
    "0,1,x,1970-01-01T00:00:00Z,more",
    "0,two,x,1970-01-01T00:00:01Z",
    "no CSV at all",
    "0,3,,1970-01-01T00:00:01Z",
    "no UTF-8: \udcff",
)


@pytest.mark.parametrize(("kind", "lines"), [("json", JSON_LINES), ("csv", CSV_LINES)])
def test_records_that_cannot_be_decoded_are_kept_with_their_text(
    spark: SparkSession, tmp_path: Path, folders: Folders, kind: str, lines: tuple[str, ...]
) -> None:
    """Values that are missing, and more than there are columns for, are no reason."""
    (tmp_path / "texts").mkdir()
    texts = StreamSpec("a", COLUMNS, kind, {"path": str(tmp_path / "texts")}, "ts")
    with open_session(spark, tmp_path) as session:
        session.declare_stream(texts)
        session.declare_stream(folders.spec("b"))
        session.create_query(PAIRS, "pairs")
        (tmp_path / ".hidden").write_bytes(("\n".join(lines) + "\n").encode(errors="surrogateescape"))
        (tmp_path / ".hidden").rename(tmp_path / "texts" / "1.txt")
        folders.add("b", [(5, 2 * SECOND)])
        session.start()
        session.process_all_available()
        assert answers(session) == Counter({(1, 5): 1, (3, 5): 1})
        assert [row.record for row in session.bad_rows("a")] == [
            lines[1],
            lines[2],
            lines[4].replace("\udcff", "\ufffd"),
        ]
        assert all((row.source or "").endswith("/texts/1.txt") for row in session.bad_rows("a"))
        session.create_query(PAIRS, "later", backfill=True)
        for number in range(100):
            folders.add("b", [(9, (200 + number) * SECOND)])
            session.process_all_available()
            backfill = session.query("later").backfill
            if backfill is not None and (backfill.batches_done or backfill.state != "running"):
                break
        found = Counter((row.l, row.r) for row in session.query("later").results().collect())
        assert found == Counter({(1, 5): 1, (3, 5): 1})


def test_a_stream_that_shall_fail_ends_the_session_with_the_row(
    spark: SparkSession, tmp_path: Path, folders: Folders
) -> None:
    with open_session(spark, tmp_path) as session:
        session.declare_stream(replace(folders.spec("a"), on_bad_row="fail"))
        session.declare_stream(folders.spec("b"))
        session.create_query(PAIRS, "pairs")
        bad = folders.add("a", [(2, IMPOSSIBLE_US)])
        session.start()
        with pytest.raises(BadRowError, match=bad):
            session.process_all_available()
