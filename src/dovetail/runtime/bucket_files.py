"""The buckets that a task writes: one file for all, in which each has a range of bytes; only a manifest makes it real.

Hundreds of queries keep rows and groups in as many stores: a file for each would cost more than what is in it. A large
bucket gets a file of its own. For a file goes with the last of its buckets, and neither shall a few rows that are kept
for a day hold on to many that nobody needs any more, nor the other way round. Both are named by attempt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

from dovetail.core.private_files import private_folder
from dovetail.core.sync import sync_later
from dovetail.store.bucket_file import BucketMeta
from dovetail.store.checksum import ChecksumFile
from dovetail.store.layout import bucket_file, shared_bucket_file
from dovetail.store.write_bucket import BucketContent, write_bucket, write_range

OWN_FILE_BYTES = 4 << 20


class BucketFiles:
    """Nobody may read a bucket before `close`: a file that grows looks as if somebody wrote to it."""

    def __init__(self, root: Path, batch: int, own_file_bytes: int = OWN_FILE_BYTES) -> None:
        self._root = root
        self._batch = batch
        self._own_file_bytes = own_file_bytes
        self._shared: _SharedFile | None = None

    def write(self, content: BucketContent, store: str, split: int, **described: Any) -> BucketMeta:
        batch = self._batch
        described |= {"store": store, "lower_batch": batch, "upper_batch": batch, "split": split, "level": 0}
        if content.size_bytes >= self._own_file_bytes:
            path = bucket_file(store, batch, split, uuid4().hex[:12])
            return write_bucket(self._root, content, path=path, **described)
        if self._shared is None:
            self._shared = _SharedFile(self._root, shared_bucket_file(batch, uuid4().hex[:12]))
        return write_range(self._shared.file, content, path=self._shared.path, **described)

    def close(self) -> None:
        if self._shared is not None:
            self._shared.file.finish()
            sync_later(self._root / self._shared.path)
            self._shared = None


class _SharedFile:
    def __init__(self, root: Path, path: str) -> None:
        self.path = path
        private_folder((root / path).parent)
        self.file = ChecksumFile(root / path)
