"""Functions of strings. Positions and lengths count code points, as in Spark."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.kernels.evaluate.rows import Rows, Value, by_row, fail
from dovetail.kernels.evaluate.sizes import (
    MAX_VALUE_BYTES,
    WORK_BYTES,
    all_there,
    byte_lengths,
    check_sizes,
    text_lengths,
    whole_numbers,
)
from dovetail.query.expression import Call, Expression, Literal

Function = Callable[[list[Value], Call, Rows], Value]


def _constant(expression: Expression) -> str | None:
    return expression.value if isinstance(expression, Literal) else None


def _change_case(ascii_kernel: Callable[[Value], Value], by_text: Callable[[str], str]) -> Function:
    """Arrow maps one letter to one letter; Spark maps ß to SS. ASCII needs no such care."""

    def apply(args: list[Value], call: Call, rows: Rows) -> Value:
        if pc.all(pc.string_is_ascii(args[0]), min_count=0).as_py() is not False and isinstance(args[0], pa.Array):
            return ascii_kernel(args[0])
        return by_row(by_text, args, rows, pa.string())

    return apply


def _length(args: list[Value], call: Call, rows: Rows) -> Value:
    return pc.cast(pc.utf8_length(args[0]), pa.int32())


def _reverse(args: list[Value], call: Call, rows: Rows) -> Value:
    return pc.utf8_reverse(args[0])


def _trimmer(kernel: Callable[..., Value], by_text: Callable[[str, str], str]) -> Function:
    def apply(args: list[Value], call: Call, rows: Rows) -> Value:
        characters = _constant(call.args[1])
        if characters:
            return kernel(args[0], characters=characters)
        return by_row(lambda text, cut: by_text(text, cut) if cut else text, args, rows, pa.string())

    return apply


def _substring(args: list[Value], call: Call, rows: Rows) -> Value:
    start, length = (_constant(arg) for arg in call.args[1:])
    if isinstance(start, int) and start >= 0 and isinstance(length, int):
        first = max(start - 1, 0)
        if length <= 0:
            return pc.utf8_slice_codeunits(args[0], start=0, stop=0)
        return pc.utf8_slice_codeunits(args[0], start=first, stop=min(first + length, 2**31 - 1))
    return by_row(_substring_of, args, rows, pa.string())


def _substring_of(text: str, position: int, length: int) -> str:
    """A position before the text counts towards the length."""
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = start + length
    return text[max(start, 0) : max(end, 0)]


def _right_of(text: str, count: int) -> str:
    return text[-count:] if count > 0 else ""


def _pad_of(text: str, width: int, filler: str, *, on_left: bool) -> str:
    if width <= len(text) or not filler:
        return text[: max(width, 0)]
    missing = width - len(text)
    padding = (filler * (missing // len(filler) + 1))[:missing]
    return padding + text if on_left else text + padding


def _pad(function: Callable[[str, int, str], str]) -> Function:
    def apply(args: list[Value], call: Call, rows: Rows) -> Value:
        text, width, filler = args
        missing = np.maximum(whole_numbers(width, rows) - text_lengths(text, rows), 0)
        fillers = missing // np.maximum(text_lengths(filler, rows), 1) + 1
        # No width is above 2^31, so no product is above 2^63.
        needed = byte_lengths(text, rows) + fillers * byte_lengths(filler, rows)
        check_sizes(call.function, np.where(all_there(args, rows), needed, 0))
        return by_row(function, args, rows, pa.string())

    return apply


def _repeat(args: list[Value], call: Call, rows: Rows) -> Value:
    counts = np.maximum(whole_numbers(args[1], rows), 0)
    check_sizes(call.function, byte_lengths(args[0], rows) * counts)
    return by_row(lambda text, count: text * max(count, 0), args, rows, pa.string())


def _lpad_of(text: str, width: int, filler: str) -> str:
    return _pad_of(text, width, filler, on_left=True)


def _rpad_of(text: str, width: int, filler: str) -> str:
    return _pad_of(text, width, filler, on_left=False)


def _rowwise(function: Callable[..., object], data_type: pa.DataType) -> Function:
    def apply(args: list[Value], call: Call, rows: Rows) -> Value:
        return by_row(function, args, rows, data_type)

    return apply


def _concat(args: list[Value], call: Call, rows: Rows) -> Value:
    needed = np.sum([byte_lengths(arg, rows) for arg in args], axis=0)
    check_sizes(call.function, np.where(all_there(args, rows), needed, 0))
    if all(isinstance(arg, pa.Scalar) for arg in args):
        return by_row(lambda *parts: "".join(parts), args, rows, pa.string())
    return pc.binary_join_element_wise(*args, "", null_handling="emit_null")


def _replace(args: list[Value], call: Call, rows: Rows) -> Value:
    search, replacement = (_constant(arg) for arg in call.args[1:])
    _check_replaced(args, call, rows)
    if search and replacement is not None:
        return pc.replace_substring(args[0], pattern=search, replacement=replacement)
    return by_row(lambda text, old, new: text.replace(old, new) if old else text, args, rows, pa.string())


def _check_replaced(args: list[Value], call: Call, rows: Rows) -> None:
    """At most every stretch of the searched length is replaced; only if that is too much they are counted."""
    text, old, new = (byte_lengths(arg, rows) for arg in args)
    growth = np.maximum(new - old, 0)
    most = text + np.where(old > 0, text // np.maximum(old, 1), 0) * growth
    if most.max(initial=0) > MAX_VALUE_BYTES or most.sum(dtype=np.float64) > WORK_BYTES:
        found = by_row(lambda text, old, _: text.count(old) if old else 0, args, rows, pa.int64())
        check_sizes(call.function, np.where(all_there(args, rows), text + whole_numbers(found, rows) * growth, 0))


def _substring_test(kernel: Callable[..., Value], by_text: Callable[[str, str], bool]) -> Function:
    def apply(args: list[Value], call: Call, rows: Rows) -> Value:
        pattern = _constant(call.args[1])
        if pattern is not None:
            return kernel(args[0], pattern=pattern)
        return by_row(by_text, args, rows, pa.bool_())

    return apply


def _locate_of(searched: str, text: str, start: int) -> int:
    if start < 1:
        return 0
    # Spark finds an empty text at 1 wherever the search starts.
    return 1 if not searched else text.find(searched, start - 1) + 1


def _locate(args: list[Value], call: Call, rows: Rows) -> Value:
    searched, text, start = args
    # A start that is NULL finds nothing, whatever the texts are.
    found = by_row(_locate_of, [searched, text, pc.fill_null(start, 0)], rows, pa.int32())
    return pc.if_else(pc.is_null(start), pa.scalar(0, pa.int32()), found)


def _rlike(args: list[Value], call: Call, rows: Rows) -> Value:
    try:
        return pc.match_substring_regex(args[0], pattern=_constant(call.args[1]))
    except pa.ArrowInvalid as error:
        raise fail(str(error), "use literals, ., [ ], ( ), |, *, +, ?, {n,m} up to 1000, ^, $, or LIKE") from None


def _like(args: list[Value], call: Call, rows: Rows) -> Value:
    pattern, escape = (_constant(arg) for arg in call.args[1:])
    if pattern is None:
        return by_row(lambda *_: False, args, rows, pa.bool_())
    assert escape is not None
    parts = _like_parts(pattern, escape)
    body = "".join(part for part in parts[1:-1])
    wild = {part for part in parts if part in (_ANY, _ONE)}
    if not wild:
        return pc.equal(args[0], pa.scalar("".join(parts), pa.string()))
    if wild == {_ANY}:
        count = parts.count(_ANY)
        if count == 1 and parts[-1] == _ANY:
            return pc.starts_with(args[0], pattern="".join(parts[:-1]))
        if count == 1 and parts[0] == _ANY:
            return pc.ends_with(args[0], pattern="".join(parts[1:]))
        if count == 2 and parts[0] == _ANY == parts[-1]:
            return pc.match_substring(args[0], pattern=body)
    regex = "".join({_ANY: ".*", _ONE: "."}.get(part, re.escape(part)) for part in parts)
    return pc.match_substring_regex(args[0], pattern=rf"(?s)\A{regex}\z")


_ANY = "%any"  # two characters or more, so that no single character of a pattern looks like them
_ONE = "_one"


def _like_parts(pattern: str, escape: str) -> list[str]:
    """The pattern as single characters and the two wildcards."""
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            parts.append(next(characters))
        else:
            parts.append({"%": _ANY, "_": _ONE}.get(character, character))
    return parts


STRINGS: dict[str, Function] = {
    "upper": _change_case(pc.ascii_upper, str.upper),
    "lower": _change_case(pc.ascii_lower, str.lower),
    "length": _length,
    "reverse": _reverse,
    "trim": _trimmer(pc.utf8_trim, str.strip),
    "ltrim": _trimmer(pc.utf8_ltrim, str.lstrip),
    "rtrim": _trimmer(pc.utf8_rtrim, str.rstrip),
    "substring": _substring,
    "right": _rowwise(_right_of, pa.string()),
    "repeat": _repeat,
    "lpad": _pad(_lpad_of),
    "rpad": _pad(_rpad_of),
    "concat": _concat,
    "replace": _replace,
    "startswith": _substring_test(pc.starts_with, str.startswith),
    "endswith": _substring_test(pc.ends_with, str.endswith),
    "contains": _substring_test(pc.match_substring, lambda text, part: part in text),
    "locate": _locate,
    "rlike": _rlike,
    "like": _like,
}
