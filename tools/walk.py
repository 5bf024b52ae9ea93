"""`make walk`: one query followed from SQL text to answer, file by file, as it is created and a batch runs.

Calls of one create and one batch are traced in-process. A file counts when the query first enters it, as a reader opens
it once; a change is a step from a file to one in another folder of the package. Folders of plain records (`core`,
`query`, `plan`, `stats`) are everywhere and lead nowhere, and `testing` only drives the walk: they are left out.
"""

from __future__ import annotations

import datetime
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import dovetail
from dovetail.testing.local_session import LocalSession

PACKAGE = Path(dovetail.__file__).parent
LEFT_OUT = frozenset({"core", "query", "plan", "stats", "testing"})
SQL = """
    SELECT v.vid, w.usr_id
    FROM videos v JOIN views w
      ON v.vid = w.vid AND w.ts BETWEEN v.ts - INTERVAL 5 SECONDS AND v.ts + INTERVAL 5 SECONDS
    WHERE v.lang = 'ENG'
"""
NOON = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
TIME = pa.timestamp("us", tz="UTC")
VIDEOS = pa.table({"vid": [1, 2], "lang": ["ENG", "GER"], "ts": pa.array([NOON, NOON], TIME)})
VIEWS = pa.table({"vid": [1, 2], "usr_id": [7, 8], "ts": pa.array([NOON, NOON], TIME)})


def walk() -> list[Path]:
    """The files of the package in the order in which the query enters them."""
    entered: dict[Path, None] = {}

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(f"{PACKAGE}/"):
            entered.setdefault(Path(frame.f_code.co_filename).relative_to(PACKAGE))

    with tempfile.TemporaryDirectory(prefix="dovetail-walk-") as folder:
        session = LocalSession(folder)
        session.create_stream("videos", VIDEOS.schema, "ts")
        session.create_stream("views", VIEWS.schema, "ts")
        session.push({"videos": VIDEOS.slice(0, 0), "views": VIEWS.slice(0, 0)})
        sys.setprofile(note)
        try:
            session.create_query(SQL, "walk")
            session.push({"videos": VIDEOS, "views": VIEWS})
            answers = session.results("walk")
        finally:
            sys.setprofile(None)
        session.close()
    assert answers.num_rows == 1, "the walk leads to an answer"
    return [path for path in entered if path.parts[0] not in LEFT_OUT]


def legs(files: list[Path]) -> list[tuple[str, list[Path]]]:
    """Files that follow each other in one folder, with its name."""
    return [(folder, list(inside)) for folder, inside in groupby(files, key=lambda path: path.parts[0])]


def main() -> None:
    files = walk()
    visits = legs(files)
    for folder, inside in visits:
        print(f"{folder + '/':12}", ", ".join(path.relative_to(folder).with_suffix("").as_posix() for path in inside))
    print(f"{len(files)} files, {len(visits) - 1} folder changes")


if __name__ == "__main__":
    main()
