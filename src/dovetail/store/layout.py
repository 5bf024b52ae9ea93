"""Where things lie in a checkpoint folder, and which layout version it has."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from dovetail.core.errors import CheckpointVersionMismatch, SessionError
from dovetail.core.private_files import close_folder, write_private

LAYOUT_VERSION = 7
BACKFILLS = "backfill"
_VERSION_FILE = "dovetail.json"


def open_layout(root: Path) -> None:
    """Make a new checkpoint folder, or refuse one that this version cannot read."""
    version_file = root / _VERSION_FILE
    if version_file.exists():
        _check_version(version_file)
    elif root.exists() and any(child.name not in (".lock", "spark") for child in root.iterdir()):
        raise SessionError(
            f"{root} is not empty and is no Dovetail checkpoint", hint="give a new or empty folder as checkpoint_dir"
        )
    else:
        close_folder(root)
        write_private(version_file, json.dumps({"layout": LAYOUT_VERSION}))


def _check_version(version_file: Path) -> None:
    try:
        found = json.loads(version_file.read_text())["layout"]
    except (ValueError, KeyError, TypeError):
        found = "unreadable"
    if found != LAYOUT_VERSION:
        raise CheckpointVersionMismatch(
            f"{version_file.parent} has checkpoint layout {found}; this version of Dovetail reads {LAYOUT_VERSION}",
            hint="run it with the Dovetail version that wrote it, or start anew with an empty checkpoint folder",
        )


def spark_dir(root: Path) -> Path:
    return root / "spark"


def control_dir(root: Path) -> Path:
    """Where wishes for a batch lie."""
    return root / "control"


def state_file(batch: int) -> str:
    return f"state/b{batch:010d}.json"


def manifest_file(batch: int) -> str:
    return f"manifests/b{batch:010d}.json"


def bucket_file(store: str, lower_batch: int, upper_batch: int, split: int, attempt: str) -> str:
    return f"buckets/{slug(store)}/b{lower_batch:010d}-{upper_batch:010d}-s{split}-{attempt}.arrow"


def result_file(query: str, batch: int, partition: int, attempt: str) -> str:
    return f"results/{slug(query)}/b{batch:010d}-p{partition}-{attempt}.parquet"


def result_batch(path: str) -> int:
    """The batch that a result file belongs to.

    >>> result_batch(result_file("trolls#1", 42, 0, "a1"))
    42
    """
    return int(path.rpartition("/")[2][1:11])


def delivered_file(query: str) -> str:
    return f"delivered/{slug(query)}.json"


def backfill_dir(query: str) -> str:
    """Where the query's history runs: a checkpoint of its own."""
    return f"{BACKFILLS}/{slug(query)}"


def slug(name: str) -> str:
    """A readable folder name; names that need escaping get a digest, so that two never share a folder.

    >>> slug("views"), slug("views/window(ts)")[:14]
    ('views', 'views-window-t')
    """
    readable = re.sub(r"[^A-Za-z0-9_.]+", "-", name)[:60]
    if readable == name:
        return name
    return f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
