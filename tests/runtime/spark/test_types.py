"""Which columns of a DataFrame Spark compares otherwise than byte by byte."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from dovetail.runtime.spark.types import is_collated


@pytest.mark.parametrize(
    ("kind", "is_so"),
    [
        (T.StringType(), False),
        (T.StringType("UTF8_LCASE"), True),
        (T.StringType("UTF8_BINARY_RTRIM"), True),
        (T.CharType(3), True),
        (T.LongType(), False),
    ],
)
def test_texts_with_a_collation_are_told_from_others(kind: T.DataType, is_so: bool) -> None:
    assert is_collated(T.StructField("c", kind)) is is_so


def test_a_text_that_was_declared_as_char_is_padded() -> None:
    field = T.StructField("c", T.StringType(), metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})
    assert is_collated(field)
