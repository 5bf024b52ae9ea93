"""Figures for Prometheus. Labels are streams, kinds of stores, states, routes: nothing that a client can make up.

Streams are declared by admins, so they are few. Stores are summed by kind, because their names come from queries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client import Counter as PrometheusCounter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dovetail.engine.control.registry import QueryState
from dovetail.engine.delivery.commit_news import CommitNews
from dovetail.engine.engine import Engine
from dovetail.engine.progress.figures import BatchFigures

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
        self._bad_rows = self._counter("bad_rows", "Rows that their stream cannot use.", "stream")
        self._output_rows = self._counter("output_rows", "Answers of all queries.")
        self._registry.register(_SessionCollector(engine))

    def _counter(self, name: str, text: str, *labels: str) -> PrometheusCounter:
        return PrometheusCounter(f"dovetail_{name}", text, labels, registry=self._registry)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method if method in _METHODS else "other", route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def count_batch(self, news: CommitNews) -> None:
        """As a listener of the engine."""
        figures = news.figures
        self._batches.inc()
        self._batch_seconds.observe(figures.durations.total_s)
        for stream in figures.streams:
            self._input_rows.labels(stream.name).inc(stream.input_rows)
            self._late_rows.labels(stream.name).inc(stream.late_rows)
            self._bad_rows.labels(stream.name).inc(stream.bad_rows)
        self._output_rows.inc(sum(query.output_rows for query in figures.queries))

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
        failing = GaugeMetricFamily(
            "dovetail_failing_streams", "Streams whose source cannot be read.", labels=("stream",)
        )
        for name in sorted(self._engine.streams.failing()):
            failing.add_metric((name,), 1)
        yield failing
        yield GaugeMetricFamily("dovetail_committed_batch", "The last batch.", value=self._engine.head.batch)
        figures = self._engine.head.figures
        if figures is not None:
            yield from _store_gauges(figures)
            yield from _unit_gauges(figures)
            yield GaugeMetricFamily(
                "dovetail_failures_after_commit",
                "What failed beside committed batches since the start.",
                value=figures.failures.count,
            )


def _store_gauges(figures: BatchFigures) -> Iterator[GaugeMetricFamily]:
    streams = {stream.name for stream in figures.streams}
    rows: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for store in figures.stores:
        kind = "stream" if store.name in streams else "derived"
        rows[kind] += store.kept.rows
        size[kind] += store.kept.size_bytes
    yield _by_kind("dovetail_store_rows", "Rows kept, by kind of store.", rows)
    yield _by_kind("dovetail_store_bytes", "Bytes kept, by kind of store.", size)


def _unit_gauges(figures: BatchFigures) -> Iterator[GaugeMetricFamily]:
    """Partitions always; their load and executors where their number follows it."""
    count = len(figures.units)
    yield GaugeMetricFamily("dovetail_partitions", "Partitions that the last batch ran with.", value=count)
    scale = figures.scale
    if scale is None:
        return
    loads = {"memory": scale.load.memory, "time": scale.load.time, "hottest": scale.load.hottest}
    known = {kind: load for kind, load in loads.items() if load is not None}
    yield _by_kind("dovetail_unit_load", "Load of a partition; 1 is full.", known)
    yield GaugeMetricFamily(
        "dovetail_partition_changes", "Changes of the number of partitions since the start.", value=scale.changes
    )
    if scale.executors is not None:
        yield GaugeMetricFamily("dovetail_executors", "Executors of the Spark application.", value=scale.executors)


def _by_kind(name: str, text: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(name, text, labels=("kind",))
    for kind, value in sorted(values.items()):
        gauge.add_metric((kind,), value)
    return gauge
