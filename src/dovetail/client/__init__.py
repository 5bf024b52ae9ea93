"""A Python client of a running service, over HTTP only."""

from dovetail.client.client import Client
from dovetail.client.query_handle import QueryHandle
from dovetail.client.records import Column, QueryStatus, StreamDescription, Validation
from dovetail.client.results import Answers
from dovetail.client.tail import Batch, Tail

__all__ = [
    "Answers",
    "Batch",
    "Client",
    "Column",
    "QueryHandle",
    "QueryStatus",
    "StreamDescription",
    "Tail",
    "Validation",
]
