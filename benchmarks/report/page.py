"""The page of all figures: `python -m benchmarks.report.page` writes docs/benchmarks.md from docs/benchmarks/*.json.

A suite that is run anew (`dovetail bench SUITE --json docs/benchmarks/SUITE.json`) replaces its part and no other.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.options import BenchError
from benchmarks.report.figure_row import Figures
from benchmarks.report.figure_rows import ROWS_BY_SUITE
from benchmarks.report.plots import write_plot
from benchmarks.report.suite_notes import NOTE_BY_SUITE
from benchmarks.report.table import circumstances_text, figure_rows

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"

_HEAD = """\
<!-- Generated from benchmarks/*.json by `make bench-report`: change the suites or benchmarks/report, not this page. -->
# Benchmarks

Dovetail against Spark's own stream-stream joins and DuckDB, on the same data, with equal answers. `make bench` runs all
suites and rewrites this page (hours); `make bench SUITES=single` runs one. `dovetail bench SUITE --quick` takes under a
minute and shows that a suite works. The raw figures lie beside this page, in [benchmarks/](benchmarks).

How peers are treated:

- All systems get the same files, the same cores, and only the columns that a query needs. Start-up does not count.
- Every answer that is counted is compared with DuckDB's, row by row or by checksum.
- Spark has settings in its favour: no batches without data, as many shuffle partitions as cores, half of the memory as
  heap, its better state store, its best batch size. A peer that reaches the time limit is reported as stopped.
- DuckDB reads everything at once in batch. It cannot run these queries continuously; it shows what the hardware can do.
- Single runs on this machine vary by up to a third.
"""

_TRANSCRIBED = """\
Suites marked «as published» have not been run since raw figures are kept here. Theirs were read back from the table in
the README of the commit that is named, so they are rounded as printed and have no spread.
"""


def page_text(all_figures: Sequence[Figures]) -> str:
    figures_by_suite = {str(figures["suite"]): figures for figures in all_figures}
    suites = sorted(figures_by_suite, key=list(ROWS_BY_SUITE).index)
    summary = [
        f"| [`{suite}`](#{suite}) | {NOTE_BY_SUITE[suite].question} | "
        f"{NOTE_BY_SUITE[suite].headline(figures_by_suite[suite])} |"
        for suite in suites
    ]
    parts = [_HEAD, *([_TRANSCRIBED] if any("transcribed" in figures for figures in all_figures) else [])]
    parts += ["| suite | question | result |\n|---|---|---|\n" + "\n".join(summary) + "\n"]
    parts += [_section(figures_by_suite[suite]) for suite in suites]
    return "\n".join(parts)


def _section(figures: Figures) -> str:
    suite = str(figures["suite"])
    note = NOTE_BY_SUITE[suite]
    arguments = f" {figures['arguments']}" if figures.get("arguments") else ""
    commit = f", commit {figures['commit']}" if figures.get("commit") else ""
    origin = ", as published" if "transcribed" in figures else ""
    measured = f"`dovetail bench {suite}{arguments}` on {circumstances_text(figures)}{commit}{origin}"
    lines = [
        f"## {suite}",
        "",
        f"{note.question} {note.reading}",
        "",
        f"![{suite}](benchmarks/{suite}.svg)",
        "",
        f"{measured} ([JSON](benchmarks/{suite}.json)).",
        "",
        "| measured | value |",
        "|---|---|",
    ]
    lines += [f"| {row.measured} | {row.value} |" for row in figure_rows(figures)]
    return "\n".join(lines) + "\n"


def read_figures(folder: Path) -> list[Figures]:
    """All suites that were run; a quick run is no result."""
    all_figures: list[Figures] = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))
    ]
    quick = [str(figures["suite"]) for figures in all_figures if figures["quick"]]
    if quick:
        raise BenchError(f"quick runs are no results: {', '.join(quick)}", hint="run them again without --quick")
    return all_figures


def main(arguments: Sequence[str]) -> int:
    page = Path(arguments[0]) if arguments else PAGE
    folder = page.with_suffix("")
    all_figures = read_figures(folder)
    for figures in all_figures:
        write_plot(figures, folder / f"{figures['suite']}.svg")
    page.write_text(page_text(all_figures), encoding="utf-8")
    sys.stdout.write(f"{page}: {len(all_figures)} suites\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
