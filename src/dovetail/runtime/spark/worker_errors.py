"""Our own errors, found again in what Spark makes of them on the way from a worker to the driver."""

from __future__ import annotations

import re

from dovetail.core import errors
from dovetail.core.errors import DovetailError, SessionError
from dovetail.core.known_secrets import without_secrets

_RAISED = re.compile(r"^dovetail\.core\.errors\.(?P<kind>\w+): (?P<what>.+)$", re.MULTILINE)
_ANY_RAISED = re.compile(r"^(?:[\w.]+\.)?(?P<raised>[A-Z]\w*(?:Error|Exception|Exit|Interrupt): .+)$", re.MULTILINE)
_HINT = re.compile(r"^  instead: (?P<hint>.+)$", re.MULTILINE)


def own_error(error: Exception) -> Exception:
    """The Dovetail error that a worker raised, if the text of Spark's exception shows one; else the error itself.

    Unless that one says a secret: then its text without it.
    """
    if isinstance(error, DovetailError):
        return error
    text = str(error)
    raised = list(_RAISED.finditer(text))
    if not raised:
        return _other_error(error, without_secrets(text))
    kind = getattr(errors, raised[-1]["kind"], DovetailError)
    hint = _HINT.search(text, raised[-1].end())
    return kind(raised[-1]["what"], hint=hint["hint"] if hint else None)


def _other_error(error: Exception, text: str) -> Exception:
    """What Spark says first is only where an error came from; what a worker raised stands deep in its trace."""
    raised = _ANY_RAISED.findall(text)
    if "Python worker" in text and raised:
        return SessionError(
            f"a batch failed in a worker: {raised[-1]}",
            hint="the log has its trace; drop the query that you suspect, or mend the row or source that it names",
        )
    return error if text == str(error) else SessionError(text)
