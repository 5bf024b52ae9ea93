"""A Python client of a running service, over HTTP only."""

from dovetail.core.extras import extras

with extras():
    from dovetail.client.client import Client
    from dovetail.client.errors import (
        AccessDenied,
        ConnectionSettingsError,
        LimitReached,
        RequestRefused,
        ServiceUnavailable,
        ServiceUnreachable,
        UnexpectedAnswer,
    )
    from dovetail.client.query import Query
    from dovetail.client.records import BackfillStatus, QueryStatus, StatementResult, Validation
    from dovetail.client.results import Answers
    from dovetail.client.tail import Tail
    from dovetail.core.answer_batch import AnswerBatch
    from dovetail.core.stream_description import Column, StreamDescription

__all__ = [
    "AccessDenied",
    "AnswerBatch",
    "Answers",
    "BackfillStatus",
    "Client",
    "Column",
    "ConnectionSettingsError",
    "LimitReached",
    "Query",
    "QueryStatus",
    "RequestRefused",
    "ServiceUnavailable",
    "ServiceUnreachable",
    "StatementResult",
    "StreamDescription",
    "Tail",
    "UnexpectedAnswer",
    "Validation",
]
