"""Entry point of the benchmarks: one suite by name, its figures as plain data for JSON."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.measure import Steps
from benchmarks.options import BenchError, BenchOptions
from benchmarks.report.plots import write_plot
from benchmarks.report.table import figures_table
from benchmarks.spark_session import memory_bytes, start_spark
from benchmarks.suites import (
    adaptive,
    adhoc,
    aggregates,
    elastic,
    faults,
    hostile,
    ilp,
    materialize,
    multiway,
    partition,
    placement,
    queries,
    single,
    skew,
    smallest,
    steady,
    theta,
    tpch_multi,
    window,
)
from benchmarks.workbench import Workbench

__all__ = ["SUITES", "SUITES_WITHOUT_SPARK", "BenchError", "BenchOptions", "run_suite", "write_plot"]

SUITES: dict[str, Callable[[Workbench], dict[str, object]]] = {
    "single": single.run,
    "queries": queries.run,
    "window": window.run,
    "multiway": multiway.run,
    "smallest": smallest.run,
    "adaptive": adaptive.run,
    "tpch-multi": tpch_multi.run,
    "adhoc": adhoc.run,
    "theta": theta.run,
    "aggregates": aggregates.run,
    "partition": partition.run,
    "elastic": elastic.run,
    "hostile": hostile.run,
    "steady": steady.run,
}

SUITES_WITHOUT_SPARK: dict[str, Callable[[BenchOptions, Steps], dict[str, object]]] = {
    "ilp": ilp.run,
    "materialize": materialize.run,
    "skew": skew.run,
    "placement": placement.run,
    "faults": faults.run,
}


def run_suite(suite: str, options: BenchOptions, console: Console) -> dict[str, object]:
    """Run one suite with progress and a final table on `console`; the figures are ready for `json.dump`."""
    names = [*SUITES, *SUITES_WITHOUT_SPARK]
    if suite not in names:
        raise BenchError(f"there is no suite {suite!r}", hint=f"one of: {', '.join(names)}")
    console.print(f"[bold]{suite}[/bold] on {options.cores} cores{', quick' if options.quick else ''}")
    if suite in SUITES_WITHOUT_SPARK:
        figures = SUITES_WITHOUT_SPARK[suite](options, Steps(console))
    else:
        figures = _run_with_spark(suite, options, console)
    figures = {"suite": suite, "quick": options.quick, **figures, **_circumstances(options)}
    console.print(figures_table(figures))
    return figures


def _run_with_spark(suite: str, options: BenchOptions, console: Console) -> dict[str, object]:
    had_spark = SparkSession.getActiveSession() is not None
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as folder:
        spark = start_spark(options.cores, Path(folder))
        try:
            return SUITES[suite](Workbench(spark, Path(folder), options, Steps(console)))
        finally:
            if not had_spark:
                spark.stop()


def _circumstances(options: BenchOptions) -> dict[str, object]:
    return {
        "machine": {"cores": options.cores, "memory_gib": round(memory_bytes() / 2**30)},
        "date": datetime.now(UTC).date().isoformat(),
        "spark_version": pyspark.__version__,
        "commit": _commit(),
        "arguments": options.arguments_text,
    }


def _commit() -> str | None:
    """Of the clone that was measured, marked if it was changed since; None without git."""
    git = shutil.which("git")
    if git is None:
        return None
    described = subprocess.run(  # noqa: S603 - arguments of our own
        [git, "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude", "*"],
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or None
