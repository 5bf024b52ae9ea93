"""Hostile files, a few beside each wave's good ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from benchmarks.hostile.arena import Arena
from benchmarks.hostile.corpus.files import HostileFile
from benchmarks.hostile.records import Outcome, Tried
from benchmarks.hostile.world import STREAMS

CHANNEL = "file"


def run_files(arena: Arena, files: Sequence[HostileFile], per_wave: int, say: Callable[[str], None]) -> list[Tried]:
    tried: list[Tried] = []
    for first in range(0, len(files), per_wave):
        together = files[first : first + per_wave]
        began, hangs = time.perf_counter(), arena.hangs

        def during(together: Sequence[HostileFile] = together) -> None:
            for place, file in enumerate(together):
                _put(arena, STREAMS[place % len(STREAMS)], file)

        is_committed = arena.run_wave(during)
        seconds = time.perf_counter() - began
        outcome, detail = Outcome.HELD, _kept_aside(arena)
        if not is_committed:
            outcome = Outcome.HANG if arena.hangs > hangs else Outcome.LOST_BATCH
            detail = arena.last_failure
        elif fallen := arena.fallen_neighbours():
            outcome, detail = Outcome.HIT_NEIGHBOUR, "; ".join(fallen)
        tried += [Tried(file.mechanism, file.what, CHANNEL, outcome, detail, seconds) for file in together]
        say(f"wave {arena.wave}: {len(tried)} files tried, {detail}")
    return tried


def _put(arena: Arena, stream: str, file: HostileFile) -> None:
    content = file.content(arena.wave)
    if content is None:
        (arena.folders.folder(stream) / f"folder{arena.wave}.parquet").mkdir()
    else:
        arena.folders.put(stream, content, file.suffix)


def _kept_aside(arena: Arena) -> str:
    return f"{sum(len(arena.session.bad_rows(stream)) for stream in STREAMS)} rows and files kept aside so far"
