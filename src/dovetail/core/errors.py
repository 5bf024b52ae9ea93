"""The error tree. Every error says what happened, where, and what to write or do instead.

A user reads `str(error)`; programs read the fields. Raise the most specific class: tests and the
service tell user mistakes (`SqlError`, `StreamError`, `QueryError`) from broken files (`StoreError`).
"""

from __future__ import annotations

from dovetail.core.calling_line import calling_line
from dovetail.core.known_secrets import without_secrets

MAX_TOLD = 500
"""Characters of a foreign error's text that are passed on: some print the data."""


class DovetailError(Exception):
    """Base of all errors that Dovetail raises on purpose."""

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        # Some texts are of libraries, which repeat what they were given.
        self.what = without_secrets(what)
        self.where = where and without_secrets(where)
        self.hint = hint and without_secrets(hint)
        super().__init__(self.told())

    def told(self) -> str:
        lines = [self.what]
        if self.where:
            lines.append(f"  at: {self.where}")
        if self.hint:
            lines.append(f"  instead: {self.hint}")
        return "\n".join(lines)

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows in place of a traceback through our code; `%debug` still goes to where it was raised.

        IPython asks for this by name.
        """
        line = calling_line(self.__traceback__)
        return [*f"{type(self).__name__}: {self}".split("\n"), *([f"  from: {line}"] if line else [])]

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling, and workers send errors home.
        return (_rebuild, (type(self), self.what, self.where, self.hint))


def _rebuild(kind: type[DovetailError], what: str, where: str | None, hint: str | None) -> DovetailError:
    return kind(what, where=where, hint=hint)


class SqlError(DovetailError):
    """The SQL text cannot be used; `where` is «line L, column C» of the text."""


class SqlSyntaxError(SqlError):
    """The text does not parse."""


class UnknownName(SqlError):
    """A stream, alias, column or function that does not exist."""


class TypeMismatch(SqlError):
    """Operands whose types do not go together."""


class UnsupportedSql(SqlError):
    """Valid SQL that Dovetail does not run."""


class CrossProduct(SqlError):
    """Relations that no condition connects."""


class QueryError(DovetailError):
    """A query that cannot be created, found or dropped."""


class LimitExceeded(QueryError):
    """A query that takes more than its share, or would."""


class SecretError(DovetailError):
    """A secret in clear where a reference is wanted, or a reference without a secret behind it."""


class SinkError(DovetailError):
    """Answers that a sink did not take."""


class UnknownQuery(QueryError):
    """No query has this name or id."""


class QueryExists(QueryError):
    """The name belongs to another query."""


class QueryDropped(QueryError):
    """The query is dropped, and what was asked needs a live one."""


class RequestReused(QueryError):
    """The id of this request stands for another one."""


class HistoryError(DovetailError):
    """Rows of the past that cannot be read again."""


class StreamError(DovetailError):
    """A stream that cannot be registered or used."""


class BadRowError(StreamError):
    """Rows that a stream cannot use, where it shall not go on without them."""


class SessionError(DovetailError):
    """A session used in the wrong order or on the wrong checkpoint."""


class ConfigError(DovetailError):
    """A configuration file that cannot be used; the text lists everything that is wrong with it."""


class CheckpointLocked(SessionError):
    """Another session works on this checkpoint."""


class CheckpointVersionMismatch(SessionError):
    """The checkpoint was written by a version with another layout."""


class MissingPackage(DovetailError, ImportError):
    """A library that an extra of Dovetail brings is not installed; the text has the command that installs it."""


class ServiceError(DovetailError):
    """The service cannot be set up or started as it is asked to."""


class StoreError(DovetailError):
    """State on disk that cannot be used."""


class DamagedFile(StoreError):
    """A file of the checkpoint is missing or has other bytes than were written; the text says what is lost with it."""


class BucketMissing(DamagedFile):
    """A file that the manifest names is not there."""


class BucketCorrupt(DamagedFile):
    """A file that the manifest names has other bytes than were committed."""


class BatchDiffers(StoreError):
    """A batch that is committed comes again with other rows, or one that does not follow the last."""


class ManifestVersionTaken(StoreError):
    """Somebody else committed this batch first."""


class EvaluationError(DovetailError):
    """An expression failed on some row (overflow, division by zero, bad cast), or asks for more than there is room."""


class ColumnTooLarge(EvaluationError):
    """All rows' values together have too many bytes (`needed_bytes`): fewer rows at once may do."""

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None, needed_bytes: int = 0) -> None:
        super().__init__(what, where=where, hint=hint)
        self.needed_bytes = needed_bytes


class TaskFailed(DovetailError):
    """A batch failed without saying whose fault it was; without some query it may run."""


class WorkerLost(TaskFailed):
    """The process of a task is gone, perhaps because a query asked for more memory than there is."""


class InternalError(DovetailError):
    """A promise that Dovetail broke to itself: a bug, and no mistake of the user."""


def is_chargeable(error: BaseException) -> bool:
    """Whether what went wrong may be the fault of who asked: neither a broken file, nor a full disk, nor an exit.

    A bug counts: it is not the user's mistake, but without the query that meets it the others go on.
    """
    if isinstance(error, DovetailError | OSError):
        return isinstance(error, EvaluationError | InternalError)
    return isinstance(error, Exception)


def charged(error: Exception) -> EvaluationError:
    """The error as the failure of whoever asked for what went wrong; raises it again if it is nobody's fault."""
    if isinstance(error, EvaluationError):
        return error
    if not is_chargeable(error):
        raise error
    # Secrets go first: half of one would not be known for it.
    told = without_secrets(str(error)).strip().split("\n")[0][:MAX_TOLD] or type(error).__name__
    if isinstance(error, MemoryError):
        return EvaluationError(
            f"more memory than there is: {told}", hint="ask for shorter values, or for fewer rows at once"
        )
    return EvaluationError(
        f"{type(error).__name__}: {told}", hint="write it in another way; and please report this, with the query"
    )


def task_failure(error: Exception) -> Exception:
    """An unforeseen error as a failure whose culprit can be looked for; others are what they are."""
    if not is_chargeable(error):
        return error
    told = charged(error)
    return TaskFailed(told.what, where=told.where, hint=told.hint)
