"""Hostile use of a session in Python: names, options, functions that answers go to, storms of changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.hostile.arena import HANG_S, Arena, Hang, within
from benchmarks.hostile.judge import of_refusal
from benchmarks.hostile.kills import FILLS, KILLS, RAISES, kill_workers, striking
from benchmarks.hostile.records import Outcome, Tried
from benchmarks.hostile.world import NEAR
from dovetail.core.errors import DovetailError

CHANNEL = "session on Spark"
SQL = "SELECT k, v FROM a WHERE v = 1"
NAMES: tuple[Any, ...] = (
    *(
        "",
        " ",
        ".",
        "..",
        "../../x",
        "a/b",
        "a\\b",
        "x" * 10_000,
        "a\nb",
        "\x00",
        "pairs#1",
        "a#b",
        "\ud800",
        "\u202e",
        "{query}",
    ),
    *(5, True, [], {}, b"x", 1.5, object()),
)
_VALUES_BY_OPTION: dict[str, tuple[Any, ...]] = {
    "max_results_per_batch": (-1, 0, "x", 1e308, True, float("nan"), 2**70, [], {}, b"1", object()),
    "max_pairs_per_batch": (-1, "many", 1.5),
    "backfill": ("maybe", 7, []),
    "keep_intermediates": ("no", 5),
    "sink": (5, "", "nope", "\x00", [], b"parquet"),
}
OPTIONS: tuple[dict[str, Any], ...] = (
    *({option: value} for option, values in _VALUES_BY_OPTION.items() for value in values),
    *(
        {"nope": 1},
        {"sink.path": "/nowhere/x"},
        {"sink": "parquet", "sink.password": "clear"},
        {"sink": "parquet", "sink.mode": 5},
    ),
    {f"sink.option{number}": "x" for number in range(3_000)},
)
STREAMS: tuple[tuple[Any, Any, Any], ...] = (
    ("", "k BIGINT", {"format": "parquet", "path": "/nowhere"}),
    ("../x", "k BIGINT", {"format": "parquet", "path": "/nowhere"}),
    ("s", "", {"format": "parquet", "path": "/nowhere"}),
    ("s", "k NOPE", {"format": "parquet", "path": "/nowhere"}),
    ("s", "k BIGINT, k INT", {"format": "parquet", "path": "/nowhere"}),
    ("s", "k BIGINT", {"format": "nope", "path": "/nowhere"}),
    ("s", "k BIGINT", {"format": "parquet"}),
    ("s", "k BIGINT", {"format": "parquet", "path": "/nowhere/at/all"}),
    ("s", "k BIGINT", {"format": "parquet", "path": "\x00"}),
    ("s", "ts TIMESTAMP", {"format": "rate", "event_time": "nope"}),
    ("s", "k BIGINT", {"format": "rate", "event_time": "k"}),
    ("s", "timestamp TIMESTAMP", {"format": "rate", "lateness": "-5 seconds"}),
    ("s", "timestamp TIMESTAMP", {"format": "rate", "on_bad_row": "explode"}),
    ("s", "timestamp TIMESTAMP", {"format": "rate", "max_event_time_ahead": "never"}),
    ("dovetail_control", "k BIGINT", {"format": "rate"}),
    ("a", "k BIGINT", {"format": "rate"}),
    ("s", ", ".join(f"c{i} INT" for i in range(3_000)), {"format": "nope"}),
)


ERRORS = (
    *(ValueError("x"), SystemExit(3), KeyboardInterrupt(), MemoryError(), StopIteration(), GeneratorExit()),
    BaseException("bare"),
)


@dataclass(frozen=True)
class Act:
    mechanism: str
    what: str
    run: Callable[[Arena], object]


def _named(name: Any) -> Callable[[Arena], object]:
    return lambda arena: arena.session.create_query(SQL, name).drop()


def _with_options(options: dict[str, Any]) -> Callable[[Arena], object]:
    return lambda arena: arena.session.create_query(SQL, "with_options", **options).drop()


def _declared(name: Any, columns: str, options: dict[str, Any]) -> Callable[[Arena], object]:
    def run(arena: Arena) -> None:
        quoted = ", ".join(f"{key} = '{value}'" for key, value in options.items())
        arena.session.execute(f"CREATE STREAM `{name}` ({columns}) WITH ({quoted})")

    return run


def _function(body: Callable[..., object]) -> Callable[[Arena], object]:
    """A function that answers go to; it is taken away again, as a user would."""

    def run(arena: Arena) -> None:
        handle = arena.session.query("pairs").foreach_batch(body)
        try:
            arena.run_wave()
        finally:
            threading.Thread(target=handle.close, daemon=True).start()

    return run


def _raise(error: BaseException) -> Callable[..., object]:
    def body(*_args: object) -> None:
        raise error

    return body


def _recurse(*_args: object) -> object:
    return _recurse()


def _storm(change: Callable[[Arena, int], object], count: int, threads: int = 1) -> Callable[[Arena], object]:
    """Many changes, from several threads; refusals are as good as anything."""

    def run(arena: Arena) -> None:
        def many(first: int) -> None:
            for number in range(first, count, threads):
                try:
                    change(arena, number)
                except DovetailError:
                    continue

        workers = [threading.Thread(target=many, args=(first,), daemon=True) for first in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(HANG_S)
        arena.run_wave()
        for query in arena.session.queries:
            if query.name.startswith("storm"):
                query.drop()

    return run


def _replace(arena: Arena, number: int) -> None:
    arena.session.create_query(f"SELECT k, v + {number} AS x FROM a", "storm", replace=True)


def _create_and_drop(arena: Arena, number: int) -> None:
    arena.session.create_query(f"SELECT k FROM b WHERE v = {number}", "storm_drop").drop()


def _same_name(arena: Arena, number: int) -> None:
    arena.session.create_query(f"SELECT k FROM a WHERE v = {number}", "storm_same")


def _same_request(arena: Arena, number: int) -> None:
    arena.session.create_query(
        f"SELECT k FROM a WHERE v = {number % 3}", f"storm_r{number % 2}", request=f"r{number % 4}"
    )


def _same_text(arena: Arena, number: int) -> None:
    arena.session.create_query("SELECT a.k FROM a JOIN b ON a.k = b.k AND b.ts = a.ts", f"storm_text{number}")


def _new_columns(arena: Arena, number: int) -> None:
    arena.session.create_query(f"SELECT k, u FROM {'abc'[number % 3]} WHERE u = {number}", f"storm_u{number}")


def _sink(**options: Any) -> Callable[[Arena], object]:
    def run(arena: Arena) -> None:
        query = arena.session.create_query(SQL, f"sink_{time.monotonic_ns()}", **options)
        arena.run_wave()
        query.drop()

    return run


def _struck(name: str) -> Callable[[Arena], object]:
    """A query whose tasks fail without saying that they fail because of it; it must be found."""

    def run(arena: Arena) -> None:
        with striking():
            query = arena.session.create_query(f"SELECT a.k, b.v FROM a JOIN b ON a.k = b.k AND {NEAR}", name)
            arena.run_wave()
            state = query.status.state
            query.drop()
            arena.settle()
        if state != "quarantined":
            raise AssertionError(f"the culprit is {state}")

    return run


def _killed(after_s: float) -> Callable[[Arena], object]:
    def run(arena: Arena) -> None:
        def during() -> None:
            time.sleep(after_s)
            kill_workers(arena.spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]

        arena.run_wave(during)

    return run


def _vanishing(arena: Arena) -> None:
    """A file that is gone before its batch can read it, and files under the name of another."""
    good = arena.folders.folder("a")
    path = good / "999999.parquet"
    path.write_bytes(b"PAR1")
    path.unlink()
    arena.run_wave()


ACTS = (
    *(Act("names of queries", repr(name)[:80], _named(name)) for name in NAMES),
    *(Act("options of the wrong kind", str(options)[:120], _with_options(options)) for options in OPTIONS),
    *(Act("streams that are none", f"{each[0]} ({each[1][:40]}) {each[2]}", _declared(*each)) for each in STREAMS),
    *(
        Act("functions that fail", type(error).__name__, _function(_raise(error)))
        for error in ERRORS
    ),
    Act("functions that fail", "endless recursion", _function(_recurse)),
    Act("functions that fail", "sleeps for longer than the run", _function(lambda *_: time.sleep(20))),
    Act("functions that fail", "not a function", lambda arena: arena.session.query("pairs").foreach_batch(5)),  # type: ignore[arg-type]
    Act("storms of changes", "80 replacements", _storm(_replace, 80)),
    Act("storms of changes", "60 creates and drops, 4 threads", _storm(_create_and_drop, 60, 4)),
    Act("storms of changes", "40 of one name, 8 threads", _storm(_same_name, 40, 8)),
    Act("storms of changes", "ids of requests for other requests", _storm(_same_request, 40, 4)),
    Act("storms of changes", "60 equal texts", _storm(_same_text, 60)),
    Act("storms of changes", "columns that nobody reads yet", _storm(_new_columns, 3)),
    Act("sinks that fail", "a path below a file", _sink(sink="parquet", **{"sink.path": "/proc/version/x"})),
    Act("sinks that fail", "no such format at run time", _sink(sink="com.example.No", **{"sink.path": "/nowhere"})),
    Act("sinks that fail", "JDBC to nowhere", _sink(sink="jdbc", **{"sink.url": "jdbc:no:x", "sink.dbtable": "t"})),
    Act("sinks that fail", "mode error", _sink(sink="parquet", **{"sink.path": "/proc/x", "sink.mode": "error"})),
    *(Act("workers that are killed", f"{after_s} s into a batch", _killed(after_s)) for after_s in (0.1, 0.3, 0.6)),
    Act("tasks that fail without a culprit", "the worker is killed", _struck(KILLS)),
    Act("tasks that fail without a culprit", "a system error", _struck(RAISES)),
    Act("tasks that fail without a culprit", "no memory", _struck(FILLS)),
    Act("files that vanish", "before they are read", _vanishing),
)  # fmt: skip


def run_acts(arena: Arena, acts: tuple[Act, ...], say: Callable[[str], None]) -> list[Tried]:
    tried = []
    for act in acts:
        began, lost, hangs = time.perf_counter(), arena.batches_lost, arena.hangs
        try:
            within(2 * HANG_S, lambda act=act: act.run(arena))  # type: ignore[misc]
            outcome, detail = Outcome.HELD, ""
        except Hang as hang:
            arena.hangs += 1
            outcome, detail = Outcome.HANG, str(hang)
        except AssertionError as error:
            outcome, detail = Outcome.WRONG, str(error)
        except BaseException as error:  # noqa: BLE001 - a refusal, or something raw
            outcome, detail = of_refusal(error)
        if arena.batches_lost > lost:
            outcome, detail = Outcome.LOST_BATCH, arena.last_failure
        elif arena.hangs > hangs and outcome is Outcome.HELD:
            outcome = Outcome.HANG
        elif fallen := arena.fallen_neighbours():
            outcome, detail = Outcome.HIT_NEIGHBOUR, "; ".join(fallen)
        tried.append(Tried(act.mechanism, act.what, CHANNEL, outcome, detail, time.perf_counter() - began))
    say(f"{len(tried)} acts tried, wave {arena.wave}")
    return tried
