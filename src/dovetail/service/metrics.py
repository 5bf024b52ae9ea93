"""Figures for Prometheus. Labels are streams, kinds of stores, states, routes: nothing that a client can make up.

Streams are declared by admins, so they are few. Stores are summed by kind, because their names come from queries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client import Counter as PrometheusCounter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dovetail.engine.control.registry import QueryState
from dovetail.engine.delivery.commit_news import CommitNews
from dovetail.engine.engine import Engine

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_REQUEST_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_BATCH_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Metrics:
    """A registry of its own: two services in one process do not meet."""

    def __init__(self, engine: Engine) -> None:
        self._registry = CollectorRegistry()
        self._requests = self._counter("http_requests", "Requests by route and status.", "method", "route", "status")
        self._request_seconds = Histogram(
            "dovetail_http_request_seconds",
            "Time until the answer began.",
            ("route",),
            registry=self._registry,
            buckets=_REQUEST_SECONDS,
        )
        self.event_streams = Gauge("dovetail_event_streams", "Open event streams.", registry=self._registry)
        self._batches = self._counter("batches", "Batches committed since the start.")
        self._batch_seconds = Histogram(
            "dovetail_batch_seconds", "Time a batch took.", registry=self._registry, buckets=_BATCH_SECONDS
        )
        self._input_rows = self._counter("input_rows", "Rows read.", "stream")
        self._late_rows = self._counter("late_rows", "Rows that came too late to be joined.", "stream")
        self._output_rows = self._counter("output_rows", "Answers of all queries.")
        self._registry.register(_SessionCollector(engine))

    def _counter(self, name: str, text: str, *labels: str) -> PrometheusCounter:
        return PrometheusCounter(f"dovetail_{name}", text, labels, registry=self._registry)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method if method in _METHODS else "other", route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def count_batch(self, news: CommitNews) -> None:
        """As a listener of the engine."""
        progress = news.progress
        self._batches.inc()
        self._batch_seconds.observe(progress["batchDuration"] / 1e3)
        for stream in progress["streams"]:
            self._input_rows.labels(stream["name"]).inc(stream["numInputRows"])
            self._late_rows.labels(stream["name"]).inc(stream["lateRows"])
        self._output_rows.inc(sum(query["numOutputRows"] for query in progress["queries"]))

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _SessionCollector(Collector):
    """What is so now, looked up when somebody asks."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing: otherwise registering would already ask the engine."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        states = Counter(record.state for record in self._engine.queries.records())
        queries = GaugeMetricFamily("dovetail_queries", "Queries by state.", labels=("state",))
        for state in QueryState:
            if state is not QueryState.DROPPED:
                queries.add_metric((state.value,), states[state])
        yield queries
        yield GaugeMetricFamily("dovetail_committed_batch", "The last batch.", value=self._engine.head.batch)
        progress = self._engine.batches.progress
        if progress is not None:
            yield from _store_gauges(progress)
            yield from _unit_gauges(progress)


def _store_gauges(progress: Mapping[str, Any]) -> Iterator[GaugeMetricFamily]:
    streams = {stream["name"] for stream in progress["streams"]}
    for name, key, text in (
        ("dovetail_store_rows", "numRows", "Rows kept, by kind of store."),
        ("dovetail_store_bytes", "numBytes", "Bytes kept, by kind of store."),
    ):
        total: Counter[str] = Counter()
        for store in progress["stores"]:
            total["stream" if store["name"] in streams else "derived"] += store[key]
        gauge = GaugeMetricFamily(name, text, labels=("kind",))
        for kind, value in sorted(total.items()):
            gauge.add_metric((kind,), value)
        yield gauge


def _unit_gauges(progress: Mapping[str, Any]) -> Iterator[GaugeMetricFamily]:
    """Partitions always; their load and executors where their number follows it."""
    count = len(progress["work"]["partitions"])
    yield GaugeMetricFamily("dovetail_partitions", "Partitions that the last batch ran with.", value=count)
    units = progress.get("units")
    if units is None:
        return
    load = GaugeMetricFamily("dovetail_unit_load", "Load of a partition; 1 is full.", labels=("kind",))
    for kind, key in (("memory", "memoryLoad"), ("time", "timeLoad"), ("hottest", "hottestLoad")):
        if units[key] is not None:
            load.add_metric((kind,), units[key])
    yield load
    yield GaugeMetricFamily(
        "dovetail_partition_changes", "Changes of the number of partitions since the start.", value=units["changes"]
    )
    if units["executors"] is not None:
        yield GaugeMetricFamily("dovetail_executors", "Executors of the Spark application.", value=units["executors"])
