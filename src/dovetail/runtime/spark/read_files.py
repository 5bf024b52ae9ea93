"""Files of a stream by their names, as Spark's own file source reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from dovetail.core.secret_reference import resolved
from dovetail.query.stream_spec import StreamSpec
from dovetail.runtime.spark.open_stream import schema_of
from dovetail.runtime.spark.row_source import record_options, with_record


def read_files(spark: SparkSession, spec: StreamSpec, paths: Sequence[str]) -> DataFrame:
    """`paths` as Spark's log of the source writes them; with `RECORD`, where that is kept.

    Spark passes over files that are not there.
    """
    options: dict[str, Any] = {key.lower(): value for key, value in resolved(spec.options).items()}
    folder = options.pop("path")
    # As Spark's own file source does: names are names, not patterns; and folders named k=v are columns.
    options["__globPaths__"] = "false"
    if "basepath" not in options and not is_pattern(folder):
        options["basepath"] = folder
    schema = with_record(spec, schema_of(spec.columns))
    reader = spark.read.format(spec.format).options(**options, **record_options(spec)).schema(schema)
    return reader.load([unquote(path) for path in paths])


def files_that_are_gone(frame: DataFrame, paths: Iterable[str]) -> list[str]:
    """Names that are no patterns are taken without a look."""
    found = set(map(one_slash, frame.inputFiles()))
    return sorted(path for path in paths if one_slash(path) not in found)


def is_pattern(path: str) -> bool:
    return any(sign in path for sign in "*?[{")


def one_slash(path: str) -> str:
    """Spark writes a local file now with one slash, now with three."""
    return path.replace("file:///", "file:/", 1)
