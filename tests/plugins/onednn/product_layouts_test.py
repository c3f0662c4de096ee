# SPDX-License-Identifier: Apache-2.0
"""Products of small matrices in every layout: axes of one entry fit several, of which oneDNN's
kernels refuse some in the midst of a run. Against NumPy. Without oneDNN's cache of primitives
(ONEDNN_PRIMITIVE_CACHE_CAPACITY=0), which hands out one that was made for another such layout."""

import itertools

import numpy as np
import pytest
import tenon as tn

SIZES = (1, 2, 3)
TURNS = list(itertools.product([False, True], repeat=3))


def turned(x, xp, is_turned):
    axes = list(range(x.ndim))
    axes[-2:] = axes[-2:][::-1] if is_turned else axes[-2:]
    return xp.permute_dims(x, axes) if xp is tn else np.transpose(x, axes)


def products(xp, batch, turns, arrays):
    """a @ b of all sizes; which of a, b and the result lie transposed: turns."""
    out = []
    for i, _ in enumerate(itertools.product(SIZES, repeat=3)):
        a, b = arrays[2 * i], arrays[2 * i + 1]
        made = turned(a, xp, turns[0]) @ turned(b, xp, turns[1])
        out.append(turned(made, xp, turns[2]))
    return tuple(out)


def operands(batch, turns):
    random = np.random.default_rng(5)
    out = []
    for m, k, n in itertools.product(SIZES, repeat=3):
        for rows, columns, is_turned in ((m, k, turns[0]), (k, n, turns[1])):
            shape = (columns, rows) if is_turned else (rows, columns)
            out.append(random.normal(size=(*batch, *shape)).astype("f"))
    return out


@pytest.mark.parametrize("batch", [(), (2,), (2, 1), (1, 2)])
@pytest.mark.parametrize("turns", TURNS)
def test_a_product_runs_in_every_layout(batch, turns):
    arrays = operands(batch, turns)
    want = products(np, batch, turns, arrays)
    got = tn.jit(lambda *xs: products(tn, batch, turns, xs), backend="onednn", threads=1)(*arrays)
    for mine, wants in zip(got, want):
        np.testing.assert_allclose(np.asarray(mine), wants, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("batch", [(2,)])
@pytest.mark.parametrize("turns", TURNS)
def test_so_do_its_slopes(batch, turns):
    arrays = operands(batch, turns)
    made = products(np, batch, turns, arrays)
    weights = [np.cos(1 + np.arange(y.size)).reshape(y.shape).astype("f") for y in made]

    def total(*xs):
        out = products(tn, batch, turns, xs)
        return sum((tn.sum(y * w) for y, w in zip(out, weights)), 0.0)

    slopes = tn.grad(total, argnums=tuple(range(len(arrays))), backend="onednn", threads=1)(*arrays)
    for i, weight in enumerate(weights):
        dy = turned(weight, np, turns[2])
        a, b = turned(arrays[2 * i], np, turns[0]), turned(arrays[2 * i + 1], np, turns[1])
        of_a = turned(dy @ np.swapaxes(b, -1, -2), np, turns[0])
        of_b = turned(np.swapaxes(a, -1, -2) @ dy, np, turns[1])
        np.testing.assert_allclose(np.asarray(slopes[2 * i]), of_a, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(np.asarray(slopes[2 * i + 1]), of_b, rtol=1e-5, atol=1e-5)


def test_a_product_with_itself():
    """Its slope is the sum of two products, whose results lie in the layout of the operand."""
    x = np.random.default_rng(0).normal(size=(2, 2, 1)).astype("f")
    weight = np.cos(1 + np.arange(4)).reshape(2, 2).astype("f")
    one = lambda a: tn.sum((a @ a.T) * weight)  # noqa: E731
    total = lambda xs: tn.sum(tn.vmap(one)(xs))  # noqa: E731
    got = tn.grad(total, backend="onednn", threads=1)(x)
    np.testing.assert_allclose(np.asarray(got), (weight + weight.T) @ x, rtol=1e-5, atol=1e-6)
