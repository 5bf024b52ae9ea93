"""Our own errors, found again in what Spark makes of them on the way from a worker to the driver."""

from __future__ import annotations

import re

from dovetail.core import errors
from dovetail.core.errors import DovetailError, SessionError
from dovetail.core.known_secrets import without_secrets

_RAISED = re.compile(r"^dovetail\.core\.errors\.(?P<kind>\w+): (?P<what>.+)$", re.MULTILINE)
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
        shown = without_secrets(text)
        return error if shown == text else SessionError(shown)
    kind = getattr(errors, raised[-1]["kind"], DovetailError)
    hint = _HINT.search(text, raised[-1].end())
    return kind(raised[-1]["what"], hint=hint["hint"] if hint else None)
