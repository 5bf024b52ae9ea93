"""Machine instructions for compiled kernels: loads through raw addresses, as values lie in many maps; a bit scan.

In the checked mode (`addresses.py`) a load asks first whether some array has these bytes.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from llvmlite.binding import add_symbol  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from dovetail.kernels.addresses import IS_CHECKED, known_bytes


def _pointer_load(bits: int, result: Any) -> Any:
    @intrinsic
    def load(_typing_context: Any, address: Any) -> Any:
        def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.load(builder.inttoptr(args[0], ir.IntType(bits).as_pointer()))

        return result(types.uint64), codegen

    return load


def _checked(load: Any, size: int) -> Any:
    @njit
    def load_known(address: Any) -> Any:
        if not _has_bytes(address, np.uint64(size)):
            raise IndexError("compiled code reads where no array is")
        return load(address)

    return load_known


_HAS_BYTES = "dovetail_has_bytes"
_answer = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)(known_bytes.has)
add_symbol(_HAS_BYTES, ctypes.cast(_answer, ctypes.c_void_p).value)


def _question() -> Any:
    """Ask `known_bytes`. By name: compiled code that has the address of a function in it could not be kept."""

    @intrinsic
    def has_bytes(_typing_context: Any, _address: Any, _size: Any) -> Any:
        def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            word = ir.IntType(64)
            kind = ir.FunctionType(word, [word, word])
            ask = cgutils.get_or_insert_function(builder.module, kind, _HAS_BYTES)  # type: ignore[no-untyped-call]
            return builder.icmp_unsigned("!=", builder.call(ask, args), word(0))

        return types.boolean(types.uint64, types.uint64), codegen

    return has_bytes


_has_bytes = _question()


def _load(bits: int, result: Any) -> Any:
    load = _pointer_load(bits, result)
    return _checked(load, bits // 8) if IS_CHECKED else load


load8 = _load(8, types.uint8)
load32 = _load(32, types.uint32)
load64 = _load(64, types.uint64)


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
