"""Where what can be made anew is kept between two runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The user's own, by the XDG rule: a relative XDG_CACHE_HOME counts as none. It need not exist."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        home = Path.home()
    except RuntimeError:  # neither HOME nor an entry for this user
        home = Path(os.sep, "nonexistent")
    return (given if given.is_absolute() else home / ".cache") / "dovetail"
