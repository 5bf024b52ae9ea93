"""Machine instructions for compiled kernels: loads through raw addresses, as values lie in many maps; a bit scan."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
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


def _prefetch() -> Any:
    @intrinsic
    def fetch(_typing_context: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            byte = ir.IntType(8).as_pointer()
            flag = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
            call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")  # type: ignore[no-untyped-call]
            # For reading, likely to be wanted again, data and not instructions.
            builder.call(call, [builder.inttoptr(args[0], byte), *(flag(each) for each in (0, 3, 1))])
            return context.get_dummy_value()

        return types.void(types.uint64), codegen

    return fetch


prefetch = _prefetch()
"""Begin to fetch what lies at an address, which may be any: it will be wanted soon, and memory is slow."""


def _bit_scan() -> Any:
    @intrinsic
    def scan(_typing_context: Any, word: Any) -> Any:
        def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

        return types.uint64(types.uint64), codegen

    return scan


trailing_zeros = _bit_scan()
"""The place of a word's lowest set bit; the word must have one."""
