"""Our own errors, found again in what Spark makes of them on the way from a worker to the driver."""

from __future__ import annotations

import builtins
import re

from dovetail.core import errors
from dovetail.core.errors import MAX_TOLD, DovetailError, SessionError, TaskFailed, WorkerLost
from dovetail.core.known_secrets import without_secrets

_RAISED = re.compile(r"^dovetail\.core\.errors\.(?P<kind>\w+): (?P<what>.+)$", re.MULTILINE)
_ANY_RAISED = re.compile(r"^(?:[\w.]+\.)?(?P<raised>[A-Z]\w*(?:Error|Exception|Exit|Interrupt): .+)$", re.MULTILINE)
_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t]+.*\n)*(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<what>.*))?"
)
_GONE = ("Python worker exited unexpectedly", "ExecutorLostFailure", "java.lang.OutOfMemoryError")
_HINT = re.compile(r"^  instead: (?P<hint>.+)$", re.MULTILINE)


def task_failure(error: Exception) -> Exception:
    """Our own error, or a failure whose culprit can be looked for: what a worker raised, or that it is gone.

    What else Spark raises, of a source that it cannot read for example, is what it is.
    """
    text = without_secrets(str(error))
    own = _own_error(error)
    if own is not None:
        return errors.task_failure(own)
    if any(sign in text for sign in _GONE):
        return WorkerLost(
            "a Python worker of Spark is gone, or ran out of memory", hint="give workers more memory, or ask for less"
        )
    raised = list(_TRACEBACK.finditer(text))
    if not raised or _is_of_the_machine(raised[-1]["kind"]):
        return error
    return TaskFailed(f"{raised[-1]['kind']}: {raised[-1]['what']}"[:MAX_TOLD])


def _is_of_the_machine(kind: str) -> bool:
    """A full disk, a file that is not there: no query's fault."""
    known = getattr(builtins, kind, None)
    return isinstance(known, type) and issubclass(known, OSError)


def own_error(error: Exception) -> Exception:
    """The Dovetail error that a worker raised, if the text of Spark's exception shows one; else the error itself.

    Unless that one says a secret: then its text without it.
    """
    return _own_error(error) or _other_error(error, without_secrets(str(error)))


def _own_error(error: Exception) -> DovetailError | None:
    if isinstance(error, DovetailError):
        return error
    text = str(error)
    raised = list(_RAISED.finditer(text))
    if not raised:
        return None
    kind = getattr(errors, raised[-1]["kind"], DovetailError)
    hint = _HINT.search(text, raised[-1].end())
    found: DovetailError = kind(raised[-1]["what"], hint=hint["hint"] if hint else None)
    return found


def _other_error(error: Exception, text: str) -> Exception:
    """What Spark says first is only where an error came from; what a worker raised stands deep in its trace."""
    raised = _ANY_RAISED.findall(text)
    if "Python worker" in text and raised:
        return SessionError(
            f"a batch failed in a worker: {raised[-1]}",
            hint="the log has its trace; drop the query that you suspect, or mend the row or source that it names",
        )
    return error if text == str(error) else SessionError(text)
