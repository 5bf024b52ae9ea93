"""`dovetail serve`: one process, one Spark application, one session, one HTTP server, from start to graceful stop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

from pyspark.sql import SparkSession

from dovetail.api import Session
from dovetail.service.access.first_token import ensure_first_token
from dovetail.service.access.tokens import TokenFile
from dovetail.service.app import make_app
from dovetail.service.config.config import ServiceConfig
from dovetail.service.desired_state import DesiredState
from dovetail.service.server import Server

Say = Callable[[str], None]
_LOOK_EVERY_S = 0.5


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


def open_session(spark: SparkSession, config: ServiceConfig, desired: DesiredState, say: Say) -> Session:
    """With the streams and queries as the file has them; what the checkpoint knows besides is there already."""
    session = Session(spark, config.checkpoint_dir, trigger=config.trigger, **config.session)
    try:
        for change in desired.apply(session):
            say(str(change))
    except BaseException:
        session.stop()
        raise
    return session


def serve(spark: SparkSession, config: ServiceConfig, say: Say, stop: StopSignal) -> None:
    """Until `stop`, or until a session that drains its sources has done so; a failed session stays to be looked at."""
    options = config.service_options
    desired = DesiredState(config)
    session = open_session(spark, config, desired, say)
    try:
        token = None
        if options.auth:
            token = ensure_first_token(TokenFile(options.tokens_file), config.auth.token_file, os.environ)
        server = Server(make_app(session, options, desired), options)
        session.start()
        with server:
            _say_where(say, server.url, token, config)
            stop.listen()
            while not stop.wait(_LOOK_EVERY_S) and not server.has_ended:
                pass
            say("stopping: the batch under way is finished first")
            server.stop_accepting()
            session.stop()
    finally:
        session.stop()
    say("stopped")


def _say_where(say: Say, url: str, token: str | None, config: ServiceConfig) -> None:
    say(f"Dovetail serves {len(config.streams)} streams of the file at {url} (docs: {url}/docs)")
    if token is not None:
        say(f"first token (role admin, shown only now): {token}")
    if not config.auth.enabled:
        say("auth is off: everyone on this machine may do everything")
