"""Dovetail: many continuous join queries over shared streams, in one Spark application."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dovetail.core.compiled_cache import keep_compiled
from dovetail.core.errors import (
    BadRowError,
    BatchDiffers,
    BucketCorrupt,
    BucketMissing,
    CheckpointLocked,
    CheckpointVersionMismatch,
    ColumnTooLarge,
    ConfigError,
    CrossProduct,
    DamagedFile,
    DovetailError,
    EvaluationError,
    HistoryError,
    InternalError,
    LimitExceeded,
    ManifestVersionTaken,
    MissingPackage,
    QueryDropped,
    QueryError,
    QueryExists,
    RequestReused,
    SecretError,
    ServiceError,
    SessionError,
    SinkError,
    SqlError,
    SqlSyntaxError,
    StoreError,
    StreamError,
    TaskFailed,
    TypeMismatch,
    UnknownName,
    UnknownQuery,
    UnsupportedSql,
    WorkerLost,
)
from dovetail.core.extras import extras

if TYPE_CHECKING:
    from dovetail.api import Query, QueryStatus, Session
    from dovetail.engine.control.sink_spec import SinkSpec
    from dovetail.engine.control.statement_result import StatementResult
    from dovetail.query.stream_spec import StreamSpec
    from dovetail.runtime.spark.class_archive import archive_options
    from dovetail.runtime.spark.java import ensure_java
    from dovetail.runtime.spark.local_session import local_spark
    from dovetail.stats.catalog import StatsCatalog

__version__ = "0.1.0"
__all__ = [
    "BadRowError",
    "BatchDiffers",
    "BucketCorrupt",
    "BucketMissing",
    "CheckpointLocked",
    "CheckpointVersionMismatch",
    "ColumnTooLarge",
    "ConfigError",
    "CrossProduct",
    "DamagedFile",
    "DovetailError",
    "EvaluationError",
    "HistoryError",
    "InternalError",
    "LimitExceeded",
    "ManifestVersionTaken",
    "MissingPackage",
    "Query",
    "QueryDropped",
    "QueryError",
    "QueryExists",
    "QueryStatus",
    "RequestReused",
    "SecretError",
    "ServiceError",
    "Session",
    "SessionError",
    "SinkError",
    "SinkSpec",
    "SqlError",
    "SqlSyntaxError",
    "StatementResult",
    "StatsCatalog",
    "StoreError",
    "StreamError",
    "StreamSpec",
    "TaskFailed",
    "TypeMismatch",
    "UnknownName",
    "UnknownQuery",
    "UnsupportedSql",
    "WorkerLost",
    "__version__",
    "archive_options",
    "ensure_java",
    "local_spark",
]

_MODULE_BY_NAME = {
    "Query": "dovetail.api",
    "QueryStatus": "dovetail.api",
    "Session": "dovetail.api",
    "SinkSpec": "dovetail.engine.control.sink_spec",
    "StatementResult": "dovetail.engine.control.statement_result",
    "StatsCatalog": "dovetail.stats.catalog",
    "StreamSpec": "dovetail.query.stream_spec",
    "archive_options": "dovetail.runtime.spark.class_archive",
    "ensure_java": "dovetail.runtime.spark.java",
    "local_spark": "dovetail.runtime.spark.local_session",
}

# Before anything imports numba.
keep_compiled()


def __getattr__(name: str) -> Any:
    # Workers import kernels from this package; they must not load Spark's driver side and the SQL parser for it.
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module 'dovetail' has no attribute {name!r}")
    with extras():
        return getattr(import_module(_MODULE_BY_NAME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
