# SPDX-License-Identifier: Apache-2.0
"""The array API's functions about element types, which are names here ("float32")."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from . import arrays, types
from .trace import Trace

_SIGNED = {types.int8, types.int16, types.int32, types.int64}
_UNSIGNED = {types.uint8, types.uint16, types.uint32, types.uint64}
_FLOATS = {types.float16, types.bfloat16, types.float32, types.float64}
_KINDS = {
    "bool": {"bool"},
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED | _UNSIGNED,
    "real floating": _FLOATS,
    "complex floating": set(),
    "numeric": _SIGNED | _UNSIGNED | _FLOATS,
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether the type is of a kind ("bool", "signed integer", "unsigned integer", "integral",
    "real floating", "complex floating", "numeric"), is another type, or is one of a tuple."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    known = _KINDS.get(kind) if isinstance(kind, str) else None
    return types.name_of(dtype) in (known if known is not None else {types.name_of(kind)})


def result_type(*arrays_and_dtypes: Any) -> str:
    """The type of an operation on all of these arrays, types and Python numbers."""
    if not arrays_and_dtypes:
        raise ValueError("result_type: expected an array or a type, got none")
    with Trace() as trace:
        operands = [_operand(trace, x) for x in arrays_and_dtypes]
        if all(isinstance(x, (bool, int, float)) for x in operands):
            raise ValueError("result_type: expected an array or a type among the numbers, got none")
        return functools.reduce(arrays.maximum, _numbers_last(operands)).dtype


def _operand(trace: Trace, x: Any) -> Any:
    """A scalar of x's type in the trace; a number stays one, whose type yields to the others."""
    if isinstance(x, (bool, int, float)) and not isinstance(x, np.generic):
        return x
    is_array = hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, np.dtype)
    return trace.input("x", types.name_of(x.dtype if is_array else x), ())


def _numbers_last(operands: list[Any]) -> list[Any]:
    return sorted(operands, key=lambda x: isinstance(x, (bool, int, float)))


def can_cast(from_: Any, to: Any) -> bool:
    """Whether promotion leads from a type, or an array's, to another."""
    return result_type(from_, to) == types.name_of(to)


def _limits(of: Callable[[Any], Any], type: Any) -> Any:
    return of(types.name_of(getattr(type, "dtype", type)))


def finfo(type: Any) -> Any:
    """The limits of a floating-point type (bits, eps, max, min, smallest_normal), as NumPy's."""
    if types.name_of(getattr(type, "dtype", type)) != types.bfloat16:
        return _limits(np.finfo, type)
    import ml_dtypes

    return ml_dtypes.finfo(ml_dtypes.bfloat16)


def iinfo(type: Any) -> Any:
    """The limits of an integer type (bits, max, min), as NumPy's."""
    return _limits(np.iinfo, type)
