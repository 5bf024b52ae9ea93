"""Sinks that cannot work, or would write over what others need, are refused when they are given.

What is in a checkpoint already stays as it is: it may be older than these rules.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dovetail.core.errors import QueryError
from dovetail.core.plain_text import is_whole_text
from dovetail.core.secret_reference import is_reference
from dovetail.engine.control.sink_spec import SinkSpec
from dovetail.query.formats import FILE_FORMATS
from dovetail.query.hide_secrets import check_no_secrets
from dovetail.query.stream_spec import StreamSpec

MODES = ("append", "overwrite", "ignore", "error", "errorifexists", "default")
_FILE_URI = re.compile(r"file:(?://[^/]*)?(?=/)", re.IGNORECASE)
_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_FILLED_IN = re.compile(r"(\{batch\}|\{query\}|[*?]|\[[^]]*\])")
_REGEX_BY_MARK = {"{batch}": r"\d+", "{query}": r".+#\d+", "?": "."}


def check_sink(name: str, sink: SinkSpec) -> None:
    """What can be said of a query's sink by itself."""
    for key, value in sink.options.items():
        if not is_whole_text(key) or not is_whole_text(value):
            raise QueryError(
                f"option {f'sink.{key}'!a} of query {name!r} is {value!a}, which no file or system can take",
                hint="write whole characters, without half ones (\\ud800) and \\0",
            )
    check_no_secrets(f"the sink of query {name!r}", sink.options)
    _check_word(name, sink, "mode", MODES)
    _check_word(name, sink, "identify", ("true", "false"))


def folders_of(specs: Iterable[StreamSpec]) -> dict[str, tuple[str, ...]]:
    """What declared streams read of files, by name."""
    files = {spec.name: spec.option("path") for spec in specs if spec.kind in FILE_FORMATS}
    return {name: (path,) for name, path in files.items() if path is not None}


def check_sink_place(name: str, sink: SinkSpec, root: Path, read: Mapping[str, Sequence[str]]) -> None:
    """Raise if the sink writes where the checkpoint `root` or its service is, or what streams `read`, or above."""
    path = _local_path(next((value for key, value in sink.options.items() if key.lower() == "path"), None))
    if path is None:
        return
    places = [("the checkpoint", str(root)), ("the folder of the service", f"{root}.service")]
    places += [(f"what stream {stream!r} reads", each) for stream, paths in read.items() for each in paths]
    for what, each in places:
        folder = _local_path(each)
        if folder is not None and _overlap(path, folder):
            raise QueryError(
                f"sink.path of query {name!r} is {path!r}, where {what} is: {folder!r}",
                hint="write to a folder of its own: a sink adds files where it writes, and may remove those there",
            )


def _check_word(name: str, sink: SinkSpec, key: str, words: tuple[str, ...]) -> None:
    value = sink.options.get(key)
    if value is not None and not is_reference(value) and value.lower() not in words:
        raise QueryError(f"sink.{key} of query {name!r} is {value!r}", hint=f"use one of {', '.join(words)}")


def _local_path(path: str | None) -> str | None:
    """None if there is none, or if it is on another system."""
    if path is None or is_reference(path):
        return None
    path = _FILE_URI.sub("", path, count=1) if _FILE_URI.match(path) else path
    return None if _HAS_SCHEME.match(path) else path


def _overlap(path: str, other: str) -> bool:
    """Whether one is the other or lies in it, links followed, whatever their marks stand for."""
    own, theirs = (Path(os.path.realpath(each)).parts for each in (path, other))
    pairs = zip(own, theirs, strict=False)
    return all(mine == its or _pattern(mine).fullmatch(its) or _pattern(its).fullmatch(mine) for mine, its in pairs)


def _pattern(part: str) -> re.Pattern[str]:
    marks = _FILLED_IN.split(part)
    texts = (_REGEX_BY_MARK.get(mark, ".*") if place % 2 else re.escape(mark) for place, mark in enumerate(marks))
    return re.compile("".join(texts), re.DOTALL)
