"""Bars and lines in one style: every system has its colour, every plot the same bytes for the same figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.options import BenchError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SYSTEM_COLOURS: Mapping[str, str] = {
    "Dovetail": "tab:blue",
    "Spark": "tab:orange",
    "DuckDB": "tab:gray",
    "only reading": "lightgray",
}
OTHER_COLOURS = ("tab:blue", "tab:green", "tab:purple", "tab:red", "tab:brown")
WIDTH_IN, HEIGHT_IN = 8.0, 3.0

Values = Sequence[float | None]
Series = Mapping[Any, float | None]


@contextmanager
def drawing(path: Path, *, panels: int = 1, height_in: float = HEIGHT_IN) -> Iterator[list[Axes]]:
    """The panels of a figure side by side; written as SVG when the block ends."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - only drawing needs it
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise BenchError("a plot needs matplotlib", hint="run: pip install 'dovetail[bench]'") from error
    with mpl.rc_context(
        {
            "svg.hashsalt": "dovetail",
            "svg.fonttype": "none",
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 10,
            "legend.frameon": False,
        }
    ):
        figure: Figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
        yield list(figure.subplots(1, panels, squeeze=False)[0])
        figure.savefig(path, format="svg", metadata={"Date": None})


def bars(axes: Axes, groups: Sequence[str], values_by_name: Mapping[str, Values], *, unit: str) -> None:
    """A group of bars for each label, one bar a name; a value that is None leaves a gap."""
    width = 0.8 / len(values_by_name)
    for place, (name, values) in enumerate(values_by_name.items()):
        known = [(at, value) for at, value in enumerate(values) if value is not None]
        drawn = axes.bar(
            [at + (place - (len(values_by_name) - 1) / 2) * width for at, _ in known],
            [value for _, value in known],
            width * 0.95,
            label=name,
            color=[_colour(groups[at] if len(values_by_name) == 1 else name, place) for at, _ in known],
        )
        axes.bar_label(drawn, fmt=number_text, fontsize=7, padding=1)
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylabel(unit)
    axes.margins(y=0.15)
    if len(values_by_name) > 1:
        axes.legend(fontsize=8)


def lines(axes: Axes, values_by_name: Mapping[str, Series], *, unit: str, over: str, style: str = "o-") -> None:
    for place, (name, value_by_x) in enumerate(values_by_name.items()):
        known = {x: value for x, value in value_by_x.items() if value is not None}
        axes.plot(list(known), list(known.values()), style, markersize=4, label=name, color=_colour(name, place))
    axes.set_ylabel(unit)
    axes.set_xlabel(over)
    if len(values_by_name) > 1:
        axes.legend(fontsize=8)


def dots(axes: Axes, groups: Sequence[str], values_by_name: Mapping[str, Values], *, unit: str) -> None:
    """A dot for each label and name, where bars would be too many."""
    lines(
        axes, {name: dict(enumerate(values)) for name, values in values_by_name.items()}, unit=unit, over="", style="o"
    )
    axes.set_xticks(range(len(groups)), groups, rotation=90, fontsize=7)


def _colour(name: str, place: int) -> str:
    systems = [colour for system, colour in SYSTEM_COLOURS.items() if name.startswith(system)]
    return systems[0] if systems else OTHER_COLOURS[place % len(OTHER_COLOURS)]


def plain_ticks(axes: Axes, values: Sequence[float]) -> None:
    """On a logarithmic axis the measured places themselves, not powers of ten."""
    axes.set_xscale("log")
    axes.set_xticks(list(values), [f"{value:,g}" for value in values])
    axes.minorticks_off()


def number_text(value: float) -> str:
    """As short as a label should be.

    >>> [number_text(value) for value in (0.034, 2.5, 37.63, 478, 119_044, 4_576_263)]
    ['0.034', '2.5', '38', '478', '119k', '4.6M']
    """
    for size, letter in ((1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            scaled = value / (1e6 if letter == "M" else 1e3)
            return f"{scaled:.1f}{letter}" if abs(scaled) < 10 else f"{scaled:.0f}{letter}"
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"
