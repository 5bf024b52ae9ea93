"""Pages of answers: no row twice, none left out; JSON and Arrow say the same."""

from __future__ import annotations

import datetime
import decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.service.access.refusals import BadRequest
from dovetail.service.answers.json_rows import json_bytes, json_rows
from dovetail.service.answers.pages import AnswerReader, Cursor
from dovetail.service.config.options import Limits
from tests.support.examples import examples

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}


def fill(world, join, sizes):
    """A query that finds `sizes[b]` rows in batch b; `av` numbers them."""
    world.session.create_query(join, "q")
    count = 0
    for batch, size in enumerate(sizes):
        world.push(a=[(batch, count + n, batch) for n in range(size)], b=[(batch, 0, batch)])
        count += size
    return count


def numbers(rows):
    return sorted(row["av"] for row in rows)


def test_pages_follow_each_other(world, client, join):
    total = fill(world, join, [3, 0, 5, 2])
    rows, cursor = [], None
    for _ in range(20):
        page = client.get("/v1/queries/q/results", params={"limit": 4} | ({"cursor": cursor} if cursor else {})).json()
        rows += page["rows"]
        cursor = page["next"]
        if not page["has_more"]:
            break
    assert numbers(rows) == list(range(total))
    assert client.get("/v1/queries/q/results", params={"cursor": cursor}).json()["rows"] == []
    world.push(a=[(4, 99, 4)], b=[(4, 0, 4)])
    assert numbers(client.get("/v1/queries/q/results", params={"cursor": cursor}).json()["rows"]) == [99]


def test_batches_and_the_newest_rows(world, client, join):
    fill(world, join, [3, 0, 5, 2])
    page = client.get("/v1/queries/q/results?from_batch=1&to_batch=2").json()
    assert (numbers(page["rows"]), page["next"], page["has_more"]) == ([3, 4, 5, 6, 7], "3:0", False)
    assert len(client.get("/v1/queries/q/results?last=4").json()["rows"]) == 4
    assert numbers(client.get("/v1/queries/q/results?last=2").json()["rows"]) == [8, 9]
    assert len(client.get("/v1/queries/q/results?last=400").json()["rows"]) == 10
    assert client.get("/v1/queries/q/results?last=1&cursor=1:1").status_code == 400
    assert client.get("/v1/queries/q/results?cursor=x").status_code == 400


def test_arrow_says_the_same(world, client, join):
    total = fill(world, join, [3, 5])
    answer = client.get("/v1/queries/q/results?limit=7", headers=ARROW)
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.schema.field("av").type == pa.int32()
    assert answer.headers["Dovetail-Has-More"] == "true"
    rest = client.get("/v1/queries/q/results", params={"cursor": answer.headers["Dovetail-Next"]}, headers=ARROW)
    found = table["av"].to_pylist() + pa.ipc.open_stream(rest.content).read_all()["av"].to_pylist()
    assert (sorted(found), rest.headers["Dovetail-Has-More"]) == (list(range(total)), "false")
    assert client.get("/v1/queries/q/results", headers={"Accept": "text/html"}).status_code == 406


def test_a_page_is_bounded_by_the_service(world, join):
    client = world.client(limits=Limits(max_page_rows=4))
    fill(world, join, [6])
    for query in ("limit=1000", "last=1000"):
        assert len(client.get(f"/v1/queries/q/results?{query}").json()["rows"]) == 4


@pytest.fixture(scope="module")
def reader(lasting_world, join):
    fill(lasting_world, join, [4, 0, 1, 7, 0, 0, 9, 2])
    engine = lasting_world.session.engine
    return AnswerReader(engine, engine.queries.named("q").id)


@examples()
@given(data=st.data())
def test_any_pages_put_together_are_all_answers(reader, data):
    expected = reader.page(Cursor(0), 1_000).table["av"].to_pylist()
    assert len(expected) == 23
    start, rows = Cursor(0), []
    while True:
        page = reader.page(start, data.draw(st.integers(1, 9)))
        rows += page.table["av"].to_pylist()
        start = page.next
        if not page.has_more:
            break
    assert rows == expected
    last = data.draw(st.integers(1, 40))
    assert reader.page(reader.last_rows(last), last).table["av"].to_pylist() == expected[-last:]


def test_every_type_has_its_json():
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC)
    table = pa.table(
        {
            "i": [1, None],
            "f": [float("inf"), 1.5],
            "d": pa.array([decimal.Decimal("0.00000000"), None], pa.decimal128(10, 8)),
            "t": pa.array([moment, None], pa.timestamp("us", tz="UTC")),
            "n": pa.array([moment.replace(tzinfo=None), None], pa.timestamp("us")),
            "y": pa.array([datetime.date(2026, 1, 2), None], pa.date32()),
            "far": pa.array([2**60, -(2**60)], pa.int64()).cast(pa.timestamp("us")),
            "w": pa.array([{"start": moment}, None], pa.struct([("start", pa.timestamp("us", tz="UTC"))])),
        }
    )
    first, second = json_rows(table)
    assert first == {
        "i": 1,
        "f": "Infinity",
        "d": "0.00000000",
        "t": "2026-01-02T03:04:05.678901Z",
        "n": "2026-01-02T03:04:05.678901",
        "y": "2026-01-02",
        "far": "38504-08-17T21:30:06.846976",
        "w": {"start": "2026-01-02T03:04:05.678901Z"},
    }
    assert [second[name] for name in ("i", "d", "t", "n", "y", "w")] == [None] * 6


def test_what_json_lacks_does_not_fail_an_answer():
    assert json_bytes({"a": float("nan"), "b": ["\ud800"]}) == b'{"a":null,"b":["?"]}'


@pytest.mark.parametrize("text", ["", "1", "1:", ":1", "-1:0", "1:1:1", "1:1 ", "٣:٣", "1" * 30 + ":1"])
def test_what_is_no_cursor_is_refused(text):
    with pytest.raises(BadRequest):
        Cursor.parse(text)
