"""Unit costs that `dovetail calibrate` measured, kept in the user's cache folder.

They hold for one version on one machine. Plans, never answers, depend on them: a file that does not fit or cannot be
read is no error, the defaults do as well.
"""

from __future__ import annotations

import json
import logging
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

from dovetail.core.cache_folder import cache_folder
from dovetail.core.clock import Clock, system_clock
from dovetail.core.errors import StoreError
from dovetail.stats.unit_costs import DEFAULT_UNIT_COSTS, UnitCosts

_log = logging.getLogger("dovetail")


def unit_cost_file() -> Path:
    return cache_folder() / "unit_costs.json"


def load_unit_costs() -> UnitCosts:
    """Those of this machine and version, or the defaults."""
    path = unit_cost_file()
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if {name: record[name] for name in _fits()} != _fits():
            return DEFAULT_UNIT_COSTS
        return UnitCosts.from_json(record["unit_costs"])
    except FileNotFoundError:
        return DEFAULT_UNIT_COSTS
    except (OSError, ValueError, KeyError, TypeError, RecursionError, StoreError) as error:
        _log.warning(
            "measured unit costs cannot be read, defaults are used (%s: %s); `dovetail calibrate` writes them anew",
            path,
            error,
        )
        return DEFAULT_UNIT_COSTS


def save_unit_costs(units: UnitCosts, *, clock: Clock = system_clock) -> Path:
    """Readers see the old file or the new one, never a part."""
    path = unit_cost_file()
    record: dict[str, Any] = {
        **_fits(),
        "python": platform.python_version(),
        "measured_at": datetime.fromtimestamp(clock(), UTC).isoformat(timespec="seconds"),
        "unit_costs": units.to_json(),
    }
    draft = path.with_name(f"{path.name}.{uuid4().hex[:12]}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            draft.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(
            f"unit costs cannot be written: {error}",
            where=str(path),
            hint="set XDG_CACHE_HOME to a folder that can be written",
        ) from error
    return path


def _fits() -> dict[str, Any]:
    """What a record must say to be of use here."""
    return {"version": version("dovetail"), "machine": platform.node(), "cpu_count": os.cpu_count()}
