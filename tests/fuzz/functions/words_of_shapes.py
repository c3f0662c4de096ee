# SPDX-License-Identifier: Apache-2.0
"""Words that move elements: shapes, indices, assignments, order, constants."""

from __future__ import annotations

from typing import Any

import numpy as np
from program import Ref
from vocabulary import Drawn, Pool, along, unary, word


def has_axes(value: Any) -> bool:
    return value.ndim > 0


def _reshape(pool: Pool) -> Drawn:
    x = pool.pick("fib")
    if x is None:
        return None
    size, shape = pool.values[x].size, []
    while size > 1 and len(shape) < 3:
        parts = [n for n in range(1, size + 1) if size % n == 0]
        shape.append(pool.one(parts))
        size //= shape[-1]
    shape.append(size)
    if pool.values[x].size and pool.chance(0.5):
        shape[pool.below(len(shape))] = -1
    return (x, tuple(shape)), {}


word("reshape", _reshape)
word("x.T", unary("fib"), lambda lib, x: lib.permute_dims(x, tuple(range(x.ndim))[::-1]))
word("flatten", unary("fib"), lambda lib, x: lib.reshape(x, (-1,)))


def _permute(pool: Pool) -> Drawn:
    x = pool.pick("fib", has_axes)
    if x is None:
        return None
    return (x, tuple(map(int, pool.random.permutation(pool.values[x].ndim)))), {}


word("permute_dims", _permute)
word(
    "matrix_transpose",
    lambda pool: (
        None if (x := pool.pick("fib", lambda value: value.ndim > 1)) is None else ((x,), {})
    ),
)


def _moveaxis(pool: Pool) -> Drawn:
    x = pool.pick("fib", has_axes)
    return None if x is None else ((x, pool.axis(x), pool.axis(x)), {})


word("moveaxis", _moveaxis)


def _expand(pool: Pool) -> Drawn:
    x = pool.pick("fib")
    if x is None:
        return None
    rank = pool.values[x].ndim + 1
    return (x,), {"axis": pool.below(2 * rank) - rank}


word("expand_dims", _expand)


def _squeeze(pool: Pool) -> Drawn:
    x = pool.pick("fib", lambda value: 1 in value.shape)
    if x is None:
        return None
    ones = [i for i, size in enumerate(pool.values[x].shape) if size == 1]
    return (x, pool.one(ones)), {}


word("squeeze", _squeeze)


def _flip(pool: Pool) -> Drawn:
    x = pool.pick("fib", has_axes)
    return None if x is None else ((x,), {"axis": pool.axes(x)})


word("flip", _flip)


def _roll(pool: Pool) -> Drawn:
    x = pool.pick("fib", has_axes)
    if x is None:
        return None
    axis = None if pool.chance(0.3) else pool.axis(x)
    return (x, pool.below(7) - 3), {"axis": axis}


word("roll", _roll)


def _repeat(pool: Pool) -> Drawn:
    x = pool.pick("fib", has_axes)
    return None if x is None else ((x, 1 + pool.below(2)), {"axis": pool.axis(x)})


word("repeat", _repeat, weight=0.5)


def _tile(pool: Pool) -> Drawn:
    x = pool.pick("fib", has_axes)
    if x is None:
        return None
    return (x, tuple(1 + pool.below(2) for _ in pool.values[x].shape)), {}


word("tile", _tile, weight=0.5)


def _broadcast(pool: Pool) -> Drawn:
    x = pool.pick("fib")
    if x is None:
        return None
    shape = [pool.one([2, 3]) if size == 1 else size for size in pool.values[x].shape]
    front = [1 + pool.below(2) for _ in range(pool.below(2))]
    return (x, (*front, *shape)), {}


word("broadcast_to", _broadcast)


def _joined(pool: Pool) -> Drawn:
    x = pool.pick("f")
    if x is None:
        return None
    shape = pool.values[x].shape
    items = [x] + [pool.pick("f", lambda v: v.shape == shape) for _ in range(1 + pool.below(2))]
    return (items,), {"axis": pool.axis(x)}


word("concat", lambda pool: d if (d := _joined(pool)) and pool.values[d[0][0][0]].ndim else None)
word("stack", _joined)


def _split(pool: Pool) -> Drawn:
    x = pool.pick("fib", has_axes)
    if x is None:
        return None
    axis = pool.axis(x)
    size = pool.values[x].shape[axis]
    parts = [n for n in range(1, size + 1) if size % n == 0]
    if not parts:
        return None
    count = pool.one(parts)
    return (x, count, axis, pool.below(count)), {}


word("split", _split, lambda lib, x, parts, axis, i: lib.split(x, parts, axis=axis)[i])


def _unstack(pool: Pool) -> Drawn:
    x = pool.pick("fib", lambda value: 0 not in value.shape and value.ndim > 0)
    if x is None:
        return None
    axis = pool.axis(x)
    return (x, axis, pool.below(pool.values[x].shape[axis])), {}


word("unstack", _unstack, lambda lib, x, axis, i: lib.unstack(x, axis=axis)[i])


def _triangle(pool: Pool) -> Drawn:
    x = pool.pick("fi", lambda value: value.ndim > 1)
    return None if x is None else ((x,), {"k": pool.below(4) - 2})


word("tril", _triangle, weight=0.5)
word("triu", _triangle, weight=0.5)


def _diff(pool: Pool) -> Drawn:
    x = pool.pick("f", has_axes)
    return None if x is None else ((x,), {"axis": pool.axis(x), "n": 1 + pool.below(2)})


word("diff", _diff, weight=0.5)


def _key(pool: Pool, x: Ref, arrays: bool) -> tuple[Any, ...] | None:
    """What stands in x[...]: integers, slices, None, Ellipsis, arrays of integers."""
    shape = pool.values[x].shape
    key: list[Any] = []
    for axis, size in enumerate(shape):
        what = pool.random.random()
        if what < 0.25 and size:
            key.append(pool.below(2 * size) - size)
        elif what < 0.4 and size and arrays:
            count = (1 + pool.below(3),) if pool.chance(0.7) else (2, 2)
            key.append(np.asarray(pool.random.integers(-size, size, count)).tolist())
        elif what < 0.8:
            start, stop = sorted((pool.below(size + 1), pool.below(size + 1)))
            step = pool.one([1, 1, 2, -1])
            if pool.chance(0.3):
                start = stop = None
            elif step < 0:
                start, stop = stop, start or None
            key.append(slice(start, stop, step))
        else:
            key.append(slice(None))
            if pool.chance(0.4) and Ellipsis not in key:
                key[-1] = Ellipsis
                keep = axis + 1 + pool.below(len(shape) - axis)
                rest = len(shape) - keep
                key += [pool.below(n) if n else slice(None) for n in shape[len(shape) - rest :]]
                break
    if pool.chance(0.2):
        key.insert(pool.below(len(key) + 1), None)
    return tuple(key)


def at(key: Any) -> Any:
    """Lists stand for arrays of integers in the text of a function."""
    return tuple(np.asarray(item) if isinstance(item, list) else item for item in key)


def _items(pool: Pool) -> Drawn:
    x = pool.pick("fib", has_axes)
    return None if x is None else ((x, _key(pool, x, True)), {})


word("x[...]", _items, lambda lib, x, key: x[at(key)], weight=3)


def _put(pool: Pool) -> Drawn:
    x = pool.pick("f", has_axes)
    if x is None:
        return None
    key = _key(pool, x, True)
    key = tuple(item for item in key if item is not None)
    how = pool.one(["set", "add", "multiply", "max", "min"])
    if how == "set":  # who is last among those that meet is not said: arrays of one place each
        key = tuple(item[:1] if isinstance(item, list) else item for item in key)
        key = tuple(
            item[:1] if isinstance(item, list) and isinstance(item[0], list) else item
            for item in key
        )
        if any(isinstance(item, list) and isinstance(item[0], list) for item in key):
            return None
    try:
        shape = pool.values[x][at(key)].shape
    except IndexError:
        return None
    value = pool.number()
    if pool.chance(0.7):
        value = pool.pick("f", lambda v: v.shape == shape) or value
    return (x, key, how, value), {}


word("x.at[...]", _put, lambda lib, x, key, how, value: lib.put(x, at(key), how, value), weight=2)


def _take(pool: Pool) -> Drawn:
    x = pool.pick("fib", lambda value: value.ndim > 0 and 0 not in value.shape)
    index = None if x is None else pool.pick("i", lambda value: value.ndim <= 2)
    if index is None:
        return None
    return (x, index), {"axis": pool.axis(x)}


def within(lib: Any, index: Any, size: int) -> Any:
    """Indices of either sign, kept in range by arithmetic that every library has alike."""
    whole = lib.astype(index, np.dtype("int64") if lib.is_oracle else "int64")
    return whole % size


word(
    "take",
    _take,
    lambda lib, x, index, axis: lib.take(x, within(lib, index, x.shape[axis]), axis=axis),
    weight=2,
)


def _take_along(pool: Pool) -> Drawn:
    x = pool.pick("f", lambda value: value.ndim > 0 and 0 not in value.shape)
    if x is None:
        return None
    shape = pool.values[x].shape
    index = pool.pick("i", lambda value: value.shape == shape)
    return None if index is None else ((x, index), {"axis": pool.axis(x)})


word(
    "take_along_axis",
    _take_along,
    lambda lib, x, i, axis: lib.take_along_axis(x, within(lib, i, x.shape[axis]), axis=axis),
)

word("sort", along("f"))
word("argsort", along("f"), weight=0.5)


def _descending(lib: Any, x: Any, axis: int) -> Any:
    return lib.flip(lib.sort(x, axis=axis), axis=axis)


word(
    "sort descending",
    along("f"),
    lambda lib, x, axis: lib.sort(x, axis=axis, descending=True),
    plain=_descending,
)


def _top(pool: Pool) -> Drawn:
    x = pool.pick("f", lambda value: value.ndim > 0 and 0 not in value.shape)
    if x is None:
        return None
    axis = pool.axis(x)
    return (x, 1 + pool.below(pool.values[x].shape[axis])), {"axis": axis}


def _plain_top(lib: Any, x: Any, k: int, axis: int) -> Any:
    key = [slice(None)] * x.ndim
    key[axis] = slice(0, k)
    return _descending(lib, x, axis)[tuple(key)]


word("top_k", _top, lambda lib, x, k, axis: lib.top_k(x, k, axis=axis)[0], plain=_plain_top)


def _search(pool: Pool) -> Drawn:
    x = pool.pick("f", lambda value: value.ndim == 1)
    of = None if x is None else pool.pick("f", lambda value: value.ndim == 1)
    return None if of is None else ((x, of, pool.one(["left", "right"])), {})


word(
    "searchsorted",
    _search,
    lambda lib, x, of, side: lib.searchsorted(lib.sort(x), of, side=side),
    weight=0.3,
)


def _pad(pool: Pool) -> Drawn:
    x = pool.pick("f", lambda value: 0 < value.ndim < 4 and min(value.shape) > 2)
    if x is None:
        return None
    widths = [(pool.below(3), pool.below(3)) for _ in pool.values[x].shape]
    return (x, widths), {"mode": pool.one(["constant", "edge", "reflect", "wrap"])}


word("pad", _pad)


def _one_hot(pool: Pool) -> Drawn:
    x = pool.pick("i", lambda value: value.ndim < 3)
    return None if x is None else ((x, 2 + pool.below(3)), {})


def _plain_one_hot(lib: Any, x: Any, classes: int) -> Any:
    labels = within(lib, x, classes)
    return lib.astype(lib.expand_dims(labels, -1) == lib.arange(classes), np.float64)


word(
    "one_hot",
    _one_hot,
    lambda lib, x, n: lib.one_hot(within(lib, x, n), n, dtype=lib.floats),
    plain=_plain_one_hot,
    weight=0.5,
)


def _made(pool: Pool) -> Drawn:
    x = pool.pick("f")
    return None if x is None else ((x, pool.one(["ones_like", "zeros_like", "full_like"])), {})


word(
    "like",
    _made,
    lambda lib, x, name: getattr(lib, name)(x, *([0.75] if name == "full_like" else [])),
    weight=0.3,
)
