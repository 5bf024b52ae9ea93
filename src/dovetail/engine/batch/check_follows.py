"""Whether a batch that Spark brings is the one that the committed batches leave room for."""

from __future__ import annotations

from dovetail.core.errors import BatchDiffers, DamagedFile
from dovetail.store.chain import Chain
from dovetail.store.manifest import Arrived, SourceLog, read_manifest

_HINT = "stop the session and start it again: Spark's folder is then made anew from the manifests"


def check_follows(arrived: Arrived, batch: int, chain: Chain) -> None:
    """Raise BatchDiffers where Spark's own log and the manifests do not belong together.

    A batch that is committed may come again, with the very same rows: so say its offsets and its lists of files.
    """
    newest = chain.newest
    if not arrived.source_log.files:
        return
    following = 0 if newest is None else newest.batch + 1
    if batch > following:
        raise BatchDiffers(
            f"Spark brings batch {batch}, and batch {following} was never committed: its rows would be lost", hint=_HINT
        )
    if batch == following:
        return
    try:
        committed = read_manifest(chain.root, batch).source_log
    except DamagedFile:
        committed = SourceLog()  # whoever reads its answers is told
    brought = arrived.source_log.files
    different = [path for path, text in committed.files.items() if not _is_same(path, text, brought.get(path))]
    if different:
        raise BatchDiffers(
            f"batch {batch} is committed, and Spark brings it again with other rows: {', '.join(sorted(different))}"
            " in its folder differ from the manifest",
            where=str(chain.root / "spark"),
            hint=_HINT,
        )


def _is_same(path: str, text: str, brought: str | None) -> bool:
    """Offsets by name may have more lines now: sources that had been left out go on from where they were."""
    if brought is not None and path.startswith("offsets/") and text.startswith("v2\n"):
        return set(text.splitlines()) <= set(brought.splitlines())
    return brought == text
