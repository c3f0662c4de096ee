# SPDX-License-Identifier: Apache-2.0
"""Words of order statistics, counts, and functions that are known at some points."""

from __future__ import annotations

import numpy as np
from vocabulary import Drawn, Pool, along, word
from words_of_shapes import within


def _interp(pool: Pool) -> Drawn:
    x = pool.pick("f")
    points = pool.pick("f", lambda value: value.ndim == 1 and len(value) > 1)
    if x is None or points is None:
        return None
    shape = pool.values[points].shape
    values = pool.pick("f", lambda value: value.shape == shape)
    return None if values is None else ((x, points, values), {})


word(  # at points that increase: where two are equal, the function jumps
    "interp",
    _interp,
    lambda lib, x, steps, y: lib.interp(x, lib.cumulative_sum(lib.abs(steps) + 0.5, axis=0), y),
    weight=0.5,
)


def _quantile(pool: Pool) -> Drawn:
    x = pool.pick("f", lambda value: value.ndim > 0 and 0 not in value.shape)
    if x is None:
        return None
    q = pool.one([0.0, 0.3, 0.75, 1.0, np.float32([0.1, 0.6])])
    return (x, q), {"axis": pool.axis(x), "keepdims": pool.chance(0.5)}


word("quantile", _quantile, weight=0.5)
word("median", along("f"), weight=0.5)


def _bincount(pool: Pool) -> Drawn:
    x = pool.pick("i", lambda value: value.ndim == 1)
    if x is None:
        return None
    length = len(pool.values[x])
    weights = pool.pick("f", lambda value: value.shape == (length,))
    return None if weights is None else ((x, weights, 2 + pool.below(3)), {})


word(
    "bincount",
    _bincount,
    lambda lib, x, weights, n: lib.bincount(within(lib, x, n), n, weights),
    plain=lambda lib, x, weights, n: (
        lib.bincount(within(lib, x, n), weights, minlength=n)[:n]
        if lib.module is np
        else lib.bincount(within(lib, x, n), weights, length=n)
    ),
    weight=0.5,
)
