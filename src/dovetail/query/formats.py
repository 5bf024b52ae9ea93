"""Formats of Spark's sources and sinks that Dovetail knows something of."""

from __future__ import annotations

FILE_FORMATS = ("parquet", "json", "csv", "orc", "text", "avro", "xml")
KAFKA = "kafka"
RATE = "rate"
JDBC = "jdbc"
