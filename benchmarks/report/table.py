"""Figures for people: the table after a run, and the block of the README.

`python -m benchmarks.report.table README.md single.json queries.json ...` puts these suites' figures between the two
marks in the README and leaves those of the others; `make bench` ends with it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from benchmarks.options import BenchError
from benchmarks.report.figure_row import FigureRow, Figures
from benchmarks.report.figure_rows import ROWS_BY_SUITE

BEGIN_MARK = "<!-- bench:begin -->"
END_MARK = "<!-- bench:end -->"
_HEAD = "Measured on "


def figure_rows(figures: Figures) -> list[FigureRow]:
    rows = ROWS_BY_SUITE[str(figures["suite"])](figures)
    if "results_equal" in figures:
        rows.append(
            FigureRow("all answers that were checked equal DuckDB's", "yes" if figures["results_equal"] else "NO")
        )
    return rows


def figures_table(figures: Figures) -> Table:
    table = Table(title=f"{figures['suite']}: {_circumstances(figures)}", title_justify="left")
    table.add_column("measured")
    table.add_column("value", justify="right")
    for row in figure_rows(figures):
        table.add_row(row.measured, row.value)
    return table


def markdown_block(all_figures: Sequence[Figures], old_block: str = "") -> str:
    """All suites as one Markdown table, with the machine and the date above it; `old_block` has those not run anew."""
    rows_by_suite = _rows_by_suite(old_block)
    for figures in all_figures:
        suite = str(figures["suite"])
        rows_by_suite[suite] = [f"| `{suite}` | {row.measured} | {row.value} |" for row in figure_rows(figures)]
    heads = [line for line in old_block.splitlines() if line.startswith(_HEAD)]
    known = heads[0].removeprefix(_HEAD).rstrip(".").split("; ") if heads else []
    circumstances = sorted({*known, *(_circumstances(figures) for figures in all_figures)})
    lines = [f"{_HEAD}{'; '.join(circumstances)}.", "", "| suite | measured | value |", "|---|---|---|"]
    for suite in sorted(rows_by_suite, key=list(ROWS_BY_SUITE).index):
        lines += rows_by_suite[suite]
    return "\n".join(lines)


def _rows_by_suite(block: str) -> dict[str, list[str]]:
    rows_by_suite: dict[str, list[str]] = {}
    for line in block.splitlines():
        suite = line.removeprefix("| `").split("`")[0]
        if line.startswith("| `") and suite in ROWS_BY_SUITE:
            rows_by_suite.setdefault(suite, []).append(line)
    return rows_by_suite


def old_block(readme: str) -> str:
    """What stands between the README's marks now."""
    return _parts(readme)[1].strip("\n")


def replace_block(readme: str, block: str) -> str:
    """The README's text with what stands between the marks replaced."""
    before, _, after = _parts(readme)
    return f"{before}{BEGIN_MARK}\n{block}\n{END_MARK}{after}"


def _parts(readme: str) -> tuple[str, str, str]:
    before, *rest = readme.split(BEGIN_MARK)
    between, *after = rest[0].split(END_MARK) if len(rest) == 1 else ("",)
    if len(after) != 1 or END_MARK in before:
        raise BenchError("the README has no place for the figures", hint=f"add {BEGIN_MARK} and {END_MARK} once each")
    return before, between, after[0]


def _circumstances(figures: Figures) -> str:
    machine = figures["machine"]
    quick = ", quick form" if figures.get("quick") else ""
    return (
        f"{machine['cores']} cores, {machine['memory_gib']} GiB, Spark {figures['spark_version']}, "
        f"{figures['date']}{quick}"
    )


def main(arguments: Sequence[str]) -> int:
    if len(arguments) < 2:
        sys.stderr.write("usage: python -m benchmarks.report.table README.md FIGURES.json ...\n")
        return 2
    readme = Path(arguments[0])
    all_figures = [json.loads(Path(path).read_text(encoding="utf-8")) for path in arguments[1:]]
    text = readme.read_text(encoding="utf-8")
    readme.write_text(replace_block(text, markdown_block(all_figures, old_block(text))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
