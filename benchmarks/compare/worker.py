"""One revision in a process of its own: runs a case when it is told to, and says how long it took.

    PYTHONPATH=REVISION/src:CLONE python -m benchmarks.compare.worker FOLDER

The benchmarks are those of the clone, Dovetail is that of the revision. A line in is the name of a case, a line out is
what was measured, as JSON. Spark stays up between two runs, so that no run pays for a start.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import count
from pathlib import Path
from statistics import median

import dovetail
from benchmarks.compare.cases import all_cases
from benchmarks.peers.dovetail_peer import run_dovetail
from benchmarks.spark_session import start_spark

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Of all processes of this one's session: Python, the JVM and Spark's Python workers, also those that ended."""
    session, ticks = os.getsid(0), 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS_PER_S


def main(folder: Path) -> None:
    answers = sys.stdout
    sys.stdout = sys.stderr
    spark = start_spark(os.cpu_count() or 1, folder / f"spark-{os.getpid()}")
    case_by_name = {case.name: case for case in all_cases()}
    numbers = count()
    print(json.dumps({"runs": str(Path(dovetail.__file__).parent)}), file=answers, flush=True)
    for line in sys.stdin:
        case = case_by_name[line.strip()]
        began = cpu_seconds()
        run = run_dovetail(
            spark,
            case.files(folder),
            case.query_sql_by_name,
            folder / f"checkpoint-{os.getpid()}-{next(numbers)}",
            seconds_per_batch=case.seconds_per_batch,
        )
        figures = {
            "seconds": median(run.time.batch_ms) / 1e3 if case.by_batch else run.time.seconds,
            "cpu_s": cpu_seconds() - began,
            "answers": {name: [each.row_count, each.checksum] for name, each in run.answer_by_name.items()},
        }
        print(json.dumps(figures), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
