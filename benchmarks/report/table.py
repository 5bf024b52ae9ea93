"""A suite's figures as a table in the terminal, after its run."""

from __future__ import annotations

from rich.table import Table

from benchmarks.report.figure_row import FigureRow, Figures
from benchmarks.report.figure_rows import ROWS_BY_SUITE


def figure_rows(figures: Figures) -> list[FigureRow]:
    rows = ROWS_BY_SUITE[str(figures["suite"])](figures)
    if "results_equal" in figures:
        rows.append(
            FigureRow("all answers that were checked equal DuckDB's", "yes" if figures["results_equal"] else "NO")
        )
    return rows


def figures_table(figures: Figures) -> Table:
    table = Table(title=f"{figures['suite']}: {circumstances_text(figures)}", title_justify="left")
    table.add_column("measured")
    table.add_column("value", justify="right")
    for row in figure_rows(figures):
        table.add_row(row.measured, row.value)
    return table


def circumstances_text(figures: Figures) -> str:
    machine = figures["machine"]
    quick = ", quick form" if figures.get("quick") else ""
    return (
        f"{machine['cores']} cores, {machine['memory_gib']} GiB, Spark {figures['spark_version']}, "
        f"{figures['date']}{quick}"
    )
