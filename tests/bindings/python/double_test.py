# SPDX-License-Identifier: Apache-2.0
"""Functions of float64 and of integers run on the backend with products of their own types."""

import functools

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
    "where a loop begins": lambda: tn.fori_loop(0, 1, lambda i, s: s * FULL[0], 0.1),
    "where a while loop begins": lambda: tn.while_loop(lambda s: s > 1, lambda s: s * FULL[0], 0.1),
    "where a scan begins": lambda: tn.scan(lambda s, x: (s * x, s), 0.1, FULL)[1],
    "where a scan without slices begins": lambda: tn.scan(
        lambda s, _: (s * FULL[0], s), 0.1, length=2
    )[1],
    "a state beside float64": lambda: tn.fori_loop(
        0, 1, lambda i, s: (s[0], s[1] * s[0]), (0.1, FULL)
    )[1],
    "a state that something else is computed with": lambda: tn.fori_loop(
        0, 1, lambda i, s: (s[0], s[0] * FULL[0]), (0.1, 0.0)
    )[1],
    "where a loop in a function begins": lambda: tn.jit(
        lambda x: tn.fori_loop(0, 1, lambda i, s: s * x, 0.1)
    )(FULL[0]),
    "where a loop in a loop begins": lambda: tn.fori_loop(
        0, 1, lambda i, s: tn.fori_loop(0, 1, lambda j, t: t * FULL[0], s), 0.1
    ),
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


def test_a_loop_of_float64_is_numpys():
    """x <- a x (1 - x), whose digits double with each step: float32 would have none left."""
    want = 0.1
    for _ in range(60):
        want = 3.9 * want * (1 - want)
    a = np.float64(3.9)
    assert abs(float(tn.fori_loop(0, 60, lambda i, x: a * x * (1 - x), 0.1)) - want) < 1e-6
    rates = np.full(60, a)
    last, all_of = tn.scan(lambda x, a: (a * x * (1 - x), x), 0.1, rates)
    assert abs(float(last) - want) < 1e-6 and all_of.dtype == "float64"
    slope = tn.grad(lambda a: tn.fori_loop(0, 5, lambda i, x: a * x * (1 - x), 0.1))
    run = lambda a: functools.reduce(lambda x, _: a * x * (1 - x), range(5), 0.1)  # noqa: E731
    assert abs(float(slope(a)) - (run(a + 1e-6) - run(a - 1e-6)) / 2e-6) < 1e-6


def test_a_state_that_the_body_gives_back_in_float32_stays_float32():
    ones = np.ones(3, "float32")
    last = tn.fori_loop(0, 2, lambda i, s: (ones.sum() * tn.sum(ones), s[1] * s[1]), (0.0, FULL))
    assert [x.dtype for x in last] == ["float32", "float64"]
    assert tn.fori_loop(0, 2, lambda i, s: s + tn.sum(ones), 0.0).dtype == "float32"
    with pytest.raises(TypeError, match="state after a step: expected float32.* got int64"):
        tn.fori_loop(0, 2, lambda i, s: (i, s[1] * FULL), (0.0, FULL))


def plain_steps(w, x, y, factor, rate, count):
    """Descent on mean((x w - y)^2) * factor, in float64: the losses and the weights."""
    losses = []
    for _ in range(count):
        apart = x @ w - y
        losses.append((apart**2).mean() * factor)
        w = w - rate * factor * 2 / len(x) * x.T @ apart
    return losses, w


def test_a_step_of_float64_is_numpys():
    x, y, w = rng.standard_normal((6, 3)), rng.standard_normal(6), rng.standard_normal(3)

    def loss(p, x, y, factor):
        return ((x @ p["w"] - y) ** 2).mean() * factor

    step = tn.Step(loss, {"w": w.copy()}, tn.optim.sgd(lr=0.1))
    losses, last = plain_steps(w, x, y, 0.3, 0.1, 20)
    got = [step(x, y, 0.3) for _ in range(20)]
    assert got[0].dtype == "float64"
    np.testing.assert_allclose(got, losses, 1e-14)
    np.testing.assert_allclose(step.parameters["w"], last, 1e-13)


def test_a_number_of_python_as_parameter_of_a_step_is_float64_beside_float64():
    x = rng.standard_normal(5)
    step = tn.Step(lambda p, x: ((p["a"] * x - p["b"]) ** 2).mean(), {"a": 0.1, "b": x * 2}, "sgd")
    assert abs(float(step(x)) - ((0.1 * x - 2 * x) ** 2).mean()) < 1e-15
    assert step.parameters["a"].dtype == "float64"


def test_settings_of_a_step_of_float64_keep_their_digits():
    x, y, w = rng.standard_normal((6, 3)), rng.standard_normal(6), rng.standard_normal(3)

    def loss(p, x, y):
        return ((x @ p["w"] - y) ** 2).mean() * tn.setting("factor", 0.7)

    for settings, factor in (({}, 0.7), ({"factor": 0.3}, 0.3), ({"factor": lambda _: 0.3}, 0.3)):
        step = tn.Step(loss, {"w": w.copy()}, tn.optim.sgd(lr=0.1), settings=settings)
        got = [step(x, y) for _ in range(5)]
        np.testing.assert_allclose(got, plain_steps(w, x, y, factor, 0.1, 5)[0], 1e-14)
    assert loss({"w": w}, x, y) == ((x @ w - y) ** 2).mean() * 0.7


def test_an_accumulated_step_of_float64_is_numpys():
    x, y, w = rng.standard_normal((6, 3)), rng.standard_normal(6), rng.standard_normal(3)
    loss = lambda p, x, y: ((x @ p - y) ** 2).mean()  # noqa: E731
    step = tn.Step(loss, w.copy(), tn.optim.sgd(lr=0.1), accumulate=2, average=0.5)
    for _ in range(3):
        step(x[:2], y[:2])
        step(x[2:], y[2:])
    np.testing.assert_allclose(step.parameters, plain_steps(w, x, y, 1, 0.1, 3)[1], 1e-13)


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
    third = tn.vmap(tn.grad(tn.grad(tn.grad(tn.erfinv))))
    np.testing.assert_allclose(third(y), (2 + 8 * z * z) * slopes**3, 1e-10)


def test_slopes_of_erfc_are_those_of_erf_also_in_its_tail():
    x = np.float64([-3, -0.0, 0.5, 2.4, 2.6, 4, 9, 26])
    first = -2 / np.sqrt(np.pi) * np.exp(-x * x)
    slope = tn.vmap(tn.grad(tn.erfc))
    np.testing.assert_allclose(slope(x), first, 1e-13)
    second = tn.vmap(tn.grad(tn.grad(tn.erfc)))
    np.testing.assert_allclose(second(x), -2 * x * first, 1e-13)
    assert tn.grad(tn.grad(tn.erfc))(np.inf) == 0


def test_special_functions_have_their_digits_where_terms_cancel():
    """Figures of mpmath with 40 digits."""
    x = np.float64([0.908, 1.9633333333333334, 2.4966666666666666, 25.6])
    wanted = [
        0.19910489883479541878,
        0.0054935360113561872,
        0.00041427378310434365,
        5.2920352391172097e-287,
    ]
    np.testing.assert_allclose(tn.erfc(x), wanted, 1.5e-15)
    x = np.float64([0.896, 0.999, 1.8159999999999998, 2.001, 2.1390000000000002])
    wanted = [
        0.069411362110949361,
        0.00057803853289138024,
        -0.066430032957584556,
        0.00042310673480011699,
        0.064823844840686145,
    ]
    np.testing.assert_allclose(tn.lgamma(x), wanted, 1.5e-15)
    assert tn.lgamma(np.float64(1)) == tn.lgamma(np.float64(2)) == 0


def test_special_functions_at_their_ends():
    ends = np.float64([-1, 1, 1.5, np.nan])
    np.testing.assert_array_equal(tn.erfinv(ends), [-np.inf, np.inf, np.nan, np.nan])
    poles = np.float64([0, -1, -2, np.inf, -np.inf])
    np.testing.assert_array_equal(tn.lgamma(poles), np.full(5, np.inf))
    np.testing.assert_array_equal(tn.erfc(np.float64([np.inf, -np.inf])), [0, 2])
    np.testing.assert_array_equal(tn.digamma(poles), [-np.inf, np.nan, np.nan, np.inf, np.nan])
