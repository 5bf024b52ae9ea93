from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dovetail.kernels import addresses
from dovetail.kernels.addresses import KnownBytes, address_of, address_of_buffer

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "DOVETAIL_CHECKED": "1"}


class Owner:
    pass


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> KnownBytes:
    known = KnownBytes()
    monkeypatch.setattr(addresses, "IS_CHECKED", True)
    monkeypatch.setattr(addresses, "known_bytes", known)
    return known


def test_bytes_are_known_as_long_as_their_owner_lives() -> None:
    known, owner, other = KnownBytes(), Owner(), Owner()
    known.add(100, 200, owner)
    known.add(100, 200, other)
    known.add(150, 160, owner)
    assert known.has(100, 8)
    assert known.has(155, 8), "the larger range has them, the one that begins next to them has not"
    assert known.has(192, 8)
    assert not known.has(193, 8)
    assert not known.has(99, 1)
    del owner
    assert known.has(192, 8)
    del other
    assert not known.has(100, 1)


def test_a_view_may_be_gone_before_its_bytes(known: KnownBytes) -> None:
    whole = np.arange(10, dtype=np.uint64)
    address = address_of(whole[2:5])
    assert address == whole.ctypes.data + 16
    gc.collect()
    assert known.has(address, 24)
    assert not known.has(address, 25)
    del whole
    assert not known.has(address, 1)


def test_arrow_s_bytes_are_known_as_long_as_it_has_them(known: KnownBytes) -> None:
    column = pa.array([1, None, 3], pa.int64())
    view = pa.array([4, 5, 6], pa.int64()).to_numpy()
    validity, values, other = address_of_buffer(column, 0), address_of_buffer(column, 1), address_of(view)
    gc.collect()
    assert known.has(validity, 1)
    assert known.has(values, 24)
    assert known.has(other, 24)
    del column, view
    assert not known.has(values, 1)
    assert not known.has(other, 1)


def test_a_load_outside_of_all_arrays_raises_in_the_checked_mode() -> None:
    program = """
import numpy as np
from numba import njit
from dovetail.kernels.addresses import address_of
from dovetail.kernels.pointers import load64

@njit
def read(address, place):
    return load64(np.uint64(address) + np.uint64(8 * place))

values = np.array([7, 8, 9], np.uint64)
print(read(address_of(values), 2))
try:
    read(address_of(values), 3)
except IndexError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["9", "compiled code reads where no array is"]


@pytest.mark.slow
def test_kernels_read_only_what_arrays_have() -> None:
    """The kernels' own tests and scenarios at random, in a process that looks up every address."""
    tests = ("tests/kernels/match", "tests/runtime/probe", "tests/properties/test_scenarios.py")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "not slow and not spark", *tests],
        cwd=ROOT,
        env={**ENVIRONMENT, "DOVETAIL_CASES": "150"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-5000:]
