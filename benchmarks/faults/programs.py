"""Programs in processes of their own, which may be killed with all that they started; what is left is compared."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.faults.killed_queries import QUERIES, BatchSql, Difference, RowFiles, rows_of
from benchmarks.faults.strike import Moment
from dovetail.core.errors import DovetailError
from dovetail.store.manifest import read_manifests

PATIENCE_S = 900.0
LOG_TAIL = 3000


class ProgramFailed(DovetailError):
    """A program ended by itself, with an error, or did not end."""


@dataclass
class Line:
    """One checkpoint and the programs that go on with it, one after the other."""

    folder: Path
    files: RowFiles
    options: Mapping[str, Any]
    spark: Mapping[str, str] = field(default_factory=dict)
    cores: int = 2
    starts: int = 0
    answer_count: int = 0

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def committed(self) -> int:
        return len(list((self.checkpoint / "manifests").glob("b*.json")))

    @contextmanager
    def program(self, moment: Moment | None, *, drains: bool) -> Iterator[subprocess.Popen[bytes]]:
        """What still runs when the block ends is killed."""
        given = {
            "data": str(self.files.folder),
            "checkpoint": str(self.checkpoint),
            "told": str(self.folder / "told"),
            "answers": str(self.folder / "answers"),
            "options": dict(self.options),
            "spark": dict(self.spark),
            "cores": self.cores,
            "number": self.starts,
            "drains": drains,
            "moment": None if moment is None else moment.to_json(),
        }
        self.starts += 1
        with (self.folder / "program.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", "benchmarks.faults.driver_program", json.dumps(given)],
                stdout=log,
                stderr=log,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                # A group of its own, so that the JVM can be killed with the driver.
                start_new_session=True,
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def run(self, moment: Moment | None, *, drains: bool = False) -> bool:
        """Whether the program was killed, which it is at its moment; False if it ended before. Raises what it did."""
        with self.program(moment, drains=drains) as process:
            try:
                ended = process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                raise self.failed("does not end") from None
            if ended not in (0, -signal.SIGKILL):
                raise self.failed(f"ended with {ended}")
            return ended != 0

    def failed(self, how: str) -> ProgramFailed:
        return ProgramFailed(f"a program {how}: {(self.folder / 'program.log').read_text()[-LOG_TAIL:]}")

    def difference(self) -> dict[str, Difference]:
        """By query, after a program that drained: its answers against those of batch SQL over the same files."""
        judge = BatchSql(self.files, self._batch_by_file())
        records = json.loads((self.folder / "answers" / "queries.json").read_text())
        found: dict[str, Difference] = {}
        for record in records:
            name = record["name"]
            if record["created"] is None:
                continue
            if name in QUERIES:
                expected = judge.answers(name, record["sql"])
            else:
                span = (record["complete_from"], record["created"], record["dropped"])
                expected = judge.answers_between(record["sql"], *span)
            found[name] = Difference.of(rows_of(self.folder / "answers" / f"{name}.parquet"), expected)
            self.answer_count += expected.total()
        return found | self._forgotten(records)

    def quarantined(self) -> list[str]:
        records = json.loads((self.folder / "answers" / "queries.json").read_text())
        return [record["name"] for record in records if record["error"]]

    def _forgotten(self, records: list[dict[str, Any]]) -> dict[str, Difference]:
        """Changes that the program was told were accepted, and that are not there."""
        told = self.folder / "told"
        states = {record["name"]: record["state"] for record in records}
        lines = [line.split() for line in told.read_text().splitlines()] if told.exists() else []
        lost = [" ".join(line) for line in lines if not _is_there(line[0], line[1], states)]
        return {f"told: {what}": Difference(lost=1) for what in lost}

    def _batch_by_file(self) -> dict[tuple[str, int], int]:
        """Which batch read a file, by what Spark noted of its sources."""
        found: dict[tuple[str, int], int] = {}
        for manifest in read_manifests(self.checkpoint):
            for path, text in manifest.source_log.files.items():
                if path.startswith("sources/"):
                    for entry in map(json.loads, text.splitlines()[1:]):
                        file = Path(entry["path"])
                        found.setdefault((file.parent.name, int(file.stem)), manifest.batch)
        return found


def _is_there(what: str, name: str, states: Mapping[str, str]) -> bool:
    return name in states and (what == "created" or states[name] == "dropped")


def session_processes(process: subprocess.Popen[bytes]) -> dict[int, str]:
    """Command lines of all that a program started, by process id."""
    found: dict[int, str] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(fields[3]) == process.pid:
                found[int(stat.parent.name)] = (stat.parent / "cmdline").read_text().replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def counted(differences: Mapping[str, Difference]) -> Difference:
    return sum(differences.values(), Difference())
