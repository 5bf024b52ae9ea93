"""Hostile queries in a running session, a few a wave: refused, stopped alone, or answered as Spark answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from benchmarks.hostile.arena import HANG_S, Arena, Hang, within
from benchmarks.hostile.judge import answers_of, difference, may_be_compared, of_refusal
from benchmarks.hostile.records import HostileQuery, Outcome, Tried
from dovetail.api import Query

CHANNEL = "session on Spark"
SPARK_S = 20.0
Say = Callable[[str], None]


class QueryWaves:
    """`per_wave` queries that were not refused share a wave, so that one that fails has hostile neighbours, too."""

    def __init__(self, arena: Arena, per_wave: int, say: Say) -> None:
        self.arena = arena
        self.tried: list[Tried] = []
        self._per_wave = per_wave
        self._say = say
        self._oracle = arena.spark.newSession()
        self._accepted: list[tuple[HostileQuery, Query, float]] = []
        self._number = 0

    def run(self, queries: Sequence[HostileQuery]) -> list[Tried]:
        """Several at once, but each that would take Spark down alone: so a batch tells what one of them costs."""
        for hostile in queries:
            if not hostile.compares:
                self._run_wave()
            self._create(hostile)
            if len(self._accepted) == self._per_wave or not hostile.compares:
                self._run_wave()
        self._run_wave()
        return self.tried

    def _create(self, hostile: HostileQuery) -> None:
        self._number += 1
        name, began = f"hostile_{self._number}", time.perf_counter()
        try:
            query = within(HANG_S, lambda: self.arena.session.create_query(hostile.sql, name))
        except Hang as hang:
            self.arena.hangs += 1
            self._note(hostile, Outcome.HANG, str(hang), time.perf_counter() - began)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it must be a refusal that says what to do
            self._note(hostile, *of_refusal(error), time.perf_counter() - began)
        else:
            assert isinstance(query, Query)
            self._accepted.append((hostile, query, time.perf_counter() - began))

    def _run_wave(self) -> None:
        accepted, self._accepted = self._accepted, []
        if not accepted:
            return
        began = time.perf_counter()
        hangs = self.arena.hangs
        if not self.arena.run_wave():
            outcome = Outcome.HANG if self.arena.hangs > hangs else Outcome.LOST_BATCH
            for hostile, _, seconds in accepted:
                self._note(hostile, outcome, self.arena.last_failure, seconds)
            return
        seconds = time.perf_counter() - began
        fallen = self.arena.fallen_neighbours()
        for hostile, query, _ in accepted:
            outcome, detail = (Outcome.HIT_NEIGHBOUR, "; ".join(fallen)) if fallen else self._judge(hostile, query)
            self._note(hostile, outcome, detail, seconds)
        for _, query, _ in accepted:
            query.drop()
        self._say(f"wave {self.arena.wave}: {len(self.tried)} tried, {len(accepted)} took part, {seconds:.1f} s")

    def _judge(self, hostile: HostileQuery, query: Query) -> tuple[Outcome, str]:
        status = query.status
        if status.state == "quarantined":
            is_told = bool(status.error)
            return (Outcome.STOPPED if is_told else Outcome.POOR_ERROR), status.error or "no reason"
        if status.state != "running":
            return Outcome.WRONG, f"it is {status.state} after its wave"
        if not hostile.compares or not may_be_compared(hostile.sql):
            return Outcome.TOOK_NO_PART, f"{status.total_rows} rows"
        return self._compare(hostile, query)

    def _compare(self, hostile: HostileQuery, query: Query) -> tuple[Outcome, str]:
        found = answers_of(query.to_arrow())
        try:
            expected = within(SPARK_S, lambda: answers_of(self._views().sql(hostile.sql).toArrow()))
        except PySparkException as error:
            return Outcome.WRONG, f"Spark does not answer: {str(error)[:200]}"
        except Exception as error:  # noqa: BLE001 - Spark itself fails: nobody knows the answer
            return Outcome.TOOK_NO_PART, f"Spark: {type(error).__name__}"
        told = difference(found, expected)  # type: ignore[arg-type]
        return (Outcome.WRONG, told) if told else (Outcome.ANSWERED, f"{found.total()} rows")

    def _views(self) -> SparkSession:
        for stream, file in self.arena.wave_files.items():
            self._oracle.read.parquet(str(file)).createOrReplaceTempView(stream)
        return self._oracle

    def _note(self, hostile: HostileQuery, outcome: Outcome, detail: str, seconds: float) -> None:
        self.tried.append(Tried(hostile.mechanism, hostile.sql, CHANNEL, outcome, detail, seconds))
