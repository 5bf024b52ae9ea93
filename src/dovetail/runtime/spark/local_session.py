"""A quiet Spark session on this machine, with the settings that Dovetail runs best with."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from dovetail.runtime.spark.class_archive import JAVA_OPTIONS, archive_options
from dovetail.runtime.spark.java import ensure_java

MAX_SOCKET_NAME = 103
"""Of a socket in the file system, where systems allow the least."""
_JVM_END_TIMEOUT_S = 30.0
_COMPILE_LATER = (
    "-XX:Tier4InvocationThreshold=500000",
    "-XX:Tier4MinInvocationThreshold=60000",
    "-XX:Tier4CompileThreshold=1500000",
    "-XX:Tier4BackEdgeThreshold=4000000",
)
"""A hundred times what Java has: by default, compiling thoroughly what only a start runs takes longer than the start.

What a loop over rows calls is there after as many rows.
"""


def local_spark(app_name: str, cores: int = 2, *, log_file: Path | None = None, **conf: str) -> SparkSession:
    """Start (or get) a quiet Spark session on this machine, with settings that a laptop, a test or a benchmark wants.

        spark = local_spark("shop", cores=4, spark__driver__memory="8g")

    `conf` keys use `__` for the dot, and come before the settings of Dovetail, none of which it depends on.
    With a `log_file`, all that Java and the Python workers print goes there and not to the terminal.
    """
    ensure_java()
    # Workers must run this interpreter: the first `python3` on the PATH has none of our libraries.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Nothing outside this machine talks to a local session, and Spark warns when it has to guess an address.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # The launcher is a Java of its own, which ends after a moment: it shall not compile thoroughly what runs once.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    builder = SparkSession.builder.appName(app_name).master(f"local[{cores}]")
    given = _with_java_options(conf)
    for key, value in {**_settings(cores), **_sockets(given), **given}.items():
        builder = builder.config(key, value)
    with _stderr_to(log_file), _loading_session():
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def _loading_session() -> Iterator[None]:
    """Meanwhile, import what a session is made of: it takes seconds, as Java does, which starts beside it."""

    def load() -> None:
        # By its name, since it lies above this module. Whoever uses it is told what fails here.
        with suppress(ImportError):
            import_module("dovetail.api")

    threading.Thread(target=load, name="dovetail-import", daemon=True).start()
    usual_s = sys.getswitchinterval()
    # Java asks and answers some hundred times: it shall not wait for its turn each time.
    sys.setswitchinterval(usual_s / 20)
    try:
        yield
    finally:
        sys.setswitchinterval(usual_s)


@contextmanager
def _stderr_to(log_file: Path | None) -> Iterator[None]:
    """Point the process's stderr at a file for a while: a JVM started meanwhile keeps it for its whole life.

    Java and Spark's launcher print a few lines before any log setting is read, so no setting can silence them.
    """
    if log_file is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log_file.open("ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def _with_java_options(conf: dict[str, str]) -> dict[str, str]:
    """The user's settings by their own names, and Java's options; the user's come last, and so before others."""
    given = {key.replace("__", "."): value for key, value in conf.items()}
    options = (*_COMPILE_LATER, *archive_options(), *((given[JAVA_OPTIONS],) if JAVA_OPTIONS in given else ()))
    return {**given, JAVA_OPTIONS: " ".join(options)}


def _settings(cores: int) -> dict[str, str]:
    return {
        "spark.driver.memory": "4g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Each micro-batch is a job: the defaults keep a thousand of them, with their plans, on the driver's heap.
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "40",
        "spark.ui.retainedTasks": "400",
        "spark.sql.ui.retainedExecutions": "5",
        "spark.sql.streaming.ui.retainedQueries": "5",
        "spark.sql.streaming.ui.retainedProgressUpdates": "5",
        "spark.sql.session.timeZone": "UTC",
        # Re-planning between the stages of a batch costs more than these small stages take.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.default.parallelism": str(cores),
        # Fewer, larger record batches: the crossing into Python is paid per batch as well as per byte.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
        "spark.python.worker.reuse": "true",
        "spark.python.daemon.module": "dovetail.runtime.spark.worker_daemon",
        # As workers of SQL have it anyway: workers of the same environment come from the same daemon.
        "spark.executorEnv.SPARK_SIMPLIFIED_TRACEBACK": "1",
        "spark.sql.streaming.metricsEnabled": "false",
    }


def _sockets(given: dict[str, str]) -> dict[str, str]:
    """How Java and its workers talk: over TCP they wait 40 ms for each other in every stage.

    But where the name of a socket among Java's temporary files would be longer than systems allow, Spark would not
    start.
    """
    told = re.search(r"-Djava\.io\.tmpdir=(\S+)", given[JAVA_OPTIONS])
    folder = given.get("spark.python.unix.domain.socket.dir") or (told[1] if told else tempfile.gettempdir())
    longest = len(os.fsencode(folder)) + len("/.00000000-0000-0000-0000-000000000000.sock")
    return {"spark.python.unix.domain.socket.enabled": "true" if longest <= MAX_SOCKET_NAME else "false"}


def end_local_spark(spark: SparkSession, *, timeout_s: float = _JVM_END_TIMEOUT_S) -> None:
    """Stop the session and its JVM, and wait for it: only then are all of Spark's temporary files gone.

    `spark.stop()` alone leaves the JVM running until this process ends.
    """
    gateway = SparkContext._gateway  # PySpark has no public way to end its JVM
    spark.stop()
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    gateway.shutdown()
    # Spark's gateway server ends when its stdin does.
    process.stdin.close()
    process.wait(timeout=timeout_s)
    # So that a later session of this process starts a JVM of its own.
    SparkContext._gateway = None
    SparkContext._jvm = None
