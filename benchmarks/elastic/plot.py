"""The figures of suite `elastic` as BiStream draws them: input, units and load, and latency over time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.options import BenchError

WIDTH_IN, HEIGHT_IN = 9.0, 7.0


def write_plot(figures: Mapping[str, Any], path: Path) -> None:
    """As SVG, with the same bytes for the same figures."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - only for who draws
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise BenchError("the plot needs matplotlib", hint="run: pip install 'dovetail[bench]'") from error
    series = figures["series"]
    with mpl.rc_context({"svg.hashsalt": "dovetail", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN), layout="constrained")
        rate, units, latency = figure.subplots(3, 1, sharex=True)
        rate.step(series["seconds"], series["rows_per_s"], where="post", color="tab:gray")
        rate.set_ylabel("input rows a second")
        units.step(series["at_s"], series["units"], where="post", color="tab:blue", label="units")
        units.set_ylabel("units")
        units.set_ylim(bottom=0)
        load = units.twinx()
        load.plot(series["at_s"], series["memory_load"], color="tab:orange", label="memory load")
        load.plot(series["at_s"], series["time_load"], color="tab:green", linestyle=":", label="time load")
        for bound in (0.3, 0.6, 0.8):
            load.axhline(bound, color="tab:orange", linewidth=0.5, linestyle="--")
        load.set_ylabel("load of a unit")
        load.set_ylim(bottom=0)
        lines = [*units.get_lines(), *load.get_lines()[:2]]
        units.legend(lines, [str(line.get_label()) for line in lines], loc="upper left")
        latency.plot(series["at_s"], series["latency_s"], color="tab:red", label="latency of a batch's oldest file")
        latency.plot(series["at_s"], series["batch_s"], color="tab:purple", label="batch")
        latency.set_ylabel("seconds")
        latency.set_ylim(bottom=0)
        latency.set_xlabel("seconds since the input began")
        latency.legend(loc="upper left")
        figure.suptitle(f"{figures['changes']} changes of units, {figures['state_rows_moved']} stored rows moved")
        figure.savefig(path, format="svg", metadata={"Date": None})
