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
    from dovetail.client.query_handle import QueryHandle
    from dovetail.client.records import BackfillStatus, Column, QueryStatus, StreamDescription, Validation
    from dovetail.client.results import Answers
    from dovetail.client.tail import Batch, Tail

__all__ = [
    "AccessDenied",
    "Answers",
    "BackfillStatus",
    "Batch",
    "Client",
    "Column",
    "ConnectionSettingsError",
    "LimitReached",
    "QueryHandle",
    "QueryStatus",
    "RequestRefused",
    "ServiceUnavailable",
    "ServiceUnreachable",
    "StreamDescription",
    "Tail",
    "UnexpectedAnswer",
    "Validation",
]
