# SPDX-License-Identifier: Apache-2.0
"""What JAX has traced, computed by NumPy: a function of the fuzzer runs a few times only, and for
XLA to compile it costs fifty times as much as that.

The transforms stay JAX's: `replay` lets them see the primitives of a trace. A primitive that the
table has not is run by JAX itself, alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

Call = Callable[..., Any]


def replay(closed: ClosedJaxpr, *args: Any) -> list[Any]:
    """The primitives of a trace on JAX's values, in a trace of another transform."""
    jaxpr = closed.jaxpr
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *args]))

    def read(var: Any) -> Any:
        return var.val if isinstance(var, Literal) else values[var]

    for eqn in jaxpr.eqns:
        given = [read(var) for var in eqn.invars]
        if eqn.primitive.name == "jit":
            made = replay(eqn.params["jaxpr"], *given)
        else:
            made = _bind(eqn, given)
        values.update(zip(eqn.outvars, made))
    return [read(var) for var in jaxpr.outvars]


def _bind(eqn: Any, given: Sequence[Any]) -> list[Any]:
    made = eqn.primitive.bind(*given, **eqn.primitive.get_bind_params(eqn.params))
    return list(made) if eqn.primitive.multiple_results else [made]


class Steps:
    """A trace as a list of NumPy's calls; what it calls within is laid out in line."""

    def __init__(self, closed: ClosedJaxpr) -> None:
        self._values: list[Any] = []
        self._steps: list[tuple[Call, list[int], list[int]]] = []
        places: dict[Any, int] = {}
        self._takes = [self._new(places, var) for var in closed.jaxpr.invars]
        self._gives = self._lay_out(closed, places)

    def __call__(self, *args: Any) -> list[np.ndarray]:
        values = self._values.copy()
        for place, value in zip(self._takes, args):
            values[place] = value
        with np.errstate(all="ignore"):
            for call, takes, gives in self._steps:
                made = call(*[values[place] for place in takes])
                if len(gives) == 1 and not isinstance(made, list):
                    values[gives[0]] = made
                else:
                    for place, value in zip(gives, made):
                        values[place] = value
        return [np.asarray(values[place]) for place in self._gives]

    def _new(self, places: dict[Any, int], var: Any, value: Any = None) -> int:
        self._values.append(value)
        places[var] = len(self._values) - 1
        return places[var]

    def _lay_out(self, closed: ClosedJaxpr, places: dict[Any, int]) -> list[int]:
        for var, value in zip(closed.jaxpr.constvars, closed.consts):
            self._new(places, var, np.asarray(value))

        def place(var: Any) -> int:
            if not isinstance(var, Literal):
                return places[var]
            return self._new({}, None, np.asarray(var.val, var.aval.dtype))

        for eqn in closed.jaxpr.eqns:
            takes = [place(var) for var in eqn.invars]
            inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
            if isinstance(inner, ClosedJaxpr) and eqn.primitive.name in INLINE:
                made = self._lay_out(inner, dict(zip(inner.jaxpr.invars, takes)))
                places.update(zip(eqn.outvars, made))
                continue
            gives = [self._new(places, var) for var in eqn.outvars]
            self._steps.append((_call_of(eqn), takes, gives))
        return [place(var) for var in closed.jaxpr.outvars]


INLINE = ("jit", "closed_call", "custom_jvp_call", "custom_vjp_call")


def _call_of(eqn: Any) -> Call:
    name = eqn.primitive.name
    if name in PLAIN:
        return PLAIN[name]
    whole = all(var.aval.dtype.kind != "f" for var in eqn.invars)
    if name in MADE and not (whole and name in OF_REALS):
        return MADE[name](**eqn.params)
    return lambda *given: [np.asarray(x) for x in _bind(eqn, given)]


def _shape_of_broadcast(x: Any, shape: Any, at: Any) -> np.ndarray:
    own = [1] * len(shape)
    for axis, size in zip(at, np.shape(x)):
        own[axis] = size
    return np.broadcast_to(np.reshape(x, own), shape)


def _convert(x: Any, to: Any) -> Any:
    """As XLA: NaN is 0, and what is too large the largest."""
    to = np.dtype(to)
    if np.asarray(x).dtype.kind == "f" and to.kind in "iu":
        low, high = max(np.iinfo(to).min, -(2.0**62)), min(np.iinfo(to).max, 2.0**62)
        return np.clip(np.nan_to_num(x), low, high).astype(to)
    return np.asarray(x).astype(to)


def _dot(dimension_numbers: Any, preferred_element_type: Any = None, **_: Any) -> Call:
    (left, right), (left_batch, right_batch) = dimension_numbers

    def call(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        free_x = [i for i in range(x.ndim) if i not in left and i not in left_batch]
        free_y = [i for i in range(y.ndim) if i not in right and i not in right_batch]
        batch, shape_x = [x.shape[i] for i in left_batch], [x.shape[i] for i in free_x]
        shape_y, inner = [y.shape[i] for i in free_y], math.prod(x.shape[i] for i in left)
        count = math.prod(batch)
        a = x.transpose([*left_batch, *free_x, *left]).reshape(count, math.prod(shape_x), inner)
        b = y.transpose([*right_batch, *right, *free_y]).reshape(count, inner, math.prod(shape_y))
        made = np.matmul(a, b).reshape([*batch, *shape_x, *shape_y])
        return made.astype(preferred_element_type or made.dtype)

    return call


def _pad(padding_config: Any, **_: Any) -> Call:
    def call(x: np.ndarray, value: Any) -> np.ndarray:
        full = [n + max(n - 1, 0) * inner for n, (_, _, inner) in zip(x.shape, padding_config)]
        wide = [max(lo, 0) + n + max(hi, 0) for n, (lo, hi, _) in zip(full, padding_config)]
        made = np.full(wide, value, x.dtype)
        made[
            tuple(
                slice(max(lo, 0), max(lo, 0) + n, inner + 1)
                for n, (lo, _, inner) in zip(full, padding_config)
            )
        ] = x
        return made[
            tuple(
                slice(max(-lo, 0), n - max(-hi, 0)) for n, (lo, hi, _) in zip(wide, padding_config)
            )
        ]

    return call


def _sort(dimension: int, num_keys: int, **_: Any) -> Call:
    def call(*given: np.ndarray) -> Any:
        keys = given[:num_keys][::-1]
        order = np.lexsort(keys, axis=dimension)
        return [np.take_along_axis(x, order, dimension) for x in given]

    return call


def _least(dtype: np.dtype, sign: int) -> Any:
    if dtype.kind == "f":
        return sign * np.inf
    return sign > 0 if dtype.kind == "b" else getattr(np.iinfo(dtype), "max" if sign > 0 else "min")


def _along(scan: Any) -> Callable[..., Call]:
    def made(axis: int, reverse: bool) -> Call:
        def call(x: np.ndarray) -> np.ndarray:
            ordered = np.flip(x, axis) if reverse else x
            sums = scan(ordered, axis=axis, dtype=x.dtype)
            return np.flip(sums, axis) if reverse else sums

        return call

    return made


def _at(x: np.ndarray, starts: Sequence[Any], sizes: Sequence[int]) -> tuple[slice, ...]:
    first = [min(max(int(s), 0), n - size) for s, n, size in zip(starts, x.shape, sizes)]
    return tuple(slice(s, s + size) for s, size in zip(first, sizes))


def _updated(x: np.ndarray, update: np.ndarray, *starts: Any) -> np.ndarray:
    made = x.copy()
    made[_at(x, starts, update.shape)] = update
    return made


def _select(which: Any, *cases: Any) -> Any:
    if np.asarray(which).dtype.kind == "b":
        return np.where(which, cases[1], cases[0])
    return np.choose(which, cases)


def _starts(rank: int, index: np.ndarray, at: Any, axes: Any, batch: Any) -> list[int]:
    """Where the box of one index begins: what it says of `axes`, its own place in `batch`."""
    start = [0] * rank
    for axis, value in zip(axes, index[at]):
        start[axis] = int(value)
    for axis, own in batch:
        start[axis] = at[own]
    return start


def _fits(start: list[int], shape: Any, sizes: Any) -> bool:
    return all(0 <= s <= n - size for s, n, size in zip(start, shape, sizes))


def _gather(dimension_numbers: Any, slice_sizes: Any, mode: Any, fill_value: Any, **_: Any) -> Call:
    """XLA's operation of that name: of each index a box of slice_sizes."""
    d, clips = dimension_numbers, "clip" in str(mode).lower()
    batch = [*zip(d.operand_batching_dims, d.start_indices_batching_dims)]
    left_out = (*d.collapsed_slice_dims, *d.operand_batching_dims)

    def call(x: np.ndarray, index: np.ndarray) -> np.ndarray:
        lead = index.shape[:-1]
        box = [size for axis, size in enumerate(slice_sizes) if axis not in left_out]
        made = np.empty((*lead, *box), x.dtype)
        for at in np.ndindex(*lead):
            start = _starts(x.ndim, index, at, d.start_index_map, batch)
            if clips or _fits(start, x.shape, slice_sizes):
                made[at] = x[_at(x, start, slice_sizes)].reshape(box)
            else:
                made[at] = _filler(x.dtype) if fill_value is None else fill_value
        return np.moveaxis(made, list(range(len(lead), made.ndim)), list(d.offset_dims))

    return call


def _filler(dtype: np.dtype) -> Any:
    return np.nan if dtype.kind == "f" else _least(dtype, 1 if dtype.kind in "bu" else -1)


def _scatter(joined: Callable[[Any, Any], Any]) -> Callable[..., Call]:
    """XLA's operations of that name: each update's boxes, one after the other."""

    def made_by(dimension_numbers: Any, mode: Any, **_: Any) -> Call:
        d, clips = dimension_numbers, "clip" in str(mode).lower()
        batch = [*zip(d.operand_batching_dims, d.scatter_indices_batching_dims)]
        left_out = (*d.inserted_window_dims, *d.operand_batching_dims)

        def call(x: np.ndarray, index: np.ndarray, updates: np.ndarray) -> np.ndarray:
            x, lead = x.copy(), index.ndim - 1
            windows = list(range(lead, updates.ndim))
            boxes = np.moveaxis(updates, list(d.update_window_dims), windows)
            given = iter(boxes.shape[lead:])
            sizes = [1 if axis in left_out else next(given) for axis in range(x.ndim)]
            for at in np.ndindex(*index.shape[:-1]):
                start = _starts(x.ndim, index, at, d.scatter_dims_to_operand_dims, batch)
                if clips or _fits(start, x.shape, sizes):
                    place = _at(x, start, sizes)
                    x[place] = joined(x[place], boxes[at].reshape(sizes))
            return x

        return call

    return made_by


def _by_zero(x: Any) -> Any:
    """What XLA says is left of a division by 0."""
    return np.nan if np.asarray(x).dtype.kind == "f" else x


PLAIN: dict[str, Call] = {
    "neg": np.negative, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "atan2": np.arctan2,
    "log": np.log, "log1p": np.log1p, "expm1": np.expm1, "sqrt": np.sqrt, "cbrt": np.cbrt,
    "floor": np.floor, "ceil": np.ceil, "abs": np.abs, "sign": np.sign, "square": np.square,
    "is_finite": np.isfinite, "add": np.add, "add_any": np.add, "sub": np.subtract,
    "mul": np.multiply, "max": np.maximum, "min": np.minimum, "eq": np.equal, "ne": np.not_equal,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert,
    "shift_left": np.left_shift, "shift_right_arithmetic": np.right_shift,
    "stop_gradient": lambda x: x, "rem": lambda x, y: np.where(y == 0, _by_zero(x), np.fmod(x, y)),
    "nextafter": np.nextafter, "select_n": _select, "dynamic_update_slice": _updated,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
}  # fmt: skip

# By their parameters.
MADE: dict[str, Callable[..., Call]] = {
    "exp": lambda **_: np.exp,
    "exp2": lambda **_: np.exp2,
    "rsqrt": lambda **_: lambda x: 1 / np.sqrt(x),
    "logistic": lambda **_: lambda x: 1 / (1 + np.exp(-x)),
    "erf": lambda **_: np.vectorize(math.erf, otypes=["float64"]),
    "div": lambda **_: np.divide,
    "pow": lambda **_: np.power,
    "integer_pow": lambda y, **_: lambda x: x ** np.asarray(y, x.dtype),
    "broadcast_in_dim": lambda shape, broadcast_dimensions, **_: (
        lambda x: _shape_of_broadcast(x, shape, broadcast_dimensions)
    ),
    "reshape": lambda new_sizes, dimensions, **_: (
        lambda x: np.reshape(x if dimensions is None else np.transpose(x, dimensions), new_sizes)
    ),
    "squeeze": lambda dimensions, **_: lambda x: np.squeeze(x, tuple(dimensions)),
    "transpose": lambda permutation, **_: lambda x: np.transpose(x, permutation),
    "rev": lambda dimensions, **_: lambda x: np.flip(x, dimensions),
    "slice": lambda start_indices, limit_indices, strides, **_: (
        lambda x: x[tuple(map(slice, start_indices, limit_indices, strides or [1] * x.ndim))]
    ),
    "dynamic_slice": lambda slice_sizes, **_: lambda x, *at: x[_at(x, at, slice_sizes)],
    "pad": _pad,
    "concatenate": lambda dimension, **_: lambda *xs: np.concatenate(xs, dimension),
    "stack": lambda axis, **_: lambda *xs: np.stack(xs, axis),
    "unstack": lambda axis, **_: lambda x: [*np.moveaxis(x, axis, 0)],
    "split": lambda sizes, axis, **_: (
        lambda x: np.split(x, [*itertools.accumulate(map(int, sizes))][:-1], axis)
    ),
    "reduce_sum": lambda axes, **_: lambda x: np.add.reduce(x, axis=tuple(axes), dtype=x.dtype),
    "reduce_prod": lambda axes, **_: (
        lambda x: np.multiply.reduce(x, axis=tuple(axes), dtype=x.dtype)
    ),
    "reduce_max": lambda axes, **_: (
        lambda x: np.maximum.reduce(x, axis=tuple(axes), initial=_least(x.dtype, -1))
    ),
    "reduce_min": lambda axes, **_: (
        lambda x: np.minimum.reduce(x, axis=tuple(axes), initial=_least(x.dtype, 1))
    ),
    "reduce_and": lambda axes, **_: lambda x: np.all(x, axis=tuple(axes)),
    "reduce_or": lambda axes, **_: lambda x: np.any(x, axis=tuple(axes)),
    "argmax": lambda axes, index_dtype, **_: lambda x: np.argmax(x, axes[0]).astype(index_dtype),
    "argmin": lambda axes, index_dtype, **_: lambda x: np.argmin(x, axes[0]).astype(index_dtype),
    "cumsum": _along(np.add.accumulate),
    "cumprod": _along(np.multiply.accumulate),
    "cummax": _along(np.maximum.accumulate),
    "cummin": _along(np.minimum.accumulate),
    "convert_element_type": lambda new_dtype, **_: lambda x: _convert(x, new_dtype),
    "bitcast_convert_type": lambda new_dtype, **_: lambda x: np.asarray(x).view(new_dtype),
    "iota": lambda dtype, shape, dimension, **_: (
        lambda: _shape_of_broadcast(np.arange(shape[dimension], dtype=dtype), shape, (dimension,))
    ),
    "dot_general": _dot,
    "sort": _sort,
    "gather": _gather,
    "scatter": _scatter(lambda old, new: new),
    "scatter-add": _scatter(np.add),
    "scatter-mul": _scatter(np.multiply),
    "scatter-min": _scatter(np.minimum),
    "scatter-max": _scatter(np.maximum),
}
OF_REALS = ("div", "pow")  # of integers JAX's own
