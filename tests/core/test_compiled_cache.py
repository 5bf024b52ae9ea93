from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from dovetail.core.compiled_cache import last_resort

NOWHERE = Path(os.devnull, "folder")
"""Can be written by nobody."""


def test_usual_folders_are_left_to_numba(tmp_path: Path) -> None:
    assert last_resort(NOWHERE, tmp_path / "not" / "there" / "yet") is None
    assert last_resort(tmp_path, NOWHERE) is None


def test_where_nothing_can_be_written_kernels_go_to_a_temporary_folder() -> None:
    found = last_resort(NOWHERE, NOWHERE)
    assert found is not None
    assert str(os.getuid()) in found.name


def test_a_choice_of_the_users_own_stands(tmp_path: Path) -> None:
    check = "import os, dovetail; print(os.environ.get('NUMBA_CACHE_DIR'))"
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, env=env)
    assert ran.stdout.strip() == str(tmp_path)
