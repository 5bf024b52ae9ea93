"""Where compiled kernels are kept: numba's own choice, and a folder of last resort where it would find none.

Numba keeps them beside the sources, else in the user's cache folder. Where neither can be written (a container that
runs as nobody over a read-only image) it refuses to load a kernel at all: then they are kept in a temporary folder.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

KEY = "NUMBA_CACHE_DIR"


def keep_compiled() -> None:
    """Before numba is imported, in every process that may compile."""
    if os.environ.get("DOVETAIL_CHECKED") == "1":
        # Kernels that check must not be mistaken for those that do not.
        os.environ[KEY] = str(Path(tempfile.gettempdir()) / f"dovetail-checked-kernels-{os.getuid()}")
        os.environ["NUMBA_BOUNDSCHECK"] = "1"
    elif KEY not in os.environ:
        folder = last_resort(Path(__file__).parent.parent, _user_cache())
        if folder is not None:
            os.environ[KEY] = str(folder)


def last_resort(*usual: Path) -> Path | None:
    """None if one of the usual folders can be written."""
    if any(map(_can_be_written, usual)):
        return None
    return Path(tempfile.gettempdir()) / f"dovetail-kernels-{os.getuid()}"


def _user_cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return Path(given) if given else Path("~/.cache").expanduser()


def _can_be_written(folder: Path) -> bool:
    """What is not there yet can be made if the nearest folder above it can be written."""
    for each in (folder, *folder.parents):
        if each.exists():
            return each.is_dir() and os.access(each, os.W_OK)
    return False
