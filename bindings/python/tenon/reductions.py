# SPDX-License-Identifier: Apache-2.0
"""Functions over whole arrays: reductions, and what goes along an axis. Names of the array API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import types
from .arithmetic import not_equal
from .eager import anywhere
from .elementwise import as_bool, as_float
from .functions import Axes, axes_of, axis_of, broadcast_to, concat, known_size, reshape, slice_of
from .trace import Value, alike, as_value, cast, current, integers, users_line

__all__: list[str] = []


def _public(function: Any) -> Any:
    __all__.append(function.__name__)
    return anywhere(function)


def _reduce(op: str, x: Value, axis: Axes, keepdims: bool) -> Any:
    axes = axes_of(axis, len(x.shape))
    if not axes:
        return x
    return current().node(op, [x, integers(axes)], keepdims=int(keepdims))


def _summed(x: Any, dtype: Any = None) -> Value:
    """x in the type in which it is added or multiplied up: integers in 64 bits unless told."""
    value = as_value(x)
    if dtype is not None:
        return cast(value, types.name_of(dtype))
    wide = "uint64" if value.dtype.startswith("uint") else "int64"
    return value if types.is_float(value.dtype) else cast(value, wide)


def _not_empty(x: Value, axes: Sequence[int]) -> None:
    for axis in axes:
        if x.shape[axis] == 0:
            raise ValueError(f"{users_line()}: axis {axis} of {x!r}: expected one element at least")


def _extreme(op: str, x: Any, axis: Axes, keepdims: bool) -> Any:
    value = as_value(x)
    _not_empty(value, axes_of(axis, len(value.shape)))
    if value.dtype == "bool":
        return (any if op == "ReduceMax" else all)(value, axis, keepdims)
    return _reduce(op, value, axis, keepdims)


# Reductions.
@_public
def sum(x: Any, /, axis: Axes = None, keepdims: bool = False, dtype: Any = None) -> Any:
    """The sum over axis, an axis, several, or None for all. Truth values are counted. dtype: the
    type in which it is made; 64 bits of integers."""
    return _reduce("ReduceSum", _summed(x, dtype), axis, keepdims)


@_public
def mean(x: Any, /, axis: Axes = None, keepdims: bool = False) -> Any:
    """The arithmetic mean over axis; float32 of integers."""
    return _reduce("ReduceMean", as_float(x), axis, keepdims)


@_public
def prod(x: Any, /, axis: Axes = None, keepdims: bool = False, dtype: Any = None) -> Any:
    """The product over axis, made in the type dtype; of integers in 64 bits."""
    return _reduce("ReduceProd", _summed(x, dtype), axis, keepdims)


@_public
def max(x: Any, /, axis: Axes = None, keepdims: bool = False) -> Any:
    """The largest element over axis, of which there is one at least; of truth values any."""
    return _extreme("ReduceMax", x, axis, keepdims)


@_public
def min(x: Any, /, axis: Axes = None, keepdims: bool = False) -> Any:
    """The smallest element over axis, of which there is one at least; of truth values all."""
    return _extreme("ReduceMin", x, axis, keepdims)


@_public
def logsumexp(x: Any, /, axis: Axes = None, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) over axis, without overflow."""
    return _reduce("ReduceLogSumExp", as_float(x), axis, keepdims)


@_public
def var(x: Any, /, axis: Axes = None, correction: float = 0, keepdims: bool = False) -> Any:
    """The mean squared distance from the mean; the divisor is the count less correction."""
    value = as_float(x)
    trace = current()
    distance = trace.node("Sub", [value, _reduce("ReduceMean", value, axis, True)])
    squares = trace.node("Mul", [distance, distance])
    if not correction:
        return _reduce("ReduceMean", squares, axis, keepdims)
    count = 1
    for a in axes_of(axis, len(value.shape)):
        count *= known_size(value, a)
    total = _reduce("ReduceSum", squares, axis, keepdims)
    return trace.node("Div", [total, trace.number(float(count - correction), value.dtype)])


@_public
def std(x: Any, /, axis: Axes = None, correction: float = 0, keepdims: bool = False) -> Any:
    """The square root of var."""
    return current().node("Sqrt", [var(x, axis=axis, correction=correction, keepdims=keepdims)])


def _number_of(x: Value, axis: Axes, keepdims: bool) -> Any:
    return _reduce("ReduceSum", cast(x, "int64"), axis, keepdims)


@_public
def any(x: Any, /, axis: Axes = None, keepdims: bool = False) -> Any:
    """True where one element over axis is; of no elements False."""
    return cast(_number_of(as_bool(x), axis, keepdims), "bool")


@_public
def all(x: Any, /, axis: Axes = None, keepdims: bool = False) -> Any:
    """True where every element over axis is; of no elements True."""
    wrong = current().node("Not", [as_bool(x)])
    return current().node("Not", [cast(_number_of(wrong, axis, keepdims), "bool")])


def _arg(op: str, x: Any, axis: int | None, keepdims: bool) -> Any:
    value = as_value(x)
    if value.dtype == "bool":
        value = cast(value, "uint8")
    if axis is None:
        value, axis = reshape(value, (-1,)), 0
    _not_empty(value, [axis_of(axis, len(value.shape))])
    return current().node(op, [value], axis=axis_of(axis, len(value.shape)), keepdims=int(keepdims))


@_public
def argmax(x: Any, /, axis: int | None = None, keepdims: bool = False) -> Any:
    """The place of the largest element over axis, int64; the first of equal ones."""
    return _arg("ArgMax", x, axis, keepdims)


@_public
def argmin(x: Any, /, axis: int | None = None, keepdims: bool = False) -> Any:
    """The place of the smallest element over axis, int64; the first of equal ones."""
    return _arg("ArgMin", x, axis, keepdims)


@_public
def count_nonzero(x: Any, /, axis: Axes = None, keepdims: bool = False) -> Any:
    """How many elements over axis are not 0, int64."""
    return _number_of(as_bool(x), axis, keepdims)


def _cumulative(op: str, first: int, x: Any, axis: int, include_initial: bool) -> Any:
    value = _summed(x)
    place = axis_of(axis, len(value.shape))
    made = current().node(op, [value, as_value(np.int64(place))])
    if not include_initial:
        return made
    start = [1 if a == place else dim for a, dim in enumerate(value.shape)]
    filling = broadcast_to(current().number(first, value.dtype), start)
    return current().node("Concat", [filling, made], axis=place)


@_public
def cumulative_sum(x: Any, /, axis: int = 0, include_initial: bool = False) -> Any:
    """Each element with all before it on axis added; a 0 in front of them with include_initial."""
    return _cumulative("CumSum", 0, x, axis, include_initial)


@_public
def cumulative_prod(x: Any, /, axis: int = 0, include_initial: bool = False) -> Any:
    """Each element times all before it on axis; a 1 in front of them with include_initial."""
    return _cumulative("CumProd", 1, x, axis, include_initial)


@_public
def diff(x: Any, /, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """Each element less the one before it on axis, n times; the axis is n shorter. prepend, append:
    arrays that are put before and behind x first."""
    parts = alike(*[part for part in (prepend, x, append) if part is not None])
    place = axis_of(axis, len(parts[0].shape))
    value = concat(parts, axis=place) if len(parts) > 1 else parts[0]
    for _ in range(n):
        ends = slice_of(value, place, 1, None), slice_of(value, place, 0, -1)
        value = not_equal(*ends) if value.dtype == "bool" else current().node("Sub", [*ends])
    return value
