"""The streams of a session: registered as DataFrames, or declared and then part of the checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from dovetail.core.errors import SessionError, StreamError
from dovetail.core.plain_text import is_text
from dovetail.core.stream_description import StreamDescription
from dovetail.engine.control.control_plane import ControlPlane
from dovetail.engine.control.stream_change import stream_change
from dovetail.engine.head import Head
from dovetail.engine.state import stream_text
from dovetail.query.hide_secrets import check_no_secrets
from dovetail.query.stream import Stream
from dovetail.query.stream_spec import StreamSpec
from dovetail.runtime.source_failure import SourceFailure
from dovetail.store.bad_rows import BadRow, read_bad_rows


class Streams:
    """Thread-safe: streams come while a batch runs. `failing` says which cannot be read now."""

    def __init__(self, root: Path, head: Head, plane: ControlPlane) -> None:
        self._root = root
        self.failing: Callable[[], Mapping[str, SourceFailure]] = dict
        self._head = head
        self._plane = plane
        plane.streams = {name: spec.stream for name, spec in self.declared().items()}

    @property
    def by_name(self) -> Mapping[str, Stream]:
        """All that are registered or declared; a new one gives a new value, so a batch keeps the one it began with."""
        return self._plane.streams

    def create(self, stream: Stream, folders: tuple[str, ...] = ()) -> None:
        """Register a stream that this process opens; `folders` are those that it reads."""
        with self._head.lock:
            if stream.name in self.by_name:
                raise StreamError(f"stream {stream.name!r} exists already", hint="give the second one another name")
            self._check_case(stream.name)
            recorded = self._head.state.stream_texts.get(stream.name)
            if recorded is not None and recorded != stream_text(stream):
                raise StreamError(
                    f"stream {stream.name!r} differs from the one this checkpoint was made with",
                    where=f"now {stream_text(stream)}; then {recorded}",
                    hint="register the same columns and event time, or start with an empty checkpoint folder",
                )
            self._add(stream)
            self._plane.frame_folders[stream.name] = folders

    def _check_case(self, name: str) -> None:
        if any(known.lower() == name.lower() and known != name for known in self.by_name):
            raise StreamError(
                f"stream {name!r} differs from another only in case", hint="SQL cannot tell them: rename it"
            )

    def declared(self) -> dict[str, StreamSpec]:
        """The streams that come back by themselves after a restart, by name."""
        with self._head.lock:
            return self._plane.declared(self._head.state)

    def is_declared(self, spec: StreamSpec, *, request: str = "") -> bool:
        """Whether there is nothing to do for it; refuses a name that means another stream."""
        with self._head.lock:
            state = self._head.state
            if self._plane.is_declared(state, spec, request=request):
                return True
            self._check_case(spec.name)
            unnamed = sorted({*self.by_name, *state.stream_texts} - set(self.declared()))
            if spec.name in unnamed:
                raise StreamError(
                    f"stream {spec.name!r} was registered as a DataFrame", hint="give the new one another name"
                )
            if state.stream_texts and not set(unnamed).isdisjoint(state.stream_texts):
                raise SessionError(
                    f"stream {spec.name!r} comes too late: this checkpoint reads {', '.join(unnamed)} from DataFrames, "
                    "so its sources are fixed",
                    hint="declare every stream of a new checkpoint: then more can come at any time",
                )
            return False

    def declare(self, spec: StreamSpec, *, request: str = "") -> None:
        """Make a stream part of the checkpoint; the next batch may bring its rows."""
        with self._head.lock:
            if not self.is_declared(spec, request=request):
                self._plane.declare(self._head.state, spec, request=request)
                self._add(spec.stream)

    def redeclare(self, spec: StreamSpec) -> tuple[str, ...]:
        """Change a stream that is declared, between two batches; the answer names the queries that begin anew by it."""
        with self._head.lock:
            self.check_change(spec)
            return tuple(record.name for record in self._plane.redeclare(self._head.state, spec))

    def check_change(self, spec: StreamSpec) -> None:
        """Raise unless the declared stream of this name may become this one."""
        known = self.declared()[spec.name]
        refused = stream_change(known, spec).refused
        if refused:
            raise StreamError(
                f"stream {spec.name!r} cannot change in this checkpoint: {'; '.join(refused)}",
                hint="declare a second stream under another name; lateness, more columns, rules and options may change",
            )
        if dict(known.options) != dict(spec.options):
            check_no_secrets(f"stream {spec.name!r}", spec.options)

    def descriptions(self) -> list[StreamDescription]:
        """All as users see them, by name."""
        failing = self.failing()
        return [
            replace(stream.description, failing=failing[name].cause if name in failing else None)
            for name, stream in sorted(self.by_name.items())
        ]

    def bad_rows(self, name: str) -> list[BadRow]:
        """The rows of a stream that are kept aside because it cannot use them, oldest first."""
        with self._head.lock:
            self._check_known(name)
            files = tuple(file for file in self._head.state.bad_files if file.stream == name)
        return list(read_bad_rows(self._root, files))

    def retry_bad_rows(self, name: str, *, request: str = "") -> int:
        """Have the rows that are kept aside now come again with the next batch, as if they arrived in it; how many."""
        with self._head.lock:
            self._check_known(name)
            rows = sum(file.rows for file in self._head.state.bad_files if file.stream == name)
            if rows:
                self._plane.retry_bad_rows(name, request=request)
            return rows

    def _check_known(self, name: str) -> None:
        if not is_text(name) or name not in self.by_name:
            raise StreamError(f"no stream {name!r}", hint=f"streams are: {', '.join(sorted(self.by_name)) or 'none'}")

    def check_ready(self) -> None:
        """Raise unless every stream of the checkpoint is there again, and none too many."""
        with self._head.lock:
            if not self.by_name:
                raise SessionError("no stream is registered", hint="call session.create_stream(...) before start()")
            known = set(self._head.state.stream_texts)
            missing = known - set(self.by_name)
            # Spark's checkpoint knows its sources by name if Dovetail opened all of them, else by position.
            is_fixed = bool(known) and not set(self.by_name) <= set(self.declared())
            extra = set(self.by_name) - known if is_fixed else set()
            differing = [
                f"{what}: {', '.join(sorted(names))}" for what, names in (("missing", missing), ("new", extra)) if names
            ]
            if differing:
                raise SessionError(
                    f"the streams differ from those this checkpoint was made with: {'; '.join(differing)}",
                    hint="register the same streams, or start with an empty checkpoint folder",
                )

    def _add(self, stream: Stream) -> None:
        self._plane.streams = {**self.by_name, stream.name: stream}
