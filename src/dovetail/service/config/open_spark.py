"""The Spark application that a service runs in, as its configuration asks for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from dovetail.core.secret_reference import resolved
from dovetail.runtime.spark.java import ensure_java
from dovetail.runtime.spark.local_session import local_spark

MASTER = "spark.master"
_LOCAL = re.compile(r"local(?:\[(\d+)\])?\Z")
_DEFAULT_CORES = 2
APP_NAME = "dovetail"
# Spark's pages and event log show plans, and in them options of sources with the secrets that references stood for.
_HIDDEN_OPTIONS = {"spark.sql.redaction.options.regex": "(?s).*"}


def open_spark(settings: Mapping[str, str], log_file: Path | None = None) -> SparkSession:
    """A local one with the settings that Dovetail runs best with; for any other master only what the file says."""
    settings = {**_HIDDEN_OPTIONS, **resolved(settings)}
    master = settings.get(MASTER, f"local[{_DEFAULT_CORES}]")
    local = _LOCAL.match(master)
    if local is not None:
        own = {key.replace(".", "__"): value for key, value in settings.items() if key != MASTER}
        return local_spark(APP_NAME, int(local[1] or 1), log_file=log_file, **own)
    ensure_java()
    builder = SparkSession.builder.appName(APP_NAME)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
