"""What callers give to a session, checked and in the form that it is used in."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from dovetail.core.errors import QueryError, SessionError, StreamError
from dovetail.core.plain_text import is_text
from dovetail.query.durations import DurationError, parse_duration
from dovetail.runtime.spark.pipeline import AVAILABLE_NOW


def check_spark(spark: SparkSession) -> None:
    if not isinstance(spark, SparkSession):
        raise SessionError(
            f"spark is {_shown(spark)}, and no SparkSession", hint="give one; dovetail.local_spark('app') makes one"
        )


def check_frame(stream: str, df: DataFrame) -> None:
    if not isinstance(df, DataFrame):
        raise StreamError(
            f"stream {stream!r} is {_shown(df)}, and no DataFrame",
            hint="give a streaming one, from spark.readStream; a folder or topic is declared: CREATE STREAM",
        )
    if not df.isStreaming:
        raise StreamError(
            f"stream {stream!r} is a batch DataFrame", hint="read it with spark.readStream instead of spark.read"
        )


def check_function(function: object, after: object) -> None:
    if not callable(function):
        raise QueryError(
            f"what to call for each batch is {_shown(function)}", hint="give a function of an Arrow table and a number"
        )
    if after is not None and type(after) is not int:
        raise QueryError(f"after is {_shown(after)}", hint="give the number of the last batch that you have")


def check_trigger(trigger: str | None) -> str | None:
    if trigger is None or trigger == AVAILABLE_NOW:
        return trigger
    try:
        parse_duration(trigger)
    except DurationError as error:
        raise SessionError(
            f"trigger {trigger!r}: {error}", hint=f"use {AVAILABLE_NOW!r} or an interval such as '1 second'"
        ) from None
    return trigger


def duration_s(name: str, text: str) -> float:
    try:
        return parse_duration(text) / 1e6
    except DurationError as error:
        raise SessionError(f"{name} {text!r}: {error}", hint=error.hint) from None


def interval_s(trigger: str | None) -> float | None:
    """None where the next batch begins when the last has ended."""
    return None if trigger is None or trigger == AVAILABLE_NOW else (parse_duration(trigger) / 1e6 or None)


def local_path(checkpoint_dir: str | Path) -> Path:
    is_path = is_text(checkpoint_dir) or isinstance(checkpoint_dir, Path)
    if not is_path or not str(checkpoint_dir).strip():
        raise SessionError(
            f"checkpoint_dir is {_shown(checkpoint_dir)}", hint="give the path of a folder, which may be a new one"
        )
    text = str(checkpoint_dir)
    if text.startswith("file:"):
        text = text.removeprefix("file://").removeprefix("file:")
    if "://" in text:
        raise SessionError(
            f"checkpoint_dir {text!r} is not a path of a mounted filesystem",
            hint="give a local folder, or one of a filesystem that all executors mount (NFS, Lustre, EFS)",
        )
    return Path(text).absolute()


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
