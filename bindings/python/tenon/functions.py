# SPDX-License-Identifier: Apache-2.0
"""Shapes: functions that move elements and change none. Names of the array API."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from .eager import anywhere
from .trace import Value, alike, as_index, as_value, current, integers, users_line

__all__: list[str] = []
Axes = int | Sequence[int] | None


def _public(function: Any) -> Any:
    __all__.append(function.__name__)
    return anywhere(function)


def axis_of(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise IndexError(f"{users_line()}: axis: expected one of {-rank} to {rank - 1}, got {axis}")
    return axis % rank


def axes_of(axis: Axes, rank: int) -> list[int]:
    if axis is None:
        return list(range(rank))
    return [axis_of(a, rank) for a in ([axis] if isinstance(axis, int) else axis)]


# Shapes.
def slice_of(x: Value, axis: int, start: int, stop: int | None) -> Value:
    end = 2**63 - 1 if stop is None else stop
    return current().node("Slice", [x, *map(integers, ([start], [end], [axis], [1]))])


def known_size(x: Value, axis: int) -> int:
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
    order = [axis_of(a, len(value.shape)) for a in axes]
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
    sources, targets = axes_of(source, rank), axes_of(destination, rank)
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
    return current().node("Unsqueeze", [value, integers([axis_of(axis, len(value.shape) + 1)])])


@_public
def squeeze(x: Any, /, axis: Axes = None) -> Any:
    """Without these axes, which have size 1; None: without all of that size."""
    value = as_value(x)
    if axis is None:
        axis = [a for a, dim in enumerate(value.shape) if dim == 1]
    axes = axes_of(axis, len(value.shape))
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
            known_size(value, axis)
    shape = np.broadcast_shapes(*[value.shape for value in values])
    return tuple(value if value.shape == shape else broadcast_to(value, shape) for value in values)


@_public
def concat(arrays: Sequence[Any], /, axis: int | None = 0) -> Any:
    """Arrays one after the other on axis; None: all of them as vectors."""
    values = alike(*arrays)
    if axis is None:
        values, axis = [reshape(v, (-1,)) for v in values], 0
    return current().node("Concat", values, axis=axis_of(axis, len(values[0].shape)))


@_public
def stack(arrays: Sequence[Any], /, axis: int = 0) -> Any:
    """Arrays of one shape on a new axis."""
    values = alike(*arrays)
    place = axis_of(axis, len(values[0].shape) + 1)
    if len({v.shape for v in values}) > 1:
        widest = builtins.max((v.shape for v in values), key=len)
        values = [current().node("Expand", [v, integers(list(widest))]) for v in values]
    wide = [current().node("Unsqueeze", [v, integers([place])]) for v in values]
    return current().node("Concat", wide, axis=place)


@_public
def split(x: Any, parts: int, /, axis: int = 0) -> Any:
    """A tuple of so many equal parts along axis."""
    value = as_value(x)
    place = axis_of(axis, len(value.shape))
    size = known_size(value, place)
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
    place = axis_of(axis, len(value.shape))
    parts = split(value, known_size(value, place), axis=place)
    return tuple(current().node("Squeeze", [part, integers([place])]) for part in parts)


@_public
def roll(x: Any, shift: int | Sequence[int], /, axis: Axes = None) -> Any:
    """The elements moved on by shift along axis; those that fall off come in at the other end. axis
    None: x as one vector, in the order of its elements."""
    value = as_value(x)
    if axis is None:
        return reshape(roll(reshape(value, (-1,)), shift, axis=0), value.shape)
    axes = axes_of(axis, len(value.shape))
    shifts = [shift] * len(axes) if isinstance(shift, int) else list(shift)
    if len(shifts) != len(axes):
        raise ValueError(f"{users_line()}: shift: expected {len(axes)} numbers, got {len(shifts)}")
    for place, by in zip(axes, shifts):
        by %= builtins.max(known_size(value, place), 1)
        if by:
            parts = [slice_of(value, place, -by, None), slice_of(value, place, 0, -by)]
            value = current().node("Concat", parts, axis=place)
    return value


@_public
def repeat(x: Any, repeats: int | Sequence[int], /, axis: int | None = None) -> Any:
    """Each slice of axis so many times in a row; axis None: each element of x as one vector."""
    value = as_value(x)
    if axis is None:
        value, axis = reshape(value, (-1,)), 0
    place = axis_of(axis, len(value.shape))
    order = np.repeat(np.arange(known_size(value, place)), repeats)
    return take(value, order, axis=place)


@_public
def flip(x: Any, /, axis: Axes = None) -> Any:
    """The elements in reverse order along axis; None: along all."""
    value = as_value(x)
    axes = axes_of(axis, len(value.shape))
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
    return current().node(
        "Gather", [value, as_index(indices)], axis=axis_of(axis, len(value.shape))
    )


@_public
def take_along_axis(x: Any, indices: Any, /, axis: int = -1) -> Any:
    """For each element of indices, the one of x at that place of axis."""
    value = as_value(x)
    place = axis_of(axis, len(value.shape))
    return current().node("GatherElements", [value, as_index(indices)], axis=place)
