"""The public Python API: a session over a Spark application, and handles to its queries."""

from dovetail.api.query import Query
from dovetail.api.query_status import QueryStatus
from dovetail.api.session import Session

__all__ = ["Query", "QueryStatus", "Session"]
