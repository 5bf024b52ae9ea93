"""Random scenarios by number: which ones a run draws, and what is kept of one that fails."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from tests.support.asserts import CaseFailed
from tests.support.run_scenario import check_scenario
from tests.support.scenario import Scenario, scenario_from_json, scenario_to_json, smaller_scenarios

ROOT = Path(__file__).parent.parent.parent
SEEDS_DIR = ROOT / "tests" / "seeds"
SHRINK_SECONDS = 60.0
CASES_VARIABLE, SEED_VARIABLE = "DOVETAIL_CASES", "DOVETAIL_SEED"


@cache
def first_seed() -> int:
    """Where random cases begin: elsewhere with every commit, so that all runs together see many more than one does."""
    given = os.environ.get(SEED_VARIABLE)
    if given is not None:
        return int(given)
    git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S607
    return int(git.stdout[:6], 16) * 1000 if git.returncode == 0 else 0


def case_count(share: float = 1.0) -> int:
    """How many cases a test draws that has this share of them."""
    return max(1, int(int(os.environ.get(CASES_VARIABLE, "200")) * share))


def seeds_of(chunk: int, chunks: int, share: float = 1.0) -> range:
    """One of so many parts of all seeds, for workers to divide them."""
    return range(first_seed() + chunk, first_seed() + case_count(share), chunks)


def failure_of(scenario: Scenario) -> str | None:
    """What kind of failure the scenario is; None when it holds."""
    try:
        check_scenario(scenario)
    except Exception as error:  # noqa: BLE001  # an engine that breaks in any way has failed the scenario
        return type(error).__name__
    return None


def check_seeds(seeds: Iterable[int], make: Callable[[int], Scenario], keep_dir: Path | None = None) -> None:
    """Check the scenario of each seed; a failure names its seed and leaves its smallest form in `keep_dir`."""
    for seed in seeds:
        scenario = make(seed)
        try:
            check_scenario(scenario)
        except Exception as error:
            place = "" if keep_dir is None else f"; kept as {keep_scenario(scenario, keep_dir, f'seed_{seed}')}"
            again = f"{SEED_VARIABLE}={seed} {CASES_VARIABLE}=1 runs it again"
            raise CaseFailed(f"seed {seed} fails ({again}){place}: {type(error).__name__}: {error}") from error


def shrink(scenario: Scenario, fails: Callable[[Scenario], bool], seconds: float = SHRINK_SECONDS) -> Scenario:
    """The smallest scenario found that still fails, by leaving things out as long as it does."""
    deadline = time.monotonic() + seconds
    has_shrunk = True
    while has_shrunk and time.monotonic() < deadline:
        has_shrunk = False
        for smaller in smaller_scenarios(scenario):
            if time.monotonic() > deadline:
                break
            if fails(smaller):
                scenario, has_shrunk = smaller, True
                break
    return scenario


def keep_scenario(scenario: Scenario, keep_dir: Path, name: str) -> Path:
    """Write the smallest failing form where `tests/properties` finds it again."""
    path = keep_dir / f"{name}.json"
    failure = failure_of(scenario)
    smallest = shrink(scenario, lambda smaller: failure_of(smaller) == failure)
    path.write_text(scenario_to_json(smallest), encoding="utf-8")
    return path


def kept_scenarios(keep_dir: Path) -> dict[str, Scenario]:
    return {path.stem: scenario_from_json(path.read_text(encoding="utf-8")) for path in sorted(keep_dir.glob("*.json"))}
