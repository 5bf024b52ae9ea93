"""Sinks that cannot work, or would write over what others need, are refused when they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dovetail.core.errors import QueryError, StreamError
from dovetail.engine.control.check_sink import check_sink_place, folders_of
from dovetail.engine.control.sink_spec import SinkSpec
from dovetail.query.stream_spec import StreamSpec
from dovetail.query.types import BIGINT
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("k", pa.int64())])
SQL = "SELECT a.k FROM a"


def _create(folder: Path, **options: str) -> LocalSession:
    session = LocalSession(folder / "ck")
    session.create_stream("a", SCHEMA)
    given = {"sink": "parquet", **{f"sink.{key}": value for key, value in options.items()}}
    try:
        session.create_query(SQL, "q", **given)
    except QueryError:
        session.close()
        raise
    return session


@pytest.mark.parametrize(
    "path",
    [
        "{ck}",
        "{ck}/",
        "{ck}/answers",
        "{ck}/../ck",
        "{folder}",
        "/",
        "file:{ck}",
        "file://{ck}",
        "FILE://localhost{ck}",
        "{link}",
        "{link}/x",
        "{ck}.service",
        "{ck}.service/x",
        "{ck}/{{batch}}",
    ],
)
def test_a_sink_where_the_checkpoint_is_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "ck").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "ck")
    path = path.format(ck=tmp_path / "ck", folder=tmp_path, link=tmp_path / "link")
    for key in ("path", "PATH"):
        with pytest.raises(QueryError, match=r"where the (checkpoint|folder of the service) is") as caught:
            _create(tmp_path, **{key: path, "mode": "overwrite"})
        assert "a folder of its own" in str(caught.value.hint)


def test_a_sink_that_is_set_later_is_checked_too(tmp_path: Path) -> None:
    with _create(tmp_path, path=str(tmp_path / "out")) as session:
        query = session.engine.queries.records()[0].id
        with pytest.raises(QueryError, match="where the checkpoint is"):
            session.engine.queries.set_options(query, {"sink": "csv", "sink.path": str(tmp_path / "ck")})


@pytest.mark.parametrize(
    "path",
    ["{folder}/out", "{folder}/ck2", "{folder}/ck-{{batch}}", "{folder}/x/ck", "{folder}/{{query}}", "s3a://b{ck}"],
)
def test_a_sink_with_a_folder_of_its_own_is_taken(tmp_path: Path, path: str) -> None:
    _create(tmp_path, path=path.format(ck=tmp_path / "ck", folder=tmp_path)).close()


def test_what_marks_stand_for_is_no_way_into_the_checkpoint() -> None:
    for path, root in (("/data/{batch}", "/data/5/ck"), ("/data/{query}/x", "/data/q#7")):
        with pytest.raises(QueryError, match="where the checkpoint is"):
            check_sink_place("q", SinkSpec("json", {"path": path}), Path(root), {})


@pytest.mark.parametrize("folder", ["in", "in/more", "in/*", "in/day=*/x", "."])
def test_a_sink_where_a_stream_reads_is_refused(tmp_path: Path, folder: str) -> None:
    spec = StreamSpec("orders", (("k", BIGINT),), "json", {"path": f"file:{tmp_path}/{folder}"})
    with pytest.raises(QueryError, match="where what stream 'orders' reads is"):
        check_sink_place("q", SinkSpec("json", {"path": str(tmp_path / "in")}), Path("/ck"), folders_of([spec]))
    check_sink_place("q", SinkSpec("json", {"path": "/elsewhere"}), Path("/ck"), folders_of([spec]))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"path": "/data/x\ud800"}, "no file or system can take"),
        ({"path": "/data/x\0"}, "no file or system can take"),
        ({"a\udfff": "x"}, "no file or system can take"),
        ({"mode": "explode"}, "sink.mode of query 'q' is 'explode'"),
        ({"mode": ""}, "sink.mode of query 'q' is ''"),
        ({"identify": "maybe"}, "sink.identify of query 'q' is 'maybe'"),
    ],
)
def test_options_that_cannot_work_are_refused(tmp_path: Path, options: dict[str, Any], what: str) -> None:
    with pytest.raises(QueryError, match=what) as caught:
        _create(tmp_path, **options)
    str(caught.value).encode()
    assert caught.value.hint


def test_options_are_words_in_any_case(tmp_path: Path) -> None:
    _create(tmp_path, path=str(tmp_path / "out"), mode="Overwrite", identify="TRUE").close()


def test_half_a_character_in_the_options_of_a_stream_is_refused() -> None:
    with pytest.raises(StreamError, match="no file or system can take") as caught:
        StreamSpec("orders", (("k", BIGINT),), "json", {"path": "/data/\ud800"})
    str(caught.value).encode()
