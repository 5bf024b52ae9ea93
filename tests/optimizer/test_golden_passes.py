"""Each pass as text: `passes/<pass>` holds a case where it does its work and the twin where it must not.

REWRITE=1 writes what the passes give now; the difference is then reviewed like code.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail.optimizer import pipeline
from tests.support.golden_passes import PASSES, RULE, render_all, render_pass

FOLDER = Path(__file__).parent / "golden"
CASES = sorted(FOLDER.glob("*/*.txt"))
PROGRAM = """
import sys
from pathlib import Path
from tests.support.golden_passes import render_all
sys.stdout.write(render_all(Path(sys.argv[1])))
"""


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_pass_gives_the_recorded_text(path: Path) -> None:
    given, _, expected = path.read_text(encoding="utf-8").partition(RULE)
    found = render_pass(path)
    if os.environ.get("REWRITE"):
        path.write_text(f"{given}{RULE}{found}", encoding="utf-8")
        return
    assert found == expected


def test_every_pass_of_the_pipeline_is_among_them() -> None:
    assert {each.name for each in pipeline.PASSES} <= set(PASSES)


@pytest.mark.parametrize("name", sorted(PASSES))
def test_every_pass_has_a_case_and_a_twin(name: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in CASES if path.parent.name == name]
    assert any(text.startswith("# The twin of ") for text in texts)
    assert any(not text.startswith("# The twin of ") for text in texts)


def test_a_fresh_process_gives_the_same_text_whatever_its_hash_seed() -> None:
    found = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(FOLDER)],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed},
        ).stdout.decode("utf-8")
        for seed in ("1", "2")
    ]
    assert found[0] == found[1] == render_all(FOLDER)
