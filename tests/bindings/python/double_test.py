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


FULL = np.ones(2)
NUMBERS = {
    "an argument": lambda: tn.jit(lambda x, a: x * a)(FULL, 0.1),
    "an argument by its name": lambda: tn.jit(lambda x, a: x * a)(FULL, a=0.1),
    "an argument in a tree": lambda: tn.jit(lambda p: p["x"] * p["a"])({"a": 0.1, "x": FULL}),
    "an argument in a loop": lambda: tn.jit(lambda x, h: tn.fori_loop(0, 1, lambda i, c: c * h, x))(
        FULL, 0.1
    ),
    "an argument of a gradient": lambda: tn.grad(lambda x, a: (x * a).sum())(FULL, 0.1),
    "an argument of vmap": lambda: tn.vmap(lambda x, a: x * a, in_axes=(0, None))(FULL, 0.1),
    "a list": lambda: tn.jit(lambda x: x * [0.1, 0.1])(FULL),
    "a list outside of a function": lambda: tn.multiply(FULL, [0.1, 0.1]),
    "a list in a list": lambda: tn.multiply(FULL, [[0.1, 0.1]]),
    "what is joined": lambda: tn.concat([FULL, [0.1]])[2:],
    "what is written": lambda: tn.jit(lambda x: x.at[:].set([0.1, 0.1]))(FULL),
    "an array of a number": lambda: tn.asarray(0.1, dtype="float64"),
    "an array of a list": lambda: tn.asarray([0.1], dtype="float64"),
    "an array of a list in a function": lambda: tn.jit(
        lambda x: x * tn.asarray([0.1], dtype="float64")
    )(FULL),
    "astype": lambda: tn.astype([0.1], "float64"),
    "a limit": lambda: tn.clip(FULL, None, [0.1, 0.1]),
}


@pytest.mark.parametrize("make", NUMBERS.values(), ids=NUMBERS.keys())
def test_a_number_of_python_beside_float64_keeps_all_its_digits(make):
    got = make()
    assert got.dtype == "float64"
    np.testing.assert_array_equal(got, np.full(got.shape, 0.1))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_number_of_python_takes_the_type_of_what_is_beside_it(dtype):
    x = np.ones(2, dtype)
    looped = tn.jit(lambda x, h: tn.fori_loop(0, 1, lambda i, c: c * h, x))
    for got in (tn.jit(lambda x, a: x * a)(x, 0.1), looped(x, 0.1)):
        assert got.dtype == dtype
    assert tn.exp([0.1]).dtype == tn.asarray([0.1]).dtype == "float32"


def test_special_functions_have_the_slopes_of_closed_forms():
    """lgamma's second slope at 1 is pi^2/6, erfinv's slope exp(erfinv^2) sqrt(pi)/2, also at 0."""
    x = np.float64([0.25, 0.5, 0.75, 1, 2, 11])
    first = tn.vmap(tn.grad(tn.lgamma))
    np.testing.assert_allclose(first(x), tn.digamma(x), 1e-13)
    assert abs(tn.grad(tn.grad(tn.lgamma))(np.float64(1)) - np.pi**2 / 6) < 1e-13
    y = np.float64([-0.999, -0.5, 0, 1e-9, 0.3, 1 - 1e-12])
    z = tn.erfinv(y)
    np.testing.assert_allclose(tn.erf(z), y, 1e-15, 1e-25)
    np.testing.assert_allclose(tn.erfc(z[-1:]), 1 - y[-1:], 1e-12)
    slopes = np.exp(z * z) * np.sqrt(np.pi) / 2
    np.testing.assert_allclose(tn.vmap(tn.grad(tn.erfinv))(y), slopes, 1e-12)
    np.testing.assert_allclose(tn.vmap(tn.grad(tn.grad(tn.erfinv)))(y), 2 * z * slopes**2, 1e-11)


def test_special_functions_at_their_ends():
    ends = np.float64([-1, 1, 1.5, np.nan])
    np.testing.assert_array_equal(tn.erfinv(ends), [-np.inf, np.inf, np.nan, np.nan])
    poles = np.float64([0, -1, -2, np.inf, -np.inf])
    np.testing.assert_array_equal(tn.lgamma(poles), np.full(5, np.inf))
    np.testing.assert_array_equal(tn.erfc(np.float64([np.inf, -np.inf])), [0, 2])
    assert tn.digamma(np.float64(np.inf)) == np.inf
