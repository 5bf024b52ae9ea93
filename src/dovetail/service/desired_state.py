"""Brings about what the service's file asks for: at the start, and again whenever an admin says so."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

from dovetail.core.errors import DovetailError
from dovetail.engine.control.look import Known
from dovetail.engine.control.registry import Registry
from dovetail.service.config.config import QueryConfig, ServiceConfig, load_config
from dovetail.service.config.desired import FileChange, Step, desired_options, error_text, plan_changes
from dovetail.service.served_session import ServedSession

_log = logging.getLogger("dovetail")


class DesiredState:
    """`failed` are the entries of the file that could not be had, by kind and name: the others do not wait for them."""

    def __init__(self, config: ServiceConfig | None = None) -> None:
        """Without a file nothing is desired."""
        self._config = config
        self._lock = threading.Lock()
        self._was_applied = threading.Event()
        if config is None:
            self._was_applied.set()
        self.failed: dict[tuple[str, str], FileChange] = {}

    @property
    def is_of_a_file(self) -> bool:
        return self._config is not None and self._config.file is not None

    def reload(self) -> None:
        """Read the file again; raises all that is wrong with it, and then nothing changes."""
        assert self._config is not None
        assert self._config.file is not None
        self._config = load_config(self._config.file)

    def apply(self, session: ServedSession) -> tuple[FileChange, ...]:
        """Make every change that the file asks for; what cannot be made is noted as failed, and the rest goes on."""
        config = self._config
        if config is None:
            return ()
        with self._lock:
            streams = session.engine.streams
            known = Known(streams.declared(), Registry(session.engine.queries.records()), streams.by_name)
            made, failed = [], {}
            for change in plan_changes(config, known, session.engine.options.timezone):
                done = self._made(session, config, change)
                made.append(done)
                if done.step is Step.FAIL:
                    failed[done.kind, done.name] = done
                (_log.error if done.step is Step.FAIL else _log.info)("%s %s", config.file or "the file", done)
            self.failed = failed
            self._was_applied.set()
            return tuple(made)

    def await_applied(self, timeout_s: float = 0.0) -> bool:
        """Whether all that the file asks for was tried once, so that what is missing now will not come by itself."""
        return self._was_applied.wait(timeout_s)

    def failed_query(self, name: str) -> FileChange | None:
        return self.failed.get(("query", name))

    def forget(self, name: str) -> None:
        """Somebody created or dropped a query of this name: what the file wanted of it is no longer so."""
        self.failed.pop(("query", name), None)

    def _made(self, session: ServedSession, config: ServiceConfig, change: FileChange) -> FileChange:
        if change.step is Step.FAIL:
            return change
        try:
            if change.kind == "stream":
                session.declare_stream(config.stream_by_name[change.name], may_change=True)
            else:
                _make_query(session, next(query for query in config.queries if query.name == change.name), change.step)
        except DovetailError as error:
            return replace(change, step=Step.FAIL, what=error_text(error))
        return change


def _make_query(session: ServedSession, query: QueryConfig, step: Step) -> None:
    options = vars(desired_options(query))
    known = session.engine.queries.named(query.name)
    if step is Step.CHANGE and known is not None:
        session.engine.queries.set_options(known.id, options)
    else:
        session.create_query(query.sql, query.name, replace=True, **options)
