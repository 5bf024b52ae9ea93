"""`dovetail calibrate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from dovetail.cli.errors import show_errors
from dovetail.core.errors import StoreError

if TYPE_CHECKING:
    from dovetail.engine.calibrate.calibrate import Calibration, ShapeFit

TEXT_BY_UNIT = {
    "probed": "a row probes a node",
    "searched": "and a bucket there",
    "found": "a pair is found",
    "tested": "and tested, in an intermediate",
    "shipped": "a partial result goes to a next hop",
    "built": "an answer is built",
    "stored": "a row of an intermediate is stored",
    "indexed": "and indexed",
    "node": "a node searches a bucket at all",
    "message": "a piece of partial results is sent at all",
    "file": "a file is written at all",
    "sent": "a byte of a row is sent to a partition (not measured)",
    "byte": "a byte is kept (not measured)",
}


@show_errors
def calibrate(
    seconds: Annotated[float, typer.Option(help="About how long it measures.", min=1.0)] = 10.0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Measure what elementary work costs on this machine; the planner uses the figures from then on."""
    # Imported here, so that `dovetail --help` does not wait for the kernels.
    from dovetail.engine.calibrate.calibrate import calibrate as measure  # noqa: PLC0415
    from dovetail.engine.calibrate.unit_cost_cache import save_unit_costs  # noqa: PLC0415

    if json_file is not None:
        # Before the run, so that a path that cannot be written does not cost the measurement.
        try:
            json_file.parent.mkdir(parents=True, exist_ok=True)
            json_file.touch()
        except OSError as error:
            raise StoreError(f"{json_file} cannot be written: {error}", hint="name another file") from error
    console = Console()
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("measuring", total=1.0)
        measured = measure(seconds, on_round=lambda share: progress.update(bar, completed=share))
    path = save_unit_costs(measured.units)
    if json_file is not None:
        json_file.write_text(json.dumps(figures_of(measured), indent=2) + "\n", encoding="utf-8")
    show(measured, console)
    console.print(f"Kept in {path}", soft_wrap=True, highlight=False)


def figures_of(measured: Calibration) -> dict[str, Any]:
    def entries(fits: tuple[ShapeFit, ...]) -> list[dict[str, Any]]:
        return [{"shape": fit.name, "measured_s": fit.measured_s, "modelled_s": fit.modelled_s} for fit in fits]

    return {
        "unit_costs": measured.units.to_json(),
        "task_s": measured.task_s,
        "rounds": measured.rounds,
        "explained_share": measured.explained_share,
        "largest_error": measured.largest_error,
        "largest_check_error": measured.largest_check_error,
        "fits": entries(measured.fits),
        "checks": entries(measured.checks),
    }


def show(measured: Calibration, console: Console) -> None:
    from dovetail.stats.unit_costs import DEFAULT_UNIT_COSTS  # noqa: PLC0415

    units = Table("unit", "what happens", title="Unit costs, seconds of one core", title_justify="left")
    for head in ("now", "default"):
        units.add_column(head, justify="right")
    default_by_unit = DEFAULT_UNIT_COSTS.to_json()
    for unit, value in measured.units.to_json().items():
        units.add_row(unit, TEXT_BY_UNIT[unit], time_text(value), time_text(default_by_unit[unit]))
    console.print(units)
    fits = Table("shape", title=f"Best of {measured.rounds} runs against the model", title_justify="left")
    for head in ("measured", "modelled", "error"):
        fits.add_column(head, justify="right")
    for fit in measured.fits:
        fits.add_row(*_fit_texts(fit))
    fits.add_section()
    for fit in measured.checks:
        fits.add_row(*_fit_texts(fit))
    console.print(fits)
    console.print(
        f"The units explain {measured.explained_share:.1%} of the differences (R²) between the shapes they were "
        f"fitted to, the largest error is {measured.largest_error:.0%}. On the {len(measured.checks)} shapes below the "
        f"line, which the fit did not see, it is {measured.largest_check_error:.0%}. A task of a hop costs "
        f"{time_text(measured.task_s)} besides. Spark's exchange between hops is not measured: shipping costs more "
        "there.",
        highlight=False,
    )


def _fit_texts(fit: ShapeFit) -> tuple[str, str, str, str]:
    return fit.name, time_text(fit.measured_s), time_text(fit.modelled_s), f"{fit.relative_error:+.0%}"


def time_text(seconds: float) -> str:
    """Three digits, in the unit that needs no zeros.

    >>> time_text(0.0), time_text(2.5e-8), time_text(0.0123)
    ('0', '25 ns', '12.3 ms')
    """
    if seconds == 0:
        return "0"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
