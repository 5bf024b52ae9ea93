"""A user's program that ends by SIGKILL at a chosen moment, or drains its files and writes its answers.

    python -m benchmarks.faults.driver_program JSON

It creates and drops queries while batches run, and notes in a file what it was told was done.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import dovetail.api.session
from benchmarks.faults.killed_queries import DDL, EXTRAS, LATENESS, QUERIES, STREAMS
from benchmarks.faults.strike import (
    CHANGING,
    CREATING,
    DROPPING,
    OPENING,
    RUNNING,
    STARTING,
    STOPPING,
    TOLD,
    Strike,
)
from dovetail import Session
from dovetail.engine.control.registry import QueryState
from dovetail.engine.engine import Engine
from dovetail.engine.options.engine_options import with_tuning
from dovetail.runtime.spark.local_session import local_spark

KEPT_EXTRAS = 2
LOOK_EVERY_S = 0.02


class Program:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self._checkpoint = Path(given["checkpoint"])
        self._told = Path(given["told"])
        self._strike = Strike(given["moment"])

    def run(self) -> None:
        with self._strike.phase(STARTING):
            settings = {key.replace(".", "__"): value for key, value in self._given["spark"].items()}
            spark = local_spark("dovetail-faults", self._given["cores"], **settings)
        # Steps of batches are heard of by tests only, so no option of a session has them.
        dovetail.api.session.Engine = partial(Engine, on_step=self._strike.on_step)  # type: ignore[attr-defined,assignment]
        with self._strike.phase(OPENING):
            session = Session(spark, self._checkpoint, **with_tuning(self._given["options"]))
            session.engine.answers.listen(lambda _news: self._strike.on_step(TOLD))
            for stream in STREAMS:
                files = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1)
                frame = files.parquet(f"{self._given['data']}/{stream}")
                session.create_stream(stream, frame, event_time="ts", lateness=LATENESS)
            for name, sql in QUERIES.items():
                session.create_query(sql, name=name)
            session.start(trigger="available_now" if self._given["drains"] else None)
        if self._given["drains"]:
            session.await_termination()
            self._write_answers(session)
        else:
            self._change_queries(session)
        with self._strike.phase(STOPPING):
            session.stop()
            spark.stop()

    def _change_queries(self, session: Session) -> None:
        with self._strike.phase(RUNNING):
            self._await_commits(session, 2)
        number = self._given["number"]
        with self._strike.phase(CREATING):
            query = session.create_query(EXTRAS[number % len(EXTRAS)], name=f"extra_{number}")
        self._tell("created", query.name)
        with self._strike.phase(CHANGING):
            self._await(session, lambda: query.status.in_effect)
            self._await_commits(session, 1)
        extras = [query for query in session.queries if query.name.startswith("extra_") and query.is_active]
        if len(extras) > KEPT_EXTRAS:
            oldest = min(extras, key=lambda extra: int(extra.name.removeprefix("extra_")))
            with self._strike.phase(DROPPING):
                oldest.drop()
            self._tell("dropped", oldest.name)
            self._await(session, lambda: oldest.status.in_effect)

    def _await_commits(self, session: Session, count: int) -> None:
        begun = session.engine.head.batch
        self._await(session, lambda: session.engine.head.batch >= begun + count)

    def _await(self, session: Session, is_so: Callable[[], bool]) -> None:
        while not is_so():
            if session.await_termination(LOOK_EVERY_S):
                raise RuntimeError("the session ended by itself")

    def _tell(self, what: str, name: str) -> None:
        with self._told.open("a", encoding="utf-8") as told:
            told.write(f"{what} {name}\n")

    def _write_answers(self, session: Session) -> None:
        folder = Path(self._given["answers"])
        folder.mkdir(exist_ok=True)
        records = []
        for record in session.engine.queries.records():
            if record.state is not QueryState.PENDING:
                pq.write_table(session.query(record.name).to_arrow(), folder / f"{record.name}.parquet")
            records.append(
                {
                    "name": record.name,
                    "sql": record.sql,
                    "state": record.state.value,
                    "error": record.error,
                    "complete_from": record.complete_from,
                    "created": record.created_batch,
                    "dropped": record.dropped_batch,
                }
            )
        (folder / "queries.json").write_text(json.dumps(records), encoding="utf-8")


if __name__ == "__main__":
    Program(json.loads(sys.argv[1])).run()
