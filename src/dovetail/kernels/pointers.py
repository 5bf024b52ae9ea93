"""Machine instructions for compiled kernels: loads through raw addresses, as values lie in many maps; a bit scan."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic


def _pointer_load(bits: int, result: Any) -> Any:
    @intrinsic
    def load(_typing_context: Any, address: Any) -> Any:
        def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.load(builder.inttoptr(args[0], ir.IntType(bits).as_pointer()))

        return result(types.uint64), codegen

    return load


load8 = _pointer_load(8, types.uint8)
load32 = _pointer_load(32, types.uint32)
load64 = _pointer_load(64, types.uint64)


def _bit_scan() -> Any:
    @intrinsic
    def scan(_typing_context: Any, word: Any) -> Any:
        def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

        return types.uint64(types.uint64), codegen

    return scan


trailing_zeros = _bit_scan()
"""The place of a word's lowest set bit; the word must have one."""
