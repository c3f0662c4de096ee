# SPDX-License-Identifier: Apache-2.0
"""`x[...]` of a traced value: integers, slices, None, Ellipsis, arrays of integers, truth values
that are known."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from . import arrays as f
from . import types
from .errors import TracedValueError
from .trace import Value, as_index, as_value, current, integers, users_line

_END = 2**63 - 1


def _fail(text: str) -> None:
    raise IndexError(f"{users_line()}: {text}")


def _spell_out(x: Value, key: Any) -> list[Any]:
    """One item for each axis and each None, and slices behind Ellipsis for what it stands for."""
    items = list(key) if isinstance(key, tuple) else [key]
    used = sum(map(_count_axes, items))
    rank = len(x.shape)
    if used > rank:
        _fail(f"expected at most {rank} indices, got {used}")
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        _fail("expected one '...', got more")
    at = dots[0] if dots else len(items)
    fill = [slice(None)] * (rank - used)
    items = items[: at + 1] + fill + items[at + 1 :]  # '...' stays: it keeps arrays apart
    return _without_masks(x, items)


def _count_axes(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return 1 if _mask(item) is None else _mask(item).ndim


def _mask(item: Any) -> Any:
    """Truth values that are known, as an array; None of anything else."""
    if isinstance(item, list) and item and _are_bools(item):
        item = np.asarray(item)
    is_mask = isinstance(item, np.ndarray) and item.dtype == bool and item.ndim
    return item if is_mask else None


def _are_bools(items: list[Any]) -> bool:
    return all(
        _are_bools(x) if isinstance(x, list) else isinstance(x, (bool, np.bool_)) for x in items
    )


def _without_masks(x: Value, items: list[Any]) -> list[Any]:
    """Truth values are the indices of those that are true, along as many axes as they have."""
    out: list[Any] = []
    axis = 0
    for item in items:
        mask, count = _mask(item), _count_axes(item)
        sizes = x.shape[axis : axis + count]
        axis += count
        if mask is None:
            out.append(item)
            continue
        if sizes != mask.shape:
            _fail(f"expected {list(sizes)} truth values, got {list(mask.shape)}")
        out += np.nonzero(mask)
    return out


def _is_array(item: Any) -> bool:
    return isinstance(item, (Value, list, np.ndarray)) or (
        hasattr(item, "__array__") and not isinstance(item, np.generic)
    )


class _Plan:
    """What each axis of x needs, and where the axes of the result come from."""

    def __init__(self, x: Value, items: list[Any]) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.steps: list[int] = []
        self.axes: list[int] = []
        self.dropped: list[int] = []
        self.scalars: dict[int, Value] = {}  # arrays without axes, by axis of x: as integers
        self.arrays: dict[int, Value] = {}  # by axis of x
        self.is_new: list[bool] = []  # of each axis of the result, without those of the arrays
        picked: list[int] = []  # positions of items that are integers or arrays
        before = axis = 0
        for position, item in enumerate(items):
            if item is Ellipsis:
                continue
            if item is None or isinstance(item, slice):
                self.is_new.append(item is None)
                if item is None:
                    continue
                self._slice(axis, item)
            else:
                before = before if picked else len(self.is_new)
                picked.append(position)
                self._pick(axis, x.shape[axis], item)
            axis += 1
        # NumPy's rule: where something lies between them, the axes of the arrays go to the front.
        together = not picked or picked[-1] - picked[0] == len(picked) - 1
        self.front = before if together else 0

    def _slice(self, axis: int, item: slice) -> None:
        limits = (item.start, item.stop, item.step)
        if any(isinstance(x, Value) for x in limits):
            along = f", axis={axis}" if axis else ""
            raise TracedValueError(
                f"{users_line()}: expected limits of a slice that are known, got traced ones; "
                f"x[i:i + 2] is tn.take(x, i + tn.arange(2){along})"
            )
        if item == slice(None):
            return
        step = 1 if item.step is None else int(item.step)
        if step == 0:
            _fail("expected a step other than 0")
        first = 0 if step > 0 else -1
        last = _END if step > 0 else -_END
        start = first if item.start is None else item.start
        self._cut(axis, start, last if item.stop is None else item.stop, step)

    def _pick(self, axis: int, size: Any, item: Any) -> None:
        if not _is_array(item):
            return self._integer(axis, size, item)
        index = _index(item)
        (self.arrays if index.shape else self.scalars)[axis] = index

    def _integer(self, axis: int, size: Any, item: Any) -> None:
        if isinstance(item, (bool, np.bool_)) or not hasattr(item, "__index__"):
            _fail(f"expected integers, slices, '...', None or arrays, got {type(item).__name__}")
        at = item.__index__()
        if isinstance(size, int) and not -size <= at < size:
            _fail(f"index {at} of axis {axis}: expected less than {size}")
        self._cut(axis, at, at + 1 if at != -1 else _END, 1)
        self.dropped.append(axis)

    def _cut(self, axis: int, start: Any, end: Any, step: int) -> None:
        for limit in (start, end):
            if not hasattr(limit, "__index__"):
                _fail(f"expected integers as limits of a slice, got {type(limit).__name__}")
        self.starts.append(start.__index__())
        self.ends.append(end.__index__())
        self.steps.append(step)
        self.axes.append(axis)


def take_items(x: Value, key: Any) -> Any:
    """x[key], as NumPy has it; arrays are of integers, or of truth values that are known."""
    plan = _Plan(x, _spell_out(x, key))
    trace = current()
    x = trace.lift(x)
    if plan.axes:
        cut = [integers(part) for part in (plan.starts, plan.ends, plan.axes, plan.steps)]
        x = trace.node("Slice", [x, *cut])
    for axis, index in plan.scalars.items():
        x = trace.node("Gather", [x, f.expand_dims(index)], axis=axis)
    dropped = sorted([*plan.dropped, *plan.scalars])
    if dropped:
        x = trace.node("Squeeze", [x, integers(dropped)])
    n_gathered = 0
    if plan.arrays:
        axes = [axis - sum(d < axis for d in dropped) for axis in plan.arrays]
        x, n_gathered = _gather(x, axes, list(plan.arrays.values()), plan)
    new = [i + (n_gathered if i >= plan.front else 0) for i, new in enumerate(plan.is_new) if new]
    return trace.node("Unsqueeze", [x, integers(new)]) if new else x


def _index(item: Any) -> Value:
    index = as_value(np.zeros(0, np.int64) if isinstance(item, list) and not item else item)
    if index.dtype == "bool":
        raise TracedValueError(
            f"{users_line()}: expected an index of integers, got truth values, whose number of "
            "results would depend on data; use tn.where"
        )
    if types.is_float(index.dtype):
        _fail(f"expected an index of integers, got {index.dtype}")
    return as_index(index)


def _tuples(indices: list[Value]) -> Value:
    """One tuple for each element of the indices, which are broadcast."""
    if len({index.shape for index in indices}) > 1:
        indices = list(f.broadcast_arrays(*indices))
    return f.stack(indices, axis=-1)


def _gather(x: Value, axes: list[int], indices: list[Value], plan: _Plan) -> tuple[Value, int]:
    """x with the axes of the indices, which are broadcast, in place of these; how many they are."""
    rank = len(x.shape)
    if len(axes) == 1:
        at, count = axes[0], len(indices[0].shape)
        x = current().node("Gather", [x, indices[0]], axis=at)
    else:
        tuples = _tuples(indices)
        at, count = 0, len(tuples.shape) - 1
        x = f.permute_dims(x, axes + [axis for axis in range(rank) if axis not in axes])
        x = current().node("GatherND", [x, tuples])
    target = plan.is_new[: plan.front].count(False)
    moved = list(range(at, at + count))
    return f.moveaxis(x, moved, [target + i for i in range(count)]), count


def _is_static(key: Any) -> bool:
    items = key if isinstance(key, tuple) else (key,)
    return not any(isinstance(item, Value) for item in items)


def _leading_arrays(items: list[Any]) -> list[Value]:
    """The arrays of a key that has them for the first axes and takes all of the others."""
    items = [item for item in items if item is not Ellipsis]
    arrays = list(itertools.takewhile(_is_array, items))
    is_whole = all(isinstance(item, slice) and item == slice(None) for item in items[len(arrays) :])
    return [_index(item) for item in arrays] if is_whole else []


class Indexed:
    """`x.at[key]`: what x would be with other elements there."""

    def __init__(self, x: Value, key: Any) -> None:
        self._x = current().lift(x)
        self._key = key

    def get(self) -> Any:
        """x[key]."""
        return take_items(self._x, self._key)

    def set(self, value: Any) -> Any:
        """x with value, which is broadcast, at these positions; of one named twice, either."""
        return self._scattered(value, "none")

    def add(self, value: Any) -> Any:
        """x with value added at these positions; what is named twice gets both."""
        return self._scattered(value, "add")

    def multiply(self, value: Any) -> Any:
        """x with these positions multiplied by value."""
        return self._scattered(value, "mul")

    def max(self, value: Any) -> Any:
        """x with the larger of each element and value at these positions."""
        return self._scattered(value, "max")

    def min(self, value: Any) -> Any:
        """x with the smaller of each element and value at these positions."""
        return self._scattered(value, "min")

    def _scattered(self, value: Any, reduction: str) -> Any:
        x = self._x
        if not all(isinstance(dim, int) for dim in x.shape):
            _fail(f"at[...]: expected an array whose sizes are known, got {x!r}")
        leading = _leading_arrays(_spell_out(x, self._key))
        if leading:
            return self._scattered_rows(leading, value, reduction)
        numbers = np.arange(np.prod(x.shape, dtype=np.int64)).reshape(x.shape)
        # The number of each position among all elements, so that every key works that x[key] takes.
        spelled = _spell_out(x, self._key)
        if _is_static(self._key) and not any(_is_array(item) for item in spelled):
            take_items(x, self._key)  # it checks the key
            positions = as_value(np.ascontiguousarray(numbers[self._key]))
        else:
            positions = take_items(as_value(numbers), self._key)
        updates = self._updates(value, positions.shape)
        flat = [f.reshape(part, (-1,)) for part in (x, positions, updates)]
        made = current().node("ScatterElements", flat, axis=0, reduction=reduction)
        return f.reshape(made, x.shape)

    def _scattered_rows(self, indices: list[Value], value: Any, reduction: str) -> Any:
        """x with updates where the arrays point along its first axes: whole rows of the others."""
        tuples = _tuples(indices)
        updates = self._updates(value, tuples.shape[:-1] + self._x.shape[len(indices) :])
        return current().node("ScatterND", [self._x, tuples, updates], reduction=reduction)

    def _updates(self, value: Any, shape: tuple[Any, ...]) -> Value:
        dtype = self._x.dtype
        is_number = isinstance(value, (bool, int, float))
        new = f.full((), value, dtype) if is_number else f.astype(as_value(value), dtype)
        extra = len(new.shape) - len(shape)
        if extra > 0:  # axes of size 1 in front count for nothing
            new = f.squeeze(new, tuple(range(extra)))
        return new if new.shape == shape else f.broadcast_to(new, shape)


class At:
    """`x.at`, to be indexed."""

    def __init__(self, x: Value) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> Indexed:
        return Indexed(self._x, key)
