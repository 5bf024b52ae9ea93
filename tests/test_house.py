"""The house rules that are numbers: how long, how many, how far a query walks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tools.walk import legs, walk

ROOT = Path(__file__).parent.parent
PLACES = ("src", "benchmarks", "tools", "tests")
LONGEST_FUNCTION = 60
LONGEST_MODULE = 450
MOST_PUBLIC_METHODS = 20
MOST_FILES = 20
MOST_FOLDER_CHANGES = 24


def modules(*places: str) -> Iterator[Path]:
    for place in places:
        yield from sorted((ROOT / place).rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """From `def` to its last line, docstring included."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_functions_are_short() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {length(node)} lines"
        for path in modules(*PLACES)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and length(node) > LONGEST_FUNCTION
    ]
    assert not long, "\n".join(long)


def test_modules_are_short() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules(*PLACES)}
    long = [f"{path.relative_to(ROOT)}: {lines} lines" for path, lines in lengths.items() if lines > LONGEST_MODULE]
    assert not long, "\n".join(long)


def test_classes_have_few_public_methods() -> None:
    wide = []
    for path in modules("src", "benchmarks", "tools"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                functions = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
                public = {each.name for each in functions if not each.name.startswith("_")}
                if len(public) > MOST_PUBLIC_METHODS:
                    wide.append(f"{path.relative_to(ROOT)} {node.name}: {len(public)} public methods")
    assert not wide, "\n".join(wide)


def test_folders_are_small() -> None:
    folders = {path.parent for path in modules(*PLACES)}
    full = {folder: sum(each.name != "__init__.py" for each in folder.glob("*.py")) for folder in folders}
    large = [f"{folder.relative_to(ROOT)}: {count} files" for folder, count in full.items() if count > MOST_FILES]
    assert not large, "\n".join(sorted(large))


def test_a_query_walks_straight() -> None:
    visits = legs(walk())
    assert len(visits) - 1 <= MOST_FOLDER_CHANGES, [folder for folder, _ in visits]


def test_the_walk_knows_a_detour() -> None:
    straight = [Path("engine/a.py"), Path("engine/b.py"), Path("runtime/c.py")]
    crooked = [Path("engine/a.py"), Path("runtime/c.py"), Path("engine/b.py")]
    assert [len(legs(files)) - 1 for files in (straight, crooked)] == [1, 2]


@pytest.mark.parametrize("folder", ["kernels", "runtime", "engine", "optimizer", "frontend", "store"])
def test_the_walk_enters_every_storey(folder: str) -> None:
    assert folder in dict(legs(walk()))
