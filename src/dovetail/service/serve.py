"""`dovetail serve`: one process, one Spark application, one session, one HTTP server, from start to graceful stop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from dovetail.api import Session
from dovetail.service.access.first_token import ensure_first_token
from dovetail.service.access.tokens import TokenFile
from dovetail.service.app import make_app
from dovetail.service.config.config import ServiceConfig
from dovetail.service.desired_state import DesiredState
from dovetail.service.server import Server
from dovetail.service.supervise import Supervisor

Say = Callable[[str], None]


class StopSignal:
    """The first SIGTERM or SIGINT is a request; a second one ends the process as it always does."""

    def __init__(self) -> None:
        self._made = threading.Event()

    def listen(self) -> None:
        """After Spark's start, because PySpark sets a handler of its own that cancels the batch."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def wait(self, seconds: float) -> bool:
        return self._made.wait(seconds)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._made.set()


def serve(spark: SparkSession, config: ServiceConfig, say: Say, stop: StopSignal) -> None:
    """Until `stop`, or until a session that drains its sources has done so; one that fails is started again."""
    options, desired = config.service_options, DesiredState(config)
    session = Session(spark, config.checkpoint_dir, trigger=config.trigger, **config.session)
    try:
        token = None
        if options.auth:
            token = ensure_first_token(TokenFile(options.tokens_file), config.auth.token_file, os.environ)
        app = make_app(session, options, desired, is_supervised=True)

        def prepare() -> None:
            for change in app.state.service.apply_file():
                say(str(change))

        # Asked before the session starts: sources may take their time, and people may want to drop a query first.
        with Server(app, options) as server:
            _say_where(say, server.url, token, config)
            stop.listen()
            Supervisor(session, app.state.service, stop, prepare=prepare, is_lost=lambda: _has_ended(spark)).run()
            say("stopping: the batch under way is finished first")
            server.stop_accepting()
            session.stop()
    finally:
        session.stop()
    say("stopped")


def _has_ended(spark: SparkSession) -> bool:
    """Whether Spark itself is gone: then only a new process helps."""
    try:
        return bool(spark.sparkContext._jsc.sc().isStopped())
    except (Py4JError, OSError, AttributeError):
        return True


def _say_where(say: Say, url: str, token: str | None, config: ServiceConfig) -> None:
    say(f"Dovetail serves {len(config.streams)} streams of the file at {url} (docs: {url}/docs)")
    if token is not None:
        say(f"first token (role admin, shown only now): {token}")
    if not config.auth.enabled:
        say("auth is off: everyone on this machine may do everything")
