"""What import-linter cannot see: what an import really loads, and what the architecture page names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "dovetail"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}

LOAD_FOLDER = """
import importlib, pkgutil, sys
folder = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(folder.__path__, folder.__name__ + "."):
    importlib.import_module(module.name)
print("\\n".join(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def loaded_libraries(folder: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", LOAD_FOLDER, folder],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    return set(run.stdout.split())


@pytest.mark.parametrize("folder", ["core", "query", "kernels", "store"])
def test_folder_loads_neither_spark_nor_the_sql_parser(folder: str) -> None:
    assert not loaded_libraries(f"dovetail.{folder}") & {"pyspark", "py4j", "sqlglot"}


@pytest.mark.parametrize("folder", ["frontend", "plan", "optimizer"])
def test_folder_loads_no_spark(folder: str) -> None:
    assert not loaded_libraries(f"dovetail.{folder}") & {"pyspark", "py4j"}


def test_importing_dovetail_alone_loads_no_spark() -> None:
    run = [sys.executable, "-c", "import sys, dovetail; print('pyspark' in sys.modules)"]
    answer = subprocess.run(run, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert answer.stdout.strip() == "False"


def test_the_package_imports_nothing_that_stays_in_the_repository() -> None:
    outside = re.compile(r"^\s*(?:from|import) (?:tests|benchmarks|tools)\b", re.MULTILINE)
    importers = [path for path in PACKAGE.rglob("*.py") if outside.search(path.read_text(encoding="utf-8"))]
    # The command that runs the benchmarks from a clone, and says so elsewhere.
    assert [path.relative_to(PACKAGE).as_posix() for path in importers] == ["cli/bench.py"]


ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROW_BY_FOLDER = {
    row.split("`")[1].rstrip("/"): row for row in ARCHITECTURE.splitlines() if row.startswith("| `") and "/` |" in row
}


def test_architecture_page_has_a_row_for_every_folder_and_no_other() -> None:
    assert set(ROW_BY_FOLDER) == {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def test_architecture_page_names_every_room_in_the_row_of_its_folder() -> None:
    rooms = [path.parent.relative_to(PACKAGE) for path in PACKAGE.glob("*/*/**/__init__.py")]
    missing = [room for room in rooms if f"`{'/'.join(room.parts[1:])}/`" not in ROW_BY_FOLDER.get(room.parts[0], "")]
    assert [str(room) for room in missing] == []


def test_architecture_page_draws_every_folder() -> None:
    drawing = ARCHITECTURE.partition("## Which folder imports which")[2].partition("```")[2].partition("```")[0]
    assert [folder for folder in ROW_BY_FOLDER if not re.search(rf"\b{folder}\b", drawing)] == []
