from __future__ import annotations

import subprocess
import sys

from typer.testing import CliRunner

from dovetail.cli.main import app


def test_help_names_every_command() -> None:
    answer = CliRunner().invoke(app, ["--help"])
    assert answer.exit_code == 0
    assert [name for name in ("demo", "bench", "calibrate") if name not in answer.output] == []


def test_an_unknown_suite_is_refused_with_the_known_ones() -> None:
    answer = CliRunner().invoke(app, ["bench", "nonsense"])
    assert answer.exit_code == 1
    assert "nonsense" in answer.output
    assert "multiway" in answer.output


def test_help_does_not_load_spark() -> None:
    check = "import sys, dovetail.cli.main; print('pyspark' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
