"""`make first-hour`: every program and command of README and docs, as written, in new processes.

    python -m tools.first_hour [--times N] [--load L] [--only EXPRESSION] [--list]

A program fails if it ends badly, prints a traceback, more than 60 lines on stderr, or not what its page shows. With
`--load` the machine is kept at about that load, by programs side by side and processes that only count. Logs of what
failed are in build/first-hour. `make first-hour TIMES=10 LOAD=8` is what a release must pass.
"""

from __future__ import annotations

import argparse
import re
import signal
import statistics
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.first_hour.blocks import ROOT, all_pages
from tools.first_hour.catalogue import Listed, uses_of
from tools.first_hour.load import Load
from tools.first_hour.process import ProgramFailed
from tools.first_hour.programs import PROGRAMS, Program
from tools.first_hour.work import working

LOGS = ROOT / "build" / "first-hour"
LOAD_OF_A_PROGRAM = 2.0
"""About how many threads of a program want a core, from its start to its end."""


@dataclass(frozen=True)
class Outcome:
    program: Program
    seconds: float
    first_rows_s: float | None
    failure: str | None


def run_once(program: Program) -> Outcome:
    """In a folder of its own; whatever it leaves running is ended."""
    _heed_interrupts()
    with working() as work:
        failure = None
        try:
            program.run(work)
        except Exception as error:  # noqa: BLE001 - a page whose blocks changed fails alone, too
            failure = str(error) if isinstance(error, ProgramFailed) else repr(error)
            _log_file(program).write_text(f"{failure}\n\n{work.log()}", encoding="utf-8")
        return Outcome(program, time.monotonic() - work.began, work.first_rows_s, failure)


def _heed_interrupts() -> None:
    """Programs are ended as by Ctrl-C, and a shell's background jobs, with all that they start, are deaf to it."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _log_file(program: Program) -> Path:
    LOGS.mkdir(parents=True, exist_ok=True)
    name = "".join(letter if letter.isalnum() else "_" for letter in program.name)
    return LOGS / f"{name}-{len(list(LOGS.glob(f'{name}-*')))}.log"


def run_all(programs: Sequence[Program], times: int, load: float) -> list[Outcome]:
    """Turn by turn, so that a program's runs are spread over the hour. Services share a port, and so a lane."""
    outcomes: list[Outcome] = []
    telling = threading.Lock()

    def run(program: Program) -> None:
        outcome = run_once(program)
        with telling:
            outcomes.append(outcome)
            print(f"{len(outcomes):4} of {times * len(programs)}  {_said(outcome)}", flush=True)

    turns = [program for _ in range(times) for program in programs]
    lanes = max(1, round(load / LOAD_OF_A_PROGRAM))
    with Load(load) as kept, ThreadPoolExecutor(max(1, lanes - 1)) as others:
        own_lane = ThreadPoolExecutor(1) if lanes > 1 else others
        with own_lane:
            begun = [(own_lane if program.serves else others).submit(run, program) for program in turns]
            for each in begun:
                each.result()
    print(f"\n{kept.mean:.1f} threads wanted a core on average")
    return outcomes


def _said(outcome: Outcome) -> str:
    result = "ok" if outcome.failure is None else f"FAILED: {outcome.failure.splitlines()[0]}"
    return f"{outcome.program.name:32} {outcome.seconds:6.1f} s  {result}"


def table(programs: Iterable[Program], outcomes: Sequence[Outcome]) -> str:
    lines = [f"{'program':32} {'runs':>5} {'failed':>7} {'first rows':>11} {'seconds':>8}   (medians)"]
    for program in programs:
        own = [outcome for outcome in outcomes if outcome.program == program]
        failed = sum(outcome.failure is not None for outcome in own)
        firsts = [outcome.first_rows_s for outcome in own if outcome.first_rows_s is not None]
        first = f"{statistics.median(firsts):.1f}" if firsts else "-"
        seconds = f"{statistics.median(outcome.seconds for outcome in own):.1f}" if own else "-"
        lines.append(f"{program.name:32} {len(own):5} {failed:7} {first:>11} {seconds:>8}")
    return "\n".join(lines)


def not_run() -> str:
    """Blocks that no program runs, by reason."""
    places: dict[str, list[str]] = {}
    for page in all_pages():
        for block, use in uses_of(page):
            if isinstance(use, Listed):
                places.setdefault(use.reason, []).append(block.place)
    return "\n".join(f"not run, {reason}:\n    {', '.join(found)}" for reason, found in places.items())


def main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make first-hour", description="Run what the pages show, as written.")
    parser.add_argument("--times", type=int, default=1, help="runs of each program")
    parser.add_argument("--load", type=float, default=0.0, help="about how many threads shall want a core")
    parser.add_argument("--only", default="", help="programs whose name matches this expression")
    parser.add_argument("--list", action="store_true", help="only say what would run")
    asked = parser.parse_args(given)
    programs = [program for program in PROGRAMS if re.search(asked.only, program.name)]
    if asked.list or not programs:
        print("\n".join(program.name for program in programs or PROGRAMS), not_run(), sep="\n\n")
        return 0 if programs else 2
    _heed_interrupts()
    outcomes = run_all(programs, asked.times, asked.load)
    print(table(programs, outcomes), not_run(), sep="\n\n")
    failed = sum(outcome.failure is not None for outcome in outcomes)
    print(f"\n{failed} of {len(outcomes)} runs failed" + (f"; logs are in {LOGS}" if failed else ""))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
