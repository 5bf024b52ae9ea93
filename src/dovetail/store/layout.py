"""Where things lie in a checkpoint folder, and which layout version it has."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from dovetail.core.errors import CheckpointVersionMismatch, SessionError
from dovetail.core.private_files import close_folder
from dovetail.core.sealed_file import FileKind, damaged, read_sealed, write_sealed
from dovetail.core.sync import sync

LAYOUT_VERSION = 12
READABLE_VERSIONS = (7, 8, 9, 10, 11, LAYOUT_VERSION)
BACKFILLS = "backfill"
_VERSION_FILE = "dovetail.json"
_ANSWERS = "answers"
_WRITTEN = re.compile(r"b(\d{10})[-.]")
_LAYOUT = FileKind(
    "layout file",
    "which layout the checkpoint has, and nothing else",
    f'if this version of Dovetail wrote the checkpoint, write the file anew: {{"layout":{LAYOUT_VERSION}}}',
)


def open_layout(root: Path, *, syncs: bool = False) -> None:
    """Make a new checkpoint folder, or refuse one that this version cannot read."""
    version_file = root / _VERSION_FILE
    if version_file.exists():
        found = read_sealed(version_file, _LAYOUT, lambda record: record["layout"])
        if found not in READABLE_VERSIONS:
            raise CheckpointVersionMismatch(
                f"{root} has checkpoint layout {found}; this version of Dovetail reads {LAYOUT_VERSION}",
                hint="run it with the Dovetail version that wrote it, or start anew with an empty checkpoint folder",
            )
        if found == LAYOUT_VERSION:
            return
    elif (root / "manifests").is_dir():
        raise damaged(version_file, _LAYOUT, "is missing")
    elif root.exists() and any(not _may_be_there(child.name) for child in root.iterdir()):
        raise SessionError(
            f"{root} is not empty and is no Dovetail checkpoint", hint="give a new or empty folder as checkpoint_dir"
        )
    close_folder(root)
    write_sealed(version_file, {"layout": LAYOUT_VERSION}, syncs=syncs)
    if syncs:
        sync(root.parent)


def _may_be_there(name: str) -> bool:
    """In a folder that becomes a checkpoint; a power loss may have left a draft of its first file."""
    return name in (".lock", "spark") or name.endswith(".draft")


def spark_dir(root: Path) -> Path:
    return root / "spark"


def control_dir(root: Path) -> Path:
    """Where wishes for a batch lie."""
    return root / "control"


def state_file(batch: int, token: str) -> str:
    return f"state/b{batch:010d}-{token}.json"


def manifest_file(batch: int) -> str:
    return f"manifests/b{batch:010d}.json"


def bucket_file(store: str, batch: int, split: int, attempt: str) -> str:
    """`batch` writes it; a merged bucket has rows of earlier ones."""
    return f"buckets/{slug(store)}/b{batch:010d}-s{split}-{attempt}.arrow"


def shared_bucket_file(batch: int, attempt: str) -> str:
    return f"buckets/shared/b{batch:010d}-{attempt}.arrows"


def result_file(query: str, batch: int, partition: int, attempt: str) -> str:
    return f"results/{slug(query)}/b{batch:010d}-p{partition}-{attempt}.parquet"


def shared_answers_file(batch: int, partition: int, attempt: str) -> str:
    return f"{_ANSWERS}/b{batch:010d}-p{partition}-{attempt}.arrows"


def adopted_file(path: str, query: str, batch: int) -> str:
    """The name under which `batch` has a file of answers that the query's history wrote.

    >>> adopted_file("answers/b0000000003-p0-a1.arrows", "q#1", 7)
    'answers/b0000000007-q-1-34c22a25-b0000000003-p0-a1.arrows'
    """
    folder, _, name = path.partition("/")
    if folder == _ANSWERS:
        return f"{_ANSWERS}/b{batch:010d}-{slug(query)}-{name}"
    return result_file(query, batch, 0, Path(name).stem)


def bad_rows_file(stream: str, batch: int, attempt: str) -> str:
    return f"bad_rows/{slug(stream)}/b{batch:010d}-{attempt}.parquet"


def result_batch(path: str) -> int:
    """The batch that a file of answers belongs to.

    >>> result_batch(result_file("trolls#1", 42, 0, "a1")), result_batch(shared_answers_file(42, 0, "a1"))
    (42, 42)
    """
    return int(path.rpartition("/")[2][1:11])


def written_batch(path: str) -> int | None:
    """The batch that writes a file, by its name; None where the name does not tell.

    >>> written_batch(bucket_file("s", 42, 0, "a1")), written_batch(state_file(7, "a1")), written_batch("answers/x")
    (42, 7, None)
    """
    found = _WRITTEN.match(path.rpartition("/")[2])
    return None if found is None else int(found[1])


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
