# SPDX-License-Identifier: Apache-2.0
"""`x[...]` of a traced value: integers, slices, None, Ellipsis, and arrays of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import functions as f
from .errors import TracedValueError
from .trace import Value, as_value, current, integers, users_line

_END = 2**63 - 1


def _fail(text: str) -> None:
    raise IndexError(f"{users_line()}: {text}")


def _spell_out(x: Value, key: Any) -> list[Any]:
    """One item for each axis and each None: Ellipsis filled in."""
    items = list(key) if isinstance(key, tuple) else [key]
    used = sum(item is not None and item is not Ellipsis for item in items)
    rank = len(x.shape)
    if used > rank:
        _fail(f"expected at most {rank} indices, got {used}")
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        _fail("expected one '...', got more")
    at = dots[0] if dots else len(items)
    fill = [slice(None)] * (rank - used)
    return items[:at] + fill + items[at + 1 :]


def _is_array(item: Any) -> bool:
    return isinstance(item, (Value, list, np.ndarray)) or (
        hasattr(item, "__array__") and not isinstance(item, np.generic)
    )


class _Plan:
    """What each axis of x needs."""

    def __init__(self, x: Value, items: list[Any]) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.steps: list[int] = []
        self.axes: list[int] = []
        self.dropped: list[int] = []
        self.arrays: dict[int, Any] = {}  # by axis of x
        self.new_axes: list[int] = []
        axis = place = 0
        for item in items:
            if item is None:
                self.new_axes.append(place)
                place += 1
                continue
            if isinstance(item, slice):
                self._slice(axis, item)
                place += 1
            elif _is_array(item):
                self.arrays[axis] = item
                place += 1
            else:
                self._integer(axis, x.shape[axis], item)
            axis += 1

    def _slice(self, axis: int, item: slice) -> None:
        if item == slice(None):
            return
        step = 1 if item.step is None else int(item.step)
        if step == 0:
            _fail("expected a step other than 0")
        first = 0 if step > 0 else -1
        last = _END if step > 0 else -_END
        start = first if item.start is None else item.start
        self._cut(axis, start, last if item.stop is None else item.stop, step)

    def _integer(self, axis: int, size: Any, item: Any) -> None:
        if isinstance(item, (bool, np.bool_)) or not hasattr(item, "__index__"):
            _fail(f"expected integers, slices, '...', None or arrays, got {type(item).__name__}")
        at = item.__index__()
        if isinstance(size, int) and not -size <= at < size:
            _fail(f"index {at} of axis {axis}: expected less than {size}")
        self._cut(axis, at, at + 1 if at != -1 else _END, 1)
        self.dropped.append(axis)

    def _cut(self, axis: int, start: Any, end: Any, step: int) -> None:
        self.starts.append(start.__index__())
        self.ends.append(end.__index__())
        self.steps.append(step)
        self.axes.append(axis)


def take_items(x: Value, key: Any) -> Any:
    """x[key], as NumPy has it. Arrays of integers: one, or several on the first axes."""
    plan = _Plan(x, _spell_out(x, key))
    trace = current()
    x = trace.lift(x)
    if plan.axes:
        cut = [integers(part) for part in (plan.starts, plan.ends, plan.axes, plan.steps)]
        x = trace.node("Slice", [x, *cut])
    if plan.dropped and not plan.arrays:
        x = trace.node("Squeeze", [x, integers(plan.dropped)])
    if plan.arrays:
        x = _gather(x, plan)
    if plan.new_axes:
        x = trace.node("Unsqueeze", [x, integers(plan.new_axes)])
    return x


def _gather(x: Value, plan: _Plan) -> Value:
    indices = {axis: as_value(item) for axis, item in plan.arrays.items()}
    for value in indices.values():
        if value.dtype == "bool":
            raise TracedValueError(
                f"{users_line()}: expected an index of integers, got truth values, whose number of "
                "results would depend on data; use tn.where"
            )
    axes = sorted(indices)
    if len(axes) == 1:
        x = current().node("Gather", [x, indices[axes[0]]], axis=axes[0])
        if not plan.dropped:
            return x
        moved = len(indices[axes[0]].shape) - 1
        dropped = [axis + (moved if axis > axes[0] else 0) for axis in plan.dropped]
        return current().node("Squeeze", [x, integers(dropped)])
    if axes != list(range(len(axes))) or plan.dropped or plan.new_axes:
        _fail("expected arrays of indices on the first axes, without integers or None beside them")
    return current().node("GatherND", [x, f.stack(list(indices.values()), axis=-1)])
