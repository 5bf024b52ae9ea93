"""The lines of the suites `placement` and `partition`."""

from __future__ import annotations

from benchmarks.report.figure_row import FigureRow, Figures, times_text

_MODES = "every query for itself; once a key; once a partition, placed"


def partition_rows(figures: Figures) -> list[FigureRow]:
    tpch, monitoring = figures["tpch"], figures["monitoring"]
    rows = [
        *_shipped_rows("14 TPC-H queries", tpch),
        *_time_rows("14 TPC-H queries", tpch),
        *(
            FigureRow(f"14 TPC-H queries, {count} partitions: shipped bytes, unshared over shared", times_text(ratio))
            for count, ratio in tpch["shipped_ratio_by_partitions"].items()
        ),
    ]
    for count, case in figures["ajoin"].items():
        name = f"AJoin's template, {'1 query' if count == '1' else f'{count} queries'}"
        rows += [*_shipped_rows(name, case), *_time_rows(name, case)]
    exchanged = "; ".join(_megabytes(monitoring[f"exchanged_{mode}"]) for mode in ("unshared", "shared"))
    rows.append(FigureRow("2 cluster aggregates: bytes between tasks, each for itself; shared", exchanged))
    longer = [f"{share:.0%}" for share in figures["change"]["longer"]] or ["none was taken"]
    changed = FigureRow("batches with a new placement: longer than their neighbours by", "; ".join(longer))
    return [*rows, *_time_rows("2 cluster aggregates", monitoring), changed, *_mark_rows(figures["marks"])]


def _mark_rows(marks: Figures) -> list[FigureRow]:
    """Of shipping one batch: bytes under LZ4 and processor time."""
    return [
        FigureRow(
            f"{count} queries: selections sent as bits; decided again where rows arrive",
            "; ".join(
                f"{_megabytes(ways[way]['compressed_bytes'])}, {ways[way]['seconds']:.2f} s"
                for way in ("query_sets", "specialized")
            ),
        )
        for count, ways in marks.items()
    ]


def _shipped_rows(name: str, case: Figures) -> list[FigureRow]:
    sizes = "; ".join(_megabytes(case[f"shipped_{mode}"]) for mode in ("unshared", "by_key", "shared"))
    return [
        FigureRow(f"{name}, {case['rows']:,} rows: shipped: {_MODES}", sizes),
        FigureRow(f"{name}: shipped bytes, unshared over shared", times_text(case["shipped_ratio"])),
    ]


def _time_rows(name: str, case: Figures) -> list[FigureRow]:
    times = "; ".join(f"{case[f'time_{mode}_s']} s" for mode in ("unshared", "by_key", "shared"))
    return [
        FigureRow(f"{name}: time: {_MODES}; by references", f"{times}; {case['references_s']} s"),
        FigureRow(f"{name}: time, unshared over shared", times_text(case["time_ratio"])),
        FigureRow(f"{name}: slowest partition over mean, by work", f"{case['imbalance']}"),
    ]


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.2f} MB"


def placement_rows(figures: Figures) -> list[FigureRow]:
    rows = [FigureRow(_placement_name(name), _placement_text(case)) for name, case in figures["cases"].items()]
    for name, shares in figures["shares"].items():
        share_by_text = {
            "all heuristics": shares["all"],
            "local search only": shares["none"],
            **{f"without {heuristic}": share for heuristic, share in shares["without"].items()},
            **{f"with {heuristic} only": share for heuristic, share in shares["only"].items()},
        }
        rows += [
            FigureRow(f"{_placement_name(name)}, {text}", f"cost {share['cost_over_all']:.1%}; {share['seconds']} s")
            for text, share in share_by_text.items()
        ]
    return rows


def _placement_name(name: str) -> str:
    queries, partitions, groups = (part[:-1] for part in name.split("_"))
    return f"{queries} {'query' if queries == '1' else 'queries'}, {partitions} partitions, {groups} key groups"


def _placement_text(case: Figures) -> str:
    near = "not proven within 5%" if case["seconds_near"] is None else f"within 5% {case['seconds_near']} s"
    exact = "" if case["exact_s"] is None else f"; exact program alone {case['exact_s']} s"
    shipped = f"shipped over unshared {case['shipped_over_unshared']} (even {case['shipped_over_unshared_even']})"
    proven = f"{near}, all {case['seconds']} s; accuracy {case['accuracy']:.1%}"
    return f"{proven}; {shipped}; imbalance {case['imbalance']}{exact}"
