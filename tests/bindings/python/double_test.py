# SPDX-License-Identifier: Apache-2.0
"""Functions of float64 and of integers run on the backend with products of their own types."""

import numpy as np
import pytest
import tenon as tn

rng = np.random.default_rng(3)
SHAPES = [
    ((5, 7), (7, 3)),
    ((7,), (7, 3)),
    ((5, 7), (7,)),
    ((7,), (7,)),
    ((2, 1, 5, 7), (3, 7, 4)),
    ((3, 5, 7), (7, 4)),
    ((130, 300), (300, 140)),
    ((4, 0), (0, 3)),
    ((0, 4), (4, 3)),
]


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_products_are_numpys(shapes, dtype):
    draw = rng.standard_normal if dtype == "float64" else lambda s: rng.integers(0, 2**31, s)
    a, b = (draw(shape).astype(dtype) for shape in shapes)
    f = tn.jit(lambda a, b: a @ b)
    got = f(a, b)
    assert got.dtype == dtype
    tolerance = 1e-12 if dtype == "float64" else 0
    np.testing.assert_allclose(got, a @ b, tolerance, tolerance)
    if got.size > 0 and a.size > 0:
        assert f.describe()["fallback_nodes"] == []


def test_a_network_and_its_gradient_stay_on_the_backend():
    w, x = rng.standard_normal((20, 8)), rng.standard_normal((50, 20))
    f = tn.jit(tn.grad(lambda w: (tn.tanh(x @ w).T @ x).sum()))
    eps, at = 1e-6, np.zeros_like(w)
    at[3, 2] = eps
    value = lambda w: (np.tanh(x @ w).T @ x).sum()  # noqa: E731
    slope = (value(w + at) - value(w - at)) / (2 * eps)
    np.testing.assert_allclose(f(w)[3, 2], slope, rtol=1e-7)
    assert f.describe()["fallback_nodes"] == []
