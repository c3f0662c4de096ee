# SPDX-License-Identifier: Apache-2.0
"""Functions over whole arrays: reductions and shapes. Names of the array API."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import types
from .eager import anywhere
from .elementwise import as_float
from .trace import Value, alike, as_index, as_value, cast, current, integers, users_line

__all__: list[str] = []
Axes = int | Sequence[int] | None


def _public(function: Any) -> Any:
    __all__.append(function.__name__)
    return anywhere(function)


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise IndexError(f"{users_line()}: axis: expected one of {-rank} to {rank - 1}, got {axis}")
    return axis % rank


def _axes(axis: Axes, rank: int) -> list[int]:
    if axis is None:
        return list(range(rank))
    return [_axis(a, rank) for a in ([axis] if isinstance(axis, int) else axis)]


def _reduce(op: str, x: Value, axis: Axes, keepdims: bool) -> Any:
    axes = _axes(axis, len(x.shape))
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
    """The largest element over axis."""
    return _reduce("ReduceMax", as_value(x), axis, keepdims)


@_public
def min(x: Any, /, axis: Axes = None, keepdims: bool = False) -> Any:
    """The smallest element over axis."""
    return _reduce("ReduceMin", as_value(x), axis, keepdims)


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
    for a in _axes(axis, len(value.shape)):
        count *= _known(value, a)
    total = _reduce("ReduceSum", squares, axis, keepdims)
    return trace.node("Div", [total, trace.number(float(count - correction), value.dtype)])


@_public
def std(x: Any, /, axis: Axes = None, correction: float = 0, keepdims: bool = False) -> Any:
    """The square root of var."""
    return current().node("Sqrt", [var(x, axis=axis, correction=correction, keepdims=keepdims)])


def _counted(x: Any) -> Value:
    return cast(cast(as_value(x), "bool"), "int32")


@_public
def any(x: Any, /, axis: Axes = None, keepdims: bool = False) -> Any:
    """True where one element over axis is."""
    return cast(_reduce("ReduceMax", _counted(x), axis, keepdims), "bool")


@_public
def all(x: Any, /, axis: Axes = None, keepdims: bool = False) -> Any:
    """True where every element over axis is."""
    return cast(_reduce("ReduceMin", _counted(x), axis, keepdims), "bool")


def _arg(op: str, x: Any, axis: int | None, keepdims: bool) -> Any:
    value = as_value(x)
    if axis is None:
        value, axis = reshape(value, (-1,)), 0
    return current().node(op, [value], axis=_axis(axis, len(value.shape)), keepdims=int(keepdims))


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
    return _reduce("ReduceSum", cast(cast(as_value(x), "bool"), "int64"), axis, keepdims)


def _cumulative(op: str, first: int, x: Any, axis: int, include_initial: bool) -> Any:
    value = _summed(x)
    place = _axis(axis, len(value.shape))
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
    place = _axis(axis, len(parts[0].shape))
    value = concat(parts, axis=place) if len(parts) > 1 else parts[0]
    for _ in range(n):
        value = current().node("Sub", [_slice(value, place, 1, None), _slice(value, place, 0, -1)])
    return value


# Shapes.
def _slice(x: Value, axis: int, start: int, stop: int | None) -> Value:
    end = 2**63 - 1 if stop is None else stop
    return current().node("Slice", [x, *map(integers, ([start], [end], [axis], [1]))])


def _known(x: Value, axis: int) -> int:
    size = x.shape[axis]
    if not isinstance(size, int):
        raise ValueError(f"{users_line()}: axis {axis} of {x!r}: expected a size that is a number")
    return size


def _sizes(x: Value, shape: Any) -> tuple[list[int], int]:
    """Sizes for Reshape, and its allowzero. A symbolic size is what is left over, or, where that is
    taken or there are several, the size that x has at this place: ONNX's 0."""
    dims = [shape] if isinstance(shape, int) else list(shape)
    symbolic = [i for i, dim in enumerate(dims) if not isinstance(dim, int)]
    if not symbolic:
        return dims, 1
    if len(symbolic) == 1 and -1 not in dims:
        return [-1 if i in symbolic else dim for i, dim in enumerate(dims)], 1
    for i in symbolic:
        if i >= len(x.shape) or x.shape[i] != dims[i]:
            raise ValueError(
                f"{users_line()}: shape: expected one symbolic size or -1, and others where "
                f"{x!r} has them, got {tuple(dims)}"
            )
    return [0 if i in symbolic else dim for i, dim in enumerate(dims)], 0


@_public
def reshape(x: Any, /, shape: Any) -> Any:
    """The same elements in another shape; one size may be -1 or symbolic: it is what is left."""
    value = as_value(x)
    sizes, allow_zero = _sizes(value, shape)
    return current().node("Reshape", [value, integers(sizes)], allowzero=allow_zero)


@_public
def permute_dims(x: Any, /, axes: Sequence[int]) -> Any:
    """Axis i of the result is axis axes[i] of x."""
    value = as_value(x)
    order = [_axis(a, len(value.shape)) for a in axes]
    if order == list(range(len(order))):
        return value
    return current().node("Transpose", [value], perm=order)


@_public
def matrix_transpose(x: Any, /) -> Any:
    """[..., m, n] becomes [..., n, m]."""
    value = as_value(x)
    rank = len(value.shape)
    if rank < 2:
        raise ValueError(f"{users_line()}: expected at least two axes, got {value!r}")
    return current().node("Transpose", [value], perm=[*range(rank - 2), rank - 1, rank - 2])


@_public
def moveaxis(x: Any, source: Axes, destination: Axes, /) -> Any:
    """One axis moved, or several, the others in their order."""
    value = as_value(x)
    rank = len(value.shape)
    sources, targets = _axes(source, rank), _axes(destination, rank)
    if len(sources) != len(targets):
        raise ValueError(
            f"{users_line()}: destination: expected {len(sources)} axes, got {len(targets)}"
        )
    order = [a for a in range(rank) if a not in sources]
    for target, moved in sorted(zip(targets, sources)):
        order.insert(target, moved)
    return permute_dims(value, order)


@_public
def expand_dims(x: Any, /, axis: int = 0) -> Any:
    """A new axis of size 1 at this place."""
    value = as_value(x)
    return current().node("Unsqueeze", [value, integers([_axis(axis, len(value.shape) + 1)])])


@_public
def squeeze(x: Any, /, axis: Axes = None) -> Any:
    """Without these axes, which have size 1; None: without all of that size."""
    value = as_value(x)
    if axis is None:
        axis = [a for a, dim in enumerate(value.shape) if dim == 1]
    axes = _axes(axis, len(value.shape))
    return current().node("Squeeze", [value, integers(axes)]) if axes else value


@_public
def broadcast_to(x: Any, /, shape: Sequence[int]) -> Any:
    """x repeated over the axes that shape has more of."""
    return current().node("Expand", [as_value(x), integers(list(shape))])


@_public
def broadcast_arrays(*arrays: Any) -> tuple[Any, ...]:
    """The arrays, each repeated to the shape that all of them have together."""
    values = [as_value(x) for x in arrays]
    for value in values:
        for axis in range(len(value.shape)):
            _known(value, axis)
    shape = np.broadcast_shapes(*[value.shape for value in values])
    return tuple(value if value.shape == shape else broadcast_to(value, shape) for value in values)


@_public
def concat(arrays: Sequence[Any], /, axis: int | None = 0) -> Any:
    """Arrays one after the other on axis; None: all of them as vectors."""
    values = alike(*arrays)
    if axis is None:
        values, axis = [reshape(v, (-1,)) for v in values], 0
    return current().node("Concat", values, axis=_axis(axis, len(values[0].shape)))


@_public
def stack(arrays: Sequence[Any], /, axis: int = 0) -> Any:
    """Arrays of one shape on a new axis."""
    values = alike(*arrays)
    place = _axis(axis, len(values[0].shape) + 1)
    if len({v.shape for v in values}) > 1:
        widest = builtins.max((v.shape for v in values), key=len)
        values = [current().node("Expand", [v, integers(list(widest))]) for v in values]
    wide = [current().node("Unsqueeze", [v, integers([place])]) for v in values]
    return current().node("Concat", wide, axis=place)


@_public
def split(x: Any, parts: int, /, axis: int = 0) -> Any:
    """A tuple of so many equal parts along axis."""
    value = as_value(x)
    place = _axis(axis, len(value.shape))
    size = _known(value, place)
    if parts < 1 or size % parts:
        raise ValueError(f"{users_line()}: parts: expected a divisor of {size}, got {parts}")
    if parts == 1:
        return (value,)
    each = integers([size // parts] * parts)
    return current().node("Split", [value, each], outputs=parts, axis=place)


@_public
def unstack(x: Any, /, axis: int = 0) -> Any:
    """A tuple of the slices along axis, without it."""
    value = as_value(x)
    place = _axis(axis, len(value.shape))
    parts = split(value, _known(value, place), axis=place)
    return tuple(current().node("Squeeze", [part, integers([place])]) for part in parts)


@_public
def roll(x: Any, shift: int | Sequence[int], /, axis: Axes = None) -> Any:
    """The elements moved on by shift along axis; those that fall off come in at the other end. axis
    None: x as one vector, in the order of its elements."""
    value = as_value(x)
    if axis is None:
        return reshape(roll(reshape(value, (-1,)), shift, axis=0), value.shape)
    axes = _axes(axis, len(value.shape))
    shifts = [shift] * len(axes) if isinstance(shift, int) else list(shift)
    if len(shifts) != len(axes):
        raise ValueError(f"{users_line()}: shift: expected {len(axes)} numbers, got {len(shifts)}")
    for place, by in zip(axes, shifts):
        by %= builtins.max(_known(value, place), 1)
        if by:
            parts = [_slice(value, place, -by, None), _slice(value, place, 0, -by)]
            value = current().node("Concat", parts, axis=place)
    return value


@_public
def repeat(x: Any, repeats: int | Sequence[int], /, axis: int | None = None) -> Any:
    """Each slice of axis so many times in a row; axis None: each element of x as one vector."""
    value = as_value(x)
    if axis is None:
        value, axis = reshape(value, (-1,)), 0
    place = _axis(axis, len(value.shape))
    order = np.repeat(np.arange(_known(value, place)), repeats)
    return take(value, order, axis=place)


@_public
def flip(x: Any, /, axis: Axes = None) -> Any:
    """The elements in reverse order along axis; None: along all."""
    value = as_value(x)
    axes = _axes(axis, len(value.shape))
    parts = [[-1] * len(axes), [-(2**63 - 1)] * len(axes), axes, [-1] * len(axes)]
    return current().node("Slice", [value, *map(integers, parts)]) if axes else value


@_public
def tile(x: Any, repeats: Sequence[int], /) -> Any:
    """x so many times along each axis."""
    return current().node("Tile", [as_value(x), integers(list(repeats))])


@_public
def take(x: Any, indices: Any, /, axis: int = 0) -> Any:
    """The slices of x at these places of axis; negative places count from the end."""
    value = as_value(x)
    return current().node("Gather", [value, as_index(indices)], axis=_axis(axis, len(value.shape)))


@_public
def take_along_axis(x: Any, indices: Any, /, axis: int = -1) -> Any:
    """For each element of indices, the one of x at that place of axis."""
    value = as_value(x)
    place = _axis(axis, len(value.shape))
    return current().node("GatherElements", [value, as_index(indices)], axis=place)
