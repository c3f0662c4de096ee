# SPDX-License-Identifier: Apache-2.0
"""Products of small matrices in every layout: axes of one entry fit several, of which oneDNN's
kernels refuse some in the midst of a run. Against NumPy. Without oneDNN's cache of primitives
(ONEDNN_PRIMITIVE_CACHE_CAPACITY=0), which hands out one that was made for another such layout."""

import itertools

import numpy as np
import pytest
import tenon as tn

SIZES = (1, 2, 3)
LAYOUTS = list(itertools.product([False, True], repeat=3))


def transposed(x, xp, is_transposed):
    axes = list(range(x.ndim))
    axes[-2:] = axes[-2:][::-1] if is_transposed else axes[-2:]
    return xp.permute_dims(x, axes) if xp is tn else np.transpose(x, axes)


def products(xp, batch, layouts, arrays):
    """a @ b of all sizes; which of a, b and the result lie transposed: layouts."""
    out = []
    for i, _ in enumerate(itertools.product(SIZES, repeat=3)):
        a, b = arrays[2 * i], arrays[2 * i + 1]
        made = transposed(a, xp, layouts[0]) @ transposed(b, xp, layouts[1])
        out.append(transposed(made, xp, layouts[2]))
    return tuple(out)


def operands(batch, layouts):
    random = np.random.default_rng(5)
    out = []
    for m, k, n in itertools.product(SIZES, repeat=3):
        for rows, columns, is_transposed in ((m, k, layouts[0]), (k, n, layouts[1])):
            shape = (columns, rows) if is_transposed else (rows, columns)
            out.append(random.normal(size=(*batch, *shape)).astype("f"))
    return out


@pytest.mark.parametrize("batch", [(), (2,), (2, 1), (1, 2)])
@pytest.mark.parametrize("layouts", LAYOUTS)
def test_a_product_runs_in_every_layout(batch, layouts):
    arrays = operands(batch, layouts)
    want = products(np, batch, layouts, arrays)
    got = tn.jit(lambda *xs: products(tn, batch, layouts, xs), backend="onednn", threads=1)(*arrays)
    for mine, wants in zip(got, want):
        np.testing.assert_allclose(np.asarray(mine), wants, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("batch", [(2,)])
@pytest.mark.parametrize("layouts", LAYOUTS)
def test_so_do_its_slopes(batch, layouts):
    arrays = operands(batch, layouts)
    made = products(np, batch, layouts, arrays)
    weights = [np.cos(1 + np.arange(y.size)).reshape(y.shape).astype("f") for y in made]

    def total(*xs):
        out = products(tn, batch, layouts, xs)
        return sum((tn.sum(y * w) for y, w in zip(out, weights)), 0.0)

    slopes = tn.grad(total, argnums=tuple(range(len(arrays))), backend="onednn", threads=1)(*arrays)
    for i, weight in enumerate(weights):
        dy = transposed(weight, np, layouts[2])
        a, b = (
            transposed(arrays[2 * i], np, layouts[0]),
            transposed(arrays[2 * i + 1], np, layouts[1]),
        )
        of_a = transposed(dy @ np.swapaxes(b, -1, -2), np, layouts[0])
        of_b = transposed(np.swapaxes(a, -1, -2) @ dy, np, layouts[1])
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


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("layouts", LAYOUTS)
def test_large_computed_products(batch, layouts, precision):
    """Such as run on AMX tiles where a CPU has them, with what follows: a row, an activation, and a
    matrix that is one of the operands where their shapes agree."""
    random = np.random.default_rng(7)
    m, k, n = 96, 112, 112
    a = random.normal(size=(*batch, *((k, m) if layouts[0] else (m, k)))).astype("f")
    b = random.normal(size=(n, k) if layouts[1] else (k, n)).astype("f")
    row = random.normal(size=n).astype("f")

    def run(xp, a, b, row):
        left, right = transposed(a, xp, layouts[0]), transposed(b, xp, layouts[1])
        made = left @ right + row
        bounded = tn.relu(made) if xp is tn else np.maximum(made, 0)
        return transposed(bounded, xp, layouts[2]), left @ right + left, left @ (right * 0.5)

    def run_numpy(a, b, row):
        return run(np, *(x.astype("d") for x in (a, b, row)))

    got = tn.jit(lambda *xs: run(tn, *xs), backend="onednn", threads=2, precision=precision)
    bound = {"fp32": 1e-5, "bf16": 0.02}[precision]
    for mine, wants in zip(got(a, b, row), run_numpy(a, b, row)):
        np.testing.assert_allclose(np.asarray(mine), wants, rtol=bound, atol=12 * bound)


def stored(x, order, width):
    """The array whose axes lie in this order in memory, as a part of rows that are wider."""
    held = np.transpose(x, order)
    wide = np.zeros((*held.shape[:-1], width * held.shape[-1]), "f")
    wide[..., : held.shape[-1]] = held
    return wide


def read(x, order, size):
    return tn.permute_dims(x[..., :size], list(np.argsort(order)))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("seed", range(40))
def test_batches_lie_in_any_order_of_axes(seed, precision):
    """As heads of attention do: [tokens, batch, heads, depth], or a third of one product's rows."""
    random = np.random.default_rng(seed)
    sizes = (1, 2, 3, 8, 10, 17)
    batch = random.choice(sizes[:4], random.integers(1, 4))
    m, k, n = random.choice(sizes, 3)
    rank = len(batch) + 2
    orders = [random.permutation(rank) for _ in range(3)]
    widths = random.choice((1, 1, 3), 2)
    a = random.normal(size=(*batch, m, k)).astype("f")
    b = random.normal(size=(*batch, k, n)).astype("f")

    def product(a, b):
        left, right = (read(x, o, s) for x, o, s in zip((a, b), orders, lasts))
        return tn.permute_dims(left @ right, [int(axis) for axis in orders[2]])

    lasts = [int(x.shape[order[-1]]) for x, order in zip((a, b), orders)]
    held = [stored(x, order, width) for x, order, width in zip((a, b), orders, widths)]
    got = tn.jit(product, backend="onednn", threads=1, precision=precision)(*held)

    want = np.transpose(a.astype("d") @ b.astype("d"), orders[2])
    bound = {"fp32": 1e-5, "bf16": 0.02}[precision]
    np.testing.assert_allclose(np.asarray(got), want, rtol=bound, atol=12 * bound)
