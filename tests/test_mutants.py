"""The list of planted bugs stays true: each can be planted, and names tests that `make test` runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.generators.scenarios import MAKERS
from tools.mutants import LIST, ROOT, Mutant, read_mutants

MUTANTS = list(read_mutants(LIST.read_text(encoding="utf-8")))


def test_there_are_many() -> None:
    assert len(MUTANTS) >= 30
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_bug_can_be_planted(mutant: Mutant, tmp_path: Path) -> None:
    source = ROOT / "src" / "dovetail" / mutant.file
    copy = tmp_path / "src" / "dovetail" / mutant.file
    copy.parent.mkdir(parents=True)
    shutil.copy(source, copy)
    mutant.plant(tmp_path)
    compile(copy.read_text(encoding="utf-8"), mutant.file, "exec")
    for test in mutant.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).exists()
        assert not name or f"def {name.partition('[')[0]}(" in (ROOT / path).read_text(encoding="utf-8")
    assert set(mutant.scenarios) <= {*MAKERS, "any"}


def test_stale_bug_is_told(tmp_path: Path) -> None:
    file = tmp_path / "src" / "dovetail" / "a.py"
    file.parent.mkdir(parents=True)
    file.write_text("x = 1\n")
    with pytest.raises(ValueError, match="0 times"):
        Mutant("gone", "a.py", "y = 1", "y = 2", tests=("tests",)).plant(tmp_path)
