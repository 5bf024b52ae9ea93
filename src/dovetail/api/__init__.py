"""The public Python API: a session over a Spark application, and handles to its queries."""

from dovetail.api.query import Query
from dovetail.api.session import Session
from dovetail.engine.control.query_status import QueryStatus

__all__ = ["Query", "QueryStatus", "Session"]
