"""The line of the user's own program that led to an error."""

from __future__ import annotations

import linecache
from types import TracebackType

_PACKAGE = __name__.partition(".")[0]


def calling_line(traceback: TracebackType | None) -> str | None:
    """The line that called into this package, such as «line 3: session.create_query(sql)»; None if nothing did."""
    found = None
    while traceback is not None:
        frame = traceback.tb_frame
        if str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE:
            return found
        text = linecache.getline(frame.f_code.co_filename, traceback.tb_lineno, frame.f_globals).strip()
        found = f"line {traceback.tb_lineno}: {text}" if text else f"line {traceback.tb_lineno}"
        traceback = traceback.tb_next
    return None
