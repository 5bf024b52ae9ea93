"""Errors as a person wants to read them: the message and the hint, no traceback."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import typer
from rich.console import Console

from dovetail.core.errors import DovetailError
from dovetail.core.extras import extras
from dovetail.core.plain_text import plain_text

P = ParamSpec("P")
R = TypeVar("R")


def show_errors(command: Callable[P, R]) -> Callable[P, R]:
    """End a command with status 1 and its message when Dovetail refuses something on purpose."""

    @functools.wraps(command)
    def shown(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with extras():
                return command(*args, **kwargs)
        except DovetailError as error:
            text = plain_text(f"dovetail: {error}")
            Console(stderr=True).print(text, markup=False, highlight=False, style="red", soft_wrap=True)
            raise typer.Exit(1) from None

    return shown
