"""What callers give to a session, checked and in the form that it is used in."""

from __future__ import annotations

from pathlib import Path

from dovetail.core.errors import SessionError
from dovetail.query.durations import DurationError, parse_duration
from dovetail.runtime.spark.pipeline import AVAILABLE_NOW


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
    text = str(checkpoint_dir)
    if text.startswith("file:"):
        text = text.removeprefix("file://").removeprefix("file:")
    if "://" in text:
        raise SessionError(
            f"checkpoint_dir {text!r} is not a path of a mounted filesystem",
            hint="give a local folder, or one of a filesystem that all executors mount (NFS, Lustre, EFS)",
        )
    return Path(text).absolute()
