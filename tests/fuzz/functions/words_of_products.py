# SPDX-License-Identifier: Apache-2.0
"""Words that add up products: matrices, networks, linear algebra, waves."""

from __future__ import annotations

from typing import Any

import numpy as np
from vocabulary import Drawn, Pool, word


def is_square(value: Any) -> bool:
    return value.ndim == 2 and value.shape[0] == value.shape[1] and 0 < len(value) <= 4


def _matmul(pool: Pool) -> Drawn:
    a = pool.pick("f", lambda value: value.ndim > 0)
    if a is None:
        return None
    inner = pool.values[a].shape[-1]
    b = pool.pick("f", lambda v: v.ndim > 0 and v.shape[-2 if v.ndim > 1 else -1] == inner)
    return None if b is None else ((a, b), {})


word("matmul", _matmul, weight=2)
word("a @ b", _matmul, lambda lib, a, b: a @ b, weight=2)
word(
    "a @ b.T",
    lambda pool: (
        None
        if (x := pool.pick("f", lambda v: v.ndim == 2)) is None
        else (
            (x, pool.pick("f", lambda v: v.ndim == 2 and v.shape[1] == pool.values[x].shape[1])),
            {},
        )
    ),
    lambda lib, a, b: a @ lib.matrix_transpose(b),
)


def _tensordot(pool: Pool) -> Drawn:
    a = pool.pick("f", lambda value: value.ndim > 0)
    if a is None:
        return None
    n = pool.below(min(pool.values[a].ndim, 2) + 1)
    tail = pool.values[a].shape[pool.values[a].ndim - n :]
    b = pool.pick("f", lambda value: value.shape[:n] == tail)
    return None if b is None else ((a, b), {"axes": n})


word("tensordot", _tensordot)


def _convolve(pool: Pool) -> Drawn:
    x = pool.pick("f", lambda value: value.ndim == 1 and len(value) > 0)
    y = pool.pick("f", lambda value: value.ndim == 1 and len(value) > 0)
    return None if x is None else ((x, y), {"mode": pool.one(["full", "same", "valid"])})


word("convolve", _convolve)


def _kron(pool: Pool) -> Drawn:
    a = pool.pick("f", lambda value: value.ndim < 3 and value.size < 10)
    b = None if a is None else pool.pick("f", lambda value: value.ndim < 3 and value.size < 10)
    return None if b is None else ((a, b), {})


word("kron", _kron)


def _vecdot(pool: Pool) -> Drawn:
    a = pool.pick("f", lambda value: value.ndim > 0)
    if a is None:
        return None
    shape = pool.values[a].shape
    b = pool.pick("f", lambda value: value.shape in (shape, shape[-1:]))
    return None if b is None else ((a, b), {})


word("vecdot", _vecdot)

EINSUMS = {
    1: ["i->", "i->i"],
    2: ["ij->ji", "ij->i", "ij->"],
    3: ["ijk->kij", "ijk->j"],
}
PAIRS = [
    "ij,jk->ik",
    "ij,kj->ik",
    "ij,ij->",
    "i,j->ij",
    "bij,bjk->bik",
    "ij,j->i",
    "ii,i->i",
    "ijk,k->ij",
    "ij,ij->ji",
]


def _sizes(terms: list[str], shapes: list[tuple[int, ...]]) -> bool:
    sizes: dict[str, int] = {}
    return all(
        len(term) == len(shape) and all(sizes.setdefault(c, n) == n for c, n in zip(term, shape))
        for term, shape in zip(terms, shapes)
    )


def _einsum(pool: Pool) -> Drawn:
    if pool.chance(0.4):
        x = pool.pick("f", lambda value: value.ndim in EINSUMS)
        if x is None:
            return None
        square = ["ii->", "ii->i"] if is_square(pool.values[x]) else []
        return (pool.one(EINSUMS[pool.values[x].ndim] + square), x), {}
    equation = pool.one(PAIRS)
    terms = equation.split("->")[0].split(",")
    a = pool.pick("f", lambda value: _sizes(terms[:1], [value.shape]))
    if a is None:
        return None
    b = pool.pick("f", lambda value: _sizes(terms, [pool.values[a].shape, value.shape]))
    return None if b is None else ((equation, a, b), {})


word("einsum", _einsum, weight=2)


def _linear(pool: Pool) -> Drawn:
    x = pool.pick("f", lambda value: value.ndim > 1)
    if x is None:
        return None
    inner = pool.values[x].shape[-1]
    weight = pool.pick("f", lambda value: value.ndim == 2 and value.shape[0] == inner)
    return None if weight is None else ((x, weight), {})


word("linear", _linear, plain=lambda lib, x, weight: x @ weight)


def _layer_norm(pool: Pool) -> Drawn:
    x = pool.pick("f", lambda value: value.ndim > 0 and value.shape[-1] > 1)
    scale = None if x is None else pool.pick("f", lambda v: v.shape == pool.values[x].shape[-1:])
    return None if scale is None else ((x, scale), {})


def _plain_norm(lib: Any, x: Any, scale: Any) -> Any:
    centred = x - lib.mean(x, axis=-1, keepdims=True)
    spread = lib.mean(centred * centred, axis=-1, keepdims=True)
    return centred / lib.sqrt(spread + 0.1) * scale


word(
    "layer_norm",
    _layer_norm,
    lambda lib, x, s: lib.layer_norm(x, s, epsilon=0.1),
    plain=_plain_norm,
)


def _image(lib: Any, x: Any) -> Any:
    """x as planes: [2, 1, h, w] of whatever it was, so that every value can be one."""
    rows = lib.reshape(x, (-1,))
    rows = lib.concat([rows] * (1 + 18 // rows.shape[0]))[:18]
    return lib.reshape(rows, (1, 2, 3, 3))


def _apart(lib: Any, image: Any) -> Any:
    """Equal numbers of an image become different ones: which of a tie a maximum over a window takes
    is a matter of choice, and noise moves all copies of a number alike."""
    return image + lib.reshape(lib.arange(18, dtype=lib.floats) * 0.0137, (1, 2, 3, 3))


def _filled(pool: Pool) -> Drawn:
    x = pool.pick("f", lambda value: value.size > 0)
    weight = None if x is None else pool.pick("f", lambda value: value.size > 0)
    return None if weight is None else ((x, weight, 1 + pool.below(2), pool.below(2)), {})


def _kernel(lib: Any, x: Any) -> Any:
    rows = lib.reshape(x, (-1,))
    rows = lib.concat([rows] * (1 + 24 // rows.shape[0]))[:24]
    return lib.reshape(rows, (3, 2, 2, 2))


def _windows(lib: Any, x: Any, size: int, stride: int, padding: int, fill: float) -> list[Any]:
    """x at each place of the window: arrays of the shape of the result."""
    if padding:
        wide = [[0, 0], [0, 0], [padding, padding], [padding, padding]]
        x = lib.pad(x, wide, constant_values=fill)
    n = (x.shape[2] - size) // stride + 1
    last = (n - 1) * stride + 1
    return [
        x[:, :, i : i + last : stride, j : j + last : stride]
        for i in range(size)
        for j in range(size)
    ]


def _plain_conv(lib: Any, x: Any, weight: Any, stride: int, padding: int) -> Any:
    kernel = lib.reshape(_kernel(lib, weight), (3, 2, 4))
    parts = _windows(lib, _image(lib, x), 2, stride, padding, 0)
    return sum(lib.einsum("bchw,mc->bmhw", part, kernel[:, :, i]) for i, part in enumerate(parts))


word(
    "conv",
    _filled,
    lambda lib, x, w, stride, padding: lib.conv(
        _image(lib, x), _kernel(lib, w), stride=stride, padding=padding
    ),
    plain=_plain_conv,
)


def _pooled(pool: Pool) -> Drawn:
    x = pool.pick("f", lambda value: value.size > 0)
    return None if x is None else ((x, 1 + pool.below(2), pool.below(2)), {})


word(
    "max_pool",
    _pooled,
    lambda lib, x, stride, padding: lib.max_pool(
        _apart(lib, _image(lib, x)), (2, 2), stride=stride, padding=padding
    ),
    plain=lambda lib, x, stride, padding: lib.max(
        lib.stack(_windows(lib, _apart(lib, _image(lib, x)), 2, stride, padding, -np.inf)), axis=0
    ),
)


def _plain_average(lib: Any, x: Any, stride: int) -> Any:
    return lib.mean(lib.stack(_windows(lib, _image(lib, x), 2, stride, 0, 0)), axis=0)


word(
    "avg_pool",
    _pooled,
    lambda lib, x, stride, _: lib.avg_pool(_image(lib, x), (2, 2), stride=stride),
    plain=lambda lib, x, stride, _: _plain_average(lib, x, stride),
)


def _square(pool: Pool) -> Drawn:
    if pool.floats not in ("float32", "float64"):
        return None
    x = pool.pick("f", is_square)
    return None if x is None else ((x,), {})


def _regular(lib: Any, x: Any) -> Any:
    """A matrix that is far from singular."""
    return lib.tanh(x) + lib.eye(x.shape[-1], dtype=lib.floats) * (x.shape[-1] + 0.5)


def _definite(lib: Any, x: Any) -> Any:
    x = lib.tanh(x)
    return x @ lib.matrix_transpose(x) + lib.eye(x.shape[-1], dtype=lib.floats)


word("inv", _square, lambda lib, x: lib.linalg.inv(_regular(lib, x)))
word("det", _square, lambda lib, x: lib.linalg.det(lib.tanh(x)))
word("slogdet", _square, lambda lib, x: lib.linalg.slogdet(_regular(lib, x))[1])
word("cholesky", _square, lambda lib, x: lib.linalg.cholesky(_definite(lib, x)))
word("matrix_power", _square, lambda lib, x: lib.linalg.matrix_power(lib.tanh(x), 3))
word("trace", _square, lambda lib, x: lib.linalg.trace(x))
word("diagonal", _square, lambda lib, x: lib.linalg.diagonal(x))
word(
    "eigvalsh",
    _square,
    lambda lib, x: lib.linalg.eigvalsh(_definite(lib, x)),
    smooth=True,
    weight=0.5,
)
word(
    "svdvals",
    _square,
    lambda lib, x: lib.linalg.svdvals(_regular(lib, x)),
    plain=lambda lib, x: lib.linalg.svd(_regular(lib, x), compute_uv=False),
    weight=0.5,
)


def _solve(pool: Pool) -> Drawn:
    drawn = _square(pool)
    if drawn is None:
        return None
    (x,), _ = drawn
    b = pool.pick("f", lambda v: v.ndim == 2 and len(v) == len(pool.values[x]) and v.size)
    return None if b is None else ((x, b), {})


word("solve", _solve, lambda lib, x, b: lib.linalg.solve(_regular(lib, x), b))


def _norm(pool: Pool) -> Drawn:
    x = pool.pick("f", lambda value: value.ndim > 0 and value.size > 0)
    return None if x is None else ((x,), {"axis": pool.axis(x), "keepdims": pool.chance(0.5)})


word(
    "vector_norm", _norm, lambda lib, x, **named: lib.linalg.vector_norm(lib.abs(x) + 0.25, **named)
)


def _outer(pool: Pool) -> Drawn:
    a = pool.pick("f", lambda value: value.ndim == 1)
    b = None if a is None else pool.pick("f", lambda value: value.ndim == 1)
    return None if b is None else ((a, b), {})


word("outer", _outer, lambda lib, a, b: lib.linalg.outer(a, b))


def _cross(pool: Pool) -> Drawn:
    a = pool.pick("f", lambda value: value.shape[-1:] == (3,))
    shape = () if a is None else pool.values[a].shape
    b = None if a is None else pool.pick("f", lambda value: value.shape == shape)
    return None if b is None else ((a, b), {})


word("cross", _cross, lambda lib, a, b: lib.linalg.cross(a, b))


def _wave(pool: Pool) -> Drawn:
    if pool.floats not in ("float32", "float64"):
        return None
    x = pool.pick("f", lambda value: value.ndim > 0 and value.shape[-1] > 0)
    return None if x is None else ((x,), {})


def _plain_rfft(lib: Any, x: Any) -> Any:
    made = lib.fft.rfft(x)
    return lib.stack([lib.real(made), lib.imag(made)], axis=-1)


word("rfft", _wave, lambda lib, x: lib.fft.rfft(x), plain=_plain_rfft, weight=0.5)
