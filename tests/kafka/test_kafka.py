"""Two topics in, one joined topic out, on a real broker that dies in the middle."""

from __future__ import annotations

import datetime
import json
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from dovetail import Session
from dovetail.api import Query
from dovetail.engine.backfill import thread as backfill_thread
from dovetail.engine.delivery.marks import DeliveryMarks
from tests.support.kafka.broker import KafkaBroker

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.spark]

PATIENCE_S = 180.0
ROWS_A_PART = 600
ROWS_A_BATCH = 100
BOUND_MS = 5_000
HOUR_MS = 3_600_000
START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
SQL = """
SELECT o.k AS k, o.v AS ordered, p.v AS paid FROM orders o JOIN payments p
ON o.k = p.k AND p.ts BETWEEN o.ts - INTERVAL 5 SECONDS AND o.ts + INTERVAL 5 SECONDS
"""

Row = tuple[int, int, int]
"""k, v, and the event time in milliseconds."""


@dataclass(frozen=True)
class Record:
    partition: int
    identity: tuple[str, int, int]
    key: str
    value: str


class Topics:
    """What was written to the topics, and what the join of all of it is."""

    def __init__(self, spark: SparkSession, broker: KafkaBroker) -> None:
        self._spark = spark
        self.address = broker.address
        self._options = {"kafka.bootstrap.servers": broker.address}
        self._rows: dict[str, list[Row]] = {"orders": [], "payments": []}
        self._rng = Random(7)

    def write_part(self) -> None:
        for topic, rows in self._rows.items():
            first = len(rows)
            part = [
                (self._rng.randrange(40), number, number * 10 + self._rng.randrange(100))
                for number in range(first, first + ROWS_A_PART)
            ]
            self._write(topic, part)

    def write_one(self, ms: int) -> None:
        """A row of each topic that nothing else joins."""
        for topic, rows in self._rows.items():
            self._write(topic, [(1000 + ms, len(rows), ms)])

    def _write(self, topic: str, part: list[Row]) -> None:
        self._rows[topic].extend(part)
        values = [(json.dumps({"k": k, "v": v, "ts": time_text(ms)}),) for k, v, ms in part]
        frame = self._spark.createDataFrame(values, "value STRING")
        frame.write.format("kafka").options(**self._options).option("topic", topic).save()

    def write_values(self, topic: str, values: list[bytes]) -> None:
        """Whatever they are: no row is expected of them."""
        frame = self._spark.createDataFrame([(bytearray(value),) for value in values], "value BINARY")
        frame.write.format("kafka").options(**self._options).option("topic", topic).save()

    def create_stream(self, topic: str) -> str:
        """A statement."""
        return f"""
            CREATE STREAM {topic} (k INT, v INT, ts TIMESTAMP) WITH (
                format = 'kafka', kafka.bootstrap.servers = '{self.address}', subscribe = '{topic}',
                startingOffsets = 'earliest', maxOffsetsPerTrigger = {ROWS_A_BATCH},
                event_time = 'ts', lateness = '1 hour')
        """

    def create_query(self, name: str) -> str:
        """A statement; the topic of the answers has the query's name."""
        return f"""
            CREATE CONTINUOUS QUERY {name} WITH (
                sink = 'kafka', sink.kafka.bootstrap.servers = '{self.address}', sink.topic = '{name}', sink.key = 'k')
            AS {SQL}
        """

    def read(self, topic: str) -> list[Record]:
        """In the order of each partition."""
        reader = self._spark.read.format("kafka").options(**self._options).option("subscribe", topic)
        rows = reader.option("includeHeaders", "true").load().orderBy("partition", "offset").collect()
        return [self._record(row.partition, row.headers, row.key, row.value) for row in rows]

    def expected(self) -> Counter[tuple[int, int, int]]:
        return Counter(
            (k, ordered, paid)
            for k, ordered, ordered_ms in self._rows["orders"]
            for other_k, paid, paid_ms in self._rows["payments"]
            if k == other_k and abs(ordered_ms - paid_ms) <= BOUND_MS
        )

    def _record(self, partition: int, headers: list[tuple[str, bytes]], key: bytes, value: bytes) -> Record:
        by_name = {name: bytes(content).decode() for name, content in headers}
        identity = (
            by_name["dovetail-query"],
            int(by_name["dovetail-batch"]),
            int(by_name["dovetail-sequence"]),
        )
        return Record(partition, identity, bytes(key).decode(), bytes(value).decode())


def time_text(ms: int) -> str:
    return (START + datetime.timedelta(milliseconds=ms)).isoformat(timespec="milliseconds")


@pytest.fixture
def topics(kafka_spark: SparkSession, broker: KafkaBroker) -> Topics:
    return Topics(kafka_spark, broker)


def open_session(spark: SparkSession, topics: Topics, folder: Path) -> tuple[Session, Query]:
    session = Session(spark, folder / "checkpoint", partitions=2, key_groups=16)
    session.execute(topics.create_stream("orders"))
    session.execute(topics.create_stream("payments"))
    session.execute(topics.create_query("joined"))
    session.start()
    return session, session.query("joined")


def await_delivered_batch(query: Query, batch: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (query.status.delivered_batch or 0) < batch:
        assert time.monotonic() < deadline, query.status
        time.sleep(0.1)


def test_a_broker_that_dies_in_the_middle_loses_nothing_and_copies_are_recognisable(
    kafka_spark: SparkSession, broker: KafkaBroker, topics: Topics, tmp_path: Path
) -> None:
    topics.write_part()
    session, query = open_session(kafka_spark, topics, tmp_path)
    await_delivered_batch(query, 1)
    broker.kill()
    time.sleep(2.0)
    broker.start()
    topics.write_part()
    session.process_all_available()
    assert query.await_delivered(PATIENCE_S), query.status
    session.stop()

    # The last delivered batch was written but, as after a crash, not marked.
    written = topics.read("joined")
    newest = max(record.identity[1] for record in written)
    DeliveryMarks(tmp_path / "checkpoint").write(query.id, newest - 1)
    session, query = open_session(kafka_spark, topics, tmp_path)
    topics.write_part()
    session.process_all_available()
    assert query.await_delivered(PATIENCE_S), query.status
    assert query.status.sink_error is None
    session.stop()

    records = topics.read("joined")
    by_identity = {record.identity: record for record in records}
    copies = len(records) - len(by_identity)
    assert copies >= sum(record.identity[1] == newest for record in by_identity.values()) > 0
    assert all(by_identity[record.identity] == record for record in records)
    assert_batches_in_order(records)
    answers = Counter(tuple(json.loads(record.value).values()) for record in by_identity.values())
    assert answers == topics.expected()
    assert all(record.key == str(json.loads(record.value)["k"]) for record in records)


def test_a_query_answers_the_records_from_before_it(
    kafka_spark: SparkSession, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill_thread, "REST_PER_WORK", 0.0)
    topics.write_part()
    with Session(kafka_spark, tmp_path / "checkpoint", partitions=2, key_groups=16) as session:
        for topic in ("orders", "payments"):
            session.execute(topics.create_stream(topic))
        session.start()
        session.process_all_available()
    with Session(kafka_spark, tmp_path / "checkpoint", partitions=2, key_groups=16) as session:
        query = session.create_query(SQL, "joined", backfill=True)
        topics.write_part()
        session.start()
        session.process_all_available()
        assert query.status.complete_from == query.status.created_batch > 0
        deadline, ms = time.monotonic() + PATIENCE_S, 10 * HOUR_MS
        while query.backfill is None or query.backfill.state == "running":
            assert time.monotonic() < deadline, query.backfill
            topics.write_one(ms)
            ms += HOUR_MS
            session.process_all_available()
        assert (query.backfill.state, query.backfill.error) == ("done", None)
        answers = Counter((row.k, row.ordered, row.paid) for row in query.results().collect())
        assert answers == topics.expected()


def assert_batches_in_order(records: list[Record]) -> None:
    """In each partition, copies aside."""
    newest: dict[int, int] = {}
    seen: set[tuple[str, int, int]] = set()
    for record in records:
        if record.identity not in seen:
            seen.add(record.identity)
            assert newest.get(record.partition, -1) <= record.identity[1]
            newest[record.partition] = record.identity[1]


def test_a_record_that_does_not_decode_is_a_bad_row_of_its_stream_alone(
    kafka_spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topics.write_part()
    not_records = ["{no json", json.dumps({"k": "no number", "v": 1, "ts": time_text(0)}), "", "[1, 2]"]
    topics.write_values("orders", [text.encode() for text in not_records] + [b'{"k": \xff\xfe}'])
    topics.write_part()
    for _ in range(2):
        with Session(kafka_spark, tmp_path / "checkpoint", partitions=2, key_groups=16) as session:
            for topic in ("orders", "payments"):
                session.execute(topics.create_stream(topic))
            query = session.create_query(SQL, "joined")
            session.start()
            session.process_all_available()
            kept = session.bad_rows("orders")
            assert len(kept) == len(not_records) + 1
            assert {row.record for row in kept} >= {"{no json", "[1, 2]"}
            sources = {row.source for row in kept}
            assert len(sources) == len(kept)
            assert all("orders" in str(source) for source in sources)
            assert session.bad_rows("payments") == []
            answers = Counter(tuple(row) for row in query.results().collect())
            assert answers == topics.expected()
            assert query.status.error is None
