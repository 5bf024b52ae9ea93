"""What a batch leaves for the next one: its state record, written whole with every commit; the two newest are kept.

With hundreds of queries and buckets most of it was the same a batch ago. Every bucket names hundreds of selections:
what buckets name is written once, as a layout, and the text of a bucket is made once and remembered.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dovetail.core.private_files import private_folder, write_private
from dovetail.core.sealed_file import FileKind, damaged
from dovetail.store.bad_rows import BadFile
from dovetail.store.bucket_file import BucketMeta
from dovetail.store.layout import state_file
from dovetail.store.manifest import Manifest

STATE = FileKind("state record", "all that the next batch needs: queries, streams, what is stored")
FORGOTTEN_LAYOUTS = 100
"""So many that no bucket has any more are written all the same; then all are counted anew."""


@dataclass(frozen=True)
class State:
    """Everything that batch `batch + 1` needs; `engine` holds the engine's own records as plain JSON."""

    batch: int
    buckets: tuple[BucketMeta, ...]
    engine: dict[str, Any]
    bad_files: tuple[BadFile, ...] = ()


class StateWriter:
    """Writes states one after another, each under a name of the writer's own; nothing refers to it yet."""

    def __init__(self, root: Path, token: str) -> None:
        self._root = root
        self._token = token
        self._place_by_selection: dict[str, int] = {}
        self._layouts: dict[tuple[str, ...], tuple[int, list[int]]] = {}
        self._bucket_texts: dict[int, tuple[BucketMeta, str]] = {}

    def write(self, state: State) -> tuple[str, int]:
        """Its path and checksum."""
        known = self._bucket_texts
        many = len(self._layouts) > FORGOTTEN_LAYOUTS
        if many and len(self._layouts) > FORGOTTEN_LAYOUTS + len({meta.selections for meta in state.buckets}):
            self._place_by_selection, self._layouts, known = {}, {}, {}
        # Records are kept as long as their texts: no other one can get the identity of one of them.
        self._bucket_texts = {id(meta): known.get(id(meta)) or (meta, self._text_of(meta)) for meta in state.buckets}
        parts = {
            "batch": str(state.batch),
            "selections": _json(list(self._place_by_selection)),
            "layouts": _json([places for _, places in self._layouts.values()]),
            "buckets": f"[{','.join(text for _, text in self._bucket_texts.values())}]",
            "engine": _json(state.engine),
            "bad_files": _json([asdict(file) for file in state.bad_files]),
        }
        text = f"{{{','.join(f'{_json(name)}:{part}' for name, part in parts.items())}}}"
        path = state_file(state.batch, self._token)
        private_folder((self._root / path).parent)
        write_private(self._root / path, text)
        return path, zlib.crc32(text.encode())

    def _text_of(self, meta: BucketMeta) -> str:
        found = self._layouts.get(meta.selections)
        if found is None:
            known = self._place_by_selection
            places = [known.setdefault(each, len(known)) for each in meta.selections]
            found = self._layouts[meta.selections] = len(self._layouts), places
        return _json(meta.to_json() | {"selections": found[0]})


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def read_state(root: Path, manifest: Manifest) -> State:
    """The state that a manifest names. Raises DamagedFile unless it has the bytes that were committed."""
    path = root / manifest.state_path
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise damaged(path, STATE, "is missing") from None
    except (OSError, UnicodeDecodeError):
        raise damaged(path, STATE, "cannot be read") from None
    if zlib.crc32(text.encode()) != manifest.state_checksum:
        raise damaged(path, STATE, "has other bytes than were committed" if text else "is empty")
    record = json.loads(text)
    texts = record["selections"]
    layouts = [[texts[place] for place in places] for places in record.get("layouts", ())]

    def selections_of(bucket: dict[str, Any]) -> list[str]:
        # Before layout 11 each bucket listed its own.
        named = bucket["selections"]
        return layouts[named] if isinstance(named, int) else [texts[place] for place in named]

    buckets = tuple(BucketMeta.from_json(each | {"selections": selections_of(each)}) for each in record["buckets"])
    bad_files = tuple(BadFile(**file) for file in record.get("bad_files", ()))
    return State(record["batch"], buckets, record["engine"], bad_files)
