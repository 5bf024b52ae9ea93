"""What users import, and what an import needs."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import dovetail
from dovetail.client import Client
from dovetail.client import Query as ClientQuery
from dovetail.core import errors
from dovetail.core.errors import DovetailError, MissingPackage
from dovetail.core.extras import LIBRARIES_BY_EXTRA, extras
from dovetail.testing.local_session import LocalSession
from tools.api_page import PAGE, page

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "dovetail"
DISTRIBUTION_BY_MODULE = {
    "yaml": "pyyaml",
    "sklearn": "scikit-learn",
    "prometheus_client": "prometheus-client",
    # These come with another library, which pins the version that fits.
    "py4j": "pyspark",
    "llvmlite": "numba",
    "anyio": "fastapi",
}

WITHOUT = """
import importlib.abc, sys
class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
"""


def run_without(blocked: set[str], program: str) -> str:
    """What the program prints in a process in which nobody can import these."""
    code = WITHOUT.format(blocked=blocked) + textwrap.dedent(program)
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_every_public_name_can_be_imported() -> None:
    assert [name for name in dovetail.__all__ if not hasattr(dovetail, name)] == []
    assert {"Session", "Query", "StreamSpec", "StatsCatalog", "StatementResult", "local_spark"} <= set(dir(dovetail))


def test_all_errors_are_public() -> None:
    defined = {name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, DovetailError)}
    assert defined - set(dovetail.__all__) == set()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Sesion'"):
        importlib.import_module("dovetail").Sesion  # noqa: B018 - reading it is the test


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_the_reference_page_says_what_the_docstrings_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make api"


@pytest.mark.parametrize("kind", [dovetail.Session, dovetail.Query, Client, ClientQuery, LocalSession])
def test_no_class_of_the_surface_has_more_than_twenty_members(kind: type) -> None:
    assert len([name for name in vars(kind) if not name.startswith("_")]) <= 20


# ---------------------------------------------------------------- what is declared


def third_party_imports() -> Iterator[tuple[str, str]]:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names.append(node.module)
            for name in {name.partition(".")[0] for name in names}:
                if name not in sys.stdlib_module_names and name not in ("dovetail", "benchmarks"):
                    yield name, str(path.relative_to(PACKAGE))


def declared(section: list[str]) -> set[str]:
    return {match.group() for each in section if (match := re.match(r"[A-Za-z0-9-]+", each))} - {"dovetail"}


def test_every_library_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    by_extra = {extra: declared(section) for extra, section in project["optional-dependencies"].items()}
    known = declared(project["dependencies"]).union(*(by_extra[extra] for extra in LIBRARIES_BY_EXTRA))
    undeclared = {
        (name, path) for name, path in third_party_imports() if DISTRIBUTION_BY_MODULE.get(name, name) not in known
    }
    assert undeclared == set()
    for extra, libraries in LIBRARIES_BY_EXTRA.items():
        missing = {DISTRIBUTION_BY_MODULE.get(name, name) for name in libraries} - by_extra[extra]
        assert missing == set(), extra


# ---------------------------------------------------------------- what is installed

HEAVY = {"pyspark", "py4j", "pandas", "pyarrow", "numpy", "numba", "sqlglot", "highspy", "fastapi", "starlette"}


def test_a_client_needs_nothing_but_the_http_library() -> None:
    program = """
        import dovetail.client
        from dovetail import DovetailError
        client = dovetail.client.Client("http://127.0.0.1:9", "dvt_x")
        print(client, issubclass(dovetail.client.ServiceUnreachable, DovetailError))
    """
    assert run_without(HEAVY, program) == "Client('http://127.0.0.1:9') True"


def test_client_commands_need_no_spark_either() -> None:
    program = """
        from typer.testing import CliRunner
        from dovetail.cli.main import app
        answer = CliRunner().invoke(app, ["query", "list", "--url", "http://127.0.0.1:9"])
        print(answer.exit_code, "no service answers" in answer.output)
    """
    assert run_without(HEAVY, program) == "1 True"


@pytest.mark.parametrize(
    ("library", "statement", "command"),
    [
        ("pyspark", "from dovetail import Session", "pip install 'dovetail[spark]'"),
        ("pyspark", "from dovetail import local_spark", "pip install 'dovetail[spark]'"),
        ("httpx", "from dovetail.client import Client", "pip install 'dovetail[client]'"),
    ],
)
def test_a_missing_extra_is_named_with_its_command(library: str, statement: str, command: str) -> None:
    program = f"""
        try:
            {statement}
        except ImportError as error:
            print(error)
    """
    said = run_without({library}, program)
    assert said == f"this needs {library}, which is not installed\n  instead: run: {command}"


def test_a_command_names_the_missing_extra() -> None:
    program = """
        from typer.testing import CliRunner
        from dovetail.cli.main import app
        for command in (["serve", "x.yaml"], ["demo"], ["query", "list"]):
            answer = CliRunner().invoke(app, command)
            print(answer.exit_code, answer.output.split("run: ")[1].strip())
    """
    lines = run_without({"yaml", "pyspark", "httpx"}, program).splitlines()
    assert lines == [f"1 pip install 'dovetail[{extra}]'" for extra in ("service", "service", "client")]


def test_what_is_no_session_needs_no_spark() -> None:
    program = """
        from dovetail import SinkSpec, StatementResult, StatsCatalog, StreamSpec
        from dovetail.testing.local_session import LocalSession
        print("loaded")
    """
    assert run_without({"pyspark", "py4j", "pandas"}, program) == "loaded"


def test_other_missing_modules_stay_what_they_are() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module") as found, extras():
        importlib.import_module("no_such_module")
    assert not isinstance(found.value, MissingPackage)
